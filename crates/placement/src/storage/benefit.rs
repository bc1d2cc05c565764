//! Whether a move has paid for itself: what was promised, against what came of it.
//!
//! Both are measured over windows of the same length: one that ends when the move begins,
//! and one that begins when the disk has switched over. A move for response times **has
//! paid** if the disk is answered faster on average, and both datastores together are, too,
//! request for request. One for room has if the datastore that was left has more of it. And
//! none has that pushed a datastore over a bound that it kept.
//!
//! Where nobody asks for anything before or after, response times say nothing of the move.

use super::Over;
use super::advise::{Side, Why};
use super::bounds::Bounds;
use sterna_core::Nanos;
use sterna_core::measure::Summary;

/// What somebody had of a disk, or of a datastore, over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fared {
    /// Requests per second.
    pub iops: f64,
    /// What one took, on average.
    pub mean: Option<Nanos>,
    /// The 95th percentile.
    pub p95: Option<Nanos>,
}

impl Fared {
    /// Over a window that was measured. What a policy has requests wait for does not count.
    pub fn of(summary: &Summary) -> Fared {
        let summary = summary.at_device();
        let iops = summary.iops();
        let mean =
            (iops > 0.0).then(|| Nanos((summary.outstanding() / iops * 1e9) as u64));
        Fared { iops, mean, p95: summary.p95 }
    }
}

/// A disk and the two datastores of its move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveFared {
    /// The disk.
    pub disk: Fared,
    /// The datastore that it leaves.
    pub source: Fared,
    /// The one that it goes to.
    pub destination: Fared,
    /// The part of the room that is taken there, and there.
    pub taken: [f64; 2],
}

impl MoveFared {
    /// What one request takes on average at both datastores together.
    fn mean(&self) -> Option<f64> {
        let both = [self.source, self.destination];
        let iops: f64 = both.iter().map(|it| it.iops).sum();
        let waits = |it: &Fared| it.iops * it.mean.map_or(0.0, |mean| mean.0 as f64);
        (iops > 0.0).then(|| both.iter().map(waits).sum::<f64>() / iops)
    }

    fn destination(&self) -> Side {
        Side { taken: self.taken[1], latency: self.destination.p95 }
    }
}

/// What came of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has paid.
    Paid,
    /// It has not.
    NotPaid,
    /// Nobody asked for anything before or after.
    Unknown,
}

/// Says whether a move has paid.
pub fn verdict(
    why: Why,
    bounds: &Bounds,
    before: &MoveFared,
    after: &MoveFared,
) -> Verdict {
    let (was, is) = (before.destination(), after.destination());
    let slow = |side: Side| side.latency.is_some_and(|it| it > bounds.latency);
    let pushed = (is.taken > bounds.space && was.taken <= bounds.space)
        || (slow(is) && !slow(was));
    let paid = match why {
        Why::Over(Over::Latency) => {
            let disk = before.disk.mean.zip(after.disk.mean);
            let Some(((was, is), (both_were, both_are))) =
                disk.zip(before.mean().zip(after.mean()))
            else {
                return Verdict::Unknown;
            };
            is < was && both_are < both_were
        }
        Why::Over(Over::Space) => after.taken[0] < before.taken[0],
        Why::Rule(_) => true,
    };
    if paid && !pushed { Verdict::Paid } else { Verdict::NotPaid }
}

/// How many moves have paid, of those of which it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Moves that have paid.
    pub paid: u64,
    /// Moves of which it is known whether they have.
    pub known: u64,
}

impl FromIterator<Verdict> for Tally {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Tally {
        verdicts.into_iter().fold(Tally::default(), |tally, one| match one {
            Verdict::Paid => Tally { paid: tally.paid + 1, known: tally.known + 1 },
            Verdict::NotPaid => Tally { known: tally.known + 1, ..tally },
            Verdict::Unknown => tally,
        })
    }
}
