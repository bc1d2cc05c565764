//! What goes wrong, and what people do: whoever has a monitor, a kill, or a wish.
//!
//! Nobody is faster than the machine's word: what somebody does to a QEMU right after it
//! was looked at, and before it is told what follows from that, nobody could see. What
//! somebody has had run is looked at before it dies or hangs.

use sterna_core::Nanos;
use sterna_core::transfer::{Action, End, Event, Step};

use crate::qemu::{Incoming, Qemu, Run, Sending};
use crate::world::World;

/// How long it takes at least until something is started where a QEMU has ended.
const START: Nanos = Nanos::from_millis(30);

impl World {
    /// Something may go wrong; says whether it has.
    pub(crate) fn trouble(&mut self) -> bool {
        let setup = self.setup.clone();
        let mut one_in = |n: u64| self.random.one_in(n);
        if one_in(setup.kills) {
            self.kill();
        } else if one_in(setup.stops) {
            self.tell(Event::Stop);
            self.wake();
        } else if one_in(setup.wishes) {
            self.wish();
        } else if one_in(setup.deaths) {
            let end = self.one_of_both();
            self.die(end);
        } else if one_in(setup.hangs) {
            self.hang();
        } else if one_in(setup.people) {
            self.people();
        } else if one_in(setup.replaces) {
            self.replace();
        } else {
            return false;
        }
        true
    }

    fn one_of_both(&mut self) -> End {
        if self.random.one_in(2) { End::Source } else { End::Receiver }
    }

    /// All that was wrong and can come right does.
    pub(crate) fn calm_down(&mut self) {
        for end in [End::Source, End::Receiver] {
            if let Some(qemu) = self.qemu(end) {
                qemu.hangs = false;
            }
            self.do_late(end);
        }
    }

    fn wake(&mut self) {
        if let Some(operation) = &mut self.operation {
            operation.is_woken = true;
        }
    }

    fn wish(&mut self) {
        let is_late = self.record.step == Step::Committed;
        if self.record.verdict.is_some() || is_late || self.record.cancel {
            return;
        }
        self.record.cancel = true;
        self.must_stay = true;
        self.tell(Event::Cancel);
        self.wake();
    }

    fn die(&mut self, end: End) {
        let is_restless = self.qemu(end).is_none_or(|qemu| qemu.touched);
        if is_restless || self.is_the_only_witness(end) {
            return;
        }
        *self.slot(end) = None;
        self.died_at = self.now;
        match end {
            End::Source => self.sources_died += 1,
            End::Receiver => self.receivers_died += 1,
        }
    }

    /// Whether a daemon could be killed that alone knows that this one has run the guest
    /// which the other one could run, too.
    pub(crate) fn is_the_only_witness(&self, end: End) -> bool {
        let has_come = self.receiver.as_ref().is_some_and(Qemu::has_come);
        let runs = self.source.as_ref().is_some_and(Qemu::runs_the_guest);
        let has_run =
            |it: &Qemu| it.incoming == Incoming::Come && !it.has_come() && !it.foreign;
        let step = self.record.step;
        let is_witness = match end {
            End::Source => has_come && runs && step != Step::Returning,
            End::Receiver => {
                self.receiver.as_ref().is_some_and(has_run) && step != Step::Committed
            }
        };
        is_witness && (self.setup.kills > 0 || self.setup.stops > 0)
    }

    fn hang(&mut self) {
        let end = self.one_of_both();
        if self.is_the_only_witness(end) {
            return;
        }
        let Some(qemu) = self.qemu(end).filter(|it| !it.touched) else { return };
        qemu.hangs = !qemu.hangs;
        qemu.was_silent = true;
        self.do_late(end);
    }

    /// Whether the machine looks at both ends before it has anything run or end.
    fn looks_first(&self) -> bool {
        let Some(operation) = &self.operation else { return true };
        matches!(
            operation.action,
            Action::Wait(_) | Action::AskSent | Action::Commit { .. } | Action::TakeBack
        )
    }

    /// Whether one of them has still to do something that has a guest run, or ends it.
    fn is_told(&self) -> bool {
        let told = |qemu: &Option<Qemu>| {
            let is_word =
                |action: &Action| matches!(action, Action::GoOn(_) | Action::Quit(_));
            qemu.as_ref().is_some_and(|it| it.late.iter().any(is_word))
        };
        told(&self.source) || told(&self.receiver)
    }

    /// Somebody starts another QEMU where one has ended: one that waits for somebody
    /// else's guest, has that, stands still, or runs one. One that has a guest which was
    /// sent to it says no otherwise than ours: only its process tells that it is another.
    fn replace(&mut self) {
        let is_soon = self.now.since(self.died_at) < START;
        if is_soon || !self.looks_first() || self.is_told() {
            return;
        }
        let end = self.one_of_both();
        if self.qemu(end).is_some() || self.record.verdict.is_some() {
            return;
        }
        let (run, incoming) = match self.random.below(5) {
            4 if self.setup.hidden => return,
            4 => (Run::Paused, Incoming::Come),
            0 => (Run::Awaits, Incoming::Untold),
            1 => (Run::Prelaunch, Incoming::Never),
            2 => (Run::Paused, Incoming::Never),
            _ => (Run::Running, Incoming::Never),
        };
        let mut other = self.process(run, incoming);
        other.foreign = true;
        match end {
            // The name of a socket that we have made up is nobody else's.
            End::Receiver if self.setup.by_program => return,
            // The guest is started anew, unless it runs elsewhere.
            End::Source if run == Run::Running => {
                let runs = self.receiver.as_ref().is_some_and(Qemu::runs_the_guest);
                if runs {
                    return;
                }
                self.latest += 1;
                other.memory = Some(self.latest);
                other.touched = true;
                self.meddled = true;
            }
            _ => {}
        }
        *self.slot(end) = Some(other);
    }

    /// Somebody with a monitor of his own.
    fn people(&mut self) {
        let end = self.one_of_both();
        let (looks_first, is_told) = (self.looks_first(), self.is_told());
        let pick = self.random.below(5);
        let (latest, is_committed) = (self.latest, self.record.step == Step::Committed);
        let other_runs = self.other(end).is_some_and(Qemu::runs_the_guest);
        let is_witness = self.is_the_only_witness(end);
        let other_stands = self.other(end).is_none_or(|it| it.run == Run::HandedOver);
        let Some(qemu) = self.qemu(end).filter(|it| !it.hangs && !it.foreign) else {
            return;
        };
        let may_run = !other_runs && qemu.memory == Some(latest) && !is_told;
        match (pick, qemu.run) {
            (0, _) if matches!(qemu.sending, Sending::UnderWay { .. }) => qemu.cancels(),
            (0, _) if looks_first && !is_told => qemu.cancels(),
            // It is paused.
            (1, Run::Running)
                if !qemu.touched
                    && !is_witness
                    && (end == End::Source || is_committed) =>
            {
                qemu.run = Run::Paused;
                qemu.runs_on_our_word = false;
                self.meddled = true;
            }
            // It is let go on, by somebody who sees that it runs nowhere else.
            (2, Run::Paused | Run::HandedOver) if may_run && looks_first => {
                let is_there = end == End::Receiver;
                if is_there && (qemu.was_silent || !other_stands) {
                    return;
                }
                qemu.run = Run::Running;
                qemu.touched = true;
                self.meddled = true;
                self.ran_there |= is_there;
                self.overtaken |= is_there;
            }
            // It is reset.
            (3, Run::HandedOver) if looks_first && !is_told => {
                qemu.run = Run::Prelaunch;
                qemu.memory = None;
                self.meddled = true;
            }
            // It is shut down.
            (3, Run::Running) if !qemu.touched && !is_witness => {
                qemu.run = Run::Shutdown;
                self.meddled = true;
            }
            (4, _) if !qemu.touched => self.die(end),
            _ => {}
        }
    }
}
