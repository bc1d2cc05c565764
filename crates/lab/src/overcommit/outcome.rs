//! What was measured of a guest whose memory went out and came back. Pure.

use sterna_api::{SwapTier, WakeReport};
use sterna_report::Verdict;
use sterna_sim::overcommit::Medium;

use super::bars::{self, Kept, Wakes};
use super::plan::Way;

/// How memory went out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sleep {
    pub(super) bytes: u64,
    /// How long it took, in seconds.
    pub(super) took_s: f64,
    /// In so many pieces it lies on the device.
    pub(super) runs: u64,
}

/// One wake.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) medium: Medium,
    pub(super) way: Way,
    /// Orders of each second.
    pub(super) orders: Vec<f64>,
    /// Bytes that were out when the customers came.
    pub(super) out: u64,
    /// How it went out, if it slept until then.
    pub(super) sleep: Option<Sleep>,
    /// What Sterna says of the wake.
    pub(super) wake: Option<WakeReport>,
}

/// A medium as it was: what Sterna measured of it, and orders of each second of a guest whose
/// memory was not out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Base {
    pub(super) medium: Medium,
    pub(super) tier: SwapTier,
    pub(super) orders: Vec<f64>,
}

/// All of the experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) bases: Vec<Base>,
    pub(super) trials: Vec<Trial>,
    /// Acknowledged orders, and how many of them are missing.
    pub(super) found: (u64, u64),
    /// Orders that failed.
    pub(super) failed: u64,
    /// Looks at the guest's memory after a wake, and how often it was not what it had been.
    pub(super) looks: (u64, u64),
}

impl Outcome {
    /// Orders a second of a medium's guest whose memory was not out.
    pub(super) fn usual(&self, medium: Medium) -> Option<f64> {
        let base = self.bases.iter().find(|base| base.medium == medium)?;
        Some(bars::mean_of(&base.orders)).filter(|usual| *usual > 0.0)
    }

    /// The repeats of a way on a medium.
    pub(super) fn of(&self, medium: Medium, way: Way) -> Vec<&Trial> {
        let all = self.trials.iter();
        all.filter(|trial| (trial.medium, trial.way) == (medium, way)).collect()
    }

    /// The part of the usual orders of each second, as the mean over the repeats.
    pub(super) fn kept(&self, medium: Medium, way: Way) -> Option<Kept> {
        let (trials, usual) = (self.of(medium, way), self.usual(medium)?);
        let seconds = trials.iter().map(|trial| trial.orders.len()).max()?;
        let second = |at: usize| {
            let orders = trials.iter().map(|trial| trial.orders.get(at).unwrap_or(&0.0));
            orders.sum::<f64>() / trials.len() as f64 / usual
        };
        Some((0..seconds).map(second).collect())
    }

    /// What the experiment must show. A short one says nothing of the seconds after it.
    pub(super) fn verdicts(&self, whole: bool) -> Vec<Verdict> {
        let wakes = |base: &Base| Wakes {
            medium: base.medium,
            alone: self.kept(base.medium, Way::Alone),
            held: self.kept(base.medium, Way::Held),
        };
        let wakes: Vec<Wakes> = self.bases.iter().map(wakes).collect();
        let mut verdicts =
            if whole { bars::verdicts(&wakes) } else { bars::against_kernel(&wakes) };
        let (looks, changed) = self.looks;
        let none = |what: &str, count: u64, of: u64| Verdict {
            what: what.into(),
            measured: format!("{count} of {of}"),
            bar: "none".into(),
            value: Some(count as f64),
            passed: count == 0,
        };
        let (all, missing) = self.found;
        verdicts.push(none("wakes after which memory had changed", changed, looks));
        verdicts.push(none("acknowledged orders that are missing", missing, all));
        verdicts.push(none("orders that failed", self.failed, all));
        verdicts
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A disk on which the kernel alone brings a tenth, and Sterna nearly all.
    pub(in super::super) fn outcome() -> Outcome {
        let tier = SwapTier {
            name: "sata".into(),
            datastore: None,
            path: "/dev/loop0".into(),
            size: 1 << 30,
            used: 0,
            priority: Some(1000),
            access_us: 12_000.0,
            bytes_per_s: 100 << 20,
            added: 0,
        };
        let trial = |way, orders| Trial {
            medium: Medium::Sata,
            way,
            orders: vec![orders; 120],
            out: 900 << 20,
            sleep: Some(Sleep { bytes: 900 << 20, took_s: 10.0, runs: 450 }),
            wake: None,
        };
        Outcome {
            bases: vec![Base { medium: Medium::Sata, tier, orders: vec![10.0; 120] }],
            trials: vec![
                trial(Way::Alone, 1.0),
                trial(Way::Held, 9.0),
                trial(Way::Held, 10.0),
            ],
            found: (1000, 0),
            failed: 0,
            looks: (4, 0),
        }
    }

    #[test]
    fn repeats_are_averaged_and_compared_with_what_is_usual() {
        let outcome = outcome();
        assert_eq!(outcome.kept(Medium::Sata, Way::Held), Some(vec![0.95; 120]));
        assert_eq!(outcome.kept(Medium::Sata, Way::Beside), None);
        assert!(outcome.verdicts(true).iter().all(|verdict| verdict.passed));
        // Two bars of the medium, one against the kernel, and three of the guest.
        assert_eq!(outcome.verdicts(true).len(), 6);
        assert_eq!(outcome.verdicts(false).len(), 4);
    }

    #[test]
    fn memory_that_has_changed_fails() {
        let mut outcome = outcome();
        outcome.looks = (4, 1);
        let failed = outcome.verdicts(true).into_iter().find(|verdict| !verdict.passed);
        assert_eq!(failed.unwrap().measured, "1 of 4");
    }
}
