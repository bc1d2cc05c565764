//! What goes wrong, and what people do: whoever has a monitor, a plug, or a wish.

use sterna_core::Nanos;
use sterna_core::mover::{Ended, Event, MoverStep, Owner, Place};

use crate::driver::Operation;
use crate::images::{OTHER, Role, SOURCE};
use crate::machine::{Phase, Qemu};
use crate::setup::Setup;
use crate::world::World;

/// How long it takes at least until a machine that has ended is there again.
const START: Nanos = Nanos::from_millis(2_000);

impl Setup {
    /// Whether nothing goes wrong, and nobody wants anything.
    pub(crate) fn is_quiet(&self) -> bool {
        let troubles = [
            self.deaths,
            self.hangs,
            self.cuts,
            self.late,
            self.kills,
            self.stops,
            self.wishes,
            self.people,
            self.completes,
            self.unplugs,
            self.lies,
            self.refusals,
            self.store_fails,
            self.image_fails,
            self.replaces,
        ];
        let is_free = !self.occupied && self.mutation.is_none();
        troubles.iter().all(|trouble| *trouble == 0) && is_free
    }
}

impl World {
    /// Something may go wrong; says whether it has.
    pub(crate) fn trouble(&mut self) -> bool {
        let setup = self.setup.clone();
        let mut one_in = |n: u64| self.random.one_in(n);
        if one_in(setup.kills) {
            self.kill();
        } else if one_in(setup.stops) {
            self.stop();
        } else if one_in(setup.wishes) {
            self.wish();
        } else if one_in(setup.replaces) {
            self.replace();
        } else if self.completed_by_hand {
            return false;
        } else if one_in(setup.deaths) {
            self.die_or_start();
        } else if one_in(setup.hangs) {
            self.hang();
        } else if one_in(setup.people) {
            self.people();
        } else if one_in(setup.completes) {
            self.complete_by_hand();
        } else if one_in(setup.unplugs) {
            self.unplug();
        } else {
            return false;
        }
        true
    }

    /// All that was wrong and can come right does.
    pub(crate) fn calm_down(&mut self) {
        self.away = false;
        if let Some(qemu) = &mut self.qemu {
            qemu.hangs = false;
        }
        self.is_back();
        self.record.wishes.paused = false;
        self.tell(Event::Asked);
    }

    /// libvirt sees what QEMU has done meanwhile.
    fn is_back(&mut self) {
        self.do_late();
        if let Some(device) = self.qemu.as_ref().and_then(|qemu| qemu.device) {
            self.kept = device;
        }
    }

    fn stop(&mut self) {
        self.was_killed = true;
        self.was_killed_since |= self.was_by_hand;
        self.tell(Event::Stop);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(operation) = &mut self.operation {
            operation.is_woken = true;
        }
    }

    fn wish(&mut self) {
        let record = &mut self.record;
        if record.verdict.is_some() || record.wishes.cancel {
            return;
        }
        let cancels = self.random.one_in(4);
        let is_late = match record.step {
            MoverStep::Switching if cancels => self.setup.owner == Owner::Libvirt,
            step => matches!(step, MoverStep::Switching | MoverStep::Committed),
        };
        if is_late {
            return;
        }
        if cancels {
            record.wishes.cancel = true;
            self.must_stay |= record.step != MoverStep::Switching;
        } else if self.random.one_in(2) {
            record.wishes.paused = !record.wishes.paused;
        } else {
            record.wishes.rate = self.random.one_in(2).then_some(1 << 20);
        }
        self.tell(Event::Asked);
        self.wake();
    }

    /// Somebody puts another file in the copy's place, once it is known which that is
    /// and QEMU has it; or does so while no daemon runs, which nobody sees; or has the image
    /// of a disk of ours say that it is another's.
    fn replace(&mut self) {
        let Some(at) = self.images.destination else { return };
        if self.mover.is_none() && self.setup.place == Place::File {
            return self.images.rename_onto_destination(self.now);
        }
        let is_open = self.qemu.as_ref().is_some_and(|qemu| qemu.node == Some(at));
        let image = &mut self.images.all[at];
        if is_open && image.role == Role::Partial {
            image.role = Role::None;
            self.excused = true;
            return;
        }
        if is_open && self.known == Some(at) && self.setup.place == Place::File {
            // One as empty as a new copy is taken for what a daemon has left that was killed.
            match self.setup.kills == 0 && self.setup.stops == 0 {
                true => self.images.replace_destination(self.now),
                false => self.images.rename_onto_destination(self.now),
            }
        }
    }

    /// The machine ends, or is started: with what libvirt keeps, or with what somebody
    /// takes for the latest.
    fn die_or_start(&mut self) {
        self.excused = true;
        self.deaths_since += u64::from(self.was_by_hand);
        if let Some(qemu) = self.qemu.take() {
            self.late.clear();
            self.died_at = self.now;
            if self.setup.owner == Owner::Qemu
                && let Some(device) = qemu.device
            {
                self.kept = device;
            }
            return;
        }
        if self.now.since(self.died_at) < START {
            return;
        }
        let mut device = Some(self.kept);
        if self.setup.owner == Owner::Qemu {
            let copy = self.copy().filter(|copy| Some(*copy) == self.images.destination);
            device = match (self.random.below(8), copy) {
                (0, _) => None,
                (1, _) => Some(OTHER),
                (2, Some(copy)) => Some(copy),
                (3, _) => Some(SOURCE),
                _ => device,
            };
        }
        if let Some(device) = device {
            // Whether it lacks something or not: it goes its own way from here.
            self.split |= device != self.kept || self.truth_is_split();
            self.images.all[device].was_used = true;
            self.kept = device;
        }
        self.qemu = Some(Qemu::new(device));
        self.unseen_start = true;
    }

    /// Whether libvirt does not know of a switch-over.
    fn truth_is_split(&self) -> bool {
        let copy = self.copy().map(|copy| &self.images.all[copy]);
        self.kept == SOURCE && copy.is_some_and(|copy| copy.was_used)
    }

    fn hang(&mut self) {
        self.excused |= self.is_libvirts();
        let Some(qemu) = &mut self.qemu else { return };
        if self.setup.owner == Owner::Libvirt && self.random.one_in(2) {
            self.away = !self.away;
        } else {
            qemu.hangs = !qemu.hangs;
        }
        let hangs = self.away || self.qemu.as_ref().is_some_and(|qemu| qemu.hangs);
        if !hangs {
            self.is_back();
        }
    }

    /// Somebody with a monitor of his own.
    fn people(&mut self) {
        let is_libvirts = self.is_libvirts();
        let pick = self.random.below(5);
        if pick == 3 {
            return self.complete_by_hand();
        }
        let Some(qemu) = self.qemu.as_mut().filter(|qemu| !qemu.hangs) else { return };
        let Some(mirror) = &qemu.mirror else { return };
        let is_over = matches!(mirror.phase, Phase::Over(_));
        match pick {
            0 => qemu.cancel(),
            1 => qemu.cancel_softly(),
            2 if is_over => {
                qemu.mirror = None;
                self.excused = true;
            }
            _ => return,
        }
        // libvirt forgets a job that has ended.
        self.excused |= is_libvirts;
        self.libvirt_forgets();
    }

    /// Somebody else has QEMU switch over. That is looked at before anything is said of it,
    /// unless that was said while QEMU was silent; and nobody else is in the way until then.
    fn complete_by_hand(&mut self) {
        let is_next = |operation: &Operation| {
            operation.is_a_look() || self.record.untidy && operation.is_a_wait()
        };
        let is_looked_at =
            self.late.is_empty() && self.operation.as_ref().is_none_or(is_next);
        let Some(qemu) = self.qemu.as_mut().filter(|qemu| !qemu.hangs) else { return };
        if !qemu.is_ready() || self.away || !is_looked_at {
            return;
        }
        self.completed_by_hand = qemu.complete().is_ok();
        self.was_by_hand |= self.completed_by_hand;
        self.excused |= self.is_libvirts();
    }

    fn libvirt_forgets(&mut self) {
        let Some(qemu) = &mut self.qemu else { return };
        let ended = qemu.mirror.as_ref().map(|mirror| mirror.phase.clone());
        let is_moved = qemu.node.is_some() && qemu.node == qemu.device;
        if self.setup.owner == Owner::Libvirt
            && matches!(ended, Some(Phase::Over(_)))
            && !is_moved
        {
            qemu.mirror = None;
            qemu.node = None;
        }
    }

    /// A disk is unplugged, and another plugged in its place; or it gets another size.
    fn unplug(&mut self) {
        let old_drive = self.setup.old_drive;
        let plugs = self.setup.plugs_again && self.random.one_in(2);
        let resizes = self.setup.plugs_again && self.random.one_in(6);
        let Some(qemu) = self.qemu.as_mut().filter(|qemu| !qemu.hangs) else { return };
        if self.setup.owner == Owner::Libvirt && qemu.mirror.is_some() {
            return;
        }
        if resizes {
            // QEMU refuses that while a job has the disk.
            self.resized |= qemu.mirror.is_none();
            return;
        }
        if self.setup.owner == Owner::Libvirt {
            return;
        }
        match qemu.device {
            Some(device) => {
                self.kept = device;
                qemu.device = None;
                if old_drive {
                    qemu.cancel_softly();
                }
                self.unplugged_at = Some(self.now);
                self.excused |= self.setup.plugs_again || self.is_at_its_end();
            }
            None if plugs => {
                let back = if self.random.one_in(2) { OTHER } else { self.kept };
                qemu.device = Some(back);
                // What was switched over to may have more than the old one.
                self.split = true;
                self.excused = true;
            }
            None => {}
        }
    }

    /// Whether QEMU may be at the switch-over.
    fn is_at_its_end(&self) -> bool {
        let is_over = |qemu: &Qemu| {
            let phase = qemu.mirror.as_ref().map(|mirror| &mirror.phase);
            matches!(phase, Some(Phase::Over(Ended::Clean)))
        };
        self.qemu.as_ref().is_some_and(is_over) || self.record.step != MoverStep::Copying
    }
}
