//! Whether a disk is slower than usual: the stage before it is hurt.
//!
//! Twice as long as usual is no trouble yet, and may be far from what is promised. But whoever
//! looks is told, since a disk that was always quick and is not any more has a cause. Nothing
//! of this is an event: it comes and goes with the hours of a day.

use super::usual::Compared;
use super::watch::{
    FALLEN, FALLEN_BY, QUIET_STEPS, RISEN_BY, SLOW_STEPS, STEP, WELL_STEPS, above,
};
use crate::Nanos;

/// Slower are requests that take so many times as long as usual.
const SLOWER: f64 = 2.0;

/// How much slower than usual a disk is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower {
    /// When the first such step began.
    pub since: Nanos,
    /// What its requests took in the last step that had enough of them.
    pub took: Nanos,
    /// What the same requests usually take.
    pub usual: Nanos,
}

/// Whether it is, step by step.
#[derive(Clone, Debug, Default)]
pub(super) struct Slowing {
    slower: Option<Slower>,
    /// Steps in a row that speak against the state.
    against: u32,
}

impl Slowing {
    /// One step that ended now; nothing if too few requests came, or it is not known what is
    /// usual for them. Says whether this step was slower.
    pub(super) fn step(&mut self, now: Nanos, compared: Option<Compared>) -> bool {
        let rose = compared.is_some_and(|it| above(it.took, it.usual, SLOWER, RISEN_BY));
        let stays =
            compared.is_some_and(|it| above(it.took, it.usual, FALLEN, FALLEN_BY));
        let (speaks, needed) = match (&self.slower, compared) {
            (None, _) => (rose, SLOW_STEPS),
            // A pause of the application is no recovery.
            (Some(_), None) => (true, QUIET_STEPS),
            (Some(_), Some(_)) => (!stays, WELL_STEPS),
        };
        self.against = if speaks { self.against + 1 } else { 0 };
        if let (Some(slower), Some(Compared { took, usual })) =
            (&mut self.slower, compared)
        {
            (slower.took, slower.usual) = (took, usual);
        }
        if self.against >= needed {
            let since = Nanos(now.0.saturating_sub(u64::from(self.against) * STEP.0));
            let begins = |Compared { took, usual }| Slower { since, took, usual };
            self.slower = match self.slower {
                None => compared.map(begins),
                Some(_) => None,
            };
            self.against = 0;
        }
        rose
    }

    pub(super) fn slower(&self) -> Option<Slower> {
        self.slower
    }
}
