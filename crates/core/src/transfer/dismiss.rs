//! The receiver is ended to which the guest does not go, if it is ours.
//!
//! Another QEMU may have been started at its socket. Ours is the one that says that it
//! waits at the socket over which this guest was to come, or that has a guest which was
//! sent to it and stands still. Where we have made up the socket's name, whoever waits
//! there was started for this, or has not got to waiting; but one that runs a guest is
//! somebody's by now.

use super::event::{Action, End, Event, Failure, Guest, Stand, Trouble};
use super::state::{After, Dismissing, Receiver, Sender, State};
use super::verdict::{Loss, Rest, Verdict};
use super::{Step, Transfer};
use crate::Nanos;

/// What is to become of what is at the receiver's socket.
enum Fate {
    /// It ends.
    Ends,
    /// It is left, and was not told of the guest.
    Apart,
    /// It is left, as it may be somebody's.
    Spared,
    /// It has the guest, and has run it: the guest is there.
    Keeps,
}

impl Transfer {
    pub(super) fn dismiss(&mut self, now: Nanos, after: After, out: &mut Vec<Action>) {
        let known = match self.receiver {
            Receiver::Untold | Receiver::Gone => Some(Rest::Gone),
            Receiver::Deaf => Some(Rest::Deaf),
            Receiver::Told => None,
        };
        match known {
            Some(rest) => self.dismissed(now, after, rest, out),
            None => {
                let state = State::Dismissing(Dismissing::Asking, after);
                self.ask(state, Action::AskStand, out);
            }
        }
    }

    pub(super) fn dismissing(
        &mut self,
        now: Nanos,
        stage: Dismissing,
        after: After,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        let rest = match (stage, answer) {
            (Dismissing::Asking, Event::Stands(Ok(stand))) => {
                match self.fate(&stand, &after) {
                    Fate::Keeps => {
                        self.may_have_run = true;
                        return self.commit(Sender::Overtaken, out);
                    }
                    Fate::Ends => {
                        let state = State::Dismissing(Dismissing::Quitting, after);
                        return self.ask(state, Action::Quit(End::Receiver), out);
                    }
                    Fate::Apart => Rest::Gone,
                    Fate::Spared => Rest::Spared,
                }
            }
            (Dismissing::Asking, Event::Stands(Err(failure))) => match failure {
                Failure::Nobody(_) => {
                    self.receiver = Receiver::Gone;
                    Rest::Gone
                }
                failure => {
                    if matches!(failure, Failure::Silent(_)) {
                        self.receiver = Receiver::Deaf;
                    }
                    Rest::Deaf
                }
            },
            (Dismissing::Quitting, Event::Quit(true)) => {
                self.receiver = Receiver::Gone;
                Rest::Gone
            }
            (Dismissing::Quitting, Event::Quit(false)) => Rest::Stays,
            (stage, answer) => {
                return self.astray(State::Dismissing(stage, after), &answer);
            }
        };
        self.dismissed(now, after, rest, out);
    }

    fn fate(&self, stand: &Stand, after: &After) -> Fate {
        let is_new = self.step == Step::Created;
        match stand {
            Stand::Awaits => Fate::Ends,
            Stand::Idle if self.by_program => Fate::Ends,
            Stand::Idle if is_new => Fate::Apart,
            Stand::Has(Guest::Still) if !is_new => Fate::Ends,
            Stand::Has(guest) if !is_new => match (after, guest) {
                // The source stands as it has handed it over: it has not run since.
                (After::GoOn | After::Otherwise, _) => Fate::Keeps,
                (After::Lost(_) | After::Rest(_), Guest::Runs) => Fate::Keeps,
                _ => Fate::Spared,
            },
            Stand::Stranger(Guest::Still | Guest::Otherwise(_)) if self.by_program => {
                Fate::Ends
            }
            Stand::Idle | Stand::Has(_) | Stand::Stranger(_) => Fate::Spared,
        }
    }

    fn dismissed(&mut self, now: Nanos, after: After, rest: Rest, out: &mut Vec<Action>) {
        match after {
            After::Stays(why) => {
                self.close(Verdict::Stays { why, stands: None, rest }, out);
            }
            After::Here | After::Otherwise => self.settle(rest, out),
            After::GoOn => self.go_back_on(rest, out),
            After::Lost(words) => {
                let why = self.reason();
                self.close(Verdict::Lost(Loss::Ended { words, why }, rest), out);
            }
            After::Rest(words) => self.rest(now, Trouble::Silent(words, rest), out),
        }
    }
}
