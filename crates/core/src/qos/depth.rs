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
//! A class may have more claims than there are numbers in the line: many datastores, on
//! many threads each. Then several share a number. They are not told apart in the line,
//! and are woken together; the number is free again when the last of them is gone.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
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
    /// Who is woken for each claim: a bit for each number of a scheduler.
    wakes: [AtomicU64; NUMBERS],
    /// How many claims have each number. Asked when a class comes to a scheduler or
    /// leaves it, never for a request.
    holders: Mutex<[u32; NUMBERS]>,
}

/// Numbers of claims.
const NUMBERS: usize = SCHEDULERS_MAX as usize;

impl Default for Depth {
    fn default() -> Self {
        Depth {
            slots: Slots::new(None),
            line: Line::default(),
            time: AtomicU64::new(0),
            wakes: [const { AtomicU64::new(0) }; NUMBERS],
            holders: Mutex::new([0; NUMBERS]),
        }
    }
}

impl Depth {
    /// Lets so many requests be at devices at once, or any number. Who waits must be
    /// told to look again.
    pub(super) fn set(&self, depth: Option<u32>) {
        self.slots.set(depth);
    }

    /// Gives a place back; who has to look again.
    pub(super) fn give(&self) -> u64 {
        self.who(self.slots.give())
    }

    /// The number for a claim of this scheduler: one that nobody has, or else one that
    /// the fewest have.
    fn join(&self, scheduler: u32) -> u32 {
        let mut holders = self.holders();
        let fewest = (0..).zip(holders.iter_mut()).min_by_key(|(_, count)| **count);
        let (number, count) = fewest.expect("there are numbers");
        if *count == 0 {
            self.wakes[number as usize].store(0, SeqCst);
            self.line.join(number);
        }
        *count += 1;
        self.wakes[number as usize].fetch_or(1 << scheduler, SeqCst);
        number
    }

    fn leave(&self, number: u32) {
        let mut holders = self.holders();
        let count = &mut holders[number as usize];
        *count -= 1;
        if *count == 0 {
            self.line.leave(number);
        }
    }

    fn holders(&self) -> MutexGuard<'_, [u32; NUMBERS]> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn who(&self, mut claims: u64) -> u64 {
        let mut who = 0;
        while claims != 0 {
            who |= self.wakes[claims.trailing_zeros() as usize].load(SeqCst);
            claims &= claims - 1;
        }
        who
    }

    /// Who waits though there is room: for somebody who does not want it any more.
    fn passed_on(&self) -> u64 {
        if self.slots.has_room() { self.who(self.slots.waiters()) } else { 0 }
    }
}

/// What one scheduler has of a class's places.
#[derive(Debug)]
pub(super) struct Claim {
    class: Arc<Class>,
    number: u32,
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
        let number = class.depth.join(scheduler);
        let (finish, stands, has_place) = (0, false, false);
        Claim { class: Arc::clone(class), number, finish, stands, has_place }
    }

    /// Whether the next request has a place, or needs none; takes one if it is this
    /// claim's turn. So many shares wait here. Who has to look again is added to
    /// `wakes`.
    pub(super) fn take(&mut self, shares: u64, wakes: &mut u64) -> bool {
        let Depth { slots, line, time, .. } = &self.class.depth;
        if self.has_place || slots.max().is_none() {
            return true;
        }
        let tag = self.finish.max(time.load(Relaxed));
        let head = Head { class: tag.min(Head::LAST), member: 0 };
        line.say(self.number, head);
        self.stands = true;
        if slots.has_room() && line.goes_before(self.number, head).is_some() {
            slots.wait(self.number);
            // Who leaves the line wakes those who wait; it may have left just now.
            if let Some(other) = line.goes_before(self.number, head) {
                *wakes |= self.class.depth.who(1 << other);
                return false;
            }
        }
        if !slots.take(self.number) {
            return false;
        }
        line.took(self.number);
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
        self.class.depth.line.rest(self.number);
        self.class.depth.passed_on()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // It rests: a class is let go of when nothing of it waits.
        self.rest();
        self.class.depth.leave(self.number);
    }
}
