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
//! **Points.** One is a second's mean latency and mean outstanding, both at the device.
//! Of the last hour some are kept, by their time alone ([`ROWS`]): to keep more of rare
//! loads would be to choose by what was measured, which makes lines where there are
//! none. A point's weight halves every [`HALF_LIFE`].
//!
//! **Robust.** It begins with a line through the medians of points of about the same Q,
//! which half of the points there may be wrong without moving; then there are
//! regressions over all points, in which those that are far off that line count little
//! (Huber's weights). Errors are taken to be in proportion to the latency.
//!
//! **Two fits.** By Little's law Q is made of latencies itself. Where clients keep their
//! rate whatever happens, noise alone makes points on a line through the origin, whose
//! peak would be the rate that there happened to be. There another form of the same
//! line is right, `1/L = 1/L0 - slope/L0 * X` over the throughput X, since X has no
//! latency in it. Where clients keep so many requests outstanding it is the other way
//! round. The first form errs to too steep, the second to too flat; the truth lies
//! between. So both are fitted, the slope is their mean, and its error is at least half
//! of what they differ by.
//!
//! **Where it does not hold.** One load is a point and no line. Nor is there one where
//! the two forms are too far apart: what varied was mostly noise. Nor where latency does
//! not grow: a fast device may never be near its limits. What is known then is what it
//! has done ([`LqLine::most`]), and that it can do as much again.
//!
//! **Probes.** A device that does no more of many requests than of one, as one with a limit
//! on its throughput, is such a line through the origin. Ordinary traffic cannot tell it
//! from noise; a [probe](super::probe) can, as it sets the load and the device does not.

use std::collections::VecDeque;

use super::Window;
use super::regression::{Point, Regression, SURE, median};
use crate::Nanos;

/// Points are kept of each second for two minutes, then of every tenth, then of every
/// sixtieth: how often, and how many.
const ROWS: [(Nanos, usize); 3] =
    [(Nanos(0), 120), (Nanos::from_secs(10), 120), (Nanos::from_secs(60), 60)];
/// After this long a point counts for half.
const HALF_LIFE: Nanos = Nanos::from_secs(600);
/// After so many half-lives it is forgotten.
const HALVES_MAX: f64 = 6.0;
/// Points of about the same Q: two bins to each doubling.
const BINS_PER_DOUBLING: f64 = 2.0;
/// The least outstanding that is told apart from none.
const Q_LOW: f64 = 0.25;
/// A mean of fewer requests says little.
const OPERATIONS_MIN: u64 = 16;
/// Fewer points are no line.
const POINTS_MIN: usize = 12;
/// Nor are points of fewer bins, ...
const BINS_MIN: usize = 3;
/// ... or such where the most outstanding is not this much more than the least.
const SPREAD_MIN: f64 = 2.0;
/// Nor are points of hardly more than one request at a time: nobody waited for anybody
/// then, and a latency that grows, grows by something else.
const Q_MIN: f64 = 2.0;
/// The slopes of the two forms may differ by this factor.
const APART_MAX: f64 = 2.0;
/// Errors beyond so many deviations count less and less (Huber's constant for 95 %
/// efficiency).
const HUBER: f64 = 1.345;
/// Beyond so many something else was going on. Less would cut the noise on one side.
const FOREIGN: f64 = 4.0;
/// From a median deviation to a standard one, for a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Rounds of regression.
const ROUNDS: usize = 2;
/// Points on the line to the last bit have an error, too: that of their measurement.
const DEVIATION_MIN: f64 = 0.01;

/// The line of a device, as it is learned. A few KiB.
#[derive(Clone, Debug, Default)]
pub struct LqLine {
    rows: [VecDeque<Seen>; ROWS.len()],
    /// What the last probe found, and when.
    probed: Option<(Nanos, LqFit)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
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
    /// The load was nearly always the same, or hardly ever two requests at a time, or
    /// varied no more than by noise.
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
    /// The error of the slope, in nanoseconds: the standard error, or half of what its
    /// two fits differ by, if that is more.
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

impl LqLine {
    /// Learns from what a device did in a window that ended now. Windows of a second
    /// are long enough for a mean and short enough for a load.
    pub fn add(&mut self, now: Nanos, window: &Window) {
        let total = window.total();
        if total.operations < OPERATIONS_MIN || window.span == Nanos(0) {
            return;
        }
        let q = window.at_device() as f32;
        let latency = (total.service.0 as f64 / total.operations as f64) as f32;
        if q <= 0.0 || latency <= 0.0 {
            return;
        }
        for (row, (every, kept)) in self.rows.iter_mut().zip(ROWS) {
            if row.back().is_some_and(|last| now.since(last.at) < every) {
                continue;
            }
            if row.len() == kept {
                row.pop_front();
            }
            row.push_back(Seen { at: now, q, latency });
        }
    }

    /// Learns what a probe has found. It counts as long as a point does, where ordinary
    /// traffic has no line to tell. One that has found nothing is no news.
    pub fn probed(&mut self, now: Nanos, found: LqFit) {
        if matches!(found, LqFit::Line(_) | LqFit::Flat { .. }) {
            self.probed = Some((now, found));
        }
    }

    /// What is known by now.
    pub fn fit(&self, now: Nanos) -> LqFit {
        let seen = self.seen(now);
        let counts =
            |at: Nanos| (now.since(at).0 as f64) < HALF_LIFE.0 as f64 * HALVES_MAX;
        match (seen, self.probed) {
            (LqFit::Line(_), _) => seen,
            (_, Some((at, found))) if counts(at) => found,
            _ => seen,
        }
    }

    /// What ordinary traffic tells.
    fn seen(&self, now: Nanos) -> LqFit {
        let points = self.points(now);
        if points.len() < POINTS_MIN {
            return LqFit::TooFew { points: points.len() };
        }
        let qs = || points.iter().map(|point| point.x);
        let seen = (qs().fold(f64::INFINITY, f64::min), qs().fold(0.0, f64::max));
        let middles = middles(&points);
        let varied = middles.len() >= BINS_MIN && seen.1 >= SPREAD_MIN * seen.0;
        if !varied || seen.1 < Q_MIN {
            return LqFit::NoVariation { seen };
        }
        let plain = Regression::of(&middles, |_| 1.0);
        let mut line = Regression::of(&middles, |q| plain.at(q));
        for _ in 0..ROUNDS {
            line = Regression::of(&damped(&points, &line), |q| line.at(q));
        }
        if !line.grows() {
            return LqFit::Flat { seen, latency: Nanos(line.mean as u64) };
        }
        let over_rate = OverRate::of(&points, &line);
        let near = over_rate.filter(|other| line.slope <= APART_MAX * other.slope);
        let Some(over_rate) = near else { return LqFit::NoVariation { seen } };
        let slope = (line.slope * over_rate.slope).sqrt();
        let apart = (line.slope - over_rate.slope).abs() / 2.0;
        LqFit::Line(Line {
            unloaded: Nanos((line.mean - slope * line.mean_x).max(0.0) as u64),
            slope,
            slope_error: apart.max(line.slope_error).max(over_rate.slope_error),
            points: points.len(),
            seen,
        })
    }

    /// The most requests per second that a device has done in one of the points: by
    /// Little's law, so many outstanding over their latency. Nothing without points.
    pub fn most(&self, now: Nanos) -> Option<f64> {
        let rates = self.points(now).into_iter().map(|point| 1e9 * point.x / point.y);
        rates.reduce(f64::max)
    }

    /// What is kept: latency over Q. Each row where the one before knows nothing.
    fn points(&self, now: Nanos) -> Vec<Point> {
        let (mut points, mut before) = (Vec::new(), Nanos::MAX);
        for row in &self.rows {
            for seen in row.iter().rev().filter(|seen| seen.at < before) {
                let halves = now.since(seen.at).0 as f64 / HALF_LIFE.0 as f64;
                if halves < HALVES_MAX {
                    let (x, y) = (f64::from(seen.q), f64::from(seen.latency));
                    points.push(Point { x, y, weight: (-halves).exp2() });
                }
            }
            before = row.front().map_or(before, |oldest| oldest.at.min(before));
        }
        points
    }
}

/// The median latencies of points of about the same Q.
fn middles(points: &[Point]) -> Vec<Point> {
    let bin =
        |point: &Point| ((point.x / Q_LOW).max(1.0).log2() * BINS_PER_DOUBLING) as usize;
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let bins = sorted.chunk_by(|a, b| bin(a) == bin(b));
    let middle = |bin: &[Point]| {
        let weight: f64 = bin.iter().map(|point| point.weight).sum();
        let x = bin.iter().map(|point| point.x * point.weight).sum::<f64>() / weight;
        let y = median(bin.iter().map(|point| (point.y, point.weight)))?;
        Some(Point { x, y, weight })
    };
    bins.filter_map(middle).collect()
}

/// How far points are off a line as a rule.
fn deviation(points: &[Point], line: &Regression) -> f64 {
    let off = median(points.iter().map(|point| (line.off(point), point.weight)));
    (off.unwrap_or(0.0) * MAD_TO_SIGMA).max(DEVIATION_MIN)
}

/// The points, those far off the line with less weight.
fn damped(points: &[Point], line: &Regression) -> Vec<Point> {
    let deviation = deviation(points, line);
    let damp = |point: &Point| {
        let far = line.off(point) / deviation;
        let weight = point.weight * if far > HUBER { HUBER / far } else { 1.0 };
        Point { weight, ..*point }
    };
    points.iter().map(damp).collect()
}

/// The slope of the same line, by its other form: the inverse of the latency over the
/// throughput.
#[derive(Clone, Copy, Debug)]
struct OverRate {
    slope: f64,
    slope_error: f64,
}

impl OverRate {
    /// Of the points that the line explains; nothing where the latency does not surely
    /// grow with the throughput.
    fn of(points: &[Point], line: &Regression) -> Option<OverRate> {
        let limit = FOREIGN * deviation(points, line);
        let own = points.iter().filter(|point| line.off(point) <= limit);
        let inverse =
            |it: &Point| Point { x: it.x / it.y, y: 1.0 / it.y, weight: it.weight };
        let points: Vec<Point> = own.map(inverse).collect();
        let plain = Regression::of(&points, |_| 1.0);
        let line = Regression::of(&points, |rate| plain.at(rate));
        // They are `1/L0` and `-slope/L0`: a line that falls, from above nothing.
        let falls = line.slope < 0.0 && -line.slope >= SURE * line.slope_error;
        (falls && line.intercept > 0.0).then(|| OverRate {
            slope: -line.slope / line.intercept,
            // The intercept goes with the slope: both turn about the mean.
            slope_error: line.slope_error * line.mean / line.intercept.powi(2),
        })
    }
}
