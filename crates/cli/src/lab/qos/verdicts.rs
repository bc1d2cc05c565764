//! What the experiment must show, and whether it did.
//!
//! Pure: a record and its phases in, verdicts out. So the same requirements hold for
//! an experiment on a real clock and for one in virtual time.

use super::plan::Step;
use super::run::{Outcome, Stretch};
use crate::lab::record::{Metric, Sample, figure};
use crate::lab::report::Verdict;

/// What the database must lose at least when the others come: else there is nothing
/// that a service level could show.
const DROP: f64 = 0.6;

/// The verdicts, in the order of the phases.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    let judge = Judge { outcome };
    judge.contention().into_iter().collect()
}

struct Judge<'o> {
    outcome: &'o Outcome,
}

impl Judge<'_> {
    /// What the database got in a stretch.
    fn oltp(&self, stretch: &Stretch) -> &[Sample] {
        self.outcome.record.tracks[0].between(stretch.from, stretch.until)
    }

    /// The first stretch with this step.
    fn stretch(&self, step: Step) -> Option<&Stretch> {
        self.outcome.stretches.iter().find(|stretch| stretch.step == step)
    }

    fn contention(&self) -> Option<Verdict> {
        let of = |step| figure(self.oltp(self.stretch(step)?), Metric::Bytes);
        let (alone, beside) = (of(Step::Alone)?, of(Step::Contention)?);
        let lost = 1.0 - beside / alone;
        Some(Verdict {
            what: "contention: throughput that oltp loses".into(),
            measured: format!("{:.0} %", lost * 100.0),
            bar: format!("at least {:.0} %", DROP * 100.0),
            value: Some(lost * 100.0),
            passed: lost >= DROP,
        })
    }
}
