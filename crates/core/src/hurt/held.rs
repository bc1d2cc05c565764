//! A disk that a policy slows on purpose.
//!
//! Whoever limits a class wants its disks to wait, and so does whoever gives another class a
//! target. What such a disk waits for is no trouble, and says nothing of what is usual for it;
//! but it is what its client feels, so it is shown. Only the time at the device can hurt the
//! disk beside that.

use super::cause::QUEUE_MATTERS;
use super::watch::STEP;
use crate::Nanos;
use crate::measure::Summary;

/// From this part of the response time on, a wait is more than chance: what a step took then
/// says nothing of what is usual.
const WAITS: f64 = 0.1;
/// A shorter wait nobody feels.
const FELT: Nanos = Nanos::from_micros(500);
/// Steps in a row after which a disk is slowed, or is no more.
pub(super) const HELD_STEPS: u32 = 2;

/// What holds a disk back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A limit on its own class.
    Limit,
    /// The target of another class.
    Target,
}

/// What a disk did in a step, and what was asked of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Did {
    /// What it did.
    pub summary: Summary,
    /// What is promised to the mean of its requests.
    pub promised: Option<Nanos>,
    /// What holds it back, if anything does: that alone does not say that it waits.
    pub held: Option<Held>,
}

/// A disk that is slowed on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowed {
    /// When the first such step began.
    pub since: Nanos,
    /// What its requests took in the last step, with the wait: that is what its client feels.
    pub took: Nanos,
    /// What they usually take, if that is known.
    pub usual: Option<Nanos>,
}

impl Did {
    /// What the requests took on average, with all waits; nothing without any.
    pub fn mean(&self) -> Option<Nanos> {
        let iops = self.summary.iops();
        (iops > 0.0).then(|| Nanos((self.summary.outstanding() * 1e9 / iops) as u64))
    }

    /// What the device has to do with: the wait that a policy asks for is none of its own.
    pub(super) fn of_device(&self) -> Summary {
        match self.held {
            Some(_) => self.summary.at_device(),
            None => self.summary,
        }
    }

    /// The part of the time that is a wait for a policy's sake.
    fn waits(&self) -> f64 {
        let (Some(_), Some(queue), Some(service)) =
            (self.held, self.summary.queue, self.summary.service)
        else {
            return 0.0;
        };
        queue.0 as f64 / (queue.0 + service.0).max(1) as f64
    }

    /// Whether it says something of what is usual.
    pub(super) fn is_usual(&self) -> bool {
        self.waits() < WAITS
    }

    /// Whether a policy is what its client feels.
    pub(super) fn is_slowed(&self) -> bool {
        self.waits() >= QUEUE_MATTERS && self.summary.queue >= Some(FELT)
    }
}

/// Whether a disk is slowed on purpose, step by step.
#[derive(Clone, Debug, Default)]
pub(super) struct Slowings {
    slowed: Option<Slowed>,
    /// Steps in a row that speak against the state.
    against: u32,
}

impl Slowings {
    /// One step that ended now, and what is usual for such requests.
    pub(super) fn step(&mut self, now: Nanos, did: &Did, usual: Option<Nanos>) {
        let took = did.mean().filter(|_| did.is_slowed());
        if let (Some(slowed), Some(took)) = (&mut self.slowed, took) {
            (slowed.took, slowed.usual) = (took, usual);
        }
        let turns = took.is_some() != self.slowed.is_some();
        self.against = if turns { self.against + 1 } else { 0 };
        if self.against < HELD_STEPS {
            return;
        }
        let since = Nanos(now.0.saturating_sub(u64::from(self.against) * STEP.0));
        self.slowed = took.map(|took| Slowed { since, took, usual });
        self.against = 0;
    }

    pub(super) fn slowed(&self) -> Option<Slowed> {
        self.slowed
    }
}
