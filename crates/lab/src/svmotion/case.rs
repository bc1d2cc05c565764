//! Migrations of one kind, as often as they were repeated. Pure.

use super::outcome::{Basis, Mean, Outcome, Trial, error, mean, values};
use super::plan::State;

/// The migrations of one disk in one state, way and direction; at least one.
#[derive(Clone, Debug)]
pub(super) struct Case<'t> {
    trials: Vec<&'t Trial>,
}

impl<'t> Case<'t> {
    /// All cases of an experiment, in the order in which they began.
    pub(super) fn all(outcome: &'t Outcome) -> Vec<Case<'t>> {
        let mut cases: Vec<Case<'t>> = Vec::new();
        for trial in &outcome.trials {
            match cases.iter_mut().find(|case| case.trial().kind() == trial.kind()) {
                Some(case) => case.trials.push(trial),
                None => cases.push(Case { trials: vec![trial] }),
            }
        }
        cases
    }

    /// The same migrations with nothing going on.
    pub(super) fn idle(&self, outcome: &'t Outcome) -> Option<Case<'t>> {
        let (disk, _, way, forth) = self.trial().kind();
        let kind = (disk, State::Idle, way, forth);
        Case::all(outcome).into_iter().find(|case| case.trial().kind() == kind)
    }

    /// One of them, for what they have in common.
    pub(super) fn trial(&self) -> &'t Trial {
        self.trials[0]
    }

    /// The mean over the repeats of which it is known.
    pub(super) fn mean(&self, value: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> =
            self.trials.iter().filter_map(|trial| value(trial)).collect();
        Some(mean(&known)?.value)
    }

    /// The largest of all repeats.
    pub(super) fn worst(&self, value: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        self.trials.iter().filter_map(|trial| value(trial)).reduce(f64::max)
    }

    /// The part of the orders that was kept, over all repeats. Its error is what the
    /// seconds' scatter makes of it, or the repeats' own scatter, if that is larger.
    /// (Repeats share some seconds without a migration: it is a little too small.)
    pub(super) fn kept(&self, outcome: &Outcome) -> Option<Mean> {
        let each: Vec<Mean> =
            self.trials.iter().filter_map(|trial| outcome.kept(trial)).collect();
        let kept = mean(&values(&each))?;
        Some(Mean { error: kept.error.max(error(&each)), ..kept })
    }

    /// The orders that the part that was kept is of, over all repeats.
    pub(super) fn basis(&self, outcome: &Outcome) -> Option<Basis> {
        let bases = self.trials.iter().filter_map(|trial| outcome.basis(trial));
        bases.reduce(|one, other| Basis { orders: one.orders + other.orders, ..one })
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{outcome, trial};
    use super::*;

    #[test]
    fn repeats_are_one_case_and_others_are_not() {
        let mut outcome = outcome(100.0, 90.0);
        outcome.trials.push(trial());
        outcome.trials.push(Trial { forth: false, ..trial() });
        let cases = Case::all(&outcome);
        assert_eq!(
            cases.iter().map(|case| case.trials.len()).collect::<Vec<_>>(),
            [2, 1]
        );
        assert_eq!(cases[0].mean(|trial| Some(trial.seconds())), Some(20.0));
        assert_eq!(cases[0].mean(|_| None), None);
    }

    #[test]
    fn repeats_that_differ_say_so_in_the_error() {
        // During the first, 90 of 100 orders are kept; during the second, all are.
        let mut outcome = outcome(100.0, 90.0);
        let calm = vec![(0.0, 10.0), (50.0, 60.0)];
        outcome.trials.push(Trial { from: 42.0, until: 48.0, calm, ..trial() });
        let kept = Case::all(&outcome)[0].kept(&outcome).unwrap();
        assert!((kept.value - 0.95).abs() < 1e-9, "{kept:?}");
        assert!((kept.error - 0.05).abs() < 1e-9, "{kept:?}");
    }
}
