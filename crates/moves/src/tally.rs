//! The tally: what the copier has done for a migration, over restarts.
//!
//! A mirror counts from its own start, and a migration may have several, one
//! after the other. The tally adds them up, and is recorded now and then; a
//! daemon that is killed loses what was counted since, which is a figure and
//! nothing else.
//!
//! Copying takes time from when the mirror runs until it pauses, verifies or has
//! ended. Only over that an average is taken.

use std::time::Instant;

use sterna_core::mirror::{Notice, Progress};
use sterna_state::Tallied;

/// What was copied, and in what time.
#[derive(Debug)]
pub(super) struct Tally {
    /// What earlier mirrors have done, and the time up to `since`.
    before: Tallied,
    /// The last that the present mirror said of itself.
    progress: Option<Progress>,
    /// Since when it copies, if it does.
    since: Option<Instant>,
}

impl Tally {
    /// Goes on from what was recorded.
    pub(super) fn new(before: Tallied) -> Tally {
        Tally { before, progress: None, since: None }
    }

    /// A mirror is about to run; `compares` all of the disk if it has no map.
    pub(super) fn mirror_starts(&mut self, compares: bool, copies: bool) {
        self.stop();
        self.before.copied = self.now().copied;
        self.before.compares |= compares;
        self.progress = None;
        self.since = copies.then(Instant::now);
    }

    /// What the mirror says of itself.
    pub(super) fn set_progress(&mut self, progress: Progress) {
        self.progress = Some(progress);
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
    pub(super) fn now(&self) -> Tallied {
        let copied = self.progress.map_or(0, |progress| progress.copied.0);
        let copying = self.since.map_or(0, |since| since.elapsed().as_millis() as u64);
        Tallied {
            copied: self.before.copied + copied,
            copying_ms: self.before.copying_ms + copying,
            compares: self.before.compares,
        }
    }
}

/// Bytes per second of copying; 0 if nothing was copied.
pub(super) fn average(tallied: Tallied) -> f64 {
    tallied.copied as f64 / (tallied.copying_ms.max(1) as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_mirrors_did_counts() {
        let recorded = Tallied { copied: 3000, copying_ms: 2000, compares: false };
        let mut tally = Tally::new(recorded);
        tally.mirror_starts(false, false);
        assert_eq!(tally.now(), recorded);
        assert_eq!(average(tally.now()), 1500.0);
        tally.mirror_starts(true, false);
        assert_eq!(tally.now(), Tallied { compares: true, ..recorded });
        assert_eq!(average(Tallied::default()), 0.0);
    }

    #[test]
    fn time_that_is_not_spent_copying_does_not_count() {
        let mut tally = Tally::new(Tallied::default());
        tally.mirror_starts(false, true);
        std::thread::sleep(std::time::Duration::from_millis(5));
        tally.hear(&Notice::Verifying);
        let copying = tally.now().copying_ms;
        assert!(copying >= 5);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(tally.now().copying_ms, copying);
    }
}
