//! When a source that has lost writes is compared with its copy.
//!
//! What a cache before the source has dropped the copy may have, or lack. Clients are told by
//! a flush that fails; they look at what the source holds, and go on from there once a flush
//! succeeds. So both sides have to hold the same by then, and stay so through the switch-over.
//!
//! **A source that fails each flush** is compared at the first one only: a comparison each
//! time would keep the disk for ever on storage that it is to leave. What was lost later is
//! *owed*: it is compared when a flush succeeds. If none does until the switch-over, each
//! client is to be told once more after it: whatever it has seen since its last failed flush
//! was the source's. The same holds for a loss that comes to light while the commit is under
//! way.
//!
//! **A source that fails a flush now and then** is compared [`COMPARED_MOST`] times. A
//! comparison of a large disk takes longer than such a source needs for its next failure, so
//! that the move would never end. From then on all that is lost is owed until the switch-over.
//!
//! **Kills.** The driver notes in the map's file that something is owed, so that a daemon after
//! this one compares. While a commit is under way the disk's account says it, too: if the daemon
//! is killed before the commit's answer, the next one tells the clients. If the record had not
//! become durable, they are told once more than they need.

use crate::durability::Loss;

/// So often the disk is compared on account of flushes that failed. Whoever has a disk that
/// does so more often is to get it off that storage soon.
const COMPARED_MOST: u32 = 3;

/// What of the source's losses was not compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SourceLosses {
    /// A flush has failed, and none has succeeded since.
    fails: bool,
    /// Something was lost since the last comparison was asked for.
    owed: bool,
    /// Comparisons on account of flushes that failed.
    compared: u32,
}

impl SourceLosses {
    /// The source may have lost writes. Says whether it is to be compared now.
    pub(super) fn lost(&mut self, why: Loss) -> bool {
        if why != Loss::FlushFailed {
            self.owed = false;
            return true;
        }
        let failed_before = std::mem::replace(&mut self.fails, true);
        self.owed = failed_before || !self.may_compare();
        self.compared += u32::from(!self.owed);
        !self.owed
    }

    fn may_compare(&self) -> bool {
        self.compared < COMPARED_MOST
    }

    /// A comparison can no longer be made before the commit.
    pub(super) fn owe(&mut self) {
        self.owed = true;
    }

    /// The source has carried out a flush, whoever asked for it, or could not. Says whether it
    /// is to be compared now.
    pub(super) fn flushed(&mut self, ok: bool) -> bool {
        self.fails &= !ok;
        let compares = ok && self.owed && self.may_compare();
        self.owed &= !compares;
        self.compared += u32::from(compares);
        compares
    }

    /// Whether a comparison is still owed.
    pub(super) fn owes(&self) -> bool {
        self.owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_fails_each_flush_is_compared_once_and_owes_the_rest() {
        let mut losses = SourceLosses::default();
        assert!(losses.lost(Loss::FlushFailed));
        assert!(!losses.flushed(false) && !losses.owes());
        assert!(!losses.lost(Loss::FlushFailed));
        assert!(!losses.flushed(false) && losses.owes());
        assert!(losses.flushed(true), "clients go on from here");
        assert!(!losses.owes() && !losses.flushed(true));
    }

    #[test]
    fn after_a_flush_that_succeeds_the_next_loss_is_compared() {
        let mut losses = SourceLosses::default();
        for _ in 0..COMPARED_MOST {
            assert!(losses.lost(Loss::FlushFailed));
            assert!(!losses.flushed(true));
        }
    }

    #[test]
    fn a_source_that_fails_a_flush_again_and_again_owes_what_it_loses_in_the_end() {
        let mut losses = SourceLosses::default();
        let mut compared = 0;
        for _ in 0..100 {
            compared += u32::from(losses.lost(Loss::FlushFailed));
            compared += u32::from(losses.flushed(true));
        }
        assert_eq!(compared, COMPARED_MOST);
        assert!(losses.owes());
        assert!(losses.lost(Loss::ServerAway), "that is another matter");
    }

    #[test]
    fn a_server_that_was_away_is_compared_also_while_flushes_fail() {
        let mut losses = SourceLosses::default();
        losses.lost(Loss::FlushFailed);
        losses.lost(Loss::FlushFailed);
        assert!(losses.lost(Loss::ServerAway) && !losses.owes());
    }
}
