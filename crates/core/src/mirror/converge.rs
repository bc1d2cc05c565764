//! Patience, and how the end is forced to come.
//!
//! After the first pass only regions are left that guest writes put behind. If
//! their number does not shrink, writes come faster than the destination takes
//! them within patience; patience then goes up step by step, which slows the
//! guest's writes to what the destination can take, until the migration
//! converges or the bound is reached. At the bound the migration does not hurt
//! the guest any further: it pauses and says why.
//!
//! A copier that yields to the guest leaves regions behind, too. That is nobody's
//! failure and never pauses the migration, and patience goes up only if writes were
//! given up for lost in the same window.

use super::{PATIENCE_RAISE_MAX, PATIENCE_STEP};
use crate::Nanos;

/// How often the number of regions behind is looked at.
const WINDOW: Nanos = Nanos::from_millis(500);

/// A window must leave at most this part of the regions behind to count as
/// progress, else the end is too far away.
const SHRINK: f64 = 0.9;

/// Windows without progress at the bound of patience before the migration
/// pauses: 20 seconds, time for a passing burst to pass.
const TRIES_MAX: u32 = 40;

/// What a window showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing to say.
    GoOn,
    /// Patience was raised.
    Raised,
    /// The bound is reached and it does not help.
    Hopeless,
}

/// Patience, and the loop that raises it.
#[derive(Debug)]
pub(super) struct Converge {
    base: Nanos,
    patience: Nanos,
    window: Option<(Nanos, u64)>,
    tries: u32,
    /// A write waited for the destination in vain in this window.
    in_vain: bool,
}

impl Converge {
    pub(super) fn new(base: Nanos) -> Self {
        Converge { base, patience: base, window: None, tries: 0, in_vain: false }
    }

    /// How long a write may wait for the destination now.
    pub(super) fn patience(&self) -> Nanos {
        self.patience
    }

    /// Forgets what was seen: the migration paused or resumed.
    pub(super) fn restart(&mut self) {
        *self = Converge::new(self.base);
    }

    /// A write waited for the destination in vain.
    pub(super) fn write_in_vain(&mut self) {
        self.in_vain = true;
    }

    /// When `watch` wants to be called.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.window.map(|(start, _)| start.plus(WINDOW))
    }

    /// Looks at the number of regions behind. `tail` says whether the first pass
    /// is over, before which the number says nothing; `yields`, whether the copier
    /// lets the guest go first.
    pub(super) fn watch(
        &mut self,
        now: Nanos,
        tail: bool,
        yields: bool,
        behind: u64,
    ) -> Verdict {
        if !tail || behind == 0 {
            self.window = None;
            self.tries = 0;
            return Verdict::GoOn;
        }
        let Some((start, before)) = self.window else {
            self.window = Some((now, behind));
            return Verdict::GoOn;
        };
        if now.since(start) < WINDOW {
            return Verdict::GoOn;
        }
        self.window = Some((now, behind));
        let in_vain = std::mem::take(&mut self.in_vain);
        if behind as f64 <= before as f64 * SHRINK {
            self.tries = 0;
            return Verdict::GoOn;
        }
        if yields && !in_vain {
            return Verdict::GoOn;
        }
        if self.raise() {
            return Verdict::Raised;
        }
        if yields {
            return Verdict::GoOn;
        }
        self.tries += 1;
        if self.tries >= TRIES_MAX { Verdict::Hopeless } else { Verdict::GoOn }
    }

    /// Raises patience by a step, if the bound allows.
    pub(super) fn raise(&mut self) -> bool {
        let bound = self.base.plus(PATIENCE_RAISE_MAX);
        let raised = self.patience.plus(PATIENCE_STEP).min(bound);
        let more = raised > self.patience;
        self.patience = raised;
        more
    }
}
