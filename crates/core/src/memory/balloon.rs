//! How much memory a balloon takes from inside a guest.
//!
//! # Rule
//!
//! The guest chooses best what it can do without, as far as it is asked for little at a time. A
//! balloon grows by [`STEP`] of the VM's memory each [`EVERY`], towards what the host wants and no
//! further than its cap; and only as far as the guest itself says that it can spare: what is left
//! *available* stays above the floor. It shrinks in one step.
//!
//! # Special cases
//!
//! - *The guest runs short* (available below the floor): all is given back at once, and nothing
//!   is taken for [`REST`]. QEMU's `deflate-on-oom` is no help: a guest of 512 MiB with a balloon
//!   stood at 4 MiB available for as long as it was watched.
//! - *What the guest says is old*: nothing more is taken; after [`SILENT`] all is given back. Its
//!   driver may be gone, or the guest hangs for want of memory.
//! - *A release that is under way* is never replaced by a larger amount, and what is asked for goes
//!   by what was asked for last: going by what the balloon has at the moment has left guests
//!   without memory elsewhere.
//!
//! # Invariants
//!
//! 1. The balloon never has more than its cap.
//! 2. No step takes what the guest needs to stay above its floor.

use crate::Nanos;

/// How often a balloon grows.
pub const EVERY: Nanos = Nanos::from_secs(10);

/// By how much of the VM's memory at a time.
pub(super) const STEP: f64 = 0.05;

/// A change by less than this part of the VM's memory is none: what is wanted moves a little with
/// each look, and a guest that is asked each time has work for nothing.
const LEAST: f64 = 0.01;

/// What is to stay available in the guest, as a part of its memory, ...
const FLOOR: f64 = 0.05;

/// ... and in bytes at least.
const FLOOR_LEAST: u64 = 128 << 20;

/// What a balloon may take at most if nobody says otherwise: vSphere's 65 %.
pub const CAP: f64 = 0.65;

/// Nothing is taken for so long after a guest ran short.
const REST: Nanos = Nanos::from_secs(300);

/// What a guest said this long ago counts; it says it anew each second.
const FRESH: Nanos = Nanos::from_secs(5);

/// A guest that says nothing for so long gets all back.
const SILENT: Nanos = Nanos::from_secs(30);

/// What a guest says of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestSays {
    /// What its programs could have without swapping, in bytes.
    pub available: u64,
    /// When it said so.
    pub at: Nanos,
    /// What its balloon has by now, in bytes, which may be more than was asked for last.
    pub has: u64,
}

/// The balloon of a VM.
#[derive(Clone, Copy, Debug)]
pub struct Balloon {
    /// The VM's memory, in bytes.
    memory: u64,
    /// What it may take at most, in bytes.
    cap: u64,
    /// What was asked for last, in bytes.
    taken: u64,
    /// When it grew last.
    grew: Option<Nanos>,
    /// Nothing is taken until then.
    rests: Option<Nanos>,
}

impl Balloon {
    /// The balloon of a VM with so much memory, which may take so much, and has taken so much by
    /// now, in bytes.
    pub fn new(memory: u64, cap: u64, taken: u64) -> Balloon {
        Balloon { memory, cap: cap.min(memory), taken, grew: None, rests: None }
    }

    /// From now on it may take so much at most, in bytes.
    pub fn allow(&mut self, cap: u64) {
        self.cap = cap.min(self.memory);
    }

    /// What is asked of it, in bytes.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// What stays available in the guest, in bytes.
    pub fn floor(&self) -> u64 {
        ((self.memory as f64 * FLOOR) as u64).max(FLOOR_LEAST)
    }

    /// What the balloon is to have from now on, in bytes, if that changes. The host wants so much
    /// of the VM's memory.
    pub fn step(
        &mut self,
        now: Nanos,
        says: Option<GuestSays>,
        wanted: u64,
    ) -> Option<u64> {
        let wanted = wanted.min(self.cap);
        let next = match says {
            Some(says) if now.since(says.at) <= FRESH => self.heard(now, says, wanted),
            Some(says) if now.since(says.at) <= SILENT => self.taken.min(wanted),
            _ => 0,
        };
        let changes = next != self.taken;
        self.taken = next;
        changes.then_some(next)
    }

    /// All is given back at once: the guest wakes, or the host needs nothing any more.
    pub fn release(&mut self) -> Option<u64> {
        let changes = self.taken > 0;
        self.taken = 0;
        changes.then_some(0)
    }

    /// What was asked for last came to nothing: it has so much, in bytes.
    pub fn has_only(&mut self, taken: u64) {
        self.taken = taken;
    }

    fn heard(&mut self, now: Nanos, says: GuestSays, wanted: u64) -> u64 {
        let floor = self.floor();
        if says.available < floor {
            // Without a balloon it is not the balloon's doing.
            if self.taken > 0 {
                self.rests = Some(now.plus(REST));
            }
            return 0;
        }
        let least = (self.memory as f64 * LEAST) as u64;
        if wanted > 0 && wanted.abs_diff(self.taken) < least {
            return self.taken;
        }
        if wanted <= self.taken {
            return wanted;
        }
        let is_due = self.grew.is_none_or(|grew| now.since(grew) >= EVERY);
        let may_take = self.rests.is_none_or(|until| now >= until);
        // What the guest has available is without what is still to be taken, or given back.
        let is_there = says.has.abs_diff(self.taken) < least.max(1);
        if !(is_due && may_take && is_there) {
            return self.taken;
        }
        let step = (self.memory as f64 * STEP) as u64;
        let spare = says.available - floor;
        let more = (wanted - self.taken).min(step).min(spare);
        if more > 0 {
            self.grew = Some(now);
        }
        self.taken + more
    }
}
