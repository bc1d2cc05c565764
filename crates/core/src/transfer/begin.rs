//! The beginning: the receiver is made ready, and the source is told to send.
//!
//! Until the step `copying` is durable nothing is sent, so whatever goes wrong, the guest
//! runs where it was.

use super::Transfer;
use super::event::{Action, Event, Failure};
use super::state::{After, Beginning, Receiver, State, Then};
use super::verdict::Why;
use crate::Nanos;

impl Transfer {
    pub(super) fn begin(&mut self, out: &mut Vec<Action>) {
        match self.by_program {
            true => {
                // It may start one and fail then.
                self.receiver = Receiver::Told;
                self.begins(Beginning::Starting, Action::Start, out);
            }
            false => self.begins(Beginning::Checking, Action::Check, out),
        }
    }

    fn begins(&mut self, stage: Beginning, action: Action, out: &mut Vec<Action>) {
        self.ask(State::Beginning(stage), action, out);
    }

    pub(super) fn beginning(
        &mut self,
        now: Nanos,
        stage: Beginning,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Beginning::Sending, Event::Done(sent)) => self.told_to_send(now, sent, out),
            (Beginning::Recording, Event::Stored(Ok(()))) => {
                self.step = super::Step::Copying;
                self.begins(Beginning::Sending, Action::Send, out);
            }
            (Beginning::Recording, Event::Stored(Err(why))) => {
                self.dismiss(now, After::Stays(Why::NotRecorded(why)), out);
            }
            (Beginning::Starting | Beginning::Checking, Event::Prepared(Err(why))) => {
                let why = self.unwanted().unwrap_or(Why::Vm(why));
                self.dismiss(now, After::Stays(why), out);
            }
            (Beginning::Telling, Event::Done(Err(failure))) => {
                let why = Why::Vm(failure.words().clone());
                self.dismiss(now, After::Stays(why), out);
            }
            (stage, Event::Prepared(Ok(())) | Event::Done(Ok(()))) => {
                match self.unwanted() {
                    Some(why) => self.dismiss(now, After::Stays(why), out),
                    None => self.prepared(stage, out),
                }
            }
            (stage, answer) => self.astray(State::Beginning(stage), &answer),
        }
    }

    fn prepared(&mut self, stage: Beginning, out: &mut Vec<Action>) {
        match stage {
            Beginning::Starting => self.begins(Beginning::Checking, Action::Check, out),
            Beginning::Checking => {
                self.receiver = Receiver::Told;
                self.begins(Beginning::Telling, Action::Receive, out);
            }
            _ => self.begins(Beginning::Recording, Action::RecordCopying, out),
        }
    }

    fn told_to_send(
        &mut self,
        now: Nanos,
        told: Result<(), Failure>,
        out: &mut Vec<Action>,
    ) {
        match told {
            Ok(()) => self.follow(out),
            Err(Failure::Refused(words)) => {
                self.give_back(Why::Vm(words), Then::GiveUp, out);
            }
            // It may have been told.
            Err(failure) => self.without_source(now, failure, out),
        }
    }
}
