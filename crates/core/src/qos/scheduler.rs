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
//!    never more than the rate, 10 ms of it at once, and one request. (Of a limit in
//!    bytes, a request of each flow.)
//! 3. While a request could start, something starts: nothing is kept free, save a place
//!    of a class for its next request, which waits for one of the datastore.
//! 4. A flow's requests start in the order of their coming.
//! 5. Nobody waits for ever for what others give back and take again: places of a
//!    class, too, go to whom had the least, and what is due goes by how long it is.
//! 6. A reservation that the datastore cannot keep stops nobody: while somebody waits for
//!    2 s, a twentieth of what starts is not for reservations' sake, and the first of it
//!    is of those that do. Large requests count for more, as in shares.
//!
//! # Special cases
//!
//! - The request at the head of its class takes a *grant* from the limits, once, before it
//!   starts: so a class that is on several schedulers alternates between them. A limit in
//!   bytes is shared by bytes: no flow waits for more than the others' parts (`flows`).
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
use super::flows::{Flows, Member, Waiting};
use super::line::Head;
use super::pool::{Pool, Stake};
use super::slots::SCHEDULERS_MAX;
use crate::Nanos;

/// A part of 1/8 of each new service time goes into the smoothed one: some ten
/// requests are remembered, so a device that changes is followed within a blink.
const SMOOTHING: u64 = 8;

/// Who has waited for so long has a part of the starts though others have reservations: a
/// guest takes a disk that is silent for 10 s for a broken one, and what a reservation that
/// can be kept costs others is less.
const LONG: Nanos = Nanos::from_secs(2);

/// Where the tags of shares begin among the heads of schedulers: behind all moments, of
/// which those of reservations are.
const TAGS: u64 = 1 << 63;

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
    /// Whether the others were told what could start here first.
    said: bool,
    wakes: u64,
    wake_at: Option<Nanos>,
}

/// What could start.
struct Candidate {
    class: u32,
    flow: u32,
    tag: u64,
    /// Its tag within its class.
    begin: u64,
    /// Since when its class is behind its reservation.
    due: Option<Nanos>,
    /// Reservations have made it wait for long enough.
    first: bool,
    arrived: Nanos,
}

impl Candidate {
    /// The smallest goes first.
    fn rank(&self) -> (Head, Nanos, u32) {
        (self.head(), self.arrived, self.flow)
    }

    /// What it is among the candidates of all schedulers.
    fn head(&self) -> Head {
        let class = match self.due {
            _ if self.first => 0,
            Some(since) => since.0.min(TAGS - 1),
            None => TAGS.saturating_add(self.tag).min(Head::LAST),
        };
        Head { class, member: self.begin }
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
        pool.line.join(number);
        let flows = Flows::new(number);
        Scheduler { pool, number, flows, said: false, wakes: 0, wake_at: None }
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
        if let Some(best) = self.best(now) {
            let of_pool = self.take_place(&best)?;
            return self.start(now, &best, of_pool);
        }
        if std::mem::take(&mut self.said) {
            self.pool.line.rest(self.number);
        }
        if self.pool.window().is_some() && self.pool.slots.has_room() {
            // Whoever left a place to us can have it.
            self.wakes |= self.others(self.pool.slots.waiters());
        }
        None
    }

    /// We are about to look, whatever we wait for.
    fn others(&self, wakes: u64) -> u64 {
        wakes & !(1 << self.number)
    }

    /// A request is done, after so long at the device.
    #[expect(clippy::needless_pass_by_value, reason = "it is given back, once")]
    pub fn done(&mut self, permit: Permit, service: Nanos) {
        let Permit { member: number, of_pool, of_class } = permit;
        if of_pool {
            self.wakes |= self.others(self.pool.slots.give());
        }
        let Some(member) = self.flows.class_mut(number) else { return };
        let old = member.service.0;
        member.service = match old {
            0 => service,
            old => Nanos(old - old / SMOOTHING + service.0 / SMOOTHING),
        };
        member.permits -= 1;
        if of_class {
            self.wakes |= member.stake.class.depth.give();
        }
        self.flows.drop_if_unused(number);
    }

    /// The terms of classes have changed: grants from before are cut to what a request
    /// waits now.
    pub fn terms_changed(&mut self, now: Nanos) {
        self.flows.cut_grants(now);
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
        std::mem::take(&mut self.wakes) | std::mem::take(&mut self.flows.wakes)
    }

    /// The best of what could start now. Notes when more could.
    fn best(&mut self, now: Nanos) -> Option<Candidate> {
        self.wake_at = None;
        let for_starved = self.pool.is_for_starved();
        let mut best: Option<Candidate> = None;
        for at in 0..self.flows.waiting().len() {
            let number = self.flows.waiting()[at];
            let Some((flow, starts, arrived)) = self.flows.next_start(now, number) else {
                continue;
            };
            if starts > now {
                let sooner = self.wake_at.map_or(starts, |at| at.min(starts));
                self.wake_at = Some(sooner);
                self.flows.leave_place(number);
                continue;
            }
            if !self.flows.take_place(number) {
                continue;
            }
            let Some(Member { stake, .. }) = self.flows.class(number) else { continue };
            let (tag, due) = (stake.tag(&self.pool), stake.class.is_due(now));
            let begin = self.flows.begin(flow);
            let waited = now.since(arrived);
            let first = for_starved && due.is_none() && waited >= LONG;
            let class = number;
            let candidate = Candidate { class, flow, tag, begin, due, first, arrived };
            if best.as_ref().is_none_or(|best| candidate.rank() < best.rank()) {
                best = Some(candidate);
            }
        }
        best
    }

    /// Takes one of the datastore's places, if they are counted; whether they are.
    /// Nothing, if there is none for us now.
    fn take_place(&mut self, best: &Candidate) -> Option<bool> {
        if self.pool.window().is_none() {
            return Some(false);
        }
        let Pool { slots, line, .. } = &*self.pool;
        let head = best.head();
        let goes_before = || line.goes_before(self.number, head);
        if slots.has_room() && goes_before().is_none() && slots.try_take() {
            // What starts at once no other scheduler has to hear of.
            line.took(self.number);
            return Some(true);
        }
        line.say(self.number, head);
        self.said = true;
        if slots.has_room()
            && let Some(other) = goes_before()
        {
            slots.wait(self.number);
            self.wakes |= 1 << other;
            return None;
        }
        slots.take(self.number).then(|| {
            line.took(self.number);
            true
        })
    }

    fn start(
        &mut self,
        now: Nanos,
        best: &Candidate,
        of_pool: bool,
    ) -> Option<(T, Permit)> {
        let member = self.flows.class_mut(best.class)?;
        let of_class = member.start();
        let permit = Permit { member: best.class, of_pool, of_class };
        let Waiting { item, cost, .. } = self.flows.pop(now, best.flow)?;
        let member = self.flows.class_mut(best.class)?;
        let reserved = best.due.is_some();
        if reserved {
            member.stake.class.take_reservation(now, cost);
        }
        member.stake.charge(&self.pool, best.tag, cost, reserved);
        self.pool.started(reserved, cost);
        Some((item, permit))
    }
}

impl<T> Drop for Scheduler<T> {
    fn drop(&mut self) {
        self.pool.line.leave(self.number);
    }
}
