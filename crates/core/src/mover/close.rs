//! The end is made durable, and what a VM has not let go of is put away when it answers,
//! if need be by a later daemon.

use super::event::{Action, At, Event, Failure, GivenUp, Notice, Place};
use super::state::{Closing, State, Tidying, Told};
use super::verdict::{Doubt, Rest, Tidied, Verdict};
use super::{AGAIN, Copy, Mover, MoverStep};
use crate::Nanos;

impl Mover {
    pub(super) fn close(&mut self, verdict: Verdict, out: &mut Vec<Action>) {
        let close = Action::Close(verdict.clone());
        self.ask(State::Closing(Closing::Recording, verdict), close, out);
    }

    pub(super) fn closing(
        &mut self,
        now: Nanos,
        stage: Closing,
        verdict: Verdict,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Closing::Recording, Event::Stored(Ok(()))) => {
                self.step = MoverStep::Ended;
                match verdict.is_untidy() {
                    true => self.tidy_later(now, out),
                    false => self.over(out),
                }
            }
            // How it has ended is not asked again.
            (Closing::Recording, Event::Stored(Err(_))) => {
                let wait = Action::Wait(now.plus(AGAIN));
                self.ask(State::Closing(Closing::Resting, verdict), wait, out);
            }
            (Closing::Resting, Event::Woken) if self.stopping => self.over(out),
            (Closing::Resting, Event::Woken) => self.close(verdict, out),
            (stage, answer) => self.astray(State::Closing(stage, verdict), &answer),
        }
    }

    /// What a VM still has is given up when it answers.
    pub(super) fn tidy_later(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.tidy_again(now, Told::NotYet, out);
    }

    fn tidy_again(&mut self, now: Nanos, told: Told, out: &mut Vec<Action>) {
        let wait = Action::Wait(now.plus(AGAIN));
        self.ask(State::Tidying(Tidying::Resting, told), wait, out);
    }

    pub(super) fn tidying(
        &mut self,
        now: Nanos,
        stage: Tidying,
        told: Told,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        let tidies = |stage| State::Tidying(stage, told);
        match (stage, answer) {
            (Tidying::Resting, Event::Woken) if self.stopping => self.over(out),
            (Tidying::Resting, Event::Woken) => {
                self.ask(tidies(Tidying::GivingUp), Action::GiveUp, out);
            }
            (Tidying::GivingUp, Event::GaveUp(Ok(found))) => {
                if found != GivenUp::Nothing {
                    self.seen(out);
                }
                self.ask(tidies(Tidying::Finding(found)), Action::Find, out);
            }
            (Tidying::GivingUp, Event::GaveUp(Err(failure))) => match failure {
                Failure::Nobody(_) => self.ended_unseen(told, out),
                Failure::Silent(_) | Failure::Cut(_) => self.tidy_again(now, told, out),
                failure => self.not_tidy(now, told, failure.words().clone(), out),
            },
            (Tidying::Finding(found), Event::Found(at)) => {
                self.tidied(now, told, found, &at, out);
            }
            (Tidying::Removing, Event::Removed(removed)) => match self.rest_of(removed) {
                Rest::InTheWay(why) => self.not_tidy(now, told, why, out),
                rest => self.record_tidy(told, Tidied::Stays(rest), out),
            },
            (Tidying::Sealing, Event::Sealed(Ok(_))) => {
                self.record_tidy(told, Tidied::Unclear(Doubt::Unseen), out);
            }
            (Tidying::Sealing, Event::Sealed(Err(why))) => {
                self.not_tidy(now, told, why, out);
            }
            (Tidying::Recording(_), Event::Stored(Ok(()))) => self.over(out),
            (Tidying::Recording(_), Event::Stored(Err(why))) => {
                self.not_tidy(now, told, why, out);
            }
            (stage, answer) => self.astray(State::Tidying(stage, told), &answer),
        }
    }

    /// QEMU has forgotten the copy: what it says of the disk tells whether that was one.
    fn tidied(
        &mut self,
        now: Nanos,
        told: Told,
        found: GivenUp,
        at: &Result<At, Failure>,
        out: &mut Vec<Action>,
    ) {
        let is_copy = match at {
            Ok(At::Source) => true,
            Ok(At::Destination) => return self.was_switched(told, out),
            Ok(At::Nowhere | At::Elsewhere(_)) => found == GivenUp::Undone,
            Err(_) if found == GivenUp::Undone => true,
            Err(Failure::Nobody(_)) => false,
            Err(_) => return self.tidy_again(now, told, out),
        };
        if !is_copy {
            self.doubt();
        }
        self.tidy_here(told, out);
    }

    /// While it was silent somebody had it switch over, or started it with the copy: it
    /// writes there, whatever the move was said to have come to.
    fn was_switched(&mut self, told: Told, out: &mut Vec<Action>) {
        self.doubt();
        match self.place {
            Place::Disk => {
                self.ask(State::Tidying(Tidying::Sealing, told), Action::Seal, out);
            }
            Place::File => self.record_tidy(told, Tidied::Unclear(Doubt::Unseen), out),
        }
    }

    /// The VM has ended, and nobody has seen with which image it ran last: somebody may
    /// have had it switch over, or may have started it with the copy.
    fn ended_unseen(&mut self, told: Told, out: &mut Vec<Action>) {
        if self.copy == Copy::Ours {
            self.doubt();
            out.push(Action::Tell(Notice::Kept));
        }
        self.tidy_here(told, out);
    }

    /// Nothing is left at the VM: now for what is left here.
    fn tidy_here(&mut self, told: Told, out: &mut Vec<Action>) {
        match self.copy {
            Copy::Ours => {
                self.ask(State::Tidying(Tidying::Removing, told), Action::Remove, out);
            }
            // What may be somebody's is kept for good.
            Copy::Unknown => self.record_tidy(told, Tidied::Stays(Rest::Kept), out),
            Copy::NotOurs => self.record_tidy(told, Tidied::Stays(Rest::Gone), out),
        }
    }

    fn record_tidy(&mut self, told: Told, tidied: Tidied, out: &mut Vec<Action>) {
        let record = Action::RecordTidy(tidied.clone());
        self.ask(State::Tidying(Tidying::Recording(tidied), told), record, out);
    }

    fn not_tidy(
        &mut self,
        now: Nanos,
        told: Told,
        why: super::Words,
        out: &mut Vec<Action>,
    ) {
        if told == Told::NotYet {
            out.push(Action::Tell(Notice::Untidy(why)));
        }
        self.tidy_again(now, Told::Once, out);
    }
}
