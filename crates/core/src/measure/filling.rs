//! How fast a datastore fills up.
//!
//! The trend is the median of the slopes between all pairs of moments that were seen: one
//! image that is made or removed is a step, and no trend, and does not count as one unless it
//! is about half of what was seen.

use std::collections::VecDeque;

use crate::Nanos;

/// Moments that are nearer to each other are one.
const APART: Nanos = Nanos::from_secs(60);
/// So many are kept: six hours.
const KEPT: usize = 360;
/// A trend of less is chance.
const LEAST: Nanos = Nanos::from_secs(600);
/// So many moments are compared with each other at most.
const COMPARED: usize = 48;
/// What is full later than this is not full as far as anybody can say.
const LATEST: Nanos = Nanos::from_secs(366 * 24 * 3600);

/// What was free, moment by moment.
#[derive(Clone, Debug, Default)]
pub struct Filling(VecDeque<(Nanos, u64)>);

/// How fast it fills up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Bytes taken per second; below zero if it empties.
    pub bytes_per_second: f64,
    /// Over so long.
    pub over: Nanos,
    /// When it will be full at this rate, from the last moment on; nothing if it does not fill
    /// up, or not within a year.
    pub full_in: Option<Nanos>,
}

impl Filling {
    /// So many bytes are free now.
    pub fn see(&mut self, now: Nanos, free: u64) {
        if self.0.back().is_some_and(|(last, _)| now.since(*last) < APART) {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((now, free));
    }

    /// How fast it fills up, once that can be said.
    pub fn trend(&self) -> Option<Trend> {
        let ((first, _), (last, free)) = (*self.0.front()?, *self.0.back()?);
        let over = last.since(first);
        if over < LEAST {
            return None;
        }
        let every = self.0.len().div_ceil(COMPARED);
        // The last one is among them.
        let some: Vec<_> = self.0.iter().rev().step_by(every).collect();
        let mut slopes: Vec<f64> = Vec::new();
        for (at, (end, left)) in some.iter().enumerate() {
            let earlier = some[at + 1..].iter();
            slopes.extend(earlier.map(|(start, before)| {
                (*before as f64 - *left as f64) / end.since(*start).as_secs_f64()
            }));
        }
        slopes.sort_by(f64::total_cmp);
        let bytes_per_second = *slopes.get(slopes.len() / 2)?;
        let seconds = free as f64 / bytes_per_second;
        let fills = bytes_per_second > 0.0 && seconds < LATEST.as_secs_f64();
        let full_in = fills.then_some(Nanos((seconds * 1e9) as u64));
        Some(Trend { bytes_per_second, over, full_in })
    }
}
