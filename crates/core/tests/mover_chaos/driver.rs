//! What the mover asks for is carried out: it takes its time, and its answer may get lost.

use sterna_core::Nanos;
use sterna_core::mover::{
    Action, At, Ended, Event, Failure, GivenUp, Job, MoverStep, Owner, Place, Removed,
    Watched,
};

use crate::images::Role;
use crate::machine::{Qemu, at};
use crate::setup::Mutation;
use crate::world::World;

/// How long an answer of a machine is waited for.
const ANSWER_WITHIN: Nanos = Nanos::from_millis(4_000);

/// What becomes of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is done and answered.
    Fine,
    /// The connection breaks before anybody has heard it.
    CutBefore,
    /// The connection breaks when it is done.
    CutAfter,
    /// It is done later, when nobody waits for its answer any more.
    Late,
}

/// A question that is open.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) action: Action,
    fate: Fate,
    /// Waits end early.
    pub(crate) is_woken: bool,
}

impl Operation {
    /// Whether nothing is asked.
    pub(crate) fn is_a_wait(&self) -> bool {
        matches!(self.action, Action::Wait(_))
    }

    /// Whether the next thing that is heard of the machine is where its job is.
    pub(crate) fn is_a_look(&self) -> bool {
        self.action == Action::Look && self.fate == Fate::Fine
    }
}

fn is_for_machine(action: &Action) -> bool {
    matches!(
        action,
        Action::Look
            | Action::Find
            | Action::Watch(_)
            | Action::CountTimes
            | Action::Begin(_)
            | Action::SetSpeed(_)
            | Action::Complete
            | Action::CallOff
            | Action::GiveUp
            | Action::PutAway
    )
}

/// The answer to something that a machine was asked.
fn failed(action: &Action, failure: Failure) -> Event {
    match action {
        Action::Look => Event::Looked(Err(failure)),
        Action::Find => Event::Found(Err(failure)),
        Action::Watch(_) => Event::Watched(Err(failure)),
        Action::GiveUp => Event::GaveUp(Err(failure)),
        _ => Event::Done(Err(failure)),
    }
}

impl World {
    pub(crate) fn begin(&mut self, action: Action) -> Operation {
        let mut fate = Fate::Fine;
        let is_libvirts = self.is_libvirts();
        if is_for_machine(&action) && !self.calm && !self.completed_by_hand {
            if !is_libvirts && self.random.one_in(self.setup.cuts) {
                let before = self.random.one_in(2);
                fate = if before { Fate::CutBefore } else { Fate::CutAfter };
            } else if self.random.one_in(self.setup.late) {
                fate = Fate::Late;
            }
        }
        Operation { action, fate, is_woken: false }
    }

    /// What is under way when the daemon is killed is done all the same.
    pub(crate) fn land(&mut self, operation: Operation) {
        let Operation { action, fate, .. } = operation;
        if matches!(action, Action::Wait(_)) {
            return;
        }
        let is_file = self.setup.place == Place::File;
        if action == Action::Make && is_file && self.random.one_in(2) {
            // The file is made, and not recorded.
            let _ = self.make_image();
        } else if !is_for_machine(&action) {
            self.do_here(&action);
        } else if fate != Fate::CutBefore {
            self.late.push_back(action);
        }
    }

    pub(crate) fn operation_goes_on(&mut self) {
        let Some(operation) = &self.operation else { return };
        if let Action::Wait(until) = operation.action {
            if self.now < until && !operation.is_woken {
                if !self.random.one_in(3) {
                    return;
                }
                self.now = until;
            }
            self.operation = None;
            return self.tell(Event::Woken);
        }
        let Some(Operation { action, fate, .. }) = self.operation.take() else { return };
        let event = match is_for_machine(&action) {
            true => self.ask_machine(&action, fate),
            false => self.do_here(&action),
        };
        self.tell(event);
    }

    /// What the machine was told before, it does first.
    pub(crate) fn do_late(&mut self) {
        while let Some(action) = self.late.pop_front() {
            if self.qemu.is_some() {
                self.do_there(&action, 9);
            }
        }
    }

    fn ask_machine(&mut self, action: &Action, fate: Fate) -> Event {
        let hangs = self.away || self.qemu.as_ref().is_some_and(|qemu| qemu.hangs);
        if self.qemu.is_none() && !self.is_libvirts() {
            return failed(action, Failure::Nobody("nobody listens".into()));
        }
        let is_away = self.is_libvirts() && self.away;
        let is_off = self.qemu.is_none();
        if is_away || hangs && !is_off || fate == Fate::Late {
            self.now = self.now.plus(ANSWER_WITHIN);
            self.excused |= self.is_libvirts();
            if !is_off && !matches!(action, Action::Look | Action::Find) {
                self.late.push_back(action.clone());
            }
            return failed(action, Failure::Silent("no answer".into()));
        }
        self.do_late();
        let cut = || failed(action, Failure::Cut("the connection broke".into()));
        match fate {
            Fate::CutBefore => cut(),
            Fate::CutAfter => {
                let far = self.random.below(4);
                self.do_there(action, far);
                cut()
            }
            Fate::Fine | Fate::Late => self.do_there(action, 9),
        }
    }

    /// The machine does it; what has several parts, as `far` as that.
    fn do_there(&mut self, action: &Action, far: u64) -> Event {
        let owner = self.setup.owner;
        let refuses = self.is_libvirts() && !self.calm;
        if refuses
            && matches!(action, Action::Begin(_) | Action::Complete | Action::CallOff)
            && self.random.one_in(self.setup.refusals)
        {
            self.excused = true;
            return failed(action, Failure::Refused("libvirt refuses".into()));
        }
        let Some(qemu) = &mut self.qemu else { return self.ask_kept(action) };
        self.unseen_start = false;
        match action {
            Action::Look => {
                let job = qemu.look(owner, &self.images);
                Event::Looked(Ok(self.as_it_says(job)))
            }
            Action::Find => {
                let found = qemu.at(&self.images);
                let vanished =
                    qemu.mirror.is_none() && self.record.step != MoverStep::Created;
                match self.setup.mutation {
                    Some(Mutation::VanishedIsMoved) if vanished => {
                        Event::Found(Ok(At::Destination))
                    }
                    _ => Event::Found(Ok(found)),
                }
            }
            Action::Watch(_) => {
                let there = qemu.device.is_some();
                let slow = !self.calm && self.random.one_in(4);
                Event::Watched(Ok(Watched { there, allowed: slow.then_some(0) }))
            }
            Action::CountTimes => Event::Done(Ok(())),
            Action::Begin(speed) => self.begin_there(*speed, far),
            Action::SetSpeed(speed) => Event::Done(qemu.set_speed(*speed)),
            Action::Complete => Event::Done(qemu.complete()),
            Action::CallOff => self.call_off_there(),
            Action::GiveUp => {
                let had = qemu.mirror.is_some();
                let found = qemu.give_up(owner, &self.images, far);
                let is_dismissed = had && qemu.mirror.is_none();
                let is_switching = self.record.step == MoverStep::Switching;
                self.excused |= is_dismissed && is_switching && far < 9;
                self.gave_up_at_switching(is_dismissed && is_switching);
                Event::GaveUp(Ok(found))
            }
            Action::PutAway => {
                qemu.mirror = None;
                Event::Done(Ok(()))
            }
            action => unreachable!("{action:?} is not for a machine"),
        }
    }

    /// What QEMU has forgotten while it was to switch over, another daemon cannot know.
    fn gave_up_at_switching(&mut self, is: bool) {
        self.excused |= is && (self.setup.kills > 0 || self.setup.stops > 0);
    }

    fn begin_there(&mut self, speed: u64, far: u64) -> Event {
        let makes_file = self.is_libvirts() && self.setup.place == Place::File;
        let Some(qemu) = &mut self.qemu else { unreachable!("it is there") };
        if makes_file {
            if self.images.destination.is_some() || qemu.device.is_none() {
                return Event::Done(Err(Failure::Refused("it exists".into())));
            }
            self.images.make_destination(Role::None, self.now);
        }
        let Some(to) = self.images.destination else {
            return Event::Done(Err(Failure::Refused("no such file".into())));
        };
        if let Err(failure) = qemu.add_node(to) {
            return Event::Done(Err(failure));
        }
        if far == 0 {
            return Event::Done(Ok(()));
        }
        let begun = match self.resized {
            true => Err(Failure::Refused("different sizes".into())),
            false => qemu.begin(&self.images, speed == 1),
        };
        if begun.is_err() && self.setup.owner == Owner::Libvirt {
            qemu.node = None;
            if makes_file {
                self.images.remove_destination();
            }
        }
        Event::Done(begun)
    }

    fn call_off_there(&mut self) -> Event {
        let Some(qemu) = &mut self.qemu else { unreachable!("it is there") };
        let completing = qemu.mirror.as_ref().is_some_and(|mirror| {
            matches!(
                mirror.phase,
                crate::machine::Phase::Running { completing: true, .. }
            )
        });
        if self.setup.owner == Owner::Libvirt {
            if completing || qemu.mirror.is_none() {
                return Event::Done(Err(Failure::Refused("it pivots".into())));
            }
            // libvirt forgets a job that has ended.
            qemu.mirror = None;
            qemu.node = None;
            self.gave_up_at_switching(self.record.step == MoverStep::Switching);
            return Event::Done(Ok(()));
        }
        qemu.cancel();
        Event::Done(Ok(()))
    }

    /// libvirt answers for a machine that is off.
    fn ask_kept(&mut self, action: &Action) -> Event {
        match action {
            Action::Look => Event::Looked(Ok(self.look_at_kept())),
            Action::Find => Event::Found(Ok(at(Some(self.kept), &self.images))),
            Action::GiveUp => Event::GaveUp(Ok(GivenUp::Nothing)),
            Action::Watch(_) => {
                Event::Watched(Ok(Watched { there: false, allowed: None }))
            }
            action => failed(action, Failure::Nobody("it is off".into())),
        }
    }

    /// What is said of a job, which may not be so.
    fn as_it_says(&mut self, job: Job) -> Job {
        let is_under_way = matches!(job, Job::Copying { .. } | Job::Ready { .. });
        if is_under_way && !self.calm && self.random.one_in(self.setup.lies) {
            return match self.random.one_in(2) {
                true => Job::Ready { done: 7 },
                false => Job::Ended(Ended::Clean),
            };
        }
        match (self.setup.mutation, job) {
            (Some(Mutation::VanishedIsMoved), Job::Unknown) => Job::Ended(Ended::Clean),
            (_, job) => job,
        }
    }

    /// What is done here: files, disks of ours, the state.
    fn do_here(&mut self, action: &Action) -> Event {
        match action {
            Action::ReadWishes => {
                let known = self.calm || !self.random.one_in(self.setup.store_fails);
                Event::Wished(known.then_some(self.record.wishes))
            }
            Action::Record(step) => self.store(|world| {
                if *step == MoverStep::Copying {
                    world.record_file();
                }
                world.record.advance(*step);
            }),
            Action::RecordSwitching => {
                if self.setup.mutation == Some(Mutation::TellsBeforeItIsDurable) {
                    return Event::MaySwitch(Ok(true));
                }
                let mut may = true;
                let stored = self.store(|world| may = world.record.switches());
                match stored {
                    Event::Stored(Err(why)) => Event::MaySwitch(Err(why)),
                    _ => Event::MaySwitch(Ok(may)),
                }
            }
            Action::Close(verdict) => self.store(|world| {
                // If it was durable already, what was done by hand has come since.
                if world.record.verdict.is_none() {
                    world.check_verdict(verdict);
                    world.completed_by_hand = false;
                }
                world.record.close(verdict);
            }),
            Action::RecordTidy(tidied) => self.store(|world| world.record.tidy(tidied)),
            action => self.do_with_image(action),
        }
    }

    /// The state takes it, or does not, or does and says that it has not.
    fn store(&mut self, change: impl FnOnce(&mut World)) -> Event {
        let fails = !self.calm && self.random.one_in(self.setup.store_fails);
        if !fails || self.random.one_in(2) {
            change(self);
        }
        Event::Stored(if fails { Err("the state fails".into()) } else { Ok(()) })
    }

    fn do_with_image(&mut self, action: &Action) -> Event {
        let fails = !self.calm && self.random.one_in(self.setup.image_fails);
        match action {
            Action::Peek => {
                let blank = self.images.destination.is_some_and(|at| {
                    let image = &self.images.all[at];
                    let is_new = image.born >= self.asked_for;
                    let is_it = self.record.file.is_none_or(|made| made == at);
                    is_new && is_it && image.blocks.iter().all(|block| *block == 0)
                });
                Event::Peeked(blank)
            }
            Action::Make => Event::Made(self.make(fails)),
            Action::Remove => Event::Removed(self.remove(fails)),
            Action::Seal if fails => Event::Sealed(Err("no answer".into())),
            Action::Seal if self.setup.place == Place::File => Event::Sealed(Ok(self
                .known
                .is_none()
                || self.known == self.images.destination)),
            Action::Seal => Event::Sealed(Ok(self.call_it(Role::Active))),
            Action::Unseal if fails => Event::Stored(Err("no answer".into())),
            Action::Unseal => {
                self.call_it(Role::Partial);
                Event::Stored(Ok(()))
            }
            action => unreachable!("{action:?} is not done here"),
        }
    }

    /// Has the disk of ours say what it is; says whether it is one.
    fn call_it(&mut self, role: Role) -> bool {
        let Some(at) = self.images.destination else { return false };
        let image = &mut self.images.all[at];
        if image.role == Role::None {
            return false;
        }
        image.role = role;
        true
    }

    /// Makes the image, and makes it durable which file that is.
    fn make(&mut self, fails: bool) -> Result<Option<u64>, String> {
        if fails {
            return Err("there is no room".into());
        }
        self.known = None;
        self.make_image()?;
        let is_file = self.setup.place == Place::File && self.known.is_some();
        if is_file && let Event::Stored(Err(why)) = self.store(World::record_file) {
            self.images.remove_destination();
            return Err(why);
        }
        Ok(None)
    }

    fn record_file(&mut self) {
        if self.setup.place == Place::File && !self.setup.forgets_files {
            self.record.file = self.known.or(self.record.file);
        }
    }

    fn make_image(&mut self) -> Result<(), String> {
        let found = self.images.destination.map(|at| self.images.all[at].role);
        let role = match (self.setup.place, found) {
            (Place::Disk, Some(Role::Partial)) => return Ok(()),
            (_, Some(_)) => return Err("it exists already".into()),
            (Place::Disk, None) => Role::Partial,
            (Place::File, None) => Role::None,
        };
        if self.setup.place == Place::Disk || !self.is_libvirts() {
            self.known = Some(self.images.make_destination(role, self.now));
        }
        Ok(())
    }

    fn remove(&mut self, fails: bool) -> Result<Removed, String> {
        let Some(at) = self.images.destination else { return Ok(Removed::Kept) };
        if fails {
            return Err("the datastore is away".into());
        }
        if self.setup.place == Place::Disk {
            let is_used = |qemu: &Qemu| qemu.node == Some(at) || qemu.device == Some(at);
            match self.images.all[at].role {
                Role::Partial if self.qemu.as_ref().is_some_and(is_used) => {
                    return Err("it is in use".into());
                }
                Role::Partial => {}
                Role::Active | Role::None => return Ok(Removed::Kept),
            }
        } else if self.setup.mutation != Some(Mutation::RemovesByName) {
            match self.known {
                None => return Ok(Removed::Kept),
                Some(known) if known != at => return Ok(Removed::Another),
                Some(_) => {}
            }
        }
        let copies = self.qemu.as_ref().is_some_and(|qemu| qemu.copies_to(at));
        assert!(!copies, "removed, and QEMU can still switch over to it");
        self.images.remove_destination();
        Ok(Removed::Gone)
    }
}
