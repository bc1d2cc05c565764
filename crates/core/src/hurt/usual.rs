//! What a disk's requests usually take.
//!
//! For reads and writes of three lengths each, a histogram of the mean response times of
//! steps, in which old steps fade. The usual time is its median: a few slow hours of a day do
//! not move it, and a level that lasts becomes it.

use crate::Nanos;
use crate::measure::{Side, Summary};

/// Buckets to each doubling: a time is right to a tenth.
const FINE: f64 = 4.0;
/// From 1 us to 16 s.
const LEVELS: usize = 96;
/// So much of what was learned is left after one more step: after six hours of load, a third.
const KEPT: f32 = 1.0 - 1.0 / 4320.0;
/// Steps from which on a time is known: five minutes of load.
const LEARNED: f32 = 60.0;
/// Requests of up to so many bytes are of one length; longer ones are of the last.
const LENGTHS: [f64; 2] = [(16 << 10) as f64, (128 << 10) as f64];
/// With fewer requests in a step, their mean is chance.
pub(super) const REQUESTS_LEAST: u64 = 10;

/// What a disk's requests usually take.
#[derive(Clone, Debug, Default)]
pub struct Usual {
    /// By side and length. Most disks have few of these.
    kinds: [[Option<Box<Levels>>; LENGTHS.len() + 1]; 2],
    /// Requests per second.
    rates: Option<Box<Levels>>,
}

/// Times, or rates, of steps.
#[derive(Clone, Debug)]
struct Levels {
    weights: [f32; LEVELS],
    total: f32,
}

impl Default for Levels {
    fn default() -> Self {
        Levels { weights: [0.0; LEVELS], total: 0.0 }
    }
}

impl Levels {
    /// Learns a value from 1 on, which counts as so many steps.
    fn learn(&mut self, value: f64, weight: f32) {
        let level = (value.max(1.0).log2() * FINE) as usize;
        self.weights.iter_mut().for_each(|one| *one *= KEPT);
        self.weights[level.min(LEVELS - 1)] += weight;
        self.total = self.total * KEPT + weight;
    }

    /// The median, once it is known.
    fn median(&self) -> Option<f64> {
        if self.total < LEARNED {
            return None;
        }
        let mut left = self.total / 2.0;
        let at = self.weights.iter().position(|weight| {
            left -= weight;
            left <= 0.0
        });
        Some(((at.unwrap_or(LEVELS - 1) as f64 + 0.5) / FINE).exp2())
    }
}

/// What requests took, and what the same ones usually take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    pub(super) took: Nanos,
    pub(super) usual: Nanos,
}

fn sides(did: &Summary) -> [&Side; 2] {
    [&did.read, &did.write]
}

/// Which length the requests of a side are of, and what they took in microseconds; nothing of
/// too few.
fn seen(side: &Side) -> Option<(usize, f64)> {
    let response = side.response.filter(|_| side.operations >= REQUESTS_LEAST)?;
    let length = side.bytes / side.operations as f64;
    Some((LENGTHS.partition_point(|most| *most < length), response.0 as f64 / 1e3))
}

impl Usual {
    /// Learns from a step, which counts as so many.
    pub(super) fn learn(&mut self, did: &Summary, weight: f32) {
        for (side, kinds) in sides(did).into_iter().zip(&mut self.kinds) {
            if let Some((length, micros)) = seen(side) {
                kinds[length].get_or_insert_default().learn(micros, weight);
            }
        }
        if did.iops() >= 1.0 {
            self.rates.get_or_insert_default().learn(did.iops(), weight);
        }
    }

    /// The mean of a step's requests, as far as it is known what such ones usually take.
    pub(super) fn compare(&self, did: &Summary) -> Option<Compared> {
        let known =
            sides(did).into_iter().zip(&self.kinds).filter_map(|(side, kinds)| {
                let (length, micros) = seen(side)?;
                let usual = kinds[length].as_ref()?.median()?;
                Some((side.operations as f64, micros, usual))
            });
        let add = |sum: [f64; 3], (count, took, usual): (f64, f64, f64)| {
            [sum[0] + count, sum[1] + count * took, sum[2] + count * usual]
        };
        let [count, took, usual] = known.fold([0.0; 3], add);
        let nanos = |sum: f64| Nanos((sum / count * 1e3) as u64);
        (count > 0.0).then(|| Compared { took: nanos(took), usual: nanos(usual) })
    }

    /// How many requests per second are usual while the disk asks for something.
    pub fn rate(&self) -> Option<f64> {
        self.rates.as_ref()?.median()
    }
}
