//! What a move will take, before it begins.
//!
//! **Rule.** A copy from one datastore to another has a speed of its own: what it does
//! while nobody asks the disk for anything. That is learned from the moves there were
//! ([`Speed`]). Beside an application the copy has a part of it ([`Share`]), which
//! follows from what the application does and from what it was promised. A move takes
//! its bytes over both, and what a guard needs to learn; and where moves beside such an
//! application took longer or shorter than that, so much longer or shorter ([`habit`]).
//!
//! **Range.** Speeds are wrong by ratios, so all doubt is a deviation of a logarithm.
//! That of the speed comes from how far the moves it was learned from lie apart, that of
//! the share from how much of it is the application's doing. Nine of ten moves should
//! end within the range; [`Scores`] says how many did.
//!
//! **A guess** is called one: where a single move was seen between two datastores, or only
//! moves of one of them each, or none at all, the range is as wide as such guesses are off,
//! and nobody says that nine of ten end within it.
//!
//! **What is not known** is not said. Between datastores from and to which nothing was
//! ever copied there is a guess by what their devices have shown ([`Shown`]), and where
//! that is nothing, no prediction, only what there is to copy.
//!
//! **Known gaps.** What others do on the two datastores counts only as far as it did
//! when the lessons were learned. What the application writes meanwhile is not added:
//! the mirror writes it twice, but copies little of it again. A disk that is idle now
//! and will not be is taken to be idle.

mod device;
mod habit;
mod likeness;
mod score;
mod share;
mod speed;
mod week;

pub use device::Shown;
pub use likeness::experience;
pub use score::{PredictionOutcome, Scores};
pub use share::{Share, Terms, Work};
pub use speed::{Ends, Lesson, Source, Speed};
pub use week::{Hour, Week};

use crate::Nanos;

/// Nine of ten values of a normal distribution are no farther from its mean than so
/// many deviations.
const NINE_OF_TEN: f64 = 1.645;

/// What a move takes however little it copies: the destination image is made, flushed
/// and switched to.
const FIXED: Nanos = Nanos::from_millis(50);

/// And how much longer that may take on storage that is slow to flush.
const FIXED_DOUBT: Nanos = Nanos::from_millis(500);

/// A guard may have seen enough so many times sooner, or later.
const LEARNING_DOUBT: u64 = 3;

/// No move is said to take longer: a year. What would is as good as endless.
const LONGEST: Nanos = Nanos::from_secs(366 * 24 * 60 * 60);

/// Bytes of holes that a comparison gets through in a second: both images are asked what
/// they hold, once for each chunk, and what is empty on both sides is not read.
const HOLES: f64 = (8_u64 << 30) as f64;

/// What is to be moved, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Bytes to copy.
    pub bytes: u64,
    /// Bytes of the disk that are compared in the end: all of it. Its holes are not read.
    /// 0 if it is not verified.
    pub compared: u64,
    /// What the application does.
    pub work: Work,
    /// What was promised to it.
    pub terms: Terms,
}

impl Move {
    /// How often what is copied is read.
    fn passes(&self) -> u64 {
        if self.compared > 0 { 2 } else { 1 }
    }

    /// Bytes of holes, which are compared and not copied.
    fn holes(&self) -> u64 {
        self.compared.saturating_sub(self.bytes)
    }

    /// What a comparison takes for holes that are not read. The operator's limit does not
    /// count them.
    fn past_holes(&self) -> Nanos {
        seconds(self.holes() as f64 / HOLES)
    }

    /// The same where one of the images cannot say what it holds, so that both are read:
    /// at most so many bytes a second, and the limit counts them.
    fn through_holes(&self, most: f64) -> Nanos {
        seconds(self.holes() as f64 / self.terms.limited(most.min(HOLES)))
    }

    /// What it takes at the operator's limit: it cannot take less. Nothing is known
    /// without one.
    pub fn least(&self) -> Option<Nanos> {
        let limit = self.terms.limit?.max(1) as f64;
        let bytes = self.bytes as f64 * self.passes() as f64;
        Some(seconds(bytes / limit))
    }
}

/// What a move will take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Most likely.
    pub likely: Nanos,
    /// One of twenty moves takes less.
    pub least: Nanos,
    /// One of twenty moves takes more.
    pub most: Nanos,
    /// Of the likely time, what is spent copying; the rest goes to the comparison, to the
    /// beginning and to the end.
    pub copying: Nanos,
    /// Bytes per second of copying.
    pub rate: f64,
    /// The part of its speed that the copy has, above 0 and at most 1.
    pub share: f64,
    /// The part of its requests that the application keeps meanwhile, above 0 and at most 1.
    pub kept: f64,
    /// What holds it back most.
    pub weakest: Weakest,
}

/// What holds a copy back most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakest {
    /// Reading the one datastore and writing the other.
    Storage,
    /// The operator's limit.
    Limit,
    /// What was promised to the application.
    Promise,
    /// The application, which shares the source with the copy.
    Application,
}

impl Prediction {
    /// Predicts a move at a speed that is known.
    pub fn of(one: &Move, speed: &Speed) -> Prediction {
        let beside = speed.beside(&one.work, &one.terms);
        let (share, free) = (beside.share, beside.free());
        let rate = |times: f64| one.terms.limited(free * times);
        // With a limit, that it would do more is no doubt.
        let copying = |times: f64| seconds(one.bytes as f64 / rate(times));
        let doubt = (speed.doubt.hypot(share.doubt) * NINE_OF_TEN).exp();
        let learning = beside.learning(one, &one.work);
        let whole = |times: f64, holes: Nanos, fixed: Nanos| {
            let copied = Nanos(copying(times).0.saturating_mul(one.passes()));
            copied.plus(holes).plus(fixed).min(LONGEST)
        };
        let holes = one.past_holes();
        Prediction {
            likely: whole(1.0, holes, FIXED.plus(learning)),
            least: whole(doubt, holes, Nanos(learning.0 / LEARNING_DOUBT)),
            most: whole(
                1.0 / doubt,
                one.through_holes(free / doubt),
                FIXED.plus(FIXED_DOUBT).plus(Nanos(learning.0 * LEARNING_DOUBT)),
            ),
            copying: copying(1.0).min(LONGEST),
            rate: rate(1.0),
            share: share.likely,
            kept: beside.kept,
            weakest: Prediction::weakest(one, &share, free),
        }
    }

    /// What holds a copy back that would do so much without a limit.
    fn weakest(one: &Move, share: &Share, free: f64) -> Weakest {
        match share.weakest() {
            _ if one.terms.limit.is_some_and(|limit| (limit as f64) < free) => {
                Weakest::Limit
            }
            weakest => weakest,
        }
    }
}

/// So many seconds; what no clock counts is the longest span there is.
fn seconds(count: f64) -> Nanos {
    Nanos((count.max(0.0) * 1e9) as u64)
}
