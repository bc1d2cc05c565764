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

use std::collections::VecDeque;
use std::sync::Arc;

use super::class::Cost;
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
    classes: Vec<Option<Member>>,
    flows: Vec<Option<Flow<T>>>,
    /// Those of `classes` with requests that wait.
    waiting: Vec<u32>,
    wakes: u64,
    wake_at: Option<Nanos>,
}

/// A class, as this scheduler sees it.
#[derive(Debug)]
struct Member {
    stake: Arc<Stake>,
    flows: u32,
    permits: u32,
    /// Flows with requests that wait.
    waiting: Vec<u32>,
    /// The flow whose request has taken from the limits, and when it may start.
    turn: Option<(u32, Nanos)>,
    /// What the device takes for a request, smoothed.
    service: Nanos,
}

#[derive(Debug)]
struct Flow<T> {
    class: u32,
    shares: u32,
    finish: u64,
    queue: VecDeque<Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    cost: Cost,
    arrived: Nanos,
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
        Scheduler {
            pool,
            number,
            classes: Vec::new(),
            flows: Vec::new(),
            waiting: Vec::new(),
            wakes: 0,
            wake_at: None,
        }
    }

    /// The pool that it schedules for.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Whether nobody has a flow or a permit.
    pub fn is_unused(&self) -> bool {
        self.classes.iter().all(Option::is_none)
    }

    /// A flow of the class that has this stake, with so many shares among the class's
    /// flows.
    pub fn add_flow(&mut self, stake: &Arc<Stake>, shares: u32) -> FlowId {
        let class = self.member(stake);
        let flow = Flow { class, shares, finish: 0, queue: VecDeque::new() };
        FlowId(place(&mut self.flows, flow))
    }

    /// Moves a flow, with all that waits in it, to another class.
    pub fn set_stake(&mut self, id: FlowId, stake: &Arc<Stake>) {
        let new = self.member(stake);
        let Some(flow) = self.flow_mut(id.0) else { return self.release(new) };
        let old = std::mem::replace(&mut flow.class, new);
        flow.finish = 0;
        if !flow.queue.is_empty() {
            self.rest(old, id.0);
            self.want(new, id.0);
        }
        self.release(old);
    }

    /// Ends a flow; gives what waited in it.
    pub fn remove_flow(&mut self, id: FlowId) -> Vec<T> {
        let Some(flow) = self.flows.get_mut(id.0 as usize).and_then(Option::take) else {
            return Vec::new();
        };
        self.rest(flow.class, id.0);
        self.release(flow.class);
        flow.queue.into_iter().map(|waiting| waiting.item).collect()
    }

    /// Takes out what waits in a flow, in order.
    pub fn take_waiting(&mut self, id: FlowId) -> Vec<T> {
        let Some(flow) = self.flow_mut(id.0) else { return Vec::new() };
        let (class, queue) = (flow.class, std::mem::take(&mut flow.queue));
        self.rest(class, id.0);
        queue.into_iter().map(|waiting| waiting.item).collect()
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
        let flow = self.flows.get_mut(id.0 as usize)?.as_mut()?;
        let number = flow.class;
        let member = self.classes.get_mut(number as usize)?.as_mut()?;
        let free = member.waiting.is_empty() && !member.stake.class.is_bound();
        if free && self.pool.window().is_none() {
            member.permits += 1;
            let permit = Permit { member: number, of_pool: false, of_class: false };
            return Some((item, permit));
        }
        flow.queue.push_back(Waiting { item, cost, arrived: now });
        if flow.queue.len() == 1 {
            self.want(number, id.0);
        }
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
        let Some(member) = self.member_mut(number) else { return };
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
        self.drop_if_unused(number);
    }

    /// The terms of classes have changed: turns that were given before are cut to what
    /// a request waits for its turn now.
    pub fn terms_changed(&mut self, now: Nanos) {
        for member in self.classes.iter_mut().flatten() {
            let Some((flow, at)) = member.turn else { continue };
            let head = self.flows[flow as usize].as_ref();
            let cost = head.and_then(|flow| flow.queue.front()).map(|head| head.cost);
            let longest =
                cost.map_or(Nanos(0), |cost| member.stake.class.longest_turn(cost));
            member.turn = Some((flow, at.min(now.plus(longest))));
        }
    }

    /// When `next` must be called again, if nothing happens before. As `next` left it.
    pub fn deadline(&self) -> Option<Nanos> {
        self.wake_at
    }

    /// Whether requests wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
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
        for at in 0..self.waiting.len() {
            let number = self.waiting[at];
            let Some((flow, starts, arrived)) = self.turn(now, number) else { continue };
            if starts > now {
                let sooner = self.wake_at.map_or(starts, |at| at.min(starts));
                self.wake_at = Some(sooner);
                continue;
            }
            let Some(member) = &self.classes[number as usize] else { continue };
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

    /// The class's request whose turn it is, when it may start, and when it came.
    fn turn(&mut self, now: Nanos, number: u32) -> Option<(u32, Nanos, Nanos)> {
        let member = self.classes[number as usize].as_mut()?;
        let flows = &self.flows;
        let flow_of = |id: u32| flows[id as usize].as_ref();
        let head_of = |id: u32| flow_of(id).and_then(|flow| flow.queue.front());
        let class = &member.stake.class;
        let (flow, turn) = match member.turn {
            Some(turn) => turn,
            None => {
                let tag = |id: &u32| {
                    let finish = flow_of(*id).map_or(u64::MAX, |flow| flow.finish);
                    let arrived = head_of(*id).map_or(Nanos::MAX, |head| head.arrived);
                    (member.stake.member_tag(finish), arrived)
                };
                let first = *member.waiting.iter().min_by_key(|id| tag(id))?;
                (first, class.take_limits(now, head_of(first)?.cost))
            }
        };
        member.turn = Some((flow, turn));
        let arrived = head_of(flow)?.arrived;
        let held = class.response().since(member.service);
        Some((flow, turn.max(arrived.plus(held)), arrived))
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
        let member = self.classes[best.class as usize].as_ref();
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
        let flow = self.flows[best.flow as usize].as_mut()?;
        let member = self.classes[best.class as usize].as_mut()?;
        let Waiting { item, cost, .. } = flow.queue.pop_front()?;
        member.turn = None;
        member.permits += 1;
        if best.due.is_some() {
            member.stake.class.take_reservation(now, cost);
        }
        member.stake.charge(&self.pool, best.tag, cost, best.due.is_some());
        let tag = member.stake.member_tag(flow.finish);
        flow.finish = member.stake.charge_member(tag, cost, flow.shares);
        if flow.queue.is_empty() {
            self.rest(best.class, best.flow);
        }
        Some((item, permit))
    }

    /// A flow of a class has requests that wait.
    fn want(&mut self, class: u32, flow: u32) {
        let Some(member) = self.member_mut(class) else { return };
        member.waiting.push(flow);
        if member.waiting.len() == 1 {
            self.waiting.push(class);
        }
    }

    /// A flow of a class has none any more. A turn that it has taken has cost what it
    /// cost.
    fn rest(&mut self, class: u32, flow: u32) {
        let Some(member) = self.member_mut(class) else { return };
        member.waiting.retain(|waiting| *waiting != flow);
        if member.turn.is_some_and(|(of, _)| of == flow) {
            member.turn = None;
        }
        if member.waiting.is_empty() {
            self.waiting.retain(|waiting| *waiting != class);
        }
    }

    /// The class with this stake, with one more flow.
    fn member(&mut self, stake: &Arc<Stake>) -> u32 {
        let known = self.classes.iter().position(|member| {
            member.as_ref().is_some_and(|member| Arc::ptr_eq(&member.stake, stake))
        });
        let number = match known {
            Some(known) => known as u32,
            None => place(
                &mut self.classes,
                Member {
                    stake: Arc::clone(stake),
                    flows: 0,
                    permits: 0,
                    waiting: Vec::new(),
                    turn: None,
                    service: Nanos(0),
                },
            ),
        };
        if let Some(member) = self.member_mut(number) {
            member.flows += 1;
        }
        number
    }

    /// A flow has left a class.
    fn release(&mut self, class: u32) {
        if let Some(member) = self.member_mut(class) {
            member.flows -= 1;
        }
        self.drop_if_unused(class);
    }

    fn drop_if_unused(&mut self, class: u32) {
        let unused = |member: &Member| member.flows == 0 && member.permits == 0;
        if self.classes[class as usize].as_ref().is_some_and(unused) {
            self.classes[class as usize] = None;
        }
    }

    fn member_mut(&mut self, class: u32) -> Option<&mut Member> {
        self.classes.get_mut(class as usize)?.as_mut()
    }

    fn flow_mut(&mut self, flow: u32) -> Option<&mut Flow<T>> {
        self.flows.get_mut(flow as usize)?.as_mut()
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

/// Puts a value into the first free place.
fn place<V>(places: &mut Vec<Option<V>>, value: V) -> u32 {
    match places.iter().position(Option::is_none) {
        Some(free) => {
            places[free] = Some(value);
            free as u32
        }
        None => {
            places.push(Some(value));
            (places.len() - 1) as u32
        }
    }
}
