//! How a device is loaded to see what it can do: with how many requests at a time next,
//! and when that is enough.
//!
//! **Rule.** It begins with one request at a time and doubles. It ends where more requests
//! bring hardly more (the device is at its peak), at [`DEEPEST`], or where those who use the
//! device anyway get less by [`HURTS`]: they did not ask for this. Every step lasts
//! [`STEP`], so that an [`LqLine`](super::LqLine) that sees the traffic has points enough.
//!
//! The load is random reads, one step after the other, as in the device models of Storage
//! DRS; unlike there it is not put off while somebody is busy. Their requests count among
//! those that are outstanding, so the line is as true beside them as without them.

use super::lq::{Line, LqFit};
use super::regression::{Point, Regression};
use crate::Nanos;

/// How long a step lasts: means of four seconds.
pub const STEP: Nanos = Nanos::from_secs(4);

/// More are no step: what applications of one machine have under way.
pub const DEEPEST: u32 = 64;

/// Fewer steps are no line, however soon the peak is reached.
const STEPS_MIN: usize = 4;

/// Twice the requests that bring less than this times as many answers...
const GROWS: f64 = 1.1;

/// ... and so much less for others is harm; under a tenth is chance.
const HURTS: f64 = 0.2;

/// With fewer requests per second nobody is there.
const SOMEBODY: f64 = 1.0;

/// What was seen while the device had one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The probe's requests under way.
    pub outstanding: u32,
    /// How many of them were answered per second.
    pub iops: f64,
    /// What one of them took.
    pub response: Nanos,
    /// Requests per second of everybody else.
    pub others: f64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// So many requests at a time, for a step.
    Load(u32),
    /// Nothing.
    Done(End),
}

/// Why a probe is at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// More requests bring hardly more answers.
    Peak,
    /// It has had as many under way as it may.
    Deepest,
    /// Others got less: this part of what they had.
    Others(f64),
}

/// A device that is being probed.
#[derive(Clone, Debug)]
pub struct Probe {
    others: f64,
    steps: Vec<Step>,
}

impl Probe {
    /// A probe beside others who make so many requests per second, as a mean of what was
    /// seen right before: of a load that comes in bursts it is by chance.
    pub fn new(others: f64) -> Probe {
        Probe { others, steps: Vec::new() }
    }

    /// What comes first.
    pub fn first(&self) -> u32 {
        1
    }

    /// What comes after this step.
    pub fn next(&mut self, step: Step) -> Next {
        let before = self.steps.last().copied();
        self.steps.push(step);
        let kept = step.others / self.others.max(f64::MIN_POSITIVE);
        if self.others >= SOMEBODY && kept < 1.0 - HURTS {
            return Next::Done(End::Others(kept));
        }
        let grows = before.is_none_or(|before| step.iops >= before.iops * GROWS);
        if !grows && self.steps.len() >= STEPS_MIN {
            return Next::Done(End::Peak);
        }
        match step.outstanding.saturating_mul(2) {
            deeper if deeper > DEEPEST => Next::Done(End::Deepest),
            deeper => Next::Load(deeper),
        }
    }

    /// What was seen so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// What steps say of the device. The load was set by the probe, so by Little's law whoever
/// else was there adds to it as many requests as they make while one is answered; and the
/// latency over it is the line itself.
pub fn fit(steps: &[Step]) -> LqFit {
    let point = |step: &Step| {
        let others = step.others * step.response.as_secs_f64();
        let x = f64::from(step.outstanding) + others;
        Point { x, y: step.response.0 as f64, weight: 1.0 }
    };
    let points: Vec<Point> = steps.iter().map(point).collect();
    if points.len() < STEPS_MIN {
        return LqFit::TooFew { points: points.len() };
    }
    let ends = points.iter().map(|point| point.x);
    let seen = ends.fold((f64::INFINITY, 0.0f64), |(a, b), x| (x.min(a), x.max(b)));
    let plain = Regression::of(&points, |_| 1.0);
    let line = Regression::of(&points, |q| plain.at(q));
    if !line.grows() {
        return LqFit::Flat { seen, latency: Nanos(line.mean as u64) };
    }
    LqFit::Line(Line {
        unloaded: Nanos(line.intercept.max(0.0) as u64),
        slope: line.slope,
        slope_error: line.slope_error,
        points: points.len(),
        seen,
    })
}
