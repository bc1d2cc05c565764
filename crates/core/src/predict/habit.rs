//! What came of moves beside applications like this one.
//!
//! What a copy and an application make of each other depends on more than is known of
//! either: where heads have to go, what a cache holds, how soon a guard sees through the
//! noise. But it is much the same the next time. So each move from the source that had the
//! same kind of promise is held against what would be said of it now, and by what it took
//! longer or shorter, a prediction is corrected: the more, the more alike the applications
//! were, and the later it was. What was seen once counts for two thirds. So does what the
//! applications kept of their requests.

use super::likeness::{HARDLY, Likeness};
use super::share::{LEAST, Share, Terms, Work};
use super::speed::{Ends, HALF_LIFE, Lesson};

/// What is said without having seen anything counts as much as so many moves: what applies
/// to all arrays is known less well than what this one did.
const PRIOR: f64 = 0.5;

/// What took so many times longer, or shorter, than it should have had another reason.
const MOST: f64 = 4.0;

/// What came of one move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Habit {
    beside: Likeness,
    /// The logarithm of what it took over what would be said of it.
    longer: f64,
    /// The part of its requests that the application kept.
    kept: Option<f64>,
}

impl Habit {
    /// What a lesson says where a copy does so much by itself, from a source that can be
    /// read at so much.
    pub(super) fn of(lesson: &Lesson, (speed, read): (f64, f64)) -> Option<Habit> {
        let Lesson { work, terms, rate, bytes, ends, kept, .. } = *lesson;
        let is_sound = rate.is_finite() && rate > 0.0 && bytes > 0;
        // What a limit held back says nothing of the application.
        if !is_sound || work.there() <= HARDLY || terms.limit.is_some() {
            return None;
        }
        // How fast a copy to elsewhere is by itself is not known. Under a promise it hardly
        // matters.
        let speed = match ends {
            Ends::Both => speed,
            Ends::Source if !terms.is_none() => read,
            Ends::Source | Ends::Destination => return None,
        };
        let share = Share::of(&work, &terms, (speed, read));
        let free = speed * share.likely;
        let told = bytes as f64 / free + lesson.learning(free).as_secs_f64();
        let longer = (bytes as f64 / rate / told).clamp(1.0 / MOST, MOST).ln();
        // Nobody keeps more than all: one that asks for more meanwhile has lost nothing.
        let kept = kept.filter(|kept| kept.is_finite()).map(|kept| kept.clamp(0.0, 1.0));
        Some(Habit { beside: Likeness::of(&work, &terms), longer, kept })
    }
}

/// By what came of others, the latest first: how many times as long as would be said a move
/// takes, and what an application keeps that would be said to keep so much.
pub(super) fn seen(
    habits: &[Habit],
    work: &Work,
    terms: &Terms,
    told: f64,
) -> (f64, f64) {
    let beside = Likeness::of(work, terms);
    let (mut sum, mut total, mut age) = (0.0, PRIOR, 0.0);
    let (mut kept, mut known) = (PRIOR * told, PRIOR);
    for habit in habits {
        let alike = habit.beside.to(&beside);
        let weight = alike * (-age / HALF_LIFE).exp2();
        sum += weight * habit.longer;
        total += weight;
        age += alike;
        if let Some(part) = habit.kept {
            kept += weight * part;
            known += weight;
        }
    }
    ((sum / total).exp(), (kept / known).clamp(LEAST, 1.0))
}
