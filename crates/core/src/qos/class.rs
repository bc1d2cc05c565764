//! A class: its terms in force, and what it has had, for all schedulers together.
//!
//! The disks of a class are on several datastores and threads. A limit, a
//! reservation and a queue depth hold for the class as a whole, so what counts
//! them is shared: atomics, which nobody waits for. Terms change while requests are
//! under way; a change holds from the next start on.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::askers::Askers;
use super::bucket::Bucket;
use super::depth::Depth;
use super::terms::{Rate, Terms};
use crate::Nanos;

/// Names a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

impl ClassId {
    /// The copies of migrations.
    pub const MIGRATION: ClassId = ClassId(0);

    /// The disks that are in no class, while they have to be held together.
    pub const OTHERS: ClassId = ClassId(u32::MAX);
}

/// How much of its reservation a class may be behind and still get: a device that
/// answers many requests at once, and then none for a while, makes it wait so long.
const BEHIND_MAX: Nanos = Nanos::from_millis(100);

/// What a request asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes that it reads or writes.
    pub bytes: u64,
}

/// Bytes that weigh as much as a request of its own: a request of so many takes
/// about twice as long as a tiny one on disks and arrays of the last twenty years.
const WEIGHS_AS_REQUEST: u64 = 64 << 10;

impl Cost {
    /// What it counts in shares, in requests, at least one.
    pub(super) fn weight(self) -> u64 {
        1 + self.bytes / WEIGHS_AS_REQUEST
    }
}

/// A class, shared by all that schedule for it.
#[derive(Debug)]
pub struct Class {
    /// Whether anything but shares is set.
    bound: AtomicBool,
    bytes: Bucket,
    requests: Bucket,
    /// The response time at least, in nanoseconds.
    response: AtomicU64,
    /// One of them has a rate, if there is a reservation.
    reserved_bytes: Bucket,
    reserved_requests: Bucket,
    shares: AtomicU32,
    askers: Askers,
    pub(super) depth: Depth,
}

impl Default for Class {
    fn default() -> Self {
        Class::new(&Terms::default())
    }
}

impl Class {
    /// A class with these terms.
    pub fn new(terms: &Terms) -> Class {
        let class = Class {
            bound: AtomicBool::new(false),
            bytes: Bucket::default(),
            requests: Bucket::default(),
            response: AtomicU64::new(0),
            reserved_bytes: Bucket::open(BEHIND_MAX),
            reserved_requests: Bucket::open(BEHIND_MAX),
            shares: AtomicU32::new(1),
            askers: Askers::default(),
            depth: Depth::default(),
        };
        class.set_terms(Nanos(0), terms);
        class
    }

    /// Changes the terms. Schedulers with requests that wait must be told to look
    /// again (`Scheduler::next`).
    pub fn set_terms(&self, now: Nanos, terms: &Terms) {
        let Terms { reservation, limit, shares, depth } = *terms;
        self.bytes.set_rate(now, limit.bytes);
        self.requests.set_rate(now, limit.requests);
        self.response.store(limit.response.map_or(0, |span| span.0), Relaxed);
        let (bytes, requests) = match reservation {
            None => (None, None),
            Some(Rate::Bytes(rate)) => (Some(rate), None),
            Some(Rate::Requests(rate)) => (None, Some(rate)),
        };
        self.reserved_bytes.set_rate(now, bytes);
        self.reserved_requests.set_rate(now, requests);
        self.shares.store(shares.max(1), Relaxed);
        self.depth.set(depth);
        let bound = !limit.is_none() || reservation.is_some() || depth.is_some();
        self.bound.store(bound, Relaxed);
    }

    /// Whether a request may have to wait, or comes before others.
    pub(super) fn is_bound(&self) -> bool {
        self.bound.load(Relaxed)
    }

    pub(super) fn shares(&self) -> u64 {
        u64::from(self.shares.load(Relaxed))
    }

    /// Takes a request from the limits; gives the moment from which on it may start.
    pub(super) fn take_limits(&self, now: Nanos, cost: Cost) -> Nanos {
        self.bytes.take(now, cost.bytes).max(self.requests.take(now, 1))
    }

    /// Gives back what a request took that does not start.
    pub(super) fn give_limits(&self, cost: Cost) {
        self.bytes.give(cost.bytes);
        self.requests.give(1);
    }

    /// A flow that was last counted in the second `counted` asks for a request: how long
    /// its own part of a limit in bytes takes to bring what that costs. Nothing where
    /// there is no such limit, or nobody else asks.
    pub(super) fn part(
        &self,
        now: Nanos,
        counted: &mut u32,
        cost: Cost,
    ) -> Option<Nanos> {
        self.bytes.rate()?;
        let askers = self.askers.count(now, counted);
        let Nanos(whole) = self.longest_wait(cost);
        (askers > 1).then(|| Nanos(whole.saturating_mul(askers)))
    }

    /// How long a request with a grant waits at most, if no other takes: a grant from
    /// under other terms is cut to that.
    pub(super) fn longest_wait(&self, cost: Cost) -> Nanos {
        self.bytes.price(cost.bytes).max(self.requests.price(1))
    }

    /// How long a request must take at least.
    pub(super) fn response(&self) -> Nanos {
        Nanos(self.response.load(Relaxed))
    }

    /// Since when it is behind its reservation, if it is.
    pub(super) fn is_due(&self, now: Nanos) -> Option<Nanos> {
        let reserved = [&self.reserved_bytes, &self.reserved_requests];
        let held = reserved.into_iter().find(|bucket| bucket.rate().is_some())?;
        Some(held.tag()).filter(|since| *since <= now)
    }

    /// Counts a request against the reservation.
    pub(super) fn take_reservation(&self, now: Nanos, cost: Cost) {
        self.reserved_bytes.take(now, cost.bytes);
        self.reserved_requests.take(now, 1);
    }
}
