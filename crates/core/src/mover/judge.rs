//! The copy has ended, in whatever way: where is the disk?
//!
//! | the VM says | at the destination | at the source | no such disk | elsewhere |
//! |---|---|---|---|---|
//! | it failed, or was given up | moved | stays | stays | stays |
//! | it ended | moved | stays | moved, if it had taken the word; else unclear | unclear |
//! | nothing | moved, if it may have been told; else unclear | stays, or unclear if it may have been told | the same | unclear |

use super::Mover;
use super::event::{Action, At, Ended, Event, Failure, Job, MoverStep, Owner};
use super::state::{Arrival, Lost, Order, Over, State};
use super::verdict::{Doubt, Why};
use crate::Nanos;

impl Mover {
    pub(super) fn judge(&mut self, over: Over, out: &mut Vec<Action>) {
        self.ask(State::Judging(over), Action::Find, out);
    }

    pub(super) fn judging(
        &mut self,
        now: Nanos,
        over: Over,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match answer {
            Event::Found(Ok(at)) => self.found(over, &at, out),
            Event::Found(Err(failure)) => self.not_found(now, over, failure, out),
            answer => self.astray(State::Judging(over), &answer),
        }
    }

    fn found(&mut self, over: Over, at: &At, out: &mut Vec<Action>) {
        let is_switching = self.step == MoverStep::Switching;
        let undone = matches!(over, Over::Said(Ended::Cancelled | Ended::Failed(_)));
        let is_clean = over == Over::Said(Ended::Clean);
        match at {
            At::Destination if over == Over::Unknown && !self.knows_of_its_own() => {
                self.arrive(Arrival::Unclear(Doubt::Unseen), out);
            }
            At::Destination => self.arrive(Arrival::Moved { unplugged: false }, out),
            // While it was to switch over, it may have done so, and may have been started
            // anew since, with the old image: then what the guest wrote in between is in
            // the other one.
            At::Source
                if over == Over::Unknown && is_switching && !self.is_called_off() =>
            {
                self.unclear(Doubt::Forgotten, out);
            }
            At::Source => self.stay(self.reason(over), undone, out),
            At::Nowhere if undone => self.stay(Why::Unplugged, true, out),
            At::Nowhere if is_clean && self.order.was_told() => {
                self.arrive(Arrival::Moved { unplugged: true }, out);
            }
            At::Nowhere if is_clean || is_switching => {
                self.unclear(Doubt::TakenAway, out);
            }
            At::Nowhere => self.stay(Why::Unplugged, false, out),
            At::Elsewhere(_) if undone => self.stay(self.reason(over), true, out),
            // It may have been at the destination since: somebody may have put an overlay
            // on it.
            At::Elsewhere(_) => self.unclear(Doubt::Neither, out),
        }
    }

    /// Whether a VM that knows nothing of the copy can be at the destination only by it:
    /// libvirt starts it with what it has switched over to, and one that was to switch
    /// over had a whole copy.
    fn knows_of_its_own(&self) -> bool {
        self.owner == Owner::Libvirt || self.step == MoverStep::Switching
    }

    /// Whether libvirt has called the copy off, and says so: it would have refused that
    /// after a switch-over.
    fn is_called_off(&self) -> bool {
        let is_heard = matches!(self.order, Order::CallOff { heard: true, .. });
        self.owner == Owner::Libvirt && is_heard
    }

    /// Why the disk is where it was.
    fn reason(&self, over: Over) -> Why {
        match (over, &self.order) {
            (Over::Said(Ended::Failed(words)), _) => Why::Failed(words),
            (_, Order::CallOff { why, .. }) => why.clone(),
            _ if self.wishes.cancel => Why::Asked,
            _ => Why::ByHand,
        }
    }

    fn not_found(
        &mut self,
        now: Nanos,
        over: Over,
        failure: Failure,
        out: &mut Vec<Action>,
    ) {
        match (over, failure) {
            // It has said itself that it did not switch over.
            (
                over @ Over::Said(Ended::Cancelled | Ended::Failed(_)),
                Failure::Nobody(_),
            ) => self.stay(self.reason(over), true, out),
            (Over::Said(Ended::Cancelled | Ended::Failed(_)), failure) => {
                self.halt(now, failure, out);
            }
            // Somebody else may have had it switch over.
            (_, failure @ Failure::Nobody(_)) => {
                self.doubt();
                self.halt(now, failure, out);
            }
            (_, failure) => self.rest(now, failure.words().clone(), out),
        }
    }

    /// The VM has gone while it switched over. It may be another one by now; and libvirt
    /// knows of a VM that is off what its disks are.
    pub(super) fn finding_lost(
        &mut self,
        now: Nanos,
        stage: Lost,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (
                Lost::Looking,
                Event::Looked(Ok(Job::Unknown) | Err(Failure::Nobody(_))),
            ) => self.ask(State::Lost(Lost::Finding), Action::Find, out),
            (Lost::Looking, Event::Looked(Ok(_))) => self.round(out),
            (Lost::Looking, Event::Looked(Err(failure))) => {
                self.rest(now, failure.words().clone(), out);
            }
            (Lost::Finding, Event::Found(Ok(At::Destination))) => {
                self.arrive(Arrival::Moved { unplugged: false }, out);
            }
            // Where that is the source, it may be out of date.
            (Lost::Finding, Event::Found(Ok(_) | Err(Failure::Nobody(_)))) => {
                self.unclear(Doubt::Ended, out);
            }
            (Lost::Finding, Event::Found(Err(failure))) => {
                self.rest(now, failure.words().clone(), out);
            }
            (stage, answer) => self.astray(State::Lost(stage), &answer),
        }
    }

    /// Nobody knows where the last writes are: nothing is removed, and a disk of ours that
    /// may have them says that it is no mere copy.
    pub(super) fn unclear(&mut self, doubt: Doubt, out: &mut Vec<Action>) {
        self.arrive(Arrival::Unclear(doubt), out);
    }
}
