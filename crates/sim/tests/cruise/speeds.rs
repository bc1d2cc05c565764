//! How a class went to its target, second by second.

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::Goal;
use sterna_sim::Course;

/// Seconds within tolerance until it counts as settled.
const HELD: usize = 3;

/// What a class got each second, as parts of its target; of a response time the
/// inverse, so that more is always better.
pub(crate) struct Speeds(pub(crate) Vec<f64>);

impl Speeds {
    /// The seconds between two moments.
    pub(crate) fn between(
        course: &Course,
        from: Nanos,
        until: Nanos,
        goal: Goal,
    ) -> Speeds {
        let mut end = Nanos(0);
        let mut speeds = Vec::new();
        for window in &course.windows {
            end = end.plus(window.span);
            if end > from && end <= until {
                speeds.push(speed(window, goal));
            }
        }
        Speeds(speeds)
    }

    /// The seconds until it was there, and stayed so for three.
    pub(crate) fn settled(&self) -> Option<usize> {
        let there = |speed: &f64| *speed >= 0.9;
        self.0.windows(HELD).position(|seconds| seconds.iter().all(there))
    }

    /// The most.
    pub(crate) fn peak(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// The part of the seconds after the first so many that were not too slow.
    pub(crate) fn kept(&self, after: usize) -> f64 {
        let rest = &self.0[after.min(self.0.len())..];
        let well = rest.iter().filter(|speed| **speed >= 0.9).count();
        well as f64 / rest.len().max(1) as f64
    }
}

/// What a class got in a window, as a part of its target.
pub(crate) fn speed(window: &Window, goal: Goal) -> f64 {
    match goal {
        Goal::Bytes(rate) => window.bytes_per_second() / rate as f64,
        Goal::Requests(rate) => window.iops() / rate as f64,
        Goal::Response(span) => {
            let total = window.total();
            let mean = total.mean(total.response).unwrap_or(Nanos::MAX);
            span.0 as f64 / mean.0 as f64
        }
    }
}
