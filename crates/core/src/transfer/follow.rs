//! The guest is sent: it is watched until all of it was, or it stays.

use super::event::{Action, Event, Failure, Sent, Stand, Trouble};
use super::state::{Following, Receiver, Sender, State, Then};
use super::verdict::Why;
use super::{LAST, PASSES, TICK, Transfer};
use crate::Nanos;

impl Transfer {
    pub(super) fn follow(&mut self, out: &mut Vec<Action>) {
        self.ask(State::Following(Following::Looking), Action::AskSent, out);
    }

    pub(super) fn following(
        &mut self,
        now: Nanos,
        stage: Following,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Following::Looking, Event::Sent(Ok(sent))) => self.looked(now, sent, out),
            (Following::Looking, Event::Sent(Err(failure))) => {
                self.without_source(now, failure, out);
            }
            (Following::Asking, Event::Stands(stand)) => {
                self.asked_other(now, stand, out);
            }
            (Following::Waiting, Event::Woken) => self.follow(out),
            (stage, answer) => self.astray(State::Following(stage), &answer),
        }
    }

    fn looked(&mut self, now: Nanos, sent: Sent, out: &mut Vec<Action>) {
        match sent {
            Sent::UnderWay { passes, paused } => {
                let why = match self.unwanted() {
                    Some(why) => Some(why),
                    None if passes > PASSES => Some(Why::Slow),
                    // It would run when it has come.
                    None if paused => Some(Why::Paused),
                    None => None,
                };
                match why {
                    Some(why) => self.give_back(why, Then::GiveUp, out),
                    None => {
                        let state = State::Following(Following::Asking);
                        self.ask(state, Action::AskStand, out);
                    }
                }
            }
            Sent::All => self.hand_over(now, out),
            Sent::Stayed(Some(words)) => {
                self.give_back(Why::Failed(words), Then::GiveUp, out);
            }
            Sent::Stayed(None) => self.give_back(Why::ByHand, Then::GiveUp, out),
            Sent::Nothing => self.give_back(Why::Unknown, Then::GiveUp, out),
        }
    }

    /// What there is where the guest goes to, while it is sent.
    fn asked_other(
        &mut self,
        now: Nanos,
        stand: Result<Stand, Failure>,
        out: &mut Vec<Action>,
    ) {
        let why = match stand {
            // QEMU says a little later of the source that all was sent.
            Ok(Stand::Awaits | Stand::Has(_)) | Err(Failure::Cut(_)) => None,
            Ok(Stand::Idle | Stand::Stranger(_)) => Some(Why::Replaced),
            Err(failure) => {
                if matches!(failure, Failure::Silent(_)) {
                    self.receiver = Receiver::Deaf;
                }
                Some(Why::NotTaken(failure.words().clone()))
            }
        };
        match why {
            Some(why) => self.give_back(why, Then::GiveUp, out),
            None => {
                let wait = Action::Wait(now.plus(TICK));
                self.ask(State::Following(Following::Waiting), wait, out);
            }
        }
    }

    /// The source is not there, or does not answer, while the guest is sent.
    pub(super) fn without_source(
        &mut self,
        now: Nanos,
        failure: Failure,
        out: &mut Vec<Action>,
    ) {
        match failure {
            Failure::Cut(words) => self.rest(now, Trouble::Source(words), out),
            // If all has come, it was all sent, and the guest stood still by then.
            Failure::Nobody(_) => self.await_guest(Sender::Gone, now.plus(LAST), out),
            failure => {
                let then = Then::Silent(failure.words().clone());
                self.give_back(Why::Silent, then, out);
            }
        }
    }
}
