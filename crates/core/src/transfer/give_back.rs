//! The guest is taken back: it runs where it was, or is to.
//!
//! That is durable before the source is told anything: from then on what the receiver may
//! have of the guest is never run, however old it grows. So it is safe to have the source
//! give up in the last moment, where the receiver may have all already, and to have the
//! guest go on where it was handed over.
//!
//! Somebody else may have had the receiver run it. Then the guest is there, unless the
//! source runs it, too: it becomes the receiver's ([`super::state::Sender::Overtaken`]).

use super::event::{Action, End, Event, Failure, Left, Sent, Trouble};
use super::hand::unending;
use super::state::{After, Returning, State, Then};
use super::verdict::{Loss, Rest, Verdict, Why};
use super::{AGAIN, HANDOVER, SHORT, Step, TICK, Transfer};
use crate::Nanos;

impl Transfer {
    /// It is taken back, for this reason. Once that is to be recorded it is not thought of
    /// anew: what is said to have failed may be durable.
    pub(super) fn give_back(&mut self, why: Why, then: Then, out: &mut Vec<Action>) {
        self.why = Some(why);
        self.returns(Returning::Recording(then), Action::TakeBack, out);
    }

    /// The source is told to give it up, also where it has said that it does not send: that
    /// does no harm then.
    pub(super) fn give_up(&mut self, out: &mut Vec<Action>) {
        self.returns(Returning::GivingUp, Action::GiveUp, out);
    }

    pub(super) fn go_back_on(&mut self, rest: Rest, out: &mut Vec<Action>) {
        self.returns(Returning::GoingOn(rest), Action::GoOn(End::Source), out);
    }

    pub(super) fn settle(&mut self, rest: Rest, out: &mut Vec<Action>) {
        self.returns(Returning::Settling(rest), Action::AskLeft, out);
    }

    fn returns(&mut self, stage: Returning, action: Action, out: &mut Vec<Action>) {
        self.ask(State::Returning(stage), action, out);
    }

    /// Why it is taken back, as far as this process knows.
    pub(super) fn reason(&self) -> Why {
        match &self.why {
            Some(why) => why.clone(),
            None if self.cancel => Why::Asked,
            None => Why::Interrupted,
        }
    }

    pub(super) fn returning(
        &mut self,
        now: Nanos,
        stage: Returning,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Returning::Recording(then), Event::Stored(Ok(()))) => {
                self.step = Step::Returning;
                match then {
                    Then::GiveUp => self.give_up(out),
                    Then::Silent(words) => self.dismiss(now, After::Rest(words), out),
                }
            }
            (Returning::Recording(then), Event::Stored(Err(why))) => {
                out.push(Action::Tell(Trouble::NotRecorded(why)));
                let wait = Action::Wait(now.plus(AGAIN));
                self.returns(Returning::Resting(then), wait, out);
            }
            (Returning::Resting(_), Event::Woken) if self.stopping => self.over(out),
            (Returning::Resting(then), Event::Woken) => {
                self.returns(Returning::Recording(then), Action::TakeBack, out);
            }
            // Whether it could be is seen at the next look.
            (
                Returning::GivingUp,
                Event::Done(Ok(()) | Err(Failure::Refused(_) | Failure::Cut(_))),
            ) => self.returns(Returning::Looking, Action::AskSent, out),
            (Returning::GivingUp, Event::Done(Err(failure))) => {
                self.lacks_source(now, failure, out);
            }
            (Returning::Looking, Event::Sent(Ok(Sent::UnderWay { .. }))) => {
                let wait = Action::Wait(now.plus(TICK));
                self.returns(Returning::Waiting, wait, out);
            }
            (Returning::Waiting, Event::Woken) => self.give_up(out),
            (Returning::Looking, Event::Sent(Ok(_))) => {
                let leaving = Returning::Leaving(now.plus(HANDOVER));
                self.returns(leaving, Action::AskLeft, out);
            }
            (Returning::Leaving(until), Event::Left(Ok(left))) => {
                self.has_left(now, until, &left, out);
            }
            (Returning::Pausing(until), Event::Woken) => {
                self.returns(Returning::Leaving(until), Action::AskLeft, out);
            }
            (Returning::Settling(rest), Event::Left(Ok(left))) => {
                self.settled(now, rest, left, out);
            }
            (
                Returning::Looking | Returning::Leaving(_) | Returning::Settling(_),
                Event::Sent(Err(failure)) | Event::Left(Err(failure)),
            ) => self.lacks_source(now, failure, out),
            (Returning::GoingOn(rest), Event::Done(told)) => {
                self.went_back_on(now, rest, told, out);
            }
            (stage, answer) => self.astray(State::Returning(stage), &answer),
        }
    }

    fn has_left(&mut self, now: Nanos, until: Nanos, left: &Left, out: &mut Vec<Action>) {
        match left {
            Left::HandsOver if now < until => {
                let wait = Action::Wait(now.plus(SHORT));
                self.returns(Returning::Pausing(until), wait, out);
            }
            Left::HandsOver => self.rest(now, Trouble::Source(unending()), out),
            Left::Stands => self.dismiss(now, After::GoOn, out),
            Left::Runs => self.dismiss(now, After::Here, out),
            Left::Otherwise(_) => self.dismiss(now, After::Otherwise, out),
        }
    }

    /// The receiver was dealt with. A source that has said too early that nothing is sent
    /// may have handed the guest over since.
    fn settled(&mut self, now: Nanos, rest: Rest, left: Left, out: &mut Vec<Action>) {
        let stands = match left {
            Left::HandsOver => {
                return self.rest(now, Trouble::Source(unending()), out);
            }
            Left::Stands => return self.go_back_on(rest, out),
            Left::Runs => None,
            Left::Otherwise(word) => Some(word),
        };
        self.close(Verdict::Stays { why: self.reason(), stands, rest }, out);
    }

    /// The source is not there, or does not answer.
    fn lacks_source(&mut self, now: Nanos, failure: Failure, out: &mut Vec<Action>) {
        match failure {
            Failure::Nobody(words) => self.dismiss(now, After::Lost(words), out),
            Failure::Cut(words) => self.rest(now, Trouble::Source(words), out),
            failure => self.dismiss(now, After::Rest(failure.words().clone()), out),
        }
    }

    fn went_back_on(
        &mut self,
        now: Nanos,
        rest: Rest,
        told: Result<(), Failure>,
        out: &mut Vec<Action>,
    ) {
        let why = self.reason();
        match told {
            Ok(()) => self.close(Verdict::Stays { why, stands: None, rest }, out),
            Err(Failure::Nobody(words)) => {
                self.close(Verdict::Lost(Loss::Ended { words, why }, rest), out);
            }
            Err(failure) => {
                let trouble = Trouble::DoesNotGoOn(failure.words().clone());
                self.rest(now, trouble, out);
            }
        }
    }
}
