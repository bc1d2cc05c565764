//! The beginning: the destination is made, and QEMU is told to copy to it.
//!
//! A daemon may have been killed after QEMU had begun and before that was durable: what
//! there is of the copy is given up first. The application is watched for [`BEFORE`],
//! then it begins.

use super::event::{
    Action, At, Event, Failure, GivenUp, MoverStep, Owner, Place, Removed,
};
use super::state::{Arrival, Beginning, Hearing, State};
use super::verdict::{Doubt, Why};
use super::{BEFORE, Copy, Mover};
use crate::Nanos;

impl Mover {
    pub(super) fn begin(&mut self, out: &mut Vec<Action>) {
        self.ask(State::Beginning(Beginning::GivingUp), Action::GiveUp, out);
    }

    fn beginning_is(&mut self, stage: Beginning, action: Action, out: &mut Vec<Action>) {
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
            (Beginning::GivingUp, Event::GaveUp(Ok(found))) => {
                self.beginning_is(Beginning::Finding(found), Action::Find, out);
            }
            (Beginning::Finding(had), Event::Found(Ok(at))) => {
                self.begins_at(had, at, out);
            }
            (Beginning::Peeking, Event::Peeked(is_blank)) => {
                if is_blank {
                    self.seen(out);
                    out.push(Action::Know);
                }
                self.beginning_is(Beginning::Counting, Action::CountTimes, out);
            }
            (Beginning::Counting, Event::Done(counts)) => match counts {
                Err(failure @ (Failure::Nobody(_) | Failure::Silent(_))) => {
                    self.halt(now, failure, out);
                }
                // It may be refused: then percentiles are not known.
                _ => self.watch_before(now, now.plus(BEFORE), out),
            },
            (Beginning::Reading { until }, Event::Wished(wishes)) => {
                self.hear(wishes);
                self.watch_now(now, until, out);
            }
            (Beginning::Watching { until }, Event::Watched(Ok(_))) => {
                let next = self.next_tick(now).min(until);
                self.beginning_is(Beginning::Waiting { until }, Action::Wait(next), out);
            }
            (Beginning::Waiting { until }, Event::Woken) => {
                self.watch_before(now, until, out);
            }
            (Beginning::Clearing, Event::Removed(Ok(removed))) => {
                if removed != Removed::Kept {
                    self.copy = Copy::Unknown;
                }
                self.beginning_is(Beginning::Making, Action::Make, out);
            }
            (Beginning::Clearing, Event::Removed(Err(why))) => {
                self.stay(Why::Here(why), false, out);
            }
            (Beginning::Making, Event::Made(made)) => self.made(made, out),
            (Beginning::Starting(speed), Event::Done(begun)) => {
                self.started(now, speed, begun, out);
            }
            (Beginning::Recording, Event::Stored(Ok(()))) => {
                self.step = MoverStep::Copying;
                self.round(out);
            }
            // QEMU copies, and a kill must find that: so it does not go on.
            (Beginning::Recording, Event::Stored(Err(why))) => {
                self.stay(Why::Here(why), false, out);
            }
            (
                _,
                Event::GaveUp(Err(failure))
                | Event::Found(Err(failure))
                | Event::Watched(Err(failure)),
            ) => self.halt(now, failure, out),
            (stage, answer) => self.astray(State::Beginning(stage), &answer),
        }
    }

    /// Where the disk is before anything is made; what QEMU `had` of the copy is given up.
    fn begins_at(&mut self, had: GivenUp, at: At, out: &mut Vec<Action>) {
        let undone = had == GivenUp::Undone;
        match at {
            At::Source => {
                if had != GivenUp::Nothing {
                    self.seen(out);
                }
                match self.place {
                    Place::File if self.resumed => {
                        self.beginning_is(Beginning::Peeking, Action::Peek, out);
                    }
                    Place::File | Place::Disk => {
                        self.beginning_is(Beginning::Counting, Action::CountTimes, out);
                    }
                }
            }
            // Somebody has completed the copy that a daemon had begun.
            At::Destination if had != GivenUp::Nothing => {
                self.arrive(Arrival::Moved { unplugged: false }, out);
            }
            At::Destination => self.arrive(Arrival::Unclear(Doubt::Unseen), out),
            At::Elsewhere(image) => self.stay(Why::Elsewhere(image), undone, out),
            At::Nowhere => self.stay(Why::Unplugged, undone, out),
        }
    }

    fn watch_before(&mut self, now: Nanos, until: Nanos, out: &mut Vec<Action>) {
        if self.stopping {
            return self.over(out);
        }
        match self.hearing {
            Hearing::Behind => {
                self.beginning_is(Beginning::Reading { until }, Action::ReadWishes, out);
            }
            Hearing::Current => self.watch_now(now, until, out),
        }
    }

    fn watch_now(&mut self, now: Nanos, until: Nanos, out: &mut Vec<Action>) {
        if self.wishes.cancel {
            return self.stay(Why::Asked, false, out);
        }
        if now < until {
            return self.beginning_is(
                Beginning::Watching { until },
                Action::Watch(None),
                out,
            );
        }
        match self.copy {
            // What a daemon has made that was killed before it was durable.
            Copy::Ours if self.place == Place::File => {
                self.beginning_is(Beginning::Clearing, Action::Remove, out);
            }
            _ => self.beginning_is(Beginning::Making, Action::Make, out),
        }
    }

    fn made(&mut self, made: Result<Option<u64>, super::Words>, out: &mut Vec<Action>) {
        match made {
            Ok(allowed) => {
                self.has_made = true;
                // What libvirt makes is not there yet, and may be somebody else's until it
                // says that it has made it.
                self.copy = match (self.owner, self.place) {
                    (Owner::Libvirt, Place::File) => Copy::Unknown,
                    _ => Copy::Ours,
                };
                let speed = self.speed_for(allowed);
                self.beginning_is(Beginning::Starting(speed), Action::Begin(speed), out);
            }
            Err(why) => {
                self.copy = Copy::NotOurs;
                self.stay(Why::Here(why), false, out);
            }
        }
    }

    fn started(
        &mut self,
        now: Nanos,
        speed: u64,
        begun: Result<(), Failure>,
        out: &mut Vec<Action>,
    ) {
        match begun {
            Ok(()) => {
                self.seen(out);
                self.speed = Some(speed);
                let record = Action::Record(MoverStep::Copying);
                self.beginning_is(Beginning::Recording, record, out);
            }
            // Whether it has begun shows when it is given up.
            Err(Failure::Cut(why)) => self.stay(Why::Vm(why), false, out),
            Err(failure @ (Failure::Nobody(_) | Failure::Silent(_))) => {
                self.halt(now, failure, out);
            }
            Err(failure) => {
                // What libvirt was to make it has not made, if it says so.
                if matches!(failure, Failure::Refused(_)) && self.copy == Copy::Unknown {
                    self.copy = Copy::NotOurs;
                }
                // Without a job nothing was switched over.
                let undone = self.owner == Owner::Qemu;
                self.stay(Why::Vm(failure.words().clone()), undone, out);
            }
        }
    }
}
