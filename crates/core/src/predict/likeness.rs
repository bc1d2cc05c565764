//! How alike two moves are: by what the application did, and by what it was promised.
//!
//! What a guard has found out beside one application is where the guard of the next one
//! begins, if the two are alike and their disks come from the same datastore, as it is the
//! source that application and copy share. Of several that are alike it is the latest, and
//! rather one that went to the same destination, too: devices change.

use super::share::{Terms, Work};
use super::speed::{Ends, Lesson};
use crate::guard::Experience;

/// Requests under way and response times are alike if they differ by no more than this
/// factor, about; so are the parts that two applications may lose.
const ALIKE: f64 = 1.5;

/// And parts that are writes by no more than this.
const ALIKE_PARTS: f64 = 0.2;

/// One of so few requests that it is hardly there is as one that is not.
pub(super) const HARDLY: f64 = 0.01;

/// Two that are less alike have nothing to learn from each other's guards: about one of
/// the scales above apart.
const ENOUGH: f64 = 0.5;

/// What makes moves alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Likeness {
    /// Whether a part is kept, a percentile bounded, nothing copied beside it.
    promise: (bool, bool, bool),
    /// The application and what it may lose, on scales on which two that are 1 apart are
    /// about alike.
    at: [f64; 4],
}

impl Likeness {
    pub(super) fn of(work: &Work, terms: &Terms) -> Likeness {
        let by_ratio = |value: f64| value.ln() / ALIKE.ln();
        Likeness {
            promise: (terms.keep.is_some(), terms.bounded, terms.idle_only),
            at: [
                by_ratio(work.outstanding.max(HARDLY)),
                by_ratio(work.response()),
                by_ratio((1.0 - terms.keep.unwrap_or_default()).max(0.001)),
                work.writes / ALIKE_PARTS,
            ],
        }
    }

    /// How alike two are, from 0 to 1.
    pub(super) fn to(&self, other: &Likeness) -> f64 {
        if self.promise != other.promise {
            return 0.0;
        }
        let apart = self.at.iter().zip(other.at).map(|(a, b)| (a - b).powi(2));
        (-apart.sum::<f64>() / 2.0).exp()
    }
}

/// What the guard of a past move has found out, and beside what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    beside: Likeness,
    experience: Experience,
    /// It went to the same destination, too.
    same_way: bool,
}

impl Known {
    /// All that these say, which come in the same order.
    pub(super) fn of(lessons: &[Lesson]) -> Vec<Known> {
        let from_here = lessons.iter().filter(|one| one.ends != Ends::Destination);
        let known = from_here.filter_map(|one| {
            // The guard ended beside the application that the move is known by.
            let while_there = one.work.iops() / one.work.there().max(HARDLY);
            let experience = one.experience?.beside(while_there);
            (!experience.is_none()).then(|| Known {
                beside: Likeness::of(&one.work, &one.terms),
                experience,
                same_way: one.ends == Ends::Both,
            })
        });
        known.collect()
    }

    /// What the guard of a move beside such an application begins with, of the latest
    /// first.
    pub(super) fn for_next(
        known: &[Known],
        work: &Work,
        terms: &Terms,
    ) -> Option<Experience> {
        if work.there() <= HARDLY {
            return None;
        }
        let beside = Likeness::of(work, terms);
        let alike = || known.iter().filter(|one| one.beside.to(&beside) >= ENOUGH);
        let one = alike().find(|one| one.same_way).or_else(|| alike().next())?;
        Some(one.experience)
    }
}

impl Terms {
    /// Whether a guard that holds these has something in it for each of its loops.
    pub(super) fn are_known(&self, experience: Option<&Experience>) -> bool {
        experience.is_some_and(|it| {
            (self.keep.is_none() || it.trials.is_some())
                && (!self.bounded || it.latency.is_some())
        })
    }
}

/// What the guard of a move beside such an application begins with, by moves that have
/// ended, the latest first; nothing if none of them was beside one like it.
pub fn experience(lessons: &[Lesson], work: &Work, terms: &Terms) -> Option<Experience> {
    Known::for_next(&Known::of(lessons), work, terms)
}
