//! How an allowance is split among the others.
//!
//! In proportion to what each did while nobody held it: so all yield by the same
//! factor, and a cut is felt in each mix of them. One that does not use its part leaves
//! it to those that do, and keeps enough to begin with. First of all, each has its floor,
//! or [`RATE_MIN`].

use std::collections::BTreeMap;

use crate::Nanos;
use crate::measure::Window;
use crate::qos::{ClassId, Goal, Limit};

/// Bytes per second that everybody is left: guests give a disk up that does not answer
/// for long.
pub const RATE_MIN: f64 = (1 << 20) as f64;

/// Bytes in a request of a class that has none: a database's page.
const PAGE: f64 = 8192.0;

/// A class uses what it is allowed from this part on.
pub(super) const USES: f64 = 0.9;

/// What a class gets that does not use its part: so much of what it did.
const ROOM: f64 = 1.25;

/// Of its part, what a class keeps that asks for nothing now.
const TO_BEGIN: f64 = 0.25;

/// A class counts at least as this part of the mean: one that rested when it was first
/// held is not to be starved for ever.
const COUNTS: f64 = 0.25;

/// One of the others.
#[derive(Clone, Debug)]
pub struct Other {
    /// Which.
    pub class: ClassId,
    /// What it did in the period.
    pub window: Window,
    /// Bytes per second that it must not be held below.
    pub floor: f64,
}

impl Other {
    /// Bytes in a request of who did that, on average; above zero.
    pub fn request(window: &Window) -> f64 {
        window.total().size().filter(|size| *size > 0.0).unwrap_or(PAGE)
    }

    /// What it did, in bytes per second.
    pub(super) fn did(&self) -> f64 {
        self.window.bytes_per_second()
    }

    /// Whether it asked for nothing.
    pub(super) fn rests(&self) -> bool {
        self.window.is_idle()
    }

    /// A goal as its limit. What is reserved in bytes counts in another metric at the
    /// size, and with the number under way, of the requests that the class has: so many
    /// that take so long each. One that has none is not held.
    fn limit(&self, goal: Goal) -> Limit {
        let none = Limit::default();
        let size = Other::request(&self.window);
        match goal {
            Goal::Bytes(rate) => {
                Limit { bytes: Some(rate.max(self.floor as u64)), ..none }
            }
            Goal::Requests(rate) => {
                let floor = self.floor / size;
                Limit { requests: Some(rate.max(floor as u64)), ..none }
            }
            Goal::Response(span) if self.floor > 0.0 => {
                let longest = self.window.outstanding() * size / self.floor;
                let span = span.min(Nanos((longest * 1e9) as u64));
                Limit { response: Some(span).filter(|span| span.0 > 0), ..none }
            }
            Goal::Response(span) => Limit { response: Some(span), ..none },
        }
    }

    /// What it is left.
    pub(super) fn least(&self) -> f64 {
        self.floor.max(RATE_MIN)
    }
}

/// Who has which part.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// What each is held to.
    limits: BTreeMap<ClassId, Limit>,
    /// What each did while nobody held it.
    free: BTreeMap<ClassId, f64>,
}

impl Shares {
    /// What each is held to.
    pub(super) fn limits(&self) -> &BTreeMap<ClassId, Limit> {
        &self.limits
    }

    /// Holds nobody.
    pub(super) fn release(&mut self) {
        self.limits.clear();
    }

    /// Holds everybody to a goal, and nobody below what is reserved for them.
    pub(super) fn hold_to(&mut self, goal: Goal, others: &[Other]) {
        let limits = others.iter().map(|other| (other.class, other.limit(goal)));
        self.limits = limits.filter(|(_, limit)| !limit.is_none()).collect();
    }

    /// Splits an allowance.
    pub(super) fn split(&mut self, allowed: f64, others: &[Other]) {
        for other in others {
            if !self.limits.contains_key(&other.class) {
                self.free.insert(other.class, other.did());
            }
        }
        let weights = self.weights(others);
        let all: f64 = weights.iter().sum();
        let least: Vec<f64> = others.iter().map(Other::least).collect();
        let more = (allowed - least.iter().sum::<f64>()).max(0.0);
        let demand = |((other, weight), least): ((&Other, &f64), &f64)| {
            (self.demand(other, allowed * weight / all) - least).max(0.0)
        };
        let demands = others.iter().zip(&weights).zip(&least).map(demand);
        let parts = pour(more, &demands.collect::<Vec<_>>(), &weights);
        let limit = |((other, part), least): ((&Other, f64), &f64)| {
            let bytes = Some((least + part) as u64);
            (other.class, Limit { bytes, ..Limit::default() })
        };
        self.limits = others.iter().zip(parts).zip(&least).map(limit).collect();
    }

    /// What the parts are in proportion to.
    fn weights(&self, others: &[Other]) -> Vec<f64> {
        let free = |other: &Other| {
            self.free.get(&other.class).copied().unwrap_or_default().max(RATE_MIN)
        };
        let mean = others.iter().map(free).sum::<f64>() / others.len().max(1) as f64;
        others.iter().map(|other| free(other).max(COUNTS * mean)).collect()
    }

    /// What one of the others would do with its part; no end to it for one that uses all
    /// it may.
    fn demand(&self, other: &Other, part: f64) -> f64 {
        let limit = self.limits.get(&other.class).and_then(|limit| limit.bytes);
        match limit {
            Some(bytes) if other.did() < USES * bytes as f64 => {
                (other.did() * ROOM).max(part * TO_BEGIN)
            }
            _ => f64::INFINITY,
        }
    }
}

/// Pours an allowance over demands: the small ones are met, and the others get of the
/// rest what they weigh. What is left when all are met is poured over them as well.
fn pour(allowed: f64, demands: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| {
        (demands[*a] / weights[*a]).total_cmp(&(demands[*b] / weights[*b]))
    });
    let all: f64 = weights.iter().sum();
    let mut parts = vec![0.0; demands.len()];
    let (mut left, mut weight) = (allowed, all);
    for at in order {
        parts[at] = demands[at].min(left * weights[at] / weight);
        left -= parts[at];
        weight -= weights[at];
    }
    let more = left.max(0.0) / all;
    parts.iter().zip(weights).map(|(part, weight)| part + more * weight).collect()
}
