//! The flows of a scheduler, and the classes that they are members of: who is there,
//! who has requests that wait, and which flow of a class starts next.
//!
//! A class is here while it has a flow or a request at the device. Of its flows, the
//! one with the smallest tag is next (where other threads have brought the class's time
//! past several of them, the one that had the least); it takes from the class's limits
//! once, and keeps this *grant* until its request starts, or is taken out: then what it has
//! taken goes back, for the next one. A request that has not taken as long as the class's
//! requests must has no grant yet: those of other flows that have go before it.
//!
//! Grants share a limit by requests. A limit in bytes is shared by bytes: of as many flows
//! as ask for something (`askers`), on whichever schedulers they are, each has an equal
//! part of it, and a request also starts when its flow's part has brought what it costs
//! since it waits, or since the flow's request before it was paid for. So a disk that asks
//! for 4 KiB at a time, one after the other, does not wait each time for a mebibyte of
//! its neighbour's. What started by its part is owed by all, and grants wait for it: so
//! over time no more than the limit flows.

use std::collections::VecDeque;
use std::sync::Arc;

use super::class::Cost;
use super::depth::Claim;
use super::pool::Stake;
use crate::Nanos;

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub(super) item: T,
    pub(super) cost: Cost,
    pub(super) arrived: Nanos,
}

/// What the flow at the head of a class has taken from its limits, and when its request
/// may start.
#[derive(Clone, Copy, Debug)]
struct Grant {
    flow: u32,
    cost: Cost,
    at: Nanos,
}

/// A class, as one scheduler sees it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) stake: Arc<Stake>,
    flows: u32,
    /// Its requests at the device.
    pub(super) permits: u32,
    /// Flows with requests that wait.
    waiting: Vec<u32>,
    grant: Option<Grant>,
    /// What the device takes for a request, smoothed.
    pub(super) service: Nanos,
    /// To the places of the class.
    claim: Claim,
}

impl Member {
    /// Whether it has requests that wait.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next request starts: whether it has one of the class's places.
    pub(super) fn start(&mut self) -> bool {
        self.permits += 1;
        self.claim.start()
    }
}

#[derive(Debug)]
struct Flow<T> {
    class: u32,
    shares: u32,
    finish: u64,
    queue: VecDeque<Waiting<T>>,
    part: Part,
}

/// A flow's own part of its class's limit in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// When its last request was paid for.
    paid: Nanos,
    /// When it was last counted among those that ask.
    counted: u32,
}

/// The flows of a scheduler.
#[derive(Debug)]
pub(super) struct Flows<T> {
    classes: Vec<Option<Member>>,
    flows: Vec<Option<Flow<T>>>,
    /// Those of `classes` with requests that wait.
    waiting: Vec<u32>,
    /// The number of the scheduler.
    number: u32,
    /// Who has to look again: a bit for each number of a scheduler.
    pub(super) wakes: u64,
}

impl<T> Flows<T> {
    /// None yet, of the scheduler with this number.
    pub(super) fn new(number: u32) -> Flows<T> {
        let (classes, flows, waiting) = (Vec::new(), Vec::new(), Vec::new());
        Flows { classes, flows, waiting, number, wakes: 0 }
    }

    /// Whether no class is here.
    pub(super) fn are_unused(&self) -> bool {
        self.classes.iter().all(Option::is_none)
    }

    /// The classes with requests that wait.
    pub(super) fn waiting(&self) -> &[u32] {
        &self.waiting
    }

    pub(super) fn class(&self, number: u32) -> Option<&Member> {
        self.classes.get(number as usize)?.as_ref()
    }

    pub(super) fn class_mut(&mut self, number: u32) -> Option<&mut Member> {
        self.classes.get_mut(number as usize)?.as_mut()
    }

    /// The class of a flow, and its number.
    pub(super) fn class_of(&mut self, flow: u32) -> Option<(u32, &mut Member)> {
        let number = self.flow_mut(flow)?.class;
        Some((number, self.class_mut(number)?))
    }

    /// A new flow of the class with this stake.
    pub(super) fn add(&mut self, stake: &Arc<Stake>, shares: u32) -> u32 {
        let class = self.member(stake);
        let (queue, part) = (VecDeque::new(), Part::default());
        place(&mut self.flows, Flow { class, shares, finish: 0, queue, part })
    }

    /// Moves a flow to another class.
    pub(super) fn set_stake(&mut self, id: u32, stake: &Arc<Stake>) {
        let new = self.member(stake);
        let Some(flow) = self.flow_mut(id) else { return self.release(new) };
        let old = std::mem::replace(&mut flow.class, new);
        flow.finish = 0;
        if !flow.queue.is_empty() {
            self.rest(old, id);
            self.want(new, id);
        }
        self.release(old);
    }

    /// Ends a flow; gives what waited in it.
    pub(super) fn remove(&mut self, id: u32) -> Vec<T> {
        let Some(flow) = self.flows.get_mut(id as usize).and_then(Option::take) else {
            return Vec::new();
        };
        self.rest(flow.class, id);
        self.release(flow.class);
        flow.queue.into_iter().map(|waiting| waiting.item).collect()
    }

    /// Takes out of what waits in a flow what is `unwanted`, in order.
    pub(super) fn take_waiting(
        &mut self,
        id: u32,
        unwanted: impl Fn(&T) -> bool,
    ) -> Vec<T> {
        let Some(flow) = self.flow_mut(id) else { return Vec::new() };
        let (class, was_waiting) = (flow.class, !flow.queue.is_empty());
        let head_goes = flow.queue.front().is_some_and(|head| unwanted(&head.item));
        let queue = std::mem::take(&mut flow.queue).into_iter();
        let (gone, left): (VecDeque<_>, VecDeque<_>) =
            queue.partition(|waiting| unwanted(&waiting.item));
        flow.queue = left;
        let is_waiting = !flow.queue.is_empty();
        if was_waiting && !is_waiting {
            self.rest(class, id);
        } else if head_goes {
            self.end_grant(class, id);
        }
        gone.into_iter().map(|waiting| waiting.item).collect()
    }

    /// A request waits in a flow.
    pub(super) fn push(&mut self, id: u32, request: Waiting<T>) {
        let Some(flow) = self.flow_mut(id) else { return };
        flow.queue.push_back(request);
        if flow.queue.len() == 1 {
            let class = flow.class;
            self.want(class, id);
        }
    }

    /// The request at the head of a flow starts, which is where the flow's grant ends.
    pub(super) fn pop(&mut self, now: Nanos, id: u32) -> Option<Waiting<T>> {
        let flow = self.flows.get_mut(id as usize)?.as_mut()?;
        let member = self.classes.get_mut(flow.class as usize)?.as_mut()?;
        let request = flow.queue.pop_front()?;
        let class = &member.stake.class;
        if member.grant.take_if(|grant| grant.flow == id).is_none() {
            // It starts by its own part; what it takes is owed by all.
            class.take_limits(now, request.cost);
        }
        if let Some(price) = class.part(now, &mut flow.part.counted, request.cost) {
            flow.part.paid = flow.part.paid.max(request.arrived).plus(price).min(now);
        }
        let tag = member.stake.member_tag(flow.finish);
        flow.finish = member.stake.charge_member(tag, request.cost, flow.shares);
        if flow.queue.is_empty() {
            let class = flow.class;
            self.rest(class, id);
        }
        Some(request)
    }

    /// The flow of a class that starts next, when its request may start, and when that
    /// came.
    pub(super) fn next_start(
        &mut self,
        now: Nanos,
        number: u32,
    ) -> Option<(u32, Nanos, Nanos)> {
        let member = self.classes.get_mut(number as usize)?.as_mut()?;
        let flows = &self.flows;
        let flow_of = |id: u32| flows[id as usize].as_ref();
        let head_of = |id: u32| flow_of(id).and_then(|flow| flow.queue.front());
        let class = &member.stake.class;
        let held = class.response().since(member.service);
        let grant = match member.grant {
            Some(grant) => grant,
            None => {
                let rank = |id: &u32| {
                    let arrived = head_of(*id).map_or(Nanos::MAX, |head| head.arrived);
                    let due = arrived.plus(held);
                    let finish = flow_of(*id).map_or(u64::MAX, |flow| flow.finish);
                    (if due <= now { Nanos(0) } else { due }, finish, arrived)
                };
                let first = match member.waiting[..] {
                    [only] => only,
                    _ => *member.waiting.iter().min_by_key(|id| rank(id))?,
                };
                let Waiting { arrived, cost, .. } = head_of(first)?;
                let due = arrived.plus(held);
                if due > now {
                    return Some((first, due, *arrived));
                }
                Grant { flow: first, cost: *cost, at: class.take_limits(now, *cost) }
            }
        };
        member.grant = Some(grant);
        let arrived = head_of(grant.flow)?.arrived;
        let by_grant = (grant.flow, grant.at.max(arrived.plus(held)), arrived);
        if by_grant.1 <= now {
            return Some(by_grant);
        }
        let by_part = self.by_part(now, number, held);
        Some(by_part.filter(|part| part.1 < by_grant.1).unwrap_or(by_grant))
    }

    /// The flow of a class whose own part of the class's limit in bytes brings what its
    /// request costs first, when that is, and when the request came.
    fn by_part(
        &mut self,
        now: Nanos,
        number: u32,
        held: Nanos,
    ) -> Option<(u32, Nanos, Nanos)> {
        let member = self.classes.get(number as usize)?.as_ref()?;
        let mut first: Option<(u32, Nanos, Nanos)> = None;
        for id in &member.waiting {
            let Some(Flow { queue, part, .. }) = self.flows[*id as usize].as_mut() else {
                continue;
            };
            let Some(Waiting { arrived, cost, .. }) = queue.front() else { continue };
            let (arrived, class) = (*arrived, &member.stake.class);
            let Some(price) = class.part(now, &mut part.counted, *cost) else { continue };
            let at = part.paid.max(arrived).plus(price).max(arrived.plus(held));
            if first.is_none_or(|(_, sooner, _)| at < sooner) {
                first = Some((*id, at, arrived));
            }
        }
        first
    }

    /// Where a flow's next request begins among those of its class.
    pub(super) fn begin(&self, id: u32) -> u64 {
        let flow = self.flows.get(id as usize).and_then(Option::as_ref);
        flow.map_or(u64::MAX, |flow| flow.finish)
    }

    /// Whether the next request of a class has one of the class's places, or needs none.
    pub(super) fn take_place(&mut self, number: u32) -> bool {
        let Some(member) = self.classes.get_mut(number as usize).and_then(Option::as_mut)
        else {
            return false;
        };
        let shares = |id: &u32| {
            let flow = self.flows[*id as usize].as_ref();
            flow.map_or(0, |flow| u64::from(flow.shares))
        };
        let shares = member.waiting.iter().map(shares).sum();
        member.claim.take(shares, &mut self.wakes)
    }

    /// Nothing of a class could start now.
    pub(super) fn leave_place(&mut self, number: u32) {
        if let Some(member) = self.class_mut(number) {
            let wakes = member.claim.rest();
            self.wakes |= wakes;
        }
    }

    /// Cuts grants to what a request waits under the terms of now.
    pub(super) fn cut_grants(&mut self, now: Nanos) {
        for member in self.classes.iter_mut().flatten() {
            let Some(grant) = &mut member.grant else { continue };
            let longest = member.stake.class.longest_wait(grant.cost);
            grant.at = grant.at.min(now.plus(longest));
        }
    }

    /// A flow of a class has requests that wait.
    fn want(&mut self, class: u32, flow: u32) {
        let Some(member) = self.class_mut(class) else { return };
        member.waiting.push(flow);
        if member.waiting.len() == 1 {
            self.waiting.push(class);
        }
    }

    /// A flow of a class has none any more.
    fn rest(&mut self, class: u32, flow: u32) {
        let Some(member) = self.class_mut(class) else { return };
        member.waiting.retain(|waiting| *waiting != flow);
        if member.waiting.is_empty() {
            self.waiting.retain(|waiting| *waiting != class);
            self.leave_place(class);
        }
        self.end_grant(class, flow);
    }

    /// The request with a flow's grant is gone: what it took is there for the next.
    fn end_grant(&mut self, class: u32, flow: u32) {
        let Some(member) = self.class_mut(class) else { return };
        if let Some(grant) = member.grant.take_if(|grant| grant.flow == flow) {
            member.stake.class.give_limits(grant.cost);
        }
    }

    /// The class with this stake, with one more flow.
    fn member(&mut self, stake: &Arc<Stake>) -> u32 {
        let known = self.classes.iter().position(|member| {
            member.as_ref().is_some_and(|member| Arc::ptr_eq(&member.stake, stake))
        });
        let new = || Member {
            stake: Arc::clone(stake),
            flows: 0,
            permits: 0,
            waiting: Vec::new(),
            grant: None,
            service: Nanos(0),
            claim: Claim::new(&stake.class, self.number),
        };
        let number = match known {
            Some(known) => known as u32,
            None => place(&mut self.classes, new()),
        };
        if let Some(member) = self.class_mut(number) {
            member.flows += 1;
        }
        number
    }

    /// A flow has left a class.
    fn release(&mut self, class: u32) {
        if let Some(member) = self.class_mut(class) {
            member.flows -= 1;
        }
        self.drop_if_unused(class);
    }

    /// Lets go of a class that has neither a flow nor a request at the device.
    pub(super) fn drop_if_unused(&mut self, class: u32) {
        let unused = |member: &Member| member.flows == 0 && member.permits == 0;
        if self.class(class).is_some_and(unused) {
            self.classes[class as usize] = None;
        }
    }

    fn flow_mut(&mut self, flow: u32) -> Option<&mut Flow<T>> {
        self.flows.get_mut(flow as usize)?.as_mut()
    }
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
