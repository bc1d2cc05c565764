//! How well a figure was brought to where it should be, and held there.
//!
//! The terms are those of control engineering, told for a figure that is counted in
//! windows. A window of a quarter of a second holds few requests and so much chance;
//! what is judged are *means* over [`MEAN`] seconds, one beginning with each window.
//!
//! - It has *settled* with the first mean from which on all lie within tolerance for
//!   [`HELD`] seconds.
//! - Its *overshoot* is how far a mean goes past the target, seen from where it came,
//!   as a part of the target.
//! - It *swings* when it leaves the tolerance on one side, having left it on the
//!   other side before: that is an oscillation. A single dent is none, and shows in
//!   the part of the time that it was *kept*.
//!
//! Nothing is measured of no samples, and a figure that never settled has no rest that
//! could be judged.

use super::record::{Metric, Sample, figure};

/// The seconds that a mean is taken over.
pub(crate) const MEAN: f64 = 1.0;
/// The seconds that a figure has to stay within tolerance until it counts as settled:
/// three windows of a control loop that looks once a second.
pub(crate) const HELD: f64 = 3.0;

/// A target and how far from it is still well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Target {
    /// The figure.
    pub(crate) metric: Metric,
    /// What it shall be.
    pub(crate) value: f64,
    /// The part of it that it may be off.
    pub(crate) tolerance: f64,
}

impl Target {
    /// A response time is an upper bound.
    pub(crate) fn low(self) -> f64 {
        match self.metric {
            Metric::Response | Metric::Slowest => 0.0,
            Metric::Bytes | Metric::Requests => self.value * (1.0 - self.tolerance),
        }
    }

    pub(crate) fn high(self) -> f64 {
        self.value * (1.0 + self.tolerance)
    }

    fn side(self, value: f64) -> Side {
        if value < self.low() {
            Side::Below
        } else if value > self.high() {
            Side::Above
        } else {
            Side::Within
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Below,
    Within,
    Above,
}

/// How a target was reached and held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Held {
    /// Seconds from the wish until it had settled; nothing if it never did.
    pub(crate) settled: Option<f64>,
    /// How far it went past the target, as a part of it.
    pub(crate) overshoot: f64,
    /// How often it swung from one side of the tolerance to the other, once settled.
    pub(crate) swings: usize,
    /// The part of the means within tolerance, once settled.
    pub(crate) kept: f64,
}

/// Means over so many seconds, one beginning with each sample: the moment at which it
/// begins, and its value.
fn means(samples: &[Sample], metric: Metric, seconds: f64) -> Vec<(f64, f64)> {
    let mut means = Vec::new();
    for (first, sample) in samples.iter().enumerate() {
        let begin = sample.at - sample.span;
        // A window may be a little late; half of one more is not waited for.
        let enough = begin + seconds - sample.span / 2.0;
        let Some(count) = samples[first..].iter().position(|last| last.at >= enough)
        else {
            break;
        };
        if let Some(value) = figure(&samples[first..=first + count], metric) {
            means.push((begin, value));
        }
    }
    means
}

/// How a target was reached and held that was asked for at `wish`, in the samples since
/// then. `before` is what the figure was before. Nothing if there is nothing to judge.
pub(crate) fn held(
    samples: &[Sample],
    wish: f64,
    before: f64,
    target: Target,
) -> Option<Held> {
    let means = means(samples, target.metric, MEAN);
    if means.is_empty() {
        return None;
    }
    let settled = settled(&means, target);
    let past = |value: f64| match before < target.value {
        true => value - target.value,
        false => target.value - value,
    };
    let furthest = means.iter().map(|(_, value)| past(*value)).fold(0.0, f64::max);
    let rest = &means[settled.unwrap_or(means.len())..];
    let sides: Vec<Side> = rest.iter().map(|(_, value)| target.side(*value)).collect();
    let outside = sides.iter().filter(|side| **side != Side::Within);
    let kept = sides.len() - outside.clone().count();
    let outside: Vec<&Side> = outside.collect();
    Some(Held {
        settled: settled.map(|at| (means[at].0 - wish).max(0.0)),
        overshoot: furthest / target.value,
        swings: outside.windows(2).filter(|pair| pair[0] != pair[1]).count(),
        kept: if sides.is_empty() { 0.0 } else { kept as f64 / sides.len() as f64 },
    })
}

/// The first of the means from which on all are within tolerance for long enough.
fn settled(means: &[(f64, f64)], target: Target) -> Option<usize> {
    let mut first = None;
    for (at, (begin, value)) in means.iter().enumerate() {
        if target.side(*value) != Side::Within {
            first = None;
            continue;
        }
        let from = *first.get_or_insert(at);
        if begin - means[from].0 >= HELD - MEAN {
            return Some(from);
        }
    }
    None
}

/// Seconds from the wish until the figure was there, and stayed: from the end of the
/// last window for which `there` does not hold. Nothing if it does not hold in the end.
/// Of no requests there is no response time, and none is too long.
pub(crate) fn there_after(
    samples: &[Sample],
    wish: f64,
    metric: Metric,
    there: impl Fn(f64) -> bool,
) -> Option<f64> {
    let not = |sample: &Sample| sample.figure(metric).is_some_and(|value| !there(value));
    match samples.iter().rposition(not) {
        _ if samples.is_empty() => None,
        None => Some(0.0),
        Some(last) if last + 1 == samples.len() => None,
        Some(last) => Some((samples[last].at - wish).max(0.0)),
    }
}

/// Seconds from the wish until the figure was there for the first time, as a mean.
pub(crate) fn first_there(
    samples: &[Sample],
    wish: f64,
    metric: Metric,
    there: impl Fn(f64) -> bool,
) -> Option<f64> {
    let means = means(samples, metric, MEAN);
    let first = means.iter().find(|(_, value)| there(*value))?;
    Some((first.0 - wish).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests per second as `course` has them, in windows of a quarter of a second.
    fn samples(seconds: f64, course: impl Fn(f64) -> f64) -> Vec<Sample> {
        let count = (seconds * 4.0) as usize;
        let sample = |at: usize| {
            let at = (at + 1) as f64 / 4.0;
            let operations = course(at - 0.25) / 4.0;
            let bytes = operations * 8192.0;
            let response_ms = operations * 2.0;
            Sample {
                at,
                span: 0.25,
                operations,
                bytes,
                response_ms,
                slowest_ms: Some(2.0),
            }
        };
        (0..count).map(sample).collect()
    }

    fn target(value: f64) -> Target {
        Target { metric: Metric::Requests, value, tolerance: 0.1 }
    }

    fn judge(course: impl Fn(f64) -> f64) -> Held {
        held(&samples(60.0, course), 0.0, 200.0, target(1000.0)).expect("samples")
    }

    #[test]
    fn a_figure_that_is_there_at_once_has_settled_at_once() {
        let found = judge(|_| 1000.0);
        let exact = Held { settled: Some(0.0), overshoot: 0.0, swings: 0, kept: 1.0 };
        assert_eq!(found, exact);
    }

    #[test]
    fn a_figure_that_rises_has_settled_when_it_is_within_tolerance() {
        // It reaches 900 at 7 s; the mean over a second does so half a second before.
        let found = judge(|at| (200.0 + at * 100.0).min(1000.0));
        assert!((6.25..=6.75).contains(&found.settled.unwrap()), "{found:?}");
        assert_eq!((found.swings, found.kept), (0, 1.0));
    }

    #[test]
    fn a_touch_is_not_settling() {
        // Within tolerance for two seconds at 5 s, and for good from 20 s on.
        let found = judge(|at| match at {
            5.0..7.0 | 20.0.. => 1000.0,
            _ => 500.0,
        });
        assert_eq!(found.settled, Some(20.0));
    }

    #[test]
    fn a_figure_that_never_comes_near_has_not_settled() {
        let found = judge(|_| 500.0);
        assert_eq!((found.settled, found.kept), (None, 0.0));
    }

    #[test]
    fn overshoot_is_seen_from_where_the_figure_came() {
        let over = judge(|at| if at < 2.0 { 1300.0 } else { 1000.0 });
        assert!((over.overshoot - 0.3).abs() < 1e-9, "{over:?}");
        let under = judge(|at| if at < 2.0 { 300.0 } else { 1000.0 });
        assert_eq!(under.overshoot, 0.0);
        // From above, past the target is below it.
        let high = samples(60.0, |at| if at < 5.0 { 700.0 } else { 1000.0 });
        let found = held(&high, 0.0, 2000.0, target(1000.0)).unwrap();
        assert!((found.overshoot - 0.3).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_oscillation_swings_and_a_dent_does_not() {
        let waves = judge(|at| match at {
            ..10.0 => 1000.0,
            _ => 1000.0 + 300.0 * (at / 8.0 * std::f64::consts::TAU).sin(),
        });
        // 50 s of it, with a period of 8 s: twelve changes of side.
        assert!((11..=13).contains(&waves.swings), "{waves:?}");
        let dent = judge(|at| if (30.0..33.0).contains(&at) { 700.0 } else { 1000.0 });
        assert_eq!((dent.settled, dent.swings), (Some(0.0), 0));
        assert!((0.90..0.95).contains(&dent.kept), "{dent:?}");
    }

    #[test]
    fn a_single_window_of_chance_is_not_an_oscillation() {
        let found =
            judge(|at| 1000.0 + if (at * 4.0) % 2.0 < 1.0 { 200.0 } else { -200.0 });
        assert_eq!((found.settled, found.swings, found.kept), (Some(0.0), 0, 1.0));
    }

    #[test]
    fn a_limit_is_in_force_after_the_last_window_above_it() {
        let limited = samples(10.0, |at| if at < 0.75 { 900.0 } else { 100.0 });
        let below = |value: f64| value <= 110.0;
        let found = there_after(&limited, 0.0, Metric::Requests, below);
        assert_eq!(found, Some(0.75));
        let again = samples(10.0, |at| if at < 9.75 { 100.0 } else { 900.0 });
        assert_eq!(there_after(&again, 0.0, Metric::Requests, below), None);
        assert_eq!(there_after(&[], 0.0, Metric::Requests, below), None);
    }

    #[test]
    fn a_class_is_back_with_the_first_mean_that_is_as_before() {
        let freed = samples(10.0, |at| if at < 1.5 { 100.0 } else { 1000.0 });
        let back = |value: f64| value >= 900.0;
        assert_eq!(first_there(&freed, 0.0, Metric::Requests, back), Some(1.5));
        let never = samples(10.0, |_| 100.0);
        assert_eq!(first_there(&never, 0.0, Metric::Requests, back), None);
    }

    #[test]
    fn windows_without_requests_have_no_response_time() {
        let idle = samples(10.0, |_| 0.0);
        let response = Target { metric: Metric::Response, value: 2.0, tolerance: 0.1 };
        assert_eq!(held(&idle, 0.0, 1.0, response), None);
        assert_eq!(figure(&idle, Metric::Response), None);
        assert_eq!(figure(&idle, Metric::Requests), Some(0.0));
    }
}
