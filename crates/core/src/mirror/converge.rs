//! Patience, and how the end is forced to come.
//!
//! After the first pass only regions are left that guest writes put behind. If
//! writes come faster than the destination takes them within patience, their number
//! does not shrink; patience then goes up step by step, which slows the guest's writes
//! to what the destination can take, until the migration converges or the bound is
//! reached. At the bound the migration does not hurt the guest any further: it pauses
//! and says why.
//!
//! Two things must come together for that. Writes waited *in vain*: they were given up
//! for lost, or went to the source alone at once; where none did, more patience changes
//! nothing, however long the rest takes. And what fell behind was nearly as much as
//! what was caught up with. How much is behind does not matter: a rest that shrinks,
//! slowly or not, comes to its end.
//!
//! A copier that is *held back* (a limit, an allowance, a turn) leaves regions behind,
//! too. That is nobody's failure and never pauses the migration; patience still goes up
//! if writes wait in vain.

use super::{PATIENCE_RAISE_MAX, PATIENCE_STEP};
use crate::Nanos;

/// How often the number of regions behind is looked at.
const WINDOW: Nanos = Nanos::from_millis(500);

/// Of the regions that the copier caught up with in a window, the number behind must
/// have shrunk by this part at least; else the end is more than ten times as far away
/// as it need be.
const SHRINK: f64 = 0.1;

/// Windows at the bound of patience that did not shrink the rest, before the migration
/// pauses: 20 seconds, time for a passing burst to pass. They count from when there was
/// least behind, so that a number that only goes up and down does not look like
/// progress for ever.
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

/// How far the copier is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    /// Regions behind.
    pub(super) behind: u64,
    /// Regions that it has caught up with, all in all.
    pub(super) caught_up: u64,
}

/// Patience, and the loop that raises it.
#[derive(Debug)]
pub(super) struct Converge {
    base: Nanos,
    patience: Nanos,
    /// When the present window began, and with what.
    window: Option<(Nanos, Tally)>,
    /// The fewest regions that were behind.
    fewest: u64,
    tries: u32,
    /// A write waited for the destination in vain in this window.
    in_vain: bool,
    /// Something other than the two images held the copier back in this window.
    held_back: bool,
}

impl Converge {
    pub(super) fn new(base: Nanos) -> Self {
        Converge {
            base,
            patience: base,
            window: None,
            fewest: u64::MAX,
            tries: 0,
            in_vain: false,
            held_back: false,
        }
    }

    /// How long a write may wait for the destination now.
    pub(super) fn patience(&self) -> Nanos {
        self.patience
    }

    /// Forgets what was seen: the migration paused or resumed.
    pub(super) fn restart(&mut self) {
        *self = Converge::new(self.base);
    }

    /// A write waited for the destination in vain, or did not even wait.
    pub(super) fn write_in_vain(&mut self) {
        self.in_vain = true;
    }

    /// The copier could do more than it may.
    pub(super) fn held_back(&mut self) {
        self.held_back = true;
    }

    /// When `watch` wants to be called.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.window.map(|(start, _)| start.plus(WINDOW))
    }

    /// Looks how far the copier is; `None` before the first pass is over, as the
    /// number says nothing then.
    pub(super) fn watch(&mut self, now: Nanos, tally: Option<Tally>) -> Verdict {
        let Some(tally) = tally.filter(|tally| tally.behind > 0) else {
            self.window = None;
            self.fewest = u64::MAX;
            self.tries = 0;
            return Verdict::GoOn;
        };
        match self.window {
            Some((start, _)) if now.since(start) < WINDOW => return Verdict::GoOn,
            _ => {}
        }
        let before = self.window.replace((now, tally));
        let in_vain = std::mem::take(&mut self.in_vain);
        let held_back = std::mem::take(&mut self.held_back);
        if tally.behind < self.fewest {
            self.fewest = tally.behind;
            self.tries = 0;
        }
        let shrinks = before.is_none_or(|(_, before)| shrinks(before, tally));
        if shrinks || !in_vain {
            return Verdict::GoOn;
        }
        if self.raise() {
            return Verdict::Raised;
        }
        if held_back {
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

/// Whether enough of what the copier did between two looks is left.
fn shrinks(before: Tally, now: Tally) -> bool {
    let fewer = before.behind.saturating_sub(now.behind);
    let done = now.caught_up - before.caught_up;
    fewer > 0 && fewer as f64 >= done as f64 * SHRINK
}
