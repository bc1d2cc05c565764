//! What is asked for the database in each phase: the policy, and what it means for the
//! figures.
//!
//! The array that stands below is not the paper's, so no figure of the paper's is asked
//! for. What is asked are parts of what the database got alone, where the paper's
//! targets and limits are in that proportion, or else near enough to it that the array
//! can give it while the others get something too.

use sterna_api::{Aim, Fallback, Goal};

use super::plan::Step;
use crate::judge::Target;
use crate::record::{Metric, Sample, figure};

/// How far from a target is still well, in percent of it.
pub(super) const TOLERANCE: u8 = 10;

/// What is asked of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wish {
    /// Which figure.
    pub(super) metric: Metric,
    /// What it shall be, or be at most, in the figure's unit.
    pub(super) value: f64,
    /// Whether it is a limit.
    pub(super) is_limit: bool,
}

impl Wish {
    /// What a step asks for, after what the database got alone. Nothing if the step
    /// asks for nothing, or if there was nothing.
    pub(super) fn of(step: Step, alone: &[Sample]) -> Option<Wish> {
        let (metric, part, is_limit) = match step {
            // The paper asks for 15 MB/s where there were 14: that leaves the others
            // nothing, and nobody would know whether it was held or just not stopped.
            Step::Cruise(Metric::Bytes) => (Metric::Bytes, 0.8, false),
            // 1000 of 2000.
            Step::Cruise(metric @ Metric::Requests) => (metric, 0.5, false),
            // Not in the paper.
            Step::Cruise(metric) => (metric, 1.5, false),
            Step::Unreachable => (Metric::Bytes, 2.0, false),
            // 2 of 14 MB/s.
            Step::Limit(Metric::Bytes) | Step::Schedule => {
                (Metric::Bytes, 1.0 / 7.0, true)
            }
            // 100 of 2000 IO/s.
            Step::Limit(metric) => (metric, 0.05, true),
            Step::Alone
            | Step::Contention
            | Step::Released
            | Step::AloneAgain
            | Step::Freed => return None,
        };
        let value = figure(alone, metric)? * part;
        (value > 0.0).then_some(Wish { metric, value, is_limit })
    }

    /// What a step asks for on the paper's array: the paper's figures. What the paper
    /// does not ask for is a part of what the database got alone, as above.
    pub(super) fn published(step: Step, alone: &[Sample]) -> Option<Wish> {
        let wish = Wish::of(step, alone)?;
        let value = match step {
            Step::Cruise(Metric::Bytes) => 15e6,
            Step::Cruise(Metric::Requests) => 1000.0,
            Step::Limit(Metric::Bytes) | Step::Schedule => 2e6,
            Step::Limit(Metric::Requests) => 100.0,
            _ => wish.value,
        };
        Some(Wish { value, ..wish })
    }

    /// What the daemon is told.
    pub(super) fn aim(self) -> Aim {
        // Above zero, and far from what 64 bits hold.
        let whole = (self.value.round() as u64).max(1);
        let goal = match self.metric {
            Metric::Bytes => Goal::BytesPerSecond(whole),
            Metric::Requests => Goal::Iops(whole),
            Metric::Response | Metric::Slowest => Goal::ResponseMs(self.value),
        };
        match self.is_limit {
            true => Aim::Limit { goal },
            false => Aim::Cruise {
                goal,
                tolerance_percent: TOLERANCE,
                floor: None,
                fallback: Fallback::None,
            },
        }
    }

    /// The target to judge by.
    pub(super) fn target(self) -> Target {
        let tolerance = f64::from(TOLERANCE) / 100.0;
        Target { metric: self.metric, value: self.value, tolerance }
    }

    /// The wish in words: `oltp at 12.5 MB/s ± 10 %`.
    pub(super) fn words(self) -> String {
        let value = self.metric.words(self.value);
        match self.is_limit {
            true => format!("oltp at most {value}"),
            false => format!("oltp at {value} ± {TOLERANCE} %"),
        }
    }
}
