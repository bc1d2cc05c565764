//! The switch-over, which QEMU does, and only QEMU can tell the outcome of.
//!
//! QEMU switches over at the first moment at which nothing is left to copy. Before that
//! moment it can be called off, and is: when somebody wants the move to be given up, and
//! when a guest goes on writing faster than the destination takes ([`CATCH_UP`]). Whether
//! that came in time, QEMU is asked again. libvirt calls nothing off that it has told
//! QEMU to do.

use super::event::{Action, At, Event, Failure, Job, MoverStep, Notice, Place};
use super::state::{Arrival, Following, Hearing, Order};
use super::verdict::Why;
use super::{AGAIN, CATCH_UP, Mover};
use crate::Nanos;

impl Mover {
    /// Both sides were the same, and QEMU waits.
    pub(super) fn at_the_switch(&mut self, now: Nanos, job: Job, out: &mut Vec<Action>) {
        let is_held = match &self.order {
            // Whether it has heard that is not known if it did not answer.
            Order::CallOff { at, .. } if now < at.plus(AGAIN) => {
                return self.wait_a_tick(now, out);
            }
            Order::CallOff { why, .. } => return self.call_off(why.clone(), out),
            _ if self.wishes.cancel => return self.call_off(Why::Asked, out),
            Order::Complete(at) if now >= at.plus(CATCH_UP) => {
                return self.call_off(Why::Late, out);
            }
            Order::Complete(_) => return self.wait_a_tick(now, out),
            Order::Later(until) => now < *until,
            Order::None => false,
        };
        // A pause that comes when it is under way comes too late.
        let is_paused = self.wishes.paused && self.step != MoverStep::Switching;
        if is_held || is_paused {
            return self.follows(Following::Watching, Action::Watch(Some(job)), out);
        }
        // The copy may be of a disk that the VM has no more.
        self.follows(Following::Finding, Action::Find, out);
    }

    pub(super) fn switching(
        &mut self,
        now: Nanos,
        stage: Following,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Following::Finding, Event::Found(Ok(at))) => match at {
                // A file says nothing of itself: it is only looked at, before the step.
                At::Source => match self.place {
                    Place::File => self.follows(Following::Sealing, Action::Seal, out),
                    Place::Disk => self.record_switching(out),
                },
                // Somebody was quicker. Both sides were the same, so the copy is whole;
                // of a VM that ends now nothing more would be heard.
                At::Destination => {
                    self.arrive(Arrival::Moved { unplugged: false }, out);
                }
                At::Nowhere => self.is_not_it(now, Why::Unplugged, out),
                At::Elsewhere(image) => self.is_not_it(now, Why::Elsewhere(image), out),
            },
            (Following::MaySwitch, Event::MaySwitch(may)) => {
                self.may_switch(now, may, out);
            }
            (Following::Sealing, Event::Sealed(Ok(true))) => match self.place {
                Place::File => self.record_switching(out),
                Place::Disk => self.free(out),
            },
            // QEMU was not told, and is not to be: what it copies to is no copy of ours.
            (Following::Sealing, Event::Sealed(Ok(false))) => {
                self.call_off(Why::NotTheCopy, out);
            }
            (Following::Sealing, Event::Sealed(Err(why))) => self.rest(now, why, out),
            (Following::Freeing, Event::Done(Ok(()))) => {
                self.speed = Some(0);
                self.follows(Following::Completing, Action::Complete, out);
            }
            (stage, answer) => self.astray(super::State::Following(stage), &answer),
        }
    }

    fn record_switching(&mut self, out: &mut Vec<Action>) {
        self.follows(Following::MaySwitch, Action::RecordSwitching, out);
    }

    fn may_switch(
        &mut self,
        now: Nanos,
        may: Result<bool, super::Words>,
        out: &mut Vec<Action>,
    ) {
        match may {
            Ok(true) => {
                self.step = MoverStep::Switching;
                match self.place {
                    Place::Disk => self.follows(Following::Sealing, Action::Seal, out),
                    Place::File => self.free(out),
                }
            }
            // What was asked for a moment ago counts.
            Ok(false) => {
                self.hearing = Hearing::Behind;
                self.wait_a_tick(now, out);
            }
            // It may be durable all the same.
            Err(why) => {
                self.step = MoverStep::Switching;
                self.order = Order::Later(now.plus(AGAIN));
                out.push(Action::Tell(Notice::Trouble(why)));
                self.wait_a_tick(now, out);
            }
        }
    }

    /// What is written meanwhile is all that is left, and it is not to take long.
    fn free(&mut self, out: &mut Vec<Action>) {
        self.follows(Following::Freeing, Action::SetSpeed(0), out);
    }

    pub(super) fn told(
        &mut self,
        now: Nanos,
        told: Result<(), Failure>,
        out: &mut Vec<Action>,
    ) {
        match told {
            Ok(()) => {
                self.order = Order::Complete(now);
                self.wait_a_tick(now, out);
            }
            // It is told again if it has not heard.
            Err(Failure::Cut(_)) => self.round(out),
            Err(failure) => self.halt(now, failure, out),
        }
    }

    pub(super) fn call_off(&mut self, why: Why, out: &mut Vec<Action>) {
        self.follows(Following::CallingOff(why), Action::CallOff, out);
    }

    pub(super) fn called_off(
        &mut self,
        now: Nanos,
        why: Why,
        told: Result<(), Failure>,
        out: &mut Vec<Action>,
    ) {
        // What is not answered in time may be carried out all the same.
        if matches!(told, Ok(()) | Err(Failure::Silent(_))) {
            if !matches!(self.order, Order::CallOff { .. }) {
                out.push(Action::Tell(Notice::CalledOff));
            }
            let (was_told, heard) = (self.order.was_told(), told.is_ok());
            self.order = Order::CallOff { at: now, why, was_told, heard };
        }
        match told {
            Ok(()) => self.wait_a_tick(now, out),
            Err(failure) => self.halt(now, failure, out),
        }
    }
}
