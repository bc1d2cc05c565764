//! What the machine asks for is carried out: it takes its time, and its answer may get
//! lost.

use sterna_core::Nanos;
use sterna_core::transfer::{
    Action, End, Event, Failure, Guest, Left, Sent, Stand, Step, Verdict,
};

use crate::qemu::{Incoming, Qemu, Run, Sending};
use crate::setup::Mutation;
use crate::world::World;

/// How long an answer of a QEMU is waited for.
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

/// Which QEMU is asked, if one is.
fn asks(action: &Action) -> Option<End> {
    Some(match action {
        Action::Send | Action::GiveUp | Action::AskSent | Action::AskLeft => End::Source,
        Action::Receive | Action::AskStand => End::Receiver,
        Action::GoOn(end) | Action::Quit(end) => *end,
        _ => return None,
    })
}

fn is_a_look(action: &Action) -> bool {
    matches!(action, Action::AskSent | Action::AskLeft | Action::AskStand)
}

/// The answer of a QEMU that does not do it.
fn failed(action: &Action, failure: Failure) -> Event {
    match action {
        Action::AskSent => Event::Sent(Err(failure)),
        Action::AskLeft => Event::Left(Err(failure)),
        Action::AskStand => Event::Stands(Err(failure)),
        Action::Quit(_) => Event::Quit(matches!(failure, Failure::Nobody(_))),
        _ => Event::Done(Err(failure)),
    }
}

impl World {
    pub(crate) fn begin(&mut self, action: Action) -> Operation {
        let mut fate = Fate::Fine;
        if asks(&action).is_some() && !self.calm {
            if self.random.one_in(self.setup.cuts) {
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
        match asks(&action) {
            Some(_) if fate == Fate::CutBefore || is_a_look(&action) => {}
            Some(end) => {
                if let Some(qemu) = self.qemu(end) {
                    qemu.late.push_back(action);
                }
            }
            None if matches!(action, Action::Wait(_)) => {}
            None => drop(self.do_here(&action)),
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
        let event = match asks(&action) {
            Some(end) => self.ask_qemu(end, &action, fate),
            None => self.do_here(&action),
        };
        self.tell(event);
    }

    /// What a QEMU was told before, it does first.
    pub(crate) fn do_late(&mut self, end: End) {
        while let Some(qemu) = self.qemu(end)
            && !qemu.hangs
            && let Some(action) = qemu.late.pop_front()
        {
            self.do_there(end, &action);
        }
    }

    fn ask_qemu(&mut self, end: End, action: &Action, fate: Fate) -> Event {
        let is_witness = self.is_the_only_witness(end);
        if let Some(failure) = self.is_another(end, action) {
            return failed(action, failure);
        }
        let Some(qemu) = self.qemu(end) else {
            return failed(action, Failure::Nobody("nobody listens".into()));
        };
        // What somebody has had it do is looked at before it does anything else.
        let fate = if qemu.touched || is_witness { Fate::Fine } else { fate };
        if qemu.hangs || fate == Fate::Late {
            qemu.was_silent = true;
            if !is_a_look(action) {
                qemu.late.push_back(action.clone());
            }
            self.now = self.now.plus(ANSWER_WITHIN);
            return failed(action, Failure::Silent("no answer".into()));
        }
        self.do_late(end);
        let cut = || failed(action, Failure::Cut("the connection broke".into()));
        match fate {
            _ if self.qemu(end).is_none() => {
                failed(action, Failure::Nobody("it has ended".into()))
            }
            Fate::CutBefore => cut(),
            Fate::CutAfter => {
                self.do_there(end, action);
                cut()
            }
            Fate::Fine | Fate::Late => self.do_there(end, action),
        }
    }

    /// The process that is told of the guest is known from then on: another one is not it.
    fn is_another(&mut self, end: End, action: &Action) -> Option<Failure> {
        let receiver = self.receiver.as_ref().filter(|_| end == End::Receiver)?;
        let takes_any = self.setup.mutation == Some(Mutation::TakesAnyProcess);
        if *action == Action::Receive && !self.setup.hidden && !receiver.hangs {
            self.known = Some(receiver.id);
        }
        let is_known = self.known.is_none_or(|known| known == receiver.id) || takes_any;
        (!is_known).then(|| Failure::Nobody("another process is there".into()))
    }

    fn do_there(&mut self, end: End, action: &Action) -> Event {
        if is_a_look(action) {
            return self.look(end, action);
        }
        let refuses = !self.calm && self.random.one_in(self.setup.refusals);
        let refused = Event::Done(Err(Failure::Refused("it refuses".into())));
        match action {
            Action::GiveUp => {
                if let Some(qemu) = self.qemu(end) {
                    qemu.cancels();
                }
                Event::Done(Ok(()))
            }
            Action::Receive => match self.qemu(end) {
                Some(qemu) if qemu.incoming == Incoming::Untold && !refuses => {
                    qemu.incoming = Incoming::Listens;
                    Event::Done(Ok(()))
                }
                _ => refused,
            },
            Action::Send if refuses => refused,
            Action::Send => self.begin_to_send(),
            Action::GoOn(_) if refuses => refused,
            Action::GoOn(end) => {
                self.goes_on(*end);
                Event::Done(Ok(()))
            }
            Action::Quit(end) => self.quit(*end),
            action => unreachable!("{action:?} is not for a QEMU"),
        }
    }

    fn begin_to_send(&mut self) -> Event {
        let parts = self.setup.parts;
        let receiver = self.receiver.as_ref();
        let listens = receiver.filter(|it| it.incoming == Incoming::Listens);
        let to = listens.map(|it| it.id);
        assert_ne!(
            self.record.step,
            Step::Created,
            "it is sent, and that is not durable"
        );
        let Some(source) = &mut self.source else { unreachable!("it is there") };
        if source.sending != Sending::Nothing || source.memory.is_none() {
            return Event::Done(Err(Failure::Refused("it sends".into())));
        }
        source.sending = match to {
            Some(to) => Sending::UnderWay { to, parts, passes: 0 },
            None => Sending::Failed,
        };
        Event::Done(Ok(()))
    }

    /// It is had to run the guest, on our word: may it?
    fn goes_on(&mut self, end: End) {
        let latest = self.latest;
        let durable = match end {
            End::Source => Step::Returning,
            End::Receiver => Step::Committed,
        };
        assert_eq!(self.record.step, durable, "the {end:?} runs it, that is not durable");
        let other_runs = self.other(end).is_some_and(Qemu::runs_the_guest);
        let Some(qemu) = self.qemu(end) else { return };
        if qemu.run == Run::Running {
            return;
        }
        assert!(!qemu.foreign, "somebody else's QEMU is had to run");
        assert!(qemu.memory.is_some(), "the {end:?} has no guest to run");
        assert!(!other_runs, "the guest runs at two QEMUs");
        assert_eq!(qemu.memory, Some(latest), "it runs from older memory");
        qemu.run = Run::Running;
        qemu.runs_on_our_word = true;
        self.ran_there |= end == End::Receiver;
    }

    fn quit(&mut self, end: End) -> Event {
        let by_program = self.setup.by_program;
        let Some(qemu) = self.qemu(end) else { return Event::Quit(true) };
        assert!(!qemu.foreign, "somebody else's QEMU is ended");
        assert!(!qemu.runs_the_guest(), "a QEMU is ended that runs the guest");
        let is_told = qemu.incoming != Incoming::Untold || by_program;
        assert!(end == End::Source || is_told, "one is ended that was told nothing");
        *self.slot(end) = None;
        Event::Quit(true)
    }

    /// What a QEMU says, which may not be so.
    fn look(&mut self, end: End, action: &Action) -> Event {
        let lies = !self.calm && self.random.one_in(self.setup.lies);
        let pick = self.random.below(3);
        let mutation = self.setup.mutation;
        let Some(qemu) = self.qemu(end) else { unreachable!("it is there") };
        // That it runs what it has handed over, it says only if it is asked for that.
        qemu.touched &= *action == Action::AskSent && qemu.sending == Sending::All;
        let vanished = matches!(
            qemu.sending,
            Sending::Nothing | Sending::Failed | Sending::Cancelled
        ) && mutation == Some(Mutation::VanishedIsDone);
        match action {
            Action::AskSent if vanished => Event::Sent(Ok(Sent::All)),
            Action::AskLeft if vanished => Event::Left(Ok(Left::Stands)),
            Action::AskSent => Event::Sent(Ok(match (qemu.sent(), pick) {
                (Sent::UnderWay { .. }, 0) if lies => Sent::All,
                (Sent::UnderWay { .. }, 1) if lies => Sent::Stayed(None),
                (Sent::UnderWay { .. }, _) if lies => Sent::Nothing,
                (sent, _) => sent,
            })),
            Action::AskLeft => Event::Left(Ok(match qemu.left() {
                Left::Stands if lies => Left::HandsOver,
                left => left,
            })),
            _ => Event::Stands(Ok(self.stand_as_said(lies))),
        }
    }

    fn stand_as_said(&mut self, lies: bool) -> Stand {
        // It says a little late that it has the guest.
        let lies = lies && self.record.step != Step::Committed;
        let Some(qemu) = &self.receiver else { unreachable!("it is there") };
        match (qemu.stand(), self.setup.mutation) {
            (Stand::Has(Guest::Still), _) if lies => Stand::Awaits,
            (Stand::Awaits, Some(Mutation::VanishedIsDone)) => Stand::Has(Guest::Still),
            (Stand::Idle, Some(Mutation::GoesByTheSocket)) => Stand::Awaits,
            (Stand::Stranger(Guest::Still), Some(Mutation::GoesByTheSocket)) => {
                Stand::Has(Guest::Still)
            }
            (stand, _) => stand,
        }
    }

    /// What is done here: the program that starts QEMUs, and the state.
    fn do_here(&mut self, action: &Action) -> Event {
        match action {
            Action::Start => self.start_receiver(),
            Action::Check => Event::Prepared(self.check()),
            Action::RecordCopying => self.store(|world| world.record.copies(world.known)),
            Action::TakeBack => {
                let is_mutant =
                    self.setup.mutation == Some(Mutation::RunsBeforeItIsTakenBack);
                match is_mutant {
                    true => Event::Stored(Ok(())),
                    false => self.store(|world| world.record.takes_back()),
                }
            }
            Action::Commit { heeds } => {
                if self.setup.mutation == Some(Mutation::RunsBeforeTheCommit) {
                    return Event::Committed(Ok(true));
                }
                let mut is = true;
                let stored = self.store(|world| is = world.record.commits(*heeds));
                match stored {
                    Event::Stored(Err(why)) => Event::Committed(Err(why)),
                    _ => Event::Committed(Ok(is)),
                }
            }
            Action::Close(verdict) => self.close(verdict),
            action => unreachable!("{action:?} is not done here"),
        }
    }

    fn close(&mut self, verdict: &Verdict) -> Event {
        self.store(|world| {
            if world.record.verdict.is_none() {
                world.check_verdict(verdict);
            }
            world.record.close(verdict);
        })
    }

    /// The state takes it, or does not, or does and says that it has not.
    fn store(&mut self, change: impl FnOnce(&mut World)) -> Event {
        let fails = !self.calm && self.random.one_in(self.setup.store_fails);
        if !fails || self.random.one_in(2) {
            change(self);
        }
        Event::Stored(if fails { Err("the state fails".into()) } else { Ok(()) })
    }

    fn start_receiver(&mut self) -> Event {
        let fails = !self.calm && self.random.one_in(self.setup.refusals);
        if self.receiver.is_none() && !(fails && self.random.one_in(2)) {
            let receiver = self.process(Run::Awaits, Incoming::Untold);
            self.receiver = Some(receiver);
        }
        let started = if fails { Err("the program fails".into()) } else { Ok(()) };
        Event::Prepared(started)
    }

    fn check(&self) -> Result<(), String> {
        let waits = |qemu: &Qemu| qemu.incoming == Incoming::Untold && !qemu.foreign;
        match (&self.source, &self.receiver) {
            (Some(source), Some(receiver)) if source.hangs || receiver.hangs => {
                Err("no answer".into())
            }
            (Some(_), Some(receiver)) if waits(receiver) => Ok(()),
            _ => Err("it does not wait".into()),
        }
    }
}
