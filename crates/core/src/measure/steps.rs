//! Times counted in a few fixed steps, for programs that add up for months.
//!
//! A [`Spread`](super::Spread) answers any quantile and forgets with its window. Steps never
//! forget: a monitor reads them again and again and subtracts. So their bounds are fixed, are
//! round numbers of seconds, and are the same for all that Sterna times.

use crate::Nanos;

/// How many steps have a bound; one more takes what is longer.
const BOUNDED: usize = 12;

/// How many spans of time were within each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps([u64; BOUNDED + 1]);

impl Steps {
    /// The longest span of each step, rising, from 100 us to 10 s.
    pub const BOUNDS: [Nanos; BOUNDED] = [
        Nanos::from_micros(100),
        Nanos::from_micros(250),
        Nanos::from_micros(500),
        Nanos::from_millis(1),
        Nanos::from_micros(2_500),
        Nanos::from_millis(5),
        Nanos::from_millis(10),
        Nanos::from_millis(25),
        Nanos::from_millis(50),
        Nanos::from_millis(100),
        Nanos::from_secs(1),
        Nanos::from_secs(10),
    ];

    /// Counts a span.
    pub fn record(&mut self, span: Nanos) {
        self.0[Self::BOUNDS.partition_point(|bound| *bound < span)] += 1;
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Steps) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += *theirs;
        }
    }

    /// How many spans were counted.
    pub fn len(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each step with its bound, and how many spans were within it and in no step before
    /// it. What is longer than all bounds is in none.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> {
        Self::BOUNDS.into_iter().zip(self.0)
    }
}

/// Spans of time of one kind, in steps, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// How many were within each step.
    pub steps: Steps,
    /// All of them together.
    pub sum: Nanos,
}

impl Timed {
    /// Counts a span.
    pub fn record(&mut self, span: Nanos) {
        self.steps.record(span);
        self.sum = self.sum.plus(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_counts_in_the_first_step_that_holds_it() {
        for (at, bound) in Steps::BOUNDS.into_iter().enumerate() {
            let mut steps = Steps::default();
            steps.record(bound);
            steps.record(bound.plus(Nanos(1)));
            assert_eq!(steps.iter().nth(at), Some((bound, 1)));
            assert_eq!(steps.len(), 2, "what is longer is counted, too");
        }
    }

    #[test]
    fn what_is_longer_than_all_bounds_is_counted_and_in_no_step() {
        let mut timed = Timed::default();
        timed.record(Nanos::from_secs(11));
        assert_eq!((timed.steps.len(), timed.sum), (1, Nanos::from_secs(11)));
        assert!(timed.steps.iter().all(|(_, count)| count == 0));
    }

    #[test]
    fn two_counts_make_one() {
        let (mut one, mut other) = (Steps::default(), Steps::default());
        one.record(Nanos::from_millis(1));
        other.record(Nanos::from_millis(1));
        other.record(Nanos::from_secs(60));
        one.merge(&other);
        assert_eq!((one.len(), one.iter().nth(3)), (3, Some((Nanos::from_millis(1), 2))));
        assert!(Steps::default().is_empty());
    }
}
