//! What a device can do, learned from ordinary traffic: latency against outstanding
//! requests.
//!
//! Latency grows linearly with the requests at a device, `L = L0 + slope * Q`; since
//! by Little's law their throughput is `Q / L`, it can be no higher than `1 / slope`
//! however many are outstanding (A. Gulati et al., "BASIL: Automated IO Load Balancing
//! Across Storage Devices", FAST 2010, which calls the inverse of the slope a device's
//! strength; mixtures of requests have lines of their own, so the line is that of the
//! traffic there is).
//!
//! A point is a window's mean latency and mean outstanding, both at the device. Points
//! are kept in bins of Q, the last ones of each, so that an hour at one load does not
//! push out the minute at another. Their weight halves every [`HALF_LIFE`].
//!
//! The fit: a line through the bins' median latencies, which half of each bin's points
//! may be wrong without moving; then twice a weighted regression over all points, where
//! those that are far off that line count little (Huber's weights). Errors are taken to
//! be in proportion to the latency.
//!
//! **Where it does not hold.** One load is a point and no line: then the answer is that
//! nothing is known. Since Q is made of latencies too, noise alone makes points that
//! lie on a line through the origin, which is why Q must vary by more than noise does.

use std::collections::VecDeque;

use super::Window;
use crate::Nanos;

/// After this long a point counts for half.
const HALF_LIFE: Nanos = Nanos::from_secs(600);
/// After so many half-lives it is forgotten.
const HALVES_MAX: f64 = 6.0;
/// Bins of Q, two to each doubling, the first up to `Q_LOW`.
const BINS: usize = 24;
const BINS_PER_DOUBLING: f64 = 2.0;
/// The least outstanding that is told apart from none.
const Q_LOW: f64 = 0.25;
/// Points of a bin.
const KEPT: usize = 16;
/// A bin takes a point this often, so that what it holds is of a minute at least.
const SPACING: Nanos = Nanos::from_secs(3);
/// A mean of fewer requests says little.
const OPERATIONS_MIN: u64 = 16;
/// Fewer points are no line.
const POINTS_MIN: usize = 12;
/// Nor are points of fewer bins, ...
const BINS_MIN: usize = 3;
/// ... or such where the most outstanding is not this much more than the least.
const SPREAD_MIN: f64 = 2.0;
/// A slope must be so many times its standard error to be told from none.
const SURE: f64 = 3.0;
/// Errors beyond so many deviations count less and less (Huber's constant for 95 %
/// efficiency).
const HUBER: f64 = 1.345;
/// From a median deviation to a standard one, for a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Rounds of regression.
const ROUNDS: usize = 2;
/// Points on the line to the last bit have an error, too: that of their measurement.
const DEVIATION_MIN: f64 = 0.01;

/// The line of a device, as it is learned. A few KiB.
#[derive(Clone, Debug)]
pub struct LqLine {
    bins: [VecDeque<Point>; BINS],
}

impl Default for LqLine {
    fn default() -> Self {
        LqLine { bins: std::array::from_fn(|_| VecDeque::new()) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Point {
    at: Nanos,
    /// Outstanding requests.
    q: f32,
    /// Nanoseconds.
    latency: f32,
}

/// What is known of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LqFit {
    /// Its line.
    Line(Line),
    /// Not enough was seen.
    TooFew {
        /// How many points there are.
        points: usize,
    },
    /// The load was nearly always the same.
    NoVariation {
        /// The least outstanding requests that were seen, and the most.
        seen: (f64, f64),
    },
    /// Latency did not grow with the load: the device's limits were not reached.
    Flat {
        /// The least outstanding requests that were seen, and the most.
        seen: (f64, f64),
        /// The latency.
        latency: Nanos,
    },
}

/// `latency = unloaded + slope * outstanding`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The latency of a request that is alone; 0 where the line starts below.
    pub unloaded: Nanos,
    /// What each outstanding request adds, in nanoseconds.
    pub slope: f64,
    /// The standard error of the slope, in nanoseconds.
    pub slope_error: f64,
    /// How many points it was fitted to.
    pub points: usize,
    /// The least outstanding requests that were seen, and the most.
    pub seen: (f64, f64),
}

impl Line {
    /// The requests per second that no load exceeds.
    pub fn peak(&self) -> f64 {
        1e9 / self.slope
    }

    /// The latency at so many outstanding requests.
    pub fn at(&self, outstanding: f64) -> Nanos {
        Nanos((self.unloaded.0 as f64 + self.slope * outstanding) as u64)
    }
}

/// A point with the weight of its age.
#[derive(Clone, Copy, Debug)]
struct Weighted {
    q: f64,
    latency: f64,
    weight: f64,
}

impl LqLine {
    /// Learns from what a device did in a window that ended now. Windows of a second
    /// are long enough for a mean and short enough for a load.
    pub fn add(&mut self, now: Nanos, window: &Window) {
        let total = window.total();
        if total.operations < OPERATIONS_MIN || window.span == Nanos(0) {
            return;
        }
        let q = total.service.0 as f64 / window.span.0 as f64;
        let latency = total.service.0 as f64 / total.operations as f64;
        if latency <= 0.0 {
            return;
        }
        let place = ((q / Q_LOW).max(1.0).log2() * BINS_PER_DOUBLING) as usize;
        let bin = &mut self.bins[place.min(BINS - 1)];
        if bin.back().is_some_and(|last| now.since(last.at) < SPACING) {
            return;
        }
        if bin.len() == KEPT {
            bin.pop_front();
        }
        bin.push_back(Point { at: now, q: q as f32, latency: latency as f32 });
    }

    /// What is known by now.
    pub fn fit(&self, now: Nanos) -> LqFit {
        let bins: Vec<Vec<Weighted>> =
            self.bins.iter().map(|bin| weighted(now, bin)).collect();
        let all: Vec<Weighted> = bins.iter().flatten().copied().collect();
        if all.len() < POINTS_MIN {
            return LqFit::TooFew { points: all.len() };
        }
        let middles: Vec<Weighted> = bins.iter().filter_map(|bin| middle(bin)).collect();
        let qs = || all.iter().map(|point| point.q);
        let seen = (qs().fold(f64::INFINITY, f64::min), qs().fold(0.0, f64::max));
        if middles.len() < BINS_MIN || seen.1 < SPREAD_MIN * seen.0 {
            return LqFit::NoVariation { seen };
        }
        let mut line = Regression::of(&middles);
        for _ in 0..ROUNDS {
            line = Regression::of(&damped(&all, &line));
        }
        if line.slope < SURE * line.slope_error || line.slope <= 0.0 {
            let latency = Nanos(line.mean as u64);
            return LqFit::Flat { seen, latency };
        }
        LqFit::Line(Line {
            unloaded: Nanos(line.intercept.max(0.0) as u64),
            slope: line.slope,
            slope_error: line.slope_error,
            points: all.len(),
            seen,
        })
    }
}

/// A bin's points that are not forgotten.
fn weighted(now: Nanos, bin: &VecDeque<Point>) -> Vec<Weighted> {
    let weigh = |point: &Point| {
        let halves = now.since(point.at).0 as f64 / HALF_LIFE.0 as f64;
        let (q, latency) = (f64::from(point.q), f64::from(point.latency));
        (halves < HALVES_MAX).then(|| Weighted { q, latency, weight: (-halves).exp2() })
    };
    bin.iter().filter_map(weigh).collect()
}

/// The middle of a bin: its median latency, where that was.
fn middle(bin: &[Weighted]) -> Option<Weighted> {
    let weight: f64 = bin.iter().map(|point| point.weight).sum();
    let q = bin.iter().map(|point| point.q * point.weight).sum::<f64>() / weight;
    let latency = median(bin.iter().map(|point| (point.latency, point.weight)))?;
    Some(Weighted { q, latency, weight })
}

/// The value that half of the weight does not exceed; nothing of nothing.
fn median(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let mut values: Vec<(f64, f64)> = values.collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut seen = 0.0;
    let half = |(value, weight): &(f64, f64)| {
        seen += weight;
        (seen >= total / 2.0).then_some(*value)
    };
    values.iter().find_map(half)
}

/// The points, those far off the line with less weight.
fn damped(points: &[Weighted], line: &Regression) -> Vec<Weighted> {
    let off = |point: &Weighted| (point.latency / line.at(point.q) - 1.0).abs();
    let deviation = median(points.iter().map(|point| (off(point), point.weight)));
    let deviation = (deviation.unwrap_or(0.0) * MAD_TO_SIGMA).max(DEVIATION_MIN);
    let damp = |point: &Weighted| {
        let far = off(point) / deviation;
        let weight = point.weight * if far > HUBER { HUBER / far } else { 1.0 };
        Weighted { weight, ..*point }
    };
    points.iter().map(damp).collect()
}

/// A line of least squares.
#[derive(Clone, Copy, Debug)]
struct Regression {
    intercept: f64,
    slope: f64,
    slope_error: f64,
    /// The mean latency.
    mean: f64,
}

impl Regression {
    /// Through points whose errors are in proportion to their latency.
    fn of(points: &[Weighted]) -> Regression {
        let weights: Vec<f64> =
            points.iter().map(|point| point.weight / point.latency.powi(2)).collect();
        let total: f64 = weights.iter().sum();
        let mean_of = |value: &dyn Fn(&Weighted) -> f64| {
            let one = |(point, weight): (&Weighted, &f64)| value(point) * weight;
            points.iter().zip(&weights).map(one).sum::<f64>() / total
        };
        let (q, latency) = (mean_of(&|it| it.q), mean_of(&|it| it.latency));
        let spread = mean_of(&|it| (it.q - q).powi(2));
        let joint = mean_of(&|it| (it.q - q) * (it.latency - latency));
        let slope = if spread > 0.0 { joint / spread } else { 0.0 };
        let intercept = latency - slope * q;
        let off = mean_of(&|it| (it.latency - intercept - slope * it.q).powi(2));
        let free = points.len().saturating_sub(2).max(1) as f64;
        let slope_error = match spread > 0.0 {
            true => (off / spread / free).sqrt(),
            false => f64::INFINITY,
        };
        Regression { intercept, slope, slope_error, mean: latency }
    }

    /// The latency at so many outstanding requests; never below a nanosecond, as
    /// others are divided by it.
    fn at(&self, q: f64) -> f64 {
        (self.intercept + self.slope * q).max(1.0)
    }
}
