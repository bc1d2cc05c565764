//! The places of a class at devices: its queue depth, over all its schedulers.
//!
//! Each scheduler that has the class has a `Claim` to its places. The class's next
//! request there takes a place before it asks for one of the datastore, and keeps it
//! while it waits for that. The other way round a request could wait for ever where
//! both are scarce: each time that one is free, the other is not.
//!
//! Claims go in order of shares, as classes do at a datastore (`pool`): a claim weighs
//! as much as the flows that wait there. So whoever gives a place back and wants it
//! again comes after those who have had less.
//!
//! A thread has a scheduler for each of its datastores, all with one number, and that is
//! the number of all its claims: in the line it stands with the one that had least. Which
//! one that is, is kept under a lock that only the thread itself takes, so nobody ever
//! waits for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::class::Class;
use super::line::{Head, Line};
use super::pool::UNIT;
use super::slots::{SCHEDULERS_MAX, Slots};

/// A class's places, if they are counted.
#[derive(Debug)]
pub(super) struct Depth {
    slots: Slots,
    line: Line,
    /// The tag of the place that was taken last.
    time: AtomicU64,
    /// The claims of each thread, by the number of its schedulers.
    threads: [Mutex<Claims>; SCHEDULERS_MAX as usize],
}

/// The claims of a thread.
#[derive(Debug)]
struct Claims {
    count: u32,
    /// The name of the next one.
    next: u64,
    /// Those that stand in the line.
    standing: Vec<Standing>,
}

/// A claim that stands in the line; the smallest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    tag: u64,
    claim: u64,
}

impl Standing {
    fn head(self) -> Head {
        Head { class: self.tag, member: 0 }
    }
}

impl Default for Depth {
    fn default() -> Self {
        Depth {
            slots: Slots::new(None),
            line: Line::default(),
            time: AtomicU64::new(0),
            threads: [const { Mutex::new(Claims::NONE) }; SCHEDULERS_MAX as usize],
        }
    }
}

impl Claims {
    const NONE: Claims = Claims { count: 0, next: 0, standing: Vec::new() };
}

impl Depth {
    /// Lets so many requests be at devices at once, or any number. Who waits must be
    /// told to look again.
    pub(super) fn set(&self, depth: Option<u32>) {
        self.slots.set(depth);
    }

    /// Gives a place back; who has to look again.
    pub(super) fn give(&self) -> u64 {
        self.slots.give()
    }

    fn claims(&self, thread: u32) -> MutexGuard<'_, Claims> {
        self.threads[thread as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim of a thread stands in the line from now on; the first of that thread.
    fn stand(&self, thread: u32, claim: Standing) -> Standing {
        let mut claims = self.claims(thread);
        claims.standing.retain(|other| other.claim != claim.claim);
        claims.standing.push(claim);
        let first = claims.standing.iter().min().copied().unwrap_or(claim);
        self.line.say(thread, first.head());
        first
    }

    /// A claim of a thread stands there no more.
    fn step_out(&self, thread: u32, claim: u64) {
        let mut claims = self.claims(thread);
        claims.standing.retain(|other| other.claim != claim);
        match claims.standing.iter().min() {
            Some(first) => self.line.say(thread, first.head()),
            None => self.line.rest(thread),
        }
    }

    /// Who waits though there is room: for somebody who does not want it any more.
    fn passed_on(&self) -> u64 {
        if self.slots.has_room() { self.slots.waiters() } else { 0 }
    }
}

/// What one scheduler has of a class's places.
#[derive(Debug)]
pub(super) struct Claim {
    class: Arc<Class>,
    /// The number of its scheduler, and its own among the claims of that thread.
    thread: u32,
    name: u64,
    /// Where its next request begins.
    finish: u64,
    /// It stands in the line.
    stands: bool,
    /// It has a place for its next request.
    has_place: bool,
}

impl Claim {
    /// Of the scheduler that is called by this number.
    pub(super) fn new(class: &Arc<Class>, scheduler: u32) -> Claim {
        let mut claims = class.depth.claims(scheduler);
        claims.count += 1;
        claims.next += 1;
        class.depth.line.join(scheduler);
        let (thread, name) = (scheduler, claims.next);
        let (finish, stands, has_place) = (0, false, false);
        Claim { class: Arc::clone(class), thread, name, finish, stands, has_place }
    }

    /// Whether the next request has a place, or needs none; takes one if it is this
    /// claim's turn. So many shares wait here. Who has to look again is added to
    /// `wakes`.
    pub(super) fn take(&mut self, shares: u64, wakes: &mut u64) -> bool {
        let depth = &self.class.depth;
        let Depth { slots, line, time, .. } = depth;
        if self.has_place || slots.max().is_none() {
            return true;
        }
        let tag = self.finish.max(time.load(Relaxed)).min(Head::LAST);
        let first = depth.stand(self.thread, Standing { tag, claim: self.name });
        self.stands = true;
        // Who goes first of all, if it is not this one.
        let goes_before = || {
            let own = (first.claim != self.name).then_some(self.thread);
            line.goes_before(self.thread, first.head()).or(own)
        };
        if slots.has_room() && goes_before().is_some() {
            slots.wait(self.thread);
            // Who leaves the line wakes those who wait; it may have left just now.
            if let Some(other) = goes_before() {
                *wakes |= 1 << other;
                return false;
            }
        }
        if !slots.take(self.thread) {
            return false;
        }
        line.took(self.thread);
        time.fetch_max(tag, Relaxed);
        self.finish = tag.saturating_add((UNIT / shares.max(1)).max(1));
        self.has_place = true;
        *wakes |= self.leave_line();
        true
    }

    /// The next request starts: whether it has a place to be given back when it is
    /// done.
    pub(super) fn start(&mut self) -> bool {
        std::mem::take(&mut self.has_place)
    }

    /// Nothing could start now. Who has to look again.
    pub(super) fn rest(&mut self) -> u64 {
        let given = if self.start() { self.class.depth.give() } else { 0 };
        given | self.leave_line()
    }

    fn leave_line(&mut self) -> u64 {
        if !std::mem::take(&mut self.stands) {
            return 0;
        }
        self.class.depth.step_out(self.thread, self.name);
        self.class.depth.passed_on()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // It rests: a class is let go of when nothing of it waits.
        self.rest();
        let depth = &self.class.depth;
        let mut claims = depth.claims(self.thread);
        claims.count -= 1;
        if claims.count == 0 {
            depth.line.leave(self.thread);
        }
    }
}
