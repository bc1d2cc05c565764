//! Whether a datastore is to be asked for newer images of disks that are elsewhere (`rivals`).
//!
//! Questions are counted. So a question that comes while an earlier one is answered stays open.
//! If a datastore cannot tell all, it is asked again after a while: each time it reads all that
//! it can.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use sterna_os::lock;

use super::reading::KEPT;

/// Whether a datastore is to be asked for rivals.
pub(crate) struct Rounds {
    /// So many times somebody wanted to know.
    wanted: AtomicU64,
    /// The last of these that was answered.
    answered: AtomicU64,
    /// When it could not tell all.
    put_off: Mutex<Option<Instant>>,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds {
            wanted: AtomicU64::new(1),
            answered: AtomicU64::new(0),
            put_off: Mutex::default(),
        }
    }
}

impl Rounds {
    /// It did not tell when it was asked for a disk, or is away.
    pub(crate) fn ask_again(&self) {
        self.wanted.fetch_add(1, Relaxed);
    }

    /// The number of the round that is not answered yet, if it is due.
    pub(crate) fn due(&self) -> Option<u64> {
        let waits = lock(&self.put_off).is_some_and(|at| at.elapsed() < KEPT);
        let wanted = self.wanted.load(Relaxed);
        (!waits && wanted != self.answered.load(Relaxed)).then_some(wanted)
    }

    /// It could not tell all, and is asked again after a while.
    pub(crate) fn is_put_off(&self) {
        *lock(&self.put_off) = Some(Instant::now());
    }

    /// That round is answered. Whoever wanted to know meanwhile is not.
    pub(crate) fn is_answered(&self, round: u64) {
        self.answered.store(round, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datastore_that_could_not_tell_all_is_asked_again_after_a_while() {
        let rounds = Rounds::default();
        rounds.is_put_off();
        assert_eq!(rounds.due(), None);
        *lock(&rounds.put_off) = Instant::now().checked_sub(KEPT);
        assert!(rounds.due().is_some());
    }

    #[test]
    fn a_datastore_that_has_told_is_asked_again_if_a_disk_was_not_told_meanwhile() {
        let rounds = Rounds::default();
        let round = rounds.due().unwrap();
        rounds.is_answered(round);
        assert_eq!(rounds.due(), None);
        rounds.ask_again();
        let round = rounds.due().unwrap();
        // While that is answered, a disk gets no answer.
        rounds.ask_again();
        rounds.is_answered(round);
        assert!(rounds.due().is_some());
    }
}
