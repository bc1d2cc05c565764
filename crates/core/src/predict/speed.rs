//! How fast a copy goes from one datastore to another by itself, learned from moves.
//!
//! Of each move is known what it did, beside which application, and what was promised to
//! that. So much follows from only one speed, as a faster copy does more under any
//! promise ([`Share`](super::Share)): that is its lesson. The less of its speed a copy
//! had, and the less it copied, the less its lesson counts; and so does an old one, as
//! devices change.
//!
//! Moves from and to the same two datastores tell most. Without any, a copy is taken to
//! go no faster than the slower of its ends was seen to go with others.

use super::share::{LEAST, Share, Terms, Work};

/// A lesson counts for half after so many others.
const HALF_LIFE: f64 = 8.0;

/// A move of so many bytes counts for half of a large one: it is over before the copier
/// has found its pace.
const SHORT: f64 = (64 << 20) as f64;

/// Before anything is learned, speeds between two datastores are taken to differ by
/// about a quarter from move to move...
const PRIOR_DOUBT: f64 = 0.25;

/// ... and that counts as much as so many lessons.
const PRIOR_WEIGHT: f64 = 2.0;

/// How far off the slower of two ends is that were never used together.
const DOUBT_ENDS: f64 = 0.5;

/// The same if only one of them is known.
const DOUBT_END: f64 = 0.8;

/// A move whose copy, once its guard had seen enough, took a smaller part of the time says
/// nothing of that.
const SHORTEST: f64 = 0.5;

/// Halvings in which the speed of a copy that had but a thousandth of it is found to a
/// millionth.
const HALVINGS: u32 = 24;

/// Which ends of the move in question a past one had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It went from the one to the other, too.
    Both,
    /// It went from the same source.
    Source,
    /// It went to the same destination.
    Destination,
}

/// What a past move says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesson {
    /// What it had in common with the move in question.
    pub ends: Ends,
    /// Bytes per second of copying.
    pub rate: f64,
    /// Bytes that it copied.
    pub bytes: u64,
    /// What the application did before.
    pub work: Work,
    /// What was promised to it.
    pub terms: Terms,
}

/// What a lesson comes to.
#[derive(Clone, Copy, Debug)]
struct Learned {
    /// Bytes per second that the copy would have done by itself.
    speed: f64,
    /// How much it counts.
    weight: f64,
}

/// What a speed was learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// So many moves from the one to the other.
    Moves(usize),
    /// Moves from the source, and others to the destination.
    Ends,
    /// Moves from the source or to the destination, and none with the other end.
    OneEnd,
}

/// Bytes per second that a copy does by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Most likely; above zero.
    pub likely: f64,
    /// The deviation of its logarithm.
    pub doubt: f64,
    /// What it was learned from.
    pub source: Source,
}

impl Lesson {
    /// What it comes to, if it says anything.
    fn learned(&self) -> Option<Learned> {
        if !(self.rate.is_finite() && self.rate > 0.0 && self.bytes > 0) {
            return None;
        }
        // Of a move that was over when the guard had just seen enough, nothing is known.
        let (bytes, learning) = (self.bytes as f64, self.terms.learning(&self.work));
        let took = bytes / self.rate;
        let copying = took - learning.as_secs_f64();
        if copying < SHORTEST * took {
            return None;
        }
        let rate = bytes / copying;
        // Above the speed that would do less, below the one that would do more.
        let (mut low, mut high) = (rate, rate / LEAST);
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            let share = Share::of(&self.work, &self.terms, middle).likely;
            if middle * share < rate {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(Learned { speed: low, weight: rate / low * bytes / (bytes + SHORT) })
    }
}

impl Speed {
    /// What these say, the latest first; nothing if none says anything.
    pub fn learned(lessons: &[Lesson]) -> Option<Speed> {
        let of = |ends: Ends| -> Vec<Learned> {
            let those = lessons.iter().filter(|one| one.ends == ends);
            those.filter_map(Lesson::learned).collect()
        };
        let (both, source, destination) =
            (of(Ends::Both), of(Ends::Source), of(Ends::Destination));
        if !both.is_empty() {
            return Some(Speed::of_moves(&both));
        }
        let fastest =
            |those: &[Learned]| those.iter().map(|one| one.speed).reduce(f64::max);
        Some(match (fastest(&source), fastest(&destination)) {
            (Some(from), Some(to)) => {
                Speed { likely: from.min(to), doubt: DOUBT_ENDS, source: Source::Ends }
            }
            (Some(one), None) | (None, Some(one)) => {
                Speed { likely: one, doubt: DOUBT_END, source: Source::OneEnd }
            }
            (None, None) => return None,
        })
    }

    /// The weighted mean of the logarithms, and how far a next one will lie from it.
    fn of_moves(those: &[Learned]) -> Speed {
        let weighed = |(age, one): (usize, &Learned)| {
            (one.weight * (-(age as f64) / HALF_LIFE).exp2(), one.speed.ln())
        };
        let weighed: Vec<(f64, f64)> = those.iter().enumerate().map(weighed).collect();
        let total: f64 = weighed.iter().map(|(weight, _)| weight).sum();
        let mean = weighed.iter().map(|(weight, it)| weight * it).sum::<f64>() / total;
        let apart: f64 =
            weighed.iter().map(|(weight, it)| weight * (it - mean).powi(2)).sum();
        let prior = PRIOR_WEIGHT * PRIOR_DOUBT.powi(2);
        let variance = (prior + apart) / (PRIOR_WEIGHT + total);
        Speed {
            likely: mean.exp(),
            // Of the next one, and of the mean.
            doubt: (variance * (1.0 + 1.0 / (1.0 + total))).sqrt(),
            source: Source::Moves(those.len()),
        }
    }
}
