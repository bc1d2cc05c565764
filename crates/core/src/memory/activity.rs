//! How much of its memory a guest uses, and for how long it has done nothing.
//!
//! A guest with a balloon says how much its programs could have: what is beyond that is in use. Of
//! one that says nothing it is only known how much of the processors it takes: one that takes next
//! to nothing uses nothing of its memory, and any other one uses all.
//!
//! As ESX does, the larger of a fast and a slow mean counts: a guest that begins to use memory gets
//! its due at once, and loses it slowly.

use crate::Nanos;

/// A guest that takes less than this part of a processor does nothing: the timers of its kernel
/// alone take up to half of that where processors are emulated.
const NOTHING: f64 = 0.1;

/// How long the means look back.
const FAST: f64 = 30.0;
const SLOW: f64 = 300.0;

/// What is known of how much a guest does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// When it was looked last.
    at: Option<Nanos>,
    /// When it did something last, or was seen first.
    busy: Nanos,
    fast: f64,
    slow: f64,
}

impl Activity {
    /// It was looked at: since the last look it took so many processors on average, and it says
    /// that it uses this part of its memory, from 0 to 1, if it says anything.
    pub fn look(&mut self, now: Nanos, processors: f64, used: Option<f64>) {
        let does = processors >= NOTHING;
        let used = used.unwrap_or(if does { 1.0 } else { 0.0 }).clamp(0.0, 1.0);
        let Some(before) = self.at.replace(now) else {
            *self = Activity { at: Some(now), busy: now, fast: used, slow: used };
            return;
        };
        if does {
            self.busy = now;
        }
        let passed = now.since(before).as_secs_f64();
        let toward =
            |mean: f64, span: f64| mean + (used - mean) * (1.0 - (-passed / span).exp());
        (self.fast, self.slow) = (toward(self.fast, FAST), toward(self.slow, SLOW));
    }

    /// The part of its memory that it uses, from 0 to 1; all of one that was never looked at.
    pub fn active(&self) -> f64 {
        if self.at.is_none() { 1.0 } else { self.fast.max(self.slow) }
    }

    /// For how long it has done nothing, as far as it was looked at.
    pub fn idle(&self, now: Nanos) -> Nanos {
        if self.at.is_none() { Nanos(0) } else { now.since(self.busy) }
    }

    /// It does something, as somebody else has seen.
    pub fn stirs(&mut self, now: Nanos) {
        self.busy = now;
    }
}
