//! The phases of the experiment, and how long each is.
//!
//! Phases that show an effect which comes at once are short; the three in which a
//! target is held get the time that is left. Five minutes of each is what it takes to
//! say that nothing oscillates; the quick plan only shows that everything works.

use crate::record::Metric;

/// How long the experiment may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As short as it can be.
    Quick,
    /// So many minutes, [`MINUTES`] at least.
    Minutes(u32),
}

/// The fewest minutes: each target is held for half a minute.
pub(super) const MINUTES: u32 = 5;

/// The seconds in which an unreachable target has to be named, and a few more.
const NAMING: f64 = 35.0;
/// Seconds before the schedule opens: enough to have asked for it.
pub(super) const BEFORE_OPENING: u32 = 4;

/// What is done in a phase, from its beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The database works alone.
    Alone,
    /// Backup and load generator work beside it.
    Contention,
    /// The database is kept at a target.
    Cruise(Metric),
    /// The target is lifted, the others work on.
    Released,
    /// The database is kept at a target that the array cannot give.
    Unreachable,
    /// Backup and load generator end.
    AloneAgain,
    /// The database is held to a limit.
    Limit(Metric),
    /// The limit is lifted.
    Freed,
    /// The database is held to a limit for some seconds, at their time.
    Schedule,
}

/// A step, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    /// What is done.
    pub(super) step: Step,
    /// For so many seconds.
    pub(super) seconds: f64,
}

/// The phases in their order.
pub(super) fn plan(length: Length) -> Vec<Phase> {
    let (alone, start, between, limited) = match length {
        // Of the time alone the second half counts.
        Length::Quick => (16.0, 5.0, 3.0, 4.0),
        Length::Minutes(_) => (40.0, 20.0, 8.0, 12.0),
    };
    let mut phases = Vec::new();
    let mut add = |step, seconds| phases.push(Phase { step, seconds });
    add(Step::Alone, alone);
    add(Step::Contention, start);
    for metric in [Metric::Bytes, Metric::Requests, Metric::Response] {
        add(Step::Cruise(metric), 0.0);
        add(Step::Released, between);
    }
    add(Step::Unreachable, NAMING);
    add(Step::AloneAgain, between);
    for metric in [Metric::Bytes, Metric::Requests] {
        add(Step::Limit(metric), limited);
        add(Step::Freed, between);
    }
    add(Step::Schedule, f64::from(BEFORE_OPENING) + 2.0 * limited);
    let fixed: f64 = phases.iter().map(|phase| phase.seconds).sum();
    let held = match length {
        // The time to settle, and a little to see that it has.
        Length::Quick => 15.0,
        Length::Minutes(minutes) => {
            (f64::from(minutes.max(MINUTES)) * 60.0 - fixed) / 3.0
        }
    };
    for phase in &mut phases {
        if let Step::Cruise(_) = phase.step {
            phase.seconds = held;
        }
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(phases: &[Phase]) -> f64 {
        phases.iter().map(|phase| phase.seconds).sum()
    }

    fn held(phases: &[Phase]) -> Vec<f64> {
        let cruises = phases.iter().filter(|it| matches!(it.step, Step::Cruise(_)));
        cruises.map(|phase| phase.seconds).collect()
    }

    #[test]
    fn the_plan_takes_as_long_as_asked() {
        for minutes in [MINUTES, 20, 60] {
            let phases = plan(Length::Minutes(minutes));
            let seconds = f64::from(minutes) * 60.0;
            assert!((total(&phases) - seconds).abs() < 1e-6, "{minutes}");
            assert!(held(&phases).iter().all(|seconds| *seconds >= 15.0), "{minutes}");
        }
    }

    #[test]
    fn twenty_minutes_hold_each_target_for_five() {
        let held = held(&plan(Length::Minutes(20)));
        assert_eq!(held.len(), 3);
        assert!(held.iter().all(|seconds| *seconds >= 310.0), "{held:?}");
    }

    #[test]
    fn the_quick_plan_takes_no_more_than_two_and_a_half_minutes() {
        assert!(total(&plan(Length::Quick)) <= 150.0);
    }
}
