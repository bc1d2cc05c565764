//! Who starts next at a datastore.
//!
//! # Rule
//!
//! Requests wait in *flows*, in the order of their coming; a flow is what one disk,
//! or the copies of one migration, asks of the datastore. Flows are members of a
//! class. Of the requests at the head of their flows, the next to start is chosen as
//! in mClock (Gulati, Merchant, Varman, OSDI 2010): first a class that is behind its
//! reservation, the one that is so for longest; else, of the classes within their
//! limits, the one with the smallest tag of shares. Within a class, members have
//! equal shares unless told otherwise: shares are held on two levels.
//!
//! # Invariants
//!
//! 1. No class has more requests at the device than its depth, the datastore no more
//!    than its window, save those that were there before the number was set.
//! 2. A class's limits hold over all its flows, on all datastores and schedulers:
//!    never more than the rate, 10 ms of it at once, and one request.
//! 3. While a request could start, something starts: nothing is kept free.
//! 4. A flow's requests start in the order of their coming.
//!
//! # Special cases
//!
//! - A limit's turn is taken by the request at the head of its class, once, before
//!   the request starts: so a class that is on several schedulers takes turns.
//! - A response time is a limit too: a request is held back from its coming for as
//!   long as it must take, less what the device has taken of late.
//! - A reservation counts only what was started for its sake. What a class gets by
//!   its shares is counted as shares; both move its tag.
//! - Where neither the class nor the datastore knows a bound, a request goes by all
//!   of this without touching what others share.
//!
//! # Several schedulers
//!
//! A datastore's disks are on several threads, each with a scheduler of its own.
//! They share the `Pool` and the classes, and nothing waits for a lock. What one of
//! them gives back another may be waiting for: `take_wakes` says who has to look
//! again. Two that look at the same time may start their two requests in either
//! order; no more than that depends on the threads.

use std::sync::Arc;

use super::class::Cost;
use super::flows::{Flows, Waiting};
use super::pool::{Pool, Stake};
use super::slots::SCHEDULERS_MAX;
use crate::Nanos;

/// A part of 1/8 of each new service time goes into the smoothed one: some ten
/// requests are remembered, so a device that changes is followed within a blink.
const SMOOTHING: u64 = 8;

/// Names a flow of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId(u32);

/// That a request has started; to be given back with `done`.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a place that is not given back is lost"]
pub struct Permit {
    member: u32,
    of_pool: bool,
    of_class: bool,
}

/// A scheduler of one datastore on one thread. `T` is what its caller starts.
#[derive(Debug)]
pub struct Scheduler<T> {
    pool: Arc<Pool>,
    number: u32,
    flows: Flows<T>,
    wakes: u64,
    wake_at: Option<Nanos>,
}

/// What could start.
struct Candidate {
    class: u32,
    flow: u32,
    tag: u64,
    /// Since when its class is behind its reservation.
    due: Option<Nanos>,
    arrived: Nanos,
}

impl Candidate {
    /// The smallest goes first.
    fn rank(&self) -> (bool, u64, Nanos, u32) {
        match self.due {
            Some(since) => (false, since.0, self.arrived, self.flow),
            None => (true, self.tag, self.arrived, self.flow),
        }
    }
}

impl<T> Scheduler<T> {
    /// The scheduler `number` of a pool, which has no other of this number.
    ///
    /// # Panics
    ///
    /// If the number is not below [`SCHEDULERS_MAX`].
    pub fn new(pool: Arc<Pool>, number: u32) -> Scheduler<T> {
        assert!(number < SCHEDULERS_MAX, "there is no place for scheduler {number}");
        pool.join(number);
        Scheduler { pool, number, flows: Flows::default(), wakes: 0, wake_at: None }
    }

    /// The pool that it schedules for.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Whether nobody has a flow or a permit.
    pub fn is_unused(&self) -> bool {
        self.flows.are_unused()
    }

    /// A flow of the class that has this stake, with so many shares among the class's
    /// flows.
    pub fn add_flow(&mut self, stake: &Arc<Stake>, shares: u32) -> FlowId {
        FlowId(self.flows.add(stake, shares))
    }

    /// Moves a flow, with all that waits in it, to another class.
    pub fn set_stake(&mut self, id: FlowId, stake: &Arc<Stake>) {
        self.flows.set_stake(id.0, stake);
    }

    /// Ends a flow; gives what waited in it.
    pub fn remove_flow(&mut self, id: FlowId) -> Vec<T> {
        self.flows.remove(id.0)
    }

    /// Takes out of what waits in a flow what is `unwanted`, in order.
    pub fn take_waiting(&mut self, id: FlowId, unwanted: impl Fn(&T) -> bool) -> Vec<T> {
        self.flows.take_waiting(id.0, unwanted)
    }

    /// A request has come. Gives it back if it may start at once; else it waits, and
    /// `next` is to be called.
    pub fn arrive(
        &mut self,
        now: Nanos,
        id: FlowId,
        cost: Cost,
        item: T,
    ) -> Option<(T, Permit)> {
        let (number, member) = self.flows.class_of(id.0)?;
        let free = !member.is_waiting() && !member.stake.class.is_bound();
        if free && self.pool.window().is_none() {
            member.permits += 1;
            let permit = Permit { member: number, of_pool: false, of_class: false };
            return Some((item, permit));
        }
        self.flows.push(id.0, Waiting { item, cost, arrived: now });
        None
    }

    /// The next request to start. To be called until there is none: whenever a request
    /// has come, was done, is due (`deadline`), or terms or bounds have changed.
    pub fn next(&mut self, now: Nanos) -> Option<(T, Permit)> {
        while let Some(best) = self.best(now) {
            match self.places_for(&best) {
                Places::Taken(permit) => return self.start(now, &best, permit),
                Places::ClassFull => {}
                Places::PoolFull => return None,
            }
        }
        self.pool.say_head(self.number, None);
        if self.pool.window().is_some() && self.pool.slots.has_room() {
            // Whoever left a place to us can have it.
            self.wakes |= self.pool.slots.waiters();
        }
        None
    }

    /// A request is done, after so long at the device.
    #[expect(clippy::needless_pass_by_value, reason = "it is given back, once")]
    pub fn done(&mut self, permit: Permit, service: Nanos) {
        let Permit { member: number, of_pool, of_class } = permit;
        if of_pool {
            self.wakes |= self.pool.slots.give();
        }
        let Some(member) = self.flows.class_mut(number) else { return };
        let old = member.service.0;
        member.service = match old {
            0 => service,
            old => Nanos(old - old / SMOOTHING + service.0 / SMOOTHING),
        };
        member.permits -= 1;
        if of_class {
            let waiters = member.stake.class.slots.give();
            self.wakes |= waiters;
        }
        self.flows.drop_if_unused(number);
    }

    /// The terms of classes have changed: turns that were given before are cut to what
    /// a request waits for its turn now.
    pub fn terms_changed(&mut self, now: Nanos) {
        self.flows.cut_turns(now);
    }

    /// When `next` must be called again, if nothing happens before. As `next` left it.
    pub fn deadline(&self) -> Option<Nanos> {
        self.wake_at
    }

    /// Whether requests wait.
    pub fn is_waiting(&self) -> bool {
        !self.flows.waiting().is_empty()
    }

    /// The schedulers of the pool, or with flows of the same classes, that have to look
    /// again: a bit for each number.
    pub fn take_wakes(&mut self) -> u64 {
        std::mem::take(&mut self.wakes)
    }

    /// The best of what could start now. Notes when more could.
    fn best(&mut self, now: Nanos) -> Option<Candidate> {
        self.wake_at = None;
        let mut best: Option<Candidate> = None;
        for at in 0..self.flows.waiting().len() {
            let number = self.flows.waiting()[at];
            let Some((flow, starts, arrived)) = self.flows.turn(now, number) else {
                continue;
            };
            if starts > now {
                let sooner = self.wake_at.map_or(starts, |at| at.min(starts));
                self.wake_at = Some(sooner);
                continue;
            }
            let Some(member) = self.flows.class(number) else { continue };
            let class = &member.stake.class;
            if !class.slots.has_room() {
                class.slots.wait(self.number);
                if !class.slots.has_room() {
                    continue;
                }
            }
            let (tag, due) = (member.stake.tag(&self.pool), class.is_due(now));
            let candidate = Candidate { class: number, flow, tag, due, arrived };
            if best.as_ref().is_none_or(|best| candidate.rank() < best.rank()) {
                best = Some(candidate);
            }
        }
        best
    }

    /// Takes the places that a request needs.
    fn places_for(&mut self, best: &Candidate) -> Places {
        let of_pool = self.pool.window().is_some();
        if of_pool {
            let tag = if best.due.is_some() { 0 } else { best.tag };
            self.pool.say_head(self.number, Some(tag));
            if self.pool.slots.has_room()
                && let Some(other) = self.pool.goes_before(self.number, tag)
            {
                self.pool.slots.wait(self.number);
                self.wakes |= 1 << other;
                return Places::PoolFull;
            }
            if !self.pool.slots.take(self.number) {
                return Places::PoolFull;
            }
        }
        let member = self.flows.class(best.class);
        let slots = member.map(|member| &member.stake.class.slots);
        let slots = slots.filter(|slots| slots.max().is_some());
        let of_class = slots.is_some();
        if slots.is_some_and(|slots| !slots.take(self.number)) {
            if of_pool {
                self.wakes |= self.pool.slots.give();
            }
            return Places::ClassFull;
        }
        Places::Taken(Permit { member: best.class, of_pool, of_class })
    }

    fn start(
        &mut self,
        now: Nanos,
        best: &Candidate,
        permit: Permit,
    ) -> Option<(T, Permit)> {
        let Waiting { item, cost, .. } = self.flows.pop(best.flow)?;
        let member = self.flows.class_mut(best.class)?;
        member.permits += 1;
        let reserved = best.due.is_some();
        if reserved {
            member.stake.class.take_reservation(now, cost);
        }
        member.stake.charge(&self.pool, best.tag, cost, reserved);
        Some((item, permit))
    }
}

impl<T> Drop for Scheduler<T> {
    fn drop(&mut self) {
        self.pool.leave(self.number);
    }
}

/// What became of asking for places.
enum Places {
    Taken(Permit),
    /// The class waits for one of its own.
    ClassFull,
    /// The datastore has none for us now.
    PoolFull,
}
