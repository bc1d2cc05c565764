//! Guest requests between their arrival and the end of their last effect.

use std::collections::{BTreeSet, VecDeque};

use super::{Request, RequestId, RequestKind};
use crate::{IdMap, Nanos};

/// A part of 1/32 of each new response time goes into the smoothed one: as many requests
/// as a busy guest has in flight are remembered.
const SMOOTHING: u64 = 32;

/// What one side has done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It is not asked, or not yet.
    Idle,
    /// It works on it.
    Pending,
    /// It is done.
    Done,
}

/// A guest request.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) request: Request,
    pub(super) arrived: Nanos,
    /// When it was started; how long it waited before is taken off its patience.
    pub(super) started: Nanos,
    pub(super) source: Side,
    pub(super) destination: Side,
    /// The guest does not wait for the destination any more.
    pub(super) overdue: bool,
    pub(super) answered: bool,
    /// Since when only the destination is waited for.
    pub(super) source_done: Option<Nanos>,
    deadline: Option<Nanos>,
}

impl Flight {
    /// Whether the guest, or the switch-over, still counts on the destination.
    fn awaits_destination(&self) -> bool {
        self.destination == Side::Pending && !self.overdue
    }
}

/// All requests that the mirror knows of. Bounded by what the guest may have in
/// flight, plus the overdue writes, which the breaker in `guest` bounds.
#[derive(Debug, Default)]
pub(super) struct Flights {
    by_id: IdMap<RequestId, Flight>,
    deadlines: BTreeSet<(Nanos, RequestId)>,
    /// Requests that were not started yet, in order of arrival.
    waiting: VecDeque<RequestId>,
    /// Destination writes in order of their start; ended ones linger until they
    /// are at the front.
    destination: VecDeque<(Nanos, RequestId)>,
    overdue: usize,
    /// Requests that change bytes.
    writes: usize,
    /// Requests that the guest waits for.
    unanswered: usize,
    /// Requests that were answered, all in all.
    answers: u64,
    /// How long guests waited for the destination alone, all in all.
    mirror_wait: Nanos,
    /// Writes that were mirrored, and answered.
    mirrored_writes: u64,
    /// What a request takes until the guest has its answer, smoothed.
    response: Nanos,
    /// Writes that waited for the destination in vain without ever being sent to
    /// it, since it last finished one.
    unsent: usize,
}

impl Flights {
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Whether anything is in flight that changes bytes, on either side.
    pub(super) fn has_writes(&self) -> bool {
        self.writes > 0
    }

    /// Writes whose patience the destination has used up, and of which it has not
    /// let go since.
    pub(super) fn overdue(&self) -> usize {
        self.overdue + self.unsent
    }

    /// Requests that the guest waits for.
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Requests that were answered, all in all.
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// How long guests waited for the destination alone, all in all.
    pub(super) fn mirror_wait(&self) -> Nanos {
        self.mirror_wait
    }

    /// Writes that were mirrored, and answered, all in all.
    pub(super) fn mirrored_writes(&self) -> u64 {
        self.mirrored_writes
    }

    /// What a request takes until the guest has its answer, of late.
    pub(super) fn response(&self) -> Nanos {
        self.response
    }

    /// The guest has its answer. Says whether it had not had it before.
    pub(super) fn answered(&mut self, now: Nanos, id: RequestId) -> bool {
        let flight = self.get_mut(id);
        let first = !flight.answered;
        flight.answered = true;
        let waited = flight.source_done.take().map_or(Nanos(0), |at| now.since(at));
        let took = now.since(flight.arrived).0;
        let mirrored = flight.destination != Side::Idle;
        self.mirror_wait = self.mirror_wait.plus(waited);
        if first {
            self.unanswered -= 1;
            self.answers += 1;
            self.mirrored_writes += u64::from(mirrored);
            let old = self.response.0;
            self.response = Nanos(old - old / SMOOTHING + took / SMOOTHING);
        }
        first
    }

    /// An overdue write was never sent to the destination, which is so slow that
    /// there was no memory for it.
    pub(super) fn never_sent(&mut self, id: RequestId) {
        self.unsent += usize::from(self.get(id).overdue);
    }

    /// The destination works: it has finished a write.
    pub(super) fn destination_works(&mut self) {
        self.unsent = 0;
    }

    pub(super) fn insert(&mut self, now: Nanos, request: Request) {
        let flight = Flight {
            request,
            arrived: now,
            started: now,
            source: Side::Idle,
            destination: Side::Idle,
            overdue: false,
            answered: false,
            source_done: None,
            deadline: None,
        };
        self.unanswered += 1;
        self.writes += usize::from(request.kind == RequestKind::Write);
        let before = self.by_id.insert(request.id, flight);
        assert!(before.is_none(), "{:?} is in flight twice", request.id);
    }

    pub(super) fn get(&self, id: RequestId) -> &Flight {
        &self.by_id[&id]
    }

    pub(super) fn get_mut(&mut self, id: RequestId) -> &mut Flight {
        self.by_id.get_mut(&id).expect("the driver names requests in flight")
    }

    pub(super) fn remove(&mut self, id: RequestId) {
        self.set_deadline(id, None);
        if let Some(flight) = self.by_id.remove(&id) {
            self.overdue -= usize::from(flight.overdue);
            self.writes -= usize::from(flight.request.kind == RequestKind::Write);
        }
    }

    pub(super) fn set_overdue(&mut self, id: RequestId) {
        let flight = self.get_mut(id);
        if !flight.overdue {
            flight.overdue = true;
            self.overdue += 1;
        }
    }

    pub(super) fn set_deadline(&mut self, id: RequestId, deadline: Option<Nanos>) {
        if let Some(flight) = self.by_id.get_mut(&id) {
            if let Some(old) = flight.deadline.take() {
                self.deadlines.remove(&(old, id));
            }
            if let Some(new) = deadline {
                flight.deadline = Some(new);
                self.deadlines.insert((new, id));
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Takes a request whose deadline has come.
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<RequestId> {
        let &(at, id) = self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.set_deadline(id, None);
        Some(id)
    }

    pub(super) fn wait(&mut self, id: RequestId, deadline: Nanos) {
        self.waiting.push_back(id);
        self.set_deadline(id, Some(deadline));
    }

    pub(super) fn waiting(&self) -> &VecDeque<RequestId> {
        &self.waiting
    }

    pub(super) fn waits_no_more(&mut self, id: RequestId) {
        self.waiting.retain(|waiting| *waiting != id);
        self.set_deadline(id, None);
    }

    /// Takes all that wait, to be held with the others at the switch-over.
    pub(super) fn take_waiting(&mut self) -> Vec<(Nanos, Request)> {
        let ids: Vec<_> = self.waiting.drain(..).collect();
        ids.into_iter()
            .map(|id| {
                let flight = self.get(id);
                let taken = (flight.arrived, flight.request);
                self.remove(id);
                self.unanswered -= 1;
                taken
            })
            .collect()
    }

    pub(super) fn destination_starts(&mut self, now: Nanos, id: RequestId) {
        self.destination.push_back((now, id));
    }

    /// When the oldest destination write that is still under way was started.
    pub(super) fn oldest_destination(&mut self) -> Option<Nanos> {
        while let Some(&(since, id)) = self.destination.front() {
            let pending = self
                .by_id
                .get(&id)
                .is_some_and(|flight| flight.destination == Side::Pending);
            if pending {
                return Some(since);
            }
            self.destination.pop_front();
        }
        None
    }

    /// Counts the time of destination writes from `now` on: a pause has ended.
    pub(super) fn rearm(&mut self, now: Nanos) {
        for entry in &mut self.destination {
            entry.0 = now;
        }
        self.unsent = 0;
    }

    /// The mirrored writes whose guest still waits for the destination.
    pub(super) fn awaiting_destination(&self) -> Vec<RequestId> {
        let mut ids: Vec<_> = self
            .by_id
            .iter()
            .filter(|(_, flight)| flight.awaits_destination())
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable(); // The map's order is not the same in every run.
        ids
    }

    pub(super) fn awaits_destination(&self, id: RequestId) -> bool {
        self.by_id.get(&id).is_some_and(Flight::awaits_destination)
    }
}
