//! Counters: what the copier has done for a migration, over restarts.
//!
//! A mirror counts from its own start, and a migration may have several, one
//! after the other. The counters add them up, and are recorded now and then; a
//! daemon that is killed loses what was counted since, which is a figure and
//! nothing else.
//!
//! Copying takes time from when the mirror runs until it pauses, verifies or has
//! ended. Only over that an average is taken.

use std::time::Instant;

use sterna_core::mirror::{Notice, Progress};
use sterna_state::Counted;

/// What was copied, and in what time.
#[derive(Debug)]
pub(super) struct CopyCounters {
    /// What earlier mirrors have done, and the time up to `since`.
    before: Counted,
    /// The last that the present mirror said of itself.
    progress: Option<Progress>,
    /// Since when it copies, if it does.
    since: Option<Instant>,
}

impl CopyCounters {
    /// Goes on from what was recorded.
    pub(super) fn new(before: Counted) -> CopyCounters {
        CopyCounters { before, progress: None, since: None }
    }

    /// A mirror is about to run; `compares` all of the disk if it has no map.
    pub(super) fn mirror_starts(&mut self, compares: bool, copies: bool) {
        self.stop();
        self.before.copied = self.now().copied;
        self.before.compares |= compares;
        self.progress = None;
        self.since = copies.then(Instant::now);
    }

    /// What the mirror says of itself; gives how many bytes more it has copied by now.
    #[must_use]
    pub(super) fn set_progress(&mut self, progress: Progress) -> u64 {
        let known = self.progress.replace(progress).map_or(0, |known| known.copied.0);
        progress.copied.0.saturating_sub(known)
    }

    /// The last that the mirror said of itself, if it did.
    pub(super) fn progress(&self) -> Option<Progress> {
        self.progress
    }

    /// The mirror does something else from now on.
    pub(super) fn hear(&mut self, notice: &Notice) {
        match notice {
            Notice::Resumed | Notice::Differing { .. } => {
                self.since.get_or_insert_with(Instant::now);
            }
            Notice::Paused(_) | Notice::Verifying => self.stop(),
            _ => {}
        }
    }

    /// The mirror copies no more.
    pub(super) fn stop(&mut self) {
        self.before.copying_ms = self.now().copying_ms;
        self.since = None;
    }

    /// The figures so far.
    pub(super) fn now(&self) -> Counted {
        let copied = self.progress.map_or(0, |progress| progress.copied.0);
        let copying = self.since.map_or(0, |since| since.elapsed().as_millis() as u64);
        Counted {
            copied: self.before.copied + copied,
            copying_ms: self.before.copying_ms + copying,
            compares: self.before.compares,
        }
    }
}

/// Bytes per second of copying; 0 if nothing was copied.
pub(super) fn average(counted: Counted) -> f64 {
    counted.copied as f64 / (counted.copying_ms.max(1) as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_mirrors_did_counts() {
        let recorded = Counted { copied: 3000, copying_ms: 2000, compares: false };
        let mut counters = CopyCounters::new(recorded);
        counters.mirror_starts(false, false);
        assert_eq!(counters.now(), recorded);
        assert_eq!(average(counters.now()), 1500.0);
        counters.mirror_starts(true, false);
        assert_eq!(counters.now(), Counted { compares: true, ..recorded });
        assert_eq!(average(Counted::default()), 0.0);
    }

    #[test]
    fn time_that_is_not_spent_copying_does_not_count() {
        let mut counters = CopyCounters::new(Counted::default());
        counters.mirror_starts(false, true);
        std::thread::sleep(std::time::Duration::from_millis(5));
        counters.hear(&Notice::Verifying);
        let copying = counters.now().copying_ms;
        assert!(copying >= 5);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(counters.now().copying_ms, copying);
    }
}
