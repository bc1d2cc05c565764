//! The copy is watched, and has its pace.
//!
//! A round looks at what is wanted, then at the job, then at the guest. What is wrong
//! ends the move before the step `switching`; from then on it is only said, and the VM is
//! asked again.

use super::event::{Action, At, Event, Failure, Job, MoverStep, Notice, Watched, Wishes};
use super::state::{Following, Hearing, Lost, Order, Over, State};
use super::verdict::Why;
use super::{AGAIN, HALT, Mover};
use crate::Nanos;

impl Mover {
    pub(super) fn follows(
        &mut self,
        stage: Following,
        action: Action,
        out: &mut Vec<Action>,
    ) {
        self.ask(State::Following(stage), action, out);
    }

    /// A round begins.
    pub(super) fn round(&mut self, out: &mut Vec<Action>) {
        if self.stopping {
            // Nobody will watch over the copy for a while.
            let halt = Action::SetSpeed(HALT);
            return self.follows(Following::StandingStill, halt, out);
        }
        match self.hearing {
            Hearing::Behind => {
                self.follows(Following::Reading, Action::ReadWishes, out);
            }
            Hearing::Current => self.look(out),
        }
    }

    fn look(&mut self, out: &mut Vec<Action>) {
        if self.wishes.cancel && self.step == MoverStep::Copying {
            return self.stay(Why::Asked, false, out);
        }
        self.follows(Following::Looking, Action::Look, out);
    }

    /// Takes over what is wanted. A state that does not say is in the way of a wish, and
    /// not of the guard: it goes on as it was last asked to, and asks again.
    pub(super) fn hear(&mut self, wishes: Option<Wishes>) {
        if let Some(wishes) = wishes {
            self.wishes = wishes;
            self.hearing = Hearing::Current;
        }
    }

    pub(super) fn wait_a_tick(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let wait = Action::Wait(self.next_tick(now));
        self.follows(Following::Waiting, wait, out);
    }

    /// Says what is wrong, and comes back.
    pub(super) fn rest(&mut self, now: Nanos, why: super::Words, out: &mut Vec<Action>) {
        out.push(Action::Tell(Notice::Trouble(why)));
        self.follows(Following::Waiting, Action::Wait(now.plus(AGAIN)), out);
    }

    pub(super) fn following(
        &mut self,
        now: Nanos,
        stage: Following,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Following::StandingStill, Event::Done(_)) => self.over(out),
            (Following::Reading, Event::Wished(wishes)) => {
                self.hear(wishes);
                self.look(out);
            }
            (Following::Looking, Event::Looked(Ok(job))) => self.looked(now, job, out),
            (Following::Watching, Event::Watched(Ok(watched))) => {
                self.watched(now, watched, out);
            }
            (Following::Missing, Event::Found(Ok(at))) => match at {
                At::Nowhere => self.is_not_it(now, Why::Unplugged, out),
                _ => self.wait_a_tick(now, out),
            },
            (Following::Pacing(speed), Event::Done(Ok(()))) => {
                self.speed = Some(speed);
                self.wait_a_tick(now, out);
            }
            // It ends as fast as it may, if that is refused.
            (
                Following::Hurrying,
                Event::Done(Ok(()) | Err(Failure::Refused(_) | Failure::Other(_))),
            ) => {
                self.speed = Some(0);
                self.wait_a_tick(now, out);
            }
            // If the job has ended meanwhile, that says why.
            (Following::Pacing(_), Event::Done(Err(Failure::Refused(why)))) => {
                self.follows(Following::Checking(why), Action::Look, out);
            }
            (Following::Checking(why), Event::Looked(Ok(job))) => match job {
                Job::Ended(_) | Job::Unknown => self.looked(now, job, out),
                _ => self.halt(now, Failure::Refused(why), out),
            },
            (Following::Waiting, Event::Woken) => self.round(out),
            (Following::CallingOff(why), Event::Done(told)) => {
                self.called_off(now, why, told, out);
            }
            (Following::Completing, Event::Done(told)) => self.told(now, told, out),
            (
                _,
                Event::Looked(Err(failure))
                | Event::Found(Err(failure))
                | Event::Watched(Err(failure))
                | Event::Done(Err(failure)),
            ) => self.halt(now, failure, out),
            (stage, answer) => self.switching(now, stage, answer, out),
        }
    }

    fn looked(&mut self, now: Nanos, job: Job, out: &mut Vec<Action>) {
        match job {
            Job::Copying { .. } => {
                self.seen(out);
                self.follows(Following::Watching, Action::Watch(Some(job)), out);
            }
            Job::Ready { .. } => {
                self.seen(out);
                self.at_the_switch(now, job, out);
            }
            // A daemon that stopped, or somebody, may have had it stand still.
            Job::Switching if self.speed != Some(0) => {
                self.follows(Following::Hurrying, Action::SetSpeed(0), out);
            }
            Job::Switching => self.wait_a_tick(now, out),
            Job::Ended(ended) => self.judge(Over::Said(ended), out),
            Job::Unknown => self.judge(Over::Unknown, out),
        }
    }

    fn watched(&mut self, now: Nanos, watched: Watched, out: &mut Vec<Action>) {
        if !watched.there {
            return self.follows(Following::Missing, Action::Find, out);
        }
        let speed = self.speed_for(watched.allowed);
        if self.speed == Some(speed) {
            return self.wait_a_tick(now, out);
        }
        self.follows(Following::Pacing(speed), Action::SetSpeed(speed), out);
    }

    /// The VM's disk is not what is copied any more, and the job goes on.
    pub(super) fn is_not_it(&mut self, now: Nanos, why: Why, out: &mut Vec<Action>) {
        match (self.step, &self.order) {
            (MoverStep::Switching, Order::CallOff { .. }) => self.wait_a_tick(now, out),
            (MoverStep::Switching, _) => self.call_off(why, out),
            _ => self.stay(why, false, out),
        }
    }

    /// Something is wrong with the VM.
    pub(super) fn halt(&mut self, now: Nanos, failure: Failure, out: &mut Vec<Action>) {
        match (self.step, failure) {
            (MoverStep::Switching, Failure::Nobody(_)) => {
                self.ask(State::Lost(Lost::Looking), Action::Look, out);
            }
            // Only the VM can say where the disk is; it is asked again.
            (MoverStep::Switching, failure) => {
                self.rest(now, failure.words().clone(), out);
            }
            (_, Failure::Nobody(why)) => self.is_gone(why, out),
            (_, Failure::Silent(why) | Failure::Cut(why)) => self.is_silent(why, out),
            (_, failure) => self.stay(Why::Vm(failure.words().clone()), false, out),
        }
    }
}
