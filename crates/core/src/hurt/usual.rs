//! What a disk's requests usually take.
//!
//! For reads and writes of three lengths each, a histogram of the mean response times of
//! steps, in which old steps fade. The usual time is its median: a few slow hours of a day do
//! not move it, and a level that lasts becomes it.

use super::watch::STEP;
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

/// How many kinds of requests there are: reads and writes of each length.
const KINDS: usize = 2 * LENGTH_COUNT;
const LENGTH_COUNT: usize = LENGTHS.len() + 1;
/// Kept weights are in so many parts of a step.
const KEPT_PARTS: f32 = 10.0;

/// What a disk's requests usually take.
#[derive(Clone, Debug, Default)]
pub struct Usual {
    /// By side and length. Most disks have few of these.
    kinds: [[Option<Box<Levels>>; LENGTH_COUNT]; 2],
    /// Requests per second.
    rates: Option<Box<Levels>>,
    /// Since when it is learned.
    since: Option<Nanos>,
}

/// What requests of one kind usually take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsualKind {
    /// Whether they are writes.
    pub writes: bool,
    /// The longest of them, in bytes; nothing if any length counts.
    pub longest: Option<u64>,
    /// What they take, once it is known.
    pub response: Option<Nanos>,
    /// How much load was seen, of which old one fades.
    pub learned: Nanos,
}

/// What was learned, as it is kept while no daemon runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptUsual {
    /// Since when it is learned.
    pub since: Nanos,
    /// By kind (the last one is requests per second): the weight of each level, in tenths of
    /// a step.
    pub levels: Vec<(u8, Vec<u16>)>,
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

    fn kept(&self) -> Vec<u16> {
        // A cast to an integer saturates.
        self.weights.iter().map(|weight| (weight * KEPT_PARTS).round() as u16).collect()
    }

    /// Nothing of what has another number of levels.
    fn restored(kept: &[u16]) -> Option<Levels> {
        let kept: &[u16; LEVELS] = kept.try_into().ok()?;
        let weights = kept.map(|weight| f32::from(weight) / KEPT_PARTS);
        Some(Levels { weights, total: weights.iter().sum() })
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
    /// How much load has to be seen before a time is known.
    pub const NEEDED: Nanos = Nanos(LEARNED as u64 * STEP.0);

    /// Learns from a step that ended now, which counts as so many.
    pub(super) fn learn(&mut self, now: Nanos, did: &Summary, weight: f32) {
        if did.read.operations + did.write.operations > 0 {
            self.since.get_or_insert(Nanos(now.0.saturating_sub(STEP.0)));
        }
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

    /// Since when it is learned; nothing if the disk was not asked for anything yet.
    pub fn since(&self) -> Option<Nanos> {
        self.since
    }

    /// The kinds of requests that were seen.
    pub fn kinds(&self) -> Vec<UsualKind> {
        let all = self.kinds.iter().enumerate().flat_map(|(side, lengths)| {
            let kind = move |(at, levels): (usize, &Option<Box<Levels>>)| {
                let levels = levels.as_ref()?;
                Some(UsualKind {
                    writes: side == 1,
                    longest: LENGTHS.get(at).map(|most| *most as u64),
                    response: levels.median().map(|micros| Nanos((micros * 1e3) as u64)),
                    learned: Nanos((f64::from(levels.total) * STEP.0 as f64) as u64),
                })
            };
            lengths.iter().enumerate().filter_map(kind)
        });
        all.collect()
    }

    /// What was learned, to be kept; nothing if nothing was.
    pub fn kept(&self) -> Option<KeptUsual> {
        let all = self.kinds.iter().flatten().chain([&self.rates]);
        let numbered = (0..).zip(all);
        let levels = numbered
            .filter_map(|(kind, levels)| Some((kind, levels.as_ref()?.kept())))
            .collect();
        Some(KeptUsual { since: self.since?, levels })
    }

    /// What was kept. What is none of ours is left out: it is learned anew.
    pub fn restored(kept: &KeptUsual) -> Usual {
        let mut usual = Usual { since: Some(kept.since), ..Usual::default() };
        for (kind, levels) in &kept.levels {
            let kind = usize::from(*kind);
            let place = match kind {
                KINDS => &mut usual.rates,
                0..KINDS => &mut usual.kinds[kind / LENGTH_COUNT][kind % LENGTH_COUNT],
                _ => continue,
            };
            *place = Levels::restored(levels).map(Box::new);
        }
        usual
    }
}
