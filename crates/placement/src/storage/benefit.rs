//! Whether a move has paid for itself: what was promised, against what came of it.
//!
//! Both are measured over windows of the same length: one that ends when the move begins,
//! and one that begins when the disk has switched over. A move for response times **has
//! paid** if the disk is answered faster on average, and both datastores together are, too,
//! request for request. One for room has if the datastore that was left has more of it. And
//! none has that pushed a datastore over a bound that it kept.
//!
//! Where nobody asks for anything before or after, response times say nothing of the move. If a
//! datastore does not say how full it is, a verdict that needs to know is not given either.

use super::Over;
use super::advise::Why;
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
    /// The part of the room that is taken there, and there; none of what did not say so.
    pub taken: [Option<f64>; 2],
}

impl MoveFared {
    /// What one request takes on average at both datastores together.
    fn mean(&self) -> Option<f64> {
        let both = [self.source, self.destination];
        let iops: f64 = both.iter().map(|it| it.iops).sum();
        let waits = |it: &Fared| it.iops * it.mean.map_or(0.0, |mean| mean.0 as f64);
        (iops > 0.0).then(|| both.iter().map(waits).sum::<f64>() / iops)
    }

    /// Whether the destination is over a bound; none if it may be, and did not say so.
    fn is_over(&self, bounds: &Bounds) -> [Option<bool>; 2] {
        let slow = self.destination.p95.is_some_and(|it| it > bounds.latency);
        [self.taken[1].map(|taken| taken > bounds.space), Some(slow)]
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
    NoLoad,
    /// A datastore did not say how full it was, before or after.
    NoRoomTold,
}

/// Says whether a move has paid.
pub fn verdict(
    why: Why,
    bounds: &Bounds,
    before: &MoveFared,
    after: &MoveFared,
) -> Verdict {
    let sides = before.is_over(bounds).into_iter().zip(after.is_over(bounds));
    // What kept no bound before is not pushed over it; nor is what keeps it now.
    let pushed = sides.map(|(was, is)| match (was, is) {
        (Some(true), _) | (_, Some(false)) => Some(false),
        (Some(false), Some(true)) => Some(true),
        _ => None,
    });
    let pushed: Vec<Option<bool>> = pushed.collect();
    let paid = match why {
        Why::Over(Over::Latency) => {
            let disk = before.disk.mean.zip(after.disk.mean);
            let Some(((was, is), (both_were, both_are))) =
                disk.zip(before.mean().zip(after.mean()))
            else {
                return Verdict::NoLoad;
            };
            Some(is < was && both_are < both_were)
        }
        Why::Over(Over::Space) => {
            before.taken[0].zip(after.taken[0]).map(|(was, is)| is < was)
        }
        Why::Rule(_) => Some(true),
    };
    if paid == Some(false) || pushed.contains(&Some(true)) {
        return Verdict::NotPaid;
    }
    let is_known = paid.is_some() && !pushed.contains(&None);
    if is_known { Verdict::Paid } else { Verdict::NoRoomTold }
}

/// Whether there is no verdict only because a datastore did not say, after the move, how full it
/// is: the datastore may say so later.
pub fn may_be_told_later(
    why: Why,
    bounds: &Bounds,
    before: &MoveFared,
    after: &MoveFared,
) -> bool {
    let any = Some(0.0);
    let told = MoveFared { taken: after.taken.map(|taken| taken.or(any)), ..*after };
    verdict(why, bounds, before, after) == Verdict::NoRoomTold
        && verdict(why, bounds, before, &told) != Verdict::NoRoomTold
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
            Verdict::NoLoad | Verdict::NoRoomTold => tally,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(taken: [Option<f64>; 2]) -> MoveFared {
        let [disk, source, destination] = [Fared::default(); 3];
        MoveFared { disk, source, destination, taken }
    }

    /// Of a move for room.
    fn judged(before: [Option<f64>; 2], after: [Option<f64>; 2]) -> Verdict {
        let bounds = Bounds { space: 0.8, ..Bounds::default() };
        verdict(Why::Over(Over::Space), &bounds, &scene(before), &scene(after))
    }

    #[test]
    fn a_datastore_that_does_not_say_how_full_it_is_does_not_count_as_empty() {
        let before = [Some(0.9), Some(0.2)];
        assert_eq!(judged(before, [Some(0.5), Some(0.6)]), Verdict::Paid);
        assert_eq!(judged(before, [None, Some(0.6)]), Verdict::NoRoomTold);
        assert_eq!(judged(before, [Some(0.5), None]), Verdict::NoRoomTold);
        assert_eq!(
            judged([None, Some(0.2)], [Some(0.5), Some(0.6)]),
            Verdict::NoRoomTold
        );
    }

    #[test]
    fn a_verdict_waits_for_what_a_datastore_has_yet_to_say_and_not_for_what_is_past() {
        let bounds = Bounds { space: 0.8, ..Bounds::default() };
        let waits = |before, after| {
            let why = Why::Over(Over::Space);
            may_be_told_later(why, &bounds, &scene(before), &scene(after))
        };
        let before = [Some(0.9), Some(0.2)];
        assert!(waits(before, [None, Some(0.6)]));
        assert!(waits(before, [Some(0.5), None]));
        assert!(!waits(before, [Some(0.5), Some(0.6)]), "all is known");
        assert!(!waits(before, [Some(0.95), None]), "it has not paid");
        assert!(!waits([None, Some(0.2)], [None, Some(0.6)]), "nobody can tell any more");
    }

    #[test]
    fn what_is_not_known_makes_no_difference_where_what_is_known_decides() {
        let before = [Some(0.9), Some(0.2)];
        assert_eq!(judged(before, [None, Some(0.9)]), Verdict::NotPaid);
        assert_eq!(judged(before, [Some(0.95), None]), Verdict::NotPaid);
        assert_eq!(judged([Some(0.9), None], [Some(0.5), Some(0.6)]), Verdict::Paid);
    }
}
