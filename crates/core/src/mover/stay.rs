//! The disk is where it was: QEMU gives the copy up, and the destination goes if it is
//! nothing but a copy.
//!
//! A move that was switching over is first called one that copies again: from then on
//! whoever is asked says so, though QEMU forget it. Where QEMU has not said that the job
//! ended before it switched over, it is made to forget the job first, and asked where the
//! disk is then.

use super::event::{
    Action, At, Event, Failure, GivenUp, MoverStep, Notice, Owner, Place, Removed,
};
use super::state::{Arrival, Retry, State, Stay, Staying};
use super::verdict::{Doubt, Rest, Verdict, Why};
use super::{AGAIN, Copy, Mover};
use crate::Nanos;

impl Mover {
    /// The disk stays; `undone` says that QEMU itself has said that the copy ended before
    /// it switched over.
    pub(super) fn stay(&mut self, why: Why, undone: bool, out: &mut Vec<Action>) {
        let stay = Stay { why, undone, found: None, still: None };
        // libvirt says where the disk is, whatever became of the job.
        if self.step == MoverStep::Switching && (undone || self.owner == Owner::Libvirt) {
            return self.copy_again(stay, out);
        }
        self.stays(Staying::GivingUp, stay, Action::GiveUp, out);
    }

    fn stays(
        &mut self,
        stage: Staying,
        stay: Stay,
        action: Action,
        out: &mut Vec<Action>,
    ) {
        self.ask(State::Staying(stage, stay), action, out);
    }

    fn rest_staying(
        &mut self,
        now: Nanos,
        retry: Retry,
        stay: Stay,
        why: super::Words,
        out: &mut Vec<Action>,
    ) {
        out.push(Action::Tell(Notice::Trouble(why)));
        self.stays(Staying::Resting(retry), stay, Action::Wait(now.plus(AGAIN)), out);
    }

    /// From here on it is but a copy again.
    fn copy_again(&mut self, stay: Stay, out: &mut Vec<Action>) {
        match self.place {
            Place::Disk => self.stays(Staying::Unsealing, stay, Action::Unseal, out),
            Place::File => self.record_copying(stay, out),
        }
    }

    fn record_copying(&mut self, stay: Stay, out: &mut Vec<Action>) {
        let record = Action::Record(MoverStep::Copying);
        self.stays(Staying::Recording, stay, record, out);
    }

    pub(super) fn staying(
        &mut self,
        now: Nanos,
        stage: Staying,
        mut stay: Stay,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Staying::Unsealing, Event::Stored(Ok(()))) => self.record_copying(stay, out),
            (Staying::Unsealing, Event::Stored(Err(why))) => {
                self.rest_staying(now, Retry::Unseal, stay, why, out);
            }
            (Staying::Recording, Event::Stored(Ok(()))) => {
                self.step = MoverStep::Copying;
                match stay.found {
                    Some(_) => self.put_away(stay, out),
                    None => self.stays(Staying::GivingUp, stay, Action::GiveUp, out),
                }
            }
            (Staying::Recording, Event::Stored(Err(why))) => {
                self.rest_staying(now, Retry::Record, stay, why, out);
            }
            (Staying::GivingUp, Event::GaveUp(Ok(found))) => {
                if found != GivenUp::Nothing {
                    self.seen(out);
                }
                stay.undone |= found == GivenUp::Undone;
                stay.found = Some(found);
                self.stays(Staying::Finding, stay, Action::Find, out);
            }
            (Staying::GivingUp, Event::GaveUp(Err(failure))) => {
                self.not_given_up(now, stay, failure, out);
            }
            (Staying::Finding, Event::Found(Ok(at))) => self.stays_at(stay, &at, out),
            (Staying::Finding, Event::Found(Err(failure))) => {
                self.stays_unseen(now, stay, failure, out);
            }
            (Staying::Removing, Event::Removed(removed)) => {
                self.removed(stay, removed, out);
            }
            (Staying::Resting(_), Event::Woken) if self.stopping => self.over(out),
            (Staying::Resting(retry), Event::Woken) => match retry {
                Retry::Unseal => self.copy_again(stay, out),
                Retry::Record => self.record_copying(stay, out),
                Retry::Find => self.stays(Staying::Finding, stay, Action::Find, out),
            },
            (stage, answer) => self.astray(State::Staying(stage, stay), &answer),
        }
    }

    fn not_given_up(
        &mut self,
        now: Nanos,
        mut stay: Stay,
        failure: Failure,
        out: &mut Vec<Action>,
    ) {
        if self.step == MoverStep::Switching {
            return self.halt(now, failure, out);
        }
        let is_there = !matches!(failure, Failure::Nobody(_) | Failure::Silent(_));
        stay.still = Some(failure);
        match is_there {
            // Somebody else may have had it switch over.
            true => self.stays(Staying::Finding, stay, Action::Find, out),
            false => self.put_away(stay, out),
        }
    }

    /// Where the disk is, now that QEMU has forgotten the copy.
    fn stays_at(&mut self, stay: Stay, at: &At, out: &mut Vec<Action>) {
        if *at == At::Destination {
            // A job that was known, or one that QEMU does not let go of, brought it there.
            let arrival = match stay.found {
                Some(GivenUp::Nothing) if self.owner == Owner::Qemu => {
                    Arrival::Unclear(Doubt::Unseen)
                }
                _ => Arrival::Moved { unplugged: false },
            };
            return self.arrive(arrival, out);
        }
        let is_copy = *at == At::Source || stay.undone;
        if self.step == MoverStep::Switching {
            return match is_copy {
                true => self.copy_again(stay, out),
                false => self.unclear(Doubt::TakenAway, out),
            };
        }
        if !is_copy {
            self.doubt();
        }
        self.put_away(stay, out);
    }

    fn stays_unseen(
        &mut self,
        now: Nanos,
        stay: Stay,
        failure: Failure,
        out: &mut Vec<Action>,
    ) {
        match (self.step, failure) {
            (MoverStep::Switching, _) if stay.undone => self.copy_again(stay, out),
            (MoverStep::Switching, failure) => self.halt(now, failure, out),
            _ if stay.undone => self.put_away(stay, out),
            (_, Failure::Nobody(_)) => {
                self.doubt();
                self.put_away(stay, out);
            }
            (_, failure) => {
                let why = failure.words().clone();
                self.rest_staying(now, Retry::Find, stay, why, out);
            }
        }
    }

    /// The destination goes, if it is only a copy, and nobody has it any more.
    fn put_away(&mut self, stay: Stay, out: &mut Vec<Action>) {
        let is_let_go = matches!(stay.still, None | Some(Failure::Nobody(_)));
        match (self.copy, is_let_go) {
            (Copy::Ours, true) => {
                self.stays(Staying::Removing, stay, Action::Remove, out);
            }
            (Copy::Ours, false) => self.close_stay(stay, Rest::Later, out),
            (Copy::Unknown, _) => self.close_stay(stay, Rest::Kept, out),
            (Copy::NotOurs, _) => self.close_stay(stay, Rest::Gone, out),
        }
    }

    fn removed(
        &mut self,
        stay: Stay,
        removed: Result<Removed, super::Words>,
        out: &mut Vec<Action>,
    ) {
        let rest = self.rest_of(removed);
        self.close_stay(stay, rest, out);
    }

    /// What is left of the destination after it was to be removed.
    pub(super) fn rest_of(&mut self, removed: Result<Removed, super::Words>) -> Rest {
        match removed {
            Ok(Removed::Gone | Removed::Another) => {
                self.copy = Copy::NotOurs;
                Rest::Gone
            }
            // libvirt may be about to make one that is not there.
            Ok(Removed::Kept) => {
                self.copy = Copy::Unknown;
                Rest::Kept
            }
            Err(why) => Rest::InTheWay(why),
        }
    }

    fn close_stay(&mut self, stay: Stay, rest: Rest, out: &mut Vec<Action>) {
        let Stay { why, still, .. } = stay;
        self.close(Verdict::Stays { why, still, rest }, out);
    }

    /// The VM has ended before it was told to switch over.
    pub(super) fn is_gone(&mut self, why: super::Words, out: &mut Vec<Action>) {
        self.end_without(why.clone(), Failure::Nobody(why), out);
    }

    /// The VM does not answer, and was not told to switch over.
    pub(super) fn is_silent(&mut self, why: super::Words, out: &mut Vec<Action>) {
        self.end_without(why.clone(), Failure::Silent(why), out);
    }

    fn end_without(&mut self, why: super::Words, still: Failure, out: &mut Vec<Action>) {
        let why = Why::Vm(why);
        let stay = Stay { why, undone: false, found: None, still: Some(still) };
        self.put_away(stay, out);
    }
}
