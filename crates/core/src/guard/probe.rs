//! What the copy costs the guest, found by leaving it out for a moment.
//!
//! An application's load changes all the time, and what it did before the migration
//! says little about what it would do now. So the copy makes short pauses, and a
//! pause is compared with the windows right before and right after it:
//!
//! ```text
//!   on on on on | off off | on on on on     loss = 1 - IO/s(on) / IO/s(off)
//! ```
//!
//! A load that rises or falls steadily cancels out. One that jumps is noticed, because
//! then the windows before and after differ among themselves; such a comparison does
//! not count, nor does one in which the guest was gone for a while.

use std::collections::VecDeque;

use super::Observation;
use crate::Nanos;

/// Windows in a pause. One is less than what a disk does between two of its own
/// hiccups; with more the copy would stand still for longer than an operator likes.
pub(super) const OFF: usize = 2;

/// Windows on each side of a pause that are compared with it, at most: older ones
/// tell of another load.
const NEAR: usize = 4;

/// If the windows before and after differ by more than this part, something has
/// happened in between.
const JUMP: f64 = 0.3;

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// Bytes per second that were copied beside the guest.
    pub(super) rate: f64,
    /// The part of the guest's IO/s that this cost; below zero by chance.
    pub(super) loss: f64,
    /// By what factor response times were longer.
    pub(super) growth: f64,
    /// The guest's IO/s without the copy.
    pub(super) iops: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    off: bool,
    operations: u64,
    span: Nanos,
    response: Nanos,
    copied: u64,
}

/// Several windows as one.
fn sum(windows: &[Seen]) -> Seen {
    let mut sum = Seen::default();
    for window in windows {
        sum.operations += window.operations;
        sum.span = sum.span.plus(window.span);
        sum.response = sum.response.plus(window.response);
        sum.copied += window.copied;
    }
    sum
}

impl Seen {
    fn iops(&self) -> f64 {
        self.operations as f64 / self.span.as_secs_f64().max(1e-9)
    }

    fn latency(&self) -> f64 {
        self.response.0 as f64 / (self.operations as f64).max(1.0)
    }
}

/// When to pause, and what came of it.
#[derive(Debug)]
pub(super) struct Probe {
    /// Windows between two pauses.
    apart: usize,
    /// The last busy windows, without a gap.
    recent: VecDeque<Seen>,
}

impl Probe {
    /// A probe with so many windows between two pauses.
    pub(super) fn new(apart: usize) -> Self {
        Probe { apart, recent: VecDeque::new() }
    }

    /// Pauses are so many windows apart from now on.
    pub(super) fn set_apart(&mut self, apart: usize) {
        self.apart = apart;
    }

    /// Whether the next window shall be one without a copy.
    pub(super) fn pauses(&self) -> bool {
        let run = |off| self.recent.iter().rev().take_while(|it| it.off == off).count();
        match self.recent.back() {
            Some(Seen { off: true, .. }) => run(true) < OFF,
            _ => run(false) >= self.apart,
        }
    }

    /// Looks at a window, of which the last answer of [`Probe::pauses`] said what it
    /// was. Gives a comparison if it completes one.
    pub(super) fn look(&mut self, seen: &Observation<'_>) -> Option<Pair> {
        let off = self.pauses();
        if !seen.is_busy() {
            self.recent.clear();
            return None;
        }
        let total = seen.guest.total();
        self.recent.push_back(Seen {
            off,
            operations: total.operations,
            span: seen.guest.span,
            response: total.response,
            copied: seen.copied,
        });
        while self.recent.len() > self.apart.max(NEAR) + OFF + NEAR {
            self.recent.pop_front();
        }
        self.pair()
    }

    /// The part of the time in which the copy goes on.
    pub(super) fn part(&self) -> f64 {
        self.apart as f64 / (self.apart + OFF) as f64
    }

    /// At the end of a pause: the loss, by what was before it alone.
    pub(super) fn glimpse(&mut self) -> Option<f64> {
        let near = self.apart.min(NEAR);
        let windows = &*self.recent.make_contiguous();
        let first = windows.len().checked_sub(near + OFF)?;
        let (before, off) = windows[first..].split_at(near);
        let paused = before.iter().all(|it| !it.off) && off.iter().all(|it| it.off);
        paused.then(|| 1.0 - sum(before).iops() / sum(off).iops().max(1e-9))
    }

    /// The comparison that the last window completes.
    fn pair(&mut self) -> Option<Pair> {
        let near = self.apart.min(NEAR);
        let windows = &*self.recent.make_contiguous();
        let first = windows.len().checked_sub(near + OFF + near)?;
        let (before, rest) = windows[first..].split_at(near);
        let (off, after) = rest.split_at(OFF);
        let is = |part: &[Seen], off: bool| part.iter().all(|it| it.off == off);
        if !(is(before, false) && is(off, true) && is(after, false)) {
            return None;
        }
        let (first, last) = (sum(before).iops(), sum(after).iops());
        if (first - last).abs() > JUMP * (first + last) / 2.0 {
            return None;
        }
        let on = sum(&[before, after].concat());
        let off = sum(off);
        Some(Pair {
            rate: on.copied as f64 / on.span.as_secs_f64().max(1e-9),
            loss: 1.0 - on.iops() / off.iops().max(1e-9),
            growth: on.latency() / off.latency().max(1.0),
            iops: off.iops(),
        })
    }
}
