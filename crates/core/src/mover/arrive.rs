//! The disk is at the destination: that becomes durable step by step, and QEMU forgets
//! the source.
//!
//! A destination that says what it is says *active* before the step `committed`: somebody
//! else may have had QEMU switch over.

use super::event::{Action, Event, MoverStep, Notice, Place};
use super::state::{Arrival, Arriving, State};
use super::verdict::{Doubt, Verdict};
use super::{AGAIN, Mover};
use crate::Nanos;

impl Mover {
    pub(super) fn arrive(&mut self, arrival: Arrival, out: &mut Vec<Action>) {
        let (stage, action) = match (&arrival, self.step) {
            (Arrival::Unclear(doubt), _) => match self.place {
                Place::Disk => (Arriving::Sealing, Action::Seal),
                Place::File => return self.close_unclear(doubt.clone(), out),
            },
            (_, MoverStep::Created) => record(MoverStep::Copying),
            // Whether it is `switching` may not be known: once more does no harm.
            (_, MoverStep::Copying | MoverStep::Switching) => {
                record(MoverStep::Switching)
            }
            (_, MoverStep::Committed | MoverStep::Ended) => {
                (Arriving::PuttingAway, Action::PutAway)
            }
        };
        self.ask(State::Arriving(stage, arrival), action, out);
    }

    pub(super) fn arriving(
        &mut self,
        now: Nanos,
        stage: Arriving,
        arrival: Arrival,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Arriving::Recording(MoverStep::Switching), Event::Stored(Ok(()))) => {
                self.step = MoverStep::Switching;
                let (stage, action) = match self.place {
                    Place::Disk => (Arriving::Sealing, Action::Seal),
                    Place::File => record(MoverStep::Committed),
                };
                self.ask(State::Arriving(stage, arrival), action, out);
            }
            (Arriving::Recording(step), Event::Stored(Ok(()))) => {
                self.step = step;
                self.arrive(arrival, out);
            }
            (Arriving::Sealing, Event::Sealed(sealed)) => {
                self.sealed(now, arrival, sealed, out);
            }
            (Arriving::Recording(step), Event::Stored(Err(why))) => {
                self.rest_arriving(now, Some(step), arrival, why, out);
            }
            (Arriving::Resting(_), Event::Woken) if self.stopping => self.over(out),
            (Arriving::Resting(step), Event::Woken) => {
                let (stage, action) =
                    step.map_or((Arriving::Sealing, Action::Seal), record);
                self.ask(State::Arriving(stage, arrival), action, out);
            }
            (Arriving::PuttingAway, Event::Done(done)) => {
                let left = done.err().map(|failure| failure.words().clone());
                match arrival {
                    // The VM has the destination only because of the copy.
                    Arrival::Moved { unplugged: true } => {
                        let stage = Arriving::GivingUp { left };
                        self.ask(State::Arriving(stage, arrival), Action::GiveUp, out);
                    }
                    _ => self.close(Verdict::Moved { unplugged: false, left }, out),
                }
            }
            (Arriving::GivingUp { left }, Event::GaveUp(given_up)) => {
                let still = given_up.err().map(|failure| failure.words().clone());
                let left = left.or(still);
                self.close(Verdict::Moved { unplugged: true, left }, out);
            }
            (stage, answer) => self.astray(State::Arriving(stage, arrival), &answer),
        }
    }

    fn sealed(
        &mut self,
        now: Nanos,
        arrival: Arrival,
        sealed: Result<bool, super::Words>,
        out: &mut Vec<Action>,
    ) {
        match (arrival, sealed) {
            // A guest may have it: while it calls itself a part of a copy, the next daemon
            // does not serve it.
            (Arrival::Unclear(doubt), Ok(_)) => self.close_unclear(doubt, out),
            (arrival, Ok(true)) => {
                let (stage, action) = record(MoverStep::Committed);
                self.ask(State::Arriving(stage, arrival), action, out);
            }
            (_, Ok(false)) => self.close_unclear(Doubt::NotTheCopy, out),
            (arrival, Err(why)) => self.rest_arriving(now, None, arrival, why, out),
        }
    }

    fn close_unclear(&mut self, doubt: Doubt, out: &mut Vec<Action>) {
        self.close(Verdict::Unclear(doubt), out);
    }

    fn rest_arriving(
        &mut self,
        now: Nanos,
        step: Option<MoverStep>,
        arrival: Arrival,
        why: super::Words,
        out: &mut Vec<Action>,
    ) {
        out.push(Action::Tell(Notice::Trouble(why)));
        let wait = Action::Wait(now.plus(AGAIN));
        self.ask(State::Arriving(Arriving::Resting(step), arrival), wait, out);
    }
}

fn record(step: MoverStep) -> (Arriving, Action) {
    (Arriving::Recording(step), Action::Record(step))
}
