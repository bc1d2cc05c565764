//! All of the guest was sent: once it has come, it becomes the receiver's.
//!
//! That the source says *sent* is not enough: it must stand still, having handed over, or
//! have ended, and the receiver must have the guest. What was handed over and has run since
//! does not stand like that any more, so the receiver's is never older than the source's.

use super::event::{Action, Event, Failure, Guest, Left, Stand, Trouble};
use super::state::{Handing, Receiver, Sender, State, Then};
use super::verdict::Why;
use super::{AGAIN, HANDOVER, SHORT, Step, Transfer};
use crate::Nanos;

impl Transfer {
    pub(super) fn hand_over(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.hands(Handing::Leaving(now.plus(HANDOVER)), Action::AskLeft, out);
    }

    fn hands(&mut self, stage: Handing, action: Action, out: &mut Vec<Action>) {
        self.ask(State::Handing(stage), action, out);
    }

    /// Waits until all has come.
    pub(super) fn await_guest(
        &mut self,
        sender: Sender,
        until: Nanos,
        out: &mut Vec<Action>,
    ) {
        self.hands(Handing::Coming(sender, until), Action::AskStand, out);
    }

    /// The receiver has it, and is to keep it.
    pub(super) fn commit(&mut self, sender: Sender, out: &mut Vec<Action>) {
        let heeds = sender == Sender::Stands;
        self.hands(Handing::Committing(sender), Action::Commit { heeds }, out);
    }

    pub(super) fn handing(
        &mut self,
        now: Nanos,
        stage: Handing,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Handing::Leaving(until), Event::Left(left)) => {
                self.leaves(now, until, left, out);
            }
            (Handing::Pausing(until), Event::Woken) => {
                self.hands(Handing::Leaving(until), Action::AskLeft, out);
            }
            (Handing::Coming(sender, until), Event::Stands(stand)) => {
                self.comes(now, sender, until, stand, out);
            }
            (Handing::Waiting(sender, until), Event::Woken) => {
                self.await_guest(sender, until, out);
            }
            (Handing::Committing(_), Event::Committed(Ok(true))) => {
                self.step = Step::Committed;
                self.run(out);
            }
            (Handing::Committing(_), Event::Committed(Ok(false))) => {
                self.give_back(Why::Asked, Then::GiveUp, out);
            }
            // It may be durable all the same.
            (Handing::Committing(Sender::Stands), Event::Committed(Err(why))) => {
                self.give_back(Why::NotRecorded(why), Then::GiveUp, out);
            }
            // There is nowhere to go back to.
            (Handing::Committing(sender), Event::Committed(Err(why))) => {
                out.push(Action::Tell(Trouble::NotRecorded(why)));
                let wait = Action::Wait(now.plus(AGAIN));
                self.hands(Handing::Resting(sender), wait, out);
            }
            (Handing::Resting(_), Event::Woken) if self.stopping => self.over(out),
            (Handing::Resting(sender), Event::Woken) => self.commit(sender, out),
            (stage, answer) => self.astray(State::Handing(stage), &answer),
        }
    }

    fn leaves(
        &mut self,
        now: Nanos,
        until: Nanos,
        left: Result<Left, Failure>,
        out: &mut Vec<Action>,
    ) {
        match left {
            // QEMU says a little earlier that all was sent.
            Ok(Left::HandsOver) if now < until => {
                let wait = Action::Wait(now.plus(SHORT));
                self.hands(Handing::Pausing(until), wait, out);
            }
            Ok(Left::HandsOver) => self.rest(now, Trouble::Source(unending()), out),
            Ok(Left::Stands) => {
                self.await_guest(Sender::Stands, now.plus(HANDOVER), out);
            }
            Ok(Left::Runs | Left::Otherwise(_)) => {
                self.give_back(Why::GoesOn, Then::GiveUp, out);
            }
            Err(Failure::Nobody(_)) => {
                self.await_guest(Sender::Gone, now.plus(HANDOVER), out);
            }
            Err(failure) => {
                self.rest(now, Trouble::Source(failure.words().clone()), out);
            }
        }
    }

    fn comes(
        &mut self,
        now: Nanos,
        sender: Sender,
        until: Nanos,
        stand: Result<Stand, Failure>,
        out: &mut Vec<Action>,
    ) {
        let is_late = now >= until;
        let why = match (stand, sender) {
            (Ok(Stand::Has(Guest::Still)), sender) => return self.commit(sender, out),
            // Somebody has had it run there: whatever is wanted, it is not taken back.
            (Ok(Stand::Has(_)), _) => {
                self.may_have_run = true;
                return self.commit(Sender::Overtaken, out);
            }
            (Ok(Stand::Awaits) | Err(Failure::Cut(_)), sender) if !is_late => {
                let wait = Action::Wait(now.plus(SHORT));
                return self.hands(Handing::Waiting(sender, until), wait, out);
            }
            // It may have all that there is of the guest.
            (
                Err(
                    failure @ (Failure::Cut(_)
                    | Failure::Silent(_)
                    | Failure::Refused(_)
                    | Failure::Other(_)),
                ),
                Sender::Gone | Sender::Overtaken,
            ) => {
                let trouble = Trouble::Unclear(failure.words().clone());
                return self.rest(now, trouble, out);
            }
            (_, Sender::Gone | Sender::Overtaken) => Why::Ended,
            (Ok(Stand::Awaits), Sender::Stands) => Why::TooLong,
            (Ok(Stand::Idle | Stand::Stranger(_)), Sender::Stands) => Why::Replaced,
            (Err(failure), Sender::Stands) => {
                if matches!(failure, Failure::Silent(_)) {
                    self.receiver = Receiver::Deaf;
                }
                Why::NotTaken(failure.words().clone())
            }
        };
        self.give_back(why, Then::GiveUp, out);
    }
}

/// What is said of a source that does not come to an end.
pub(super) fn unending() -> super::Words {
    "QEMU does not finish handing the guest over".into()
}
