//! How fast a datastore fills up.
//!
//! The trend is the median of the slopes between all pairs of moments that were seen. An image
//! that is made or removed is a step, and no trend: what one minute changed does not count if
//! that is more than all other minutes did together.

use std::collections::VecDeque;

use crate::Nanos;

/// Moments that are nearer to each other are one.
const APART: Nanos = Nanos::from_secs(60);
/// So many are kept: six hours.
const KEPT: usize = 360;
/// A trend of less is chance.
const LEAST: Nanos = Nanos::from_secs(600);
/// So many steps are left out at most: images that are made one after the other.
const STEPS: usize = 4;
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
        let level = self.without_steps();
        let some: Vec<_> = level.iter().rev().step_by(every).collect();
        let mut slopes: Vec<f64> = Vec::new();
        for (at, (end, left)) in some.iter().enumerate() {
            let earlier = some[at + 1..].iter();
            slopes.extend(earlier.map(|(start, before)| {
                (before - left) / end.since(*start).as_secs_f64()
            }));
        }
        slopes.sort_by(f64::total_cmp);
        let bytes_per_second = *slopes.get(slopes.len() / 2)?;
        let seconds = free as f64 / bytes_per_second;
        let fills = bytes_per_second > 0.0 && seconds < LATEST.as_secs_f64();
        let full_in = fills.then_some(Nanos((seconds * 1e9) as u64));
        Some(Trend { bytes_per_second, over, full_in })
    }

    /// What would have been free moment by moment, had nobody made an image or removed one.
    fn without_steps(&self) -> Vec<(Nanos, f64)> {
        let free = |at: usize| self.0[at].1 as f64;
        let mut changes: Vec<f64> =
            (1..self.0.len()).map(|at| free(at) - free(at - 1)).collect();
        for _ in 0..STEPS {
            let all: f64 = changes.iter().map(|change| change.abs()).sum();
            let largest = changes.iter_mut().max_by(|a, b| a.abs().total_cmp(&b.abs()));
            let Some(step) = largest.filter(|step| step.abs() > all / 2.0) else { break };
            *step = 0.0;
        }
        let moments = self.0.iter().map(|(at, _)| *at);
        let begins = std::iter::once(0.0).chain(changes);
        let level = begins.scan(free(0), |level, change| {
            *level += change;
            Some(*level)
        });
        moments.zip(level).collect()
    }
}
