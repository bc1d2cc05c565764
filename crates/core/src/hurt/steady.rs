//! To what somebody is to be held: one figure for all who ask, that stays.
//!
//! What a neighbour does varies from step to step, and each of the disks that it hurts needs
//! another limit. Whoever reads advice needs one figure, and time to follow it: so a figure
//! stays while what is found is near it, and the tightest that somebody needs is what is said.

use super::remedy::STANDS;
use crate::Nanos;

/// What is found is near a figure that is up to so many times as high, or as low: limits are
/// tried in halves, and loads vary by less.
const NEAR: f64 = 2.0;

/// A limit that is advised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyLimit {
    /// In bytes per second.
    pub bytes_per_second: f64,
    /// When something near it was found last.
    found: Nanos,
}

impl SteadyLimit {
    /// The limit that is advised now, given what is found now and what was advised before.
    pub fn next(now: Nanos, found: f64, before: Option<SteadyLimit>) -> SteadyLimit {
        let new = SteadyLimit { bytes_per_second: found, found: now };
        let Some(before) = before else { return new };
        let rate = before.bytes_per_second;
        match (found * NEAR < rate, found <= rate * NEAR) {
            (true, _) => new,
            (false, true) => SteadyLimit { found: now, ..before },
            // Somebody else may need the tighter one.
            (false, false) if now.since(before.found) < STANDS => before,
            (false, false) => new,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is advised after these were found, one each five seconds.
    fn advised(found: &[f64]) -> f64 {
        let step = |(before, now), found: &f64| {
            (Some(SteadyLimit::next(Nanos::from_secs(now), *found, before)), now + 5)
        };
        found.iter().fold((None, 0), step).0.unwrap().bytes_per_second
    }

    #[test]
    fn a_limit_stays_while_what_is_found_is_near_it() {
        assert_eq!(advised(&[12.0, 8.0, 20.0, 14.0, 18.0, 7.0]), 12.0);
        assert_eq!(advised(&[12.0, 5.0]), 5.0, "it is not nearly enough");
    }

    #[test]
    fn of_two_disks_the_one_that_needs_the_tighter_limit_counts() {
        assert_eq!(advised(&[20.0, 9.0, 20.0, 9.0, 20.0]), 9.0);
        let mut alone = vec![9.0];
        alone.extend([20.0; 15]);
        assert_eq!(advised(&alone), 20.0, "nobody has needed it for a minute");
    }
}
