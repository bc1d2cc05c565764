//! What came of moves beside applications like this one.
//!
//! What a copy and an application make of each other depends on more than is known of
//! either: where heads have to go, what a cache holds, how soon a guard sees through the
//! noise. But it is much the same the next time. So each move from the source that had the
//! same kind of promise is held against what would be said of it now, and by what it took
//! longer or shorter, a prediction is corrected: the more, the more alike the applications
//! were, and the later it was. What was seen once counts for two thirds.

use super::share::{Share, Terms, Work};
use super::speed::{Ends, HALF_LIFE, Lesson};

/// What is said without having seen anything counts as much as so many moves: what applies
/// to all arrays is known less well than what this one did.
const PRIOR: f64 = 0.5;

/// Requests under way and response times are alike if they differ by no more than this
/// factor, about; so are the parts that two applications may lose.
const ALIKE: f64 = 1.5;

/// And parts that are writes by no more than this.
const ALIKE_PARTS: f64 = 0.2;

/// One of so few requests that it is hardly there is as one that is not.
const HARDLY: f64 = 0.01;

/// What took so many times longer, or shorter, than it should have had another reason.
const MOST: f64 = 4.0;

/// What came of one move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Habit {
    work: Work,
    terms: Terms,
    /// The logarithm of what it took over what would be said of it.
    longer: f64,
}

impl Habit {
    /// What a lesson says where a copy does so much by itself, from a source that can be
    /// read at so much.
    pub(super) fn of(lesson: &Lesson, (speed, read): (f64, f64)) -> Option<Habit> {
        let Lesson { work, terms, rate, bytes, ends } = *lesson;
        let sound = rate.is_finite() && rate > 0.0 && bytes > 0 && work.there() > HARDLY;
        // What a limit held back says nothing of the application.
        let sound = sound && terms.limit.is_none();
        // How fast a copy to elsewhere is by itself is not known. Under a promise it hardly
        // matters.
        let speed = match ends {
            Ends::Both => speed,
            Ends::Source if !terms.is_none() => read,
            Ends::Source | Ends::Destination => return None,
        };
        if !sound {
            return None;
        }
        let share = Share::of(&work, &terms, (speed, read));
        let free = speed * share.likely;
        let told = bytes as f64 / free + terms.learning(&work, free).as_secs_f64();
        let longer = (bytes as f64 / rate / told).clamp(1.0 / MOST, MOST).ln();
        Some(Habit { work, terms, longer })
    }

    /// How alike it was to a move beside another application with other terms, from 0 to 1.
    fn alike(&self, work: &Work, terms: &Terms) -> f64 {
        let kind = |it: &Terms| (it.keep.is_some(), it.bounded, it.idle_only);
        if kind(&self.terms) != kind(terms) {
            return 0.0;
        }
        let apart = |a: f64, b: f64, factor: f64| ((a / b).ln() / factor.ln()).powi(2);
        let there = |it: &Work| it.outstanding.max(HARDLY);
        let takes = |it: &Work| it.response.as_secs_f64().max(1e-6);
        let loses = |it: &Terms| (1.0 - it.keep.unwrap_or_default()).max(0.001);
        let parts = ((self.work.writes - work.writes) / ALIKE_PARTS).powi(2);
        let distance = apart(there(&self.work), there(work), ALIKE)
            + apart(takes(&self.work), takes(work), ALIKE)
            + apart(loses(&self.terms), loses(terms), ALIKE)
            + parts;
        (-distance / 2.0).exp()
    }
}

/// How many times as long as would be said a move takes, by what came of others, the
/// latest first.
pub(super) fn times_longer(habits: &[Habit], work: &Work, terms: &Terms) -> f64 {
    let (mut sum, mut total, mut age) = (0.0, PRIOR, 0.0);
    for habit in habits {
        let alike = habit.alike(work, terms);
        let weight = alike * (-age / HALF_LIFE).exp2();
        sum += weight * habit.longer;
        total += weight;
        age += alike;
    }
    (sum / total).exp()
}
