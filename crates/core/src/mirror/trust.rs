//! What is believed of the destination, and when that is withdrawn.
//!
//! # Rule
//!
//! A copy is believed as far as a successful flush covers it, and no further. An answer
//! to a write says that the bytes can be read back now; only a flush says that they can
//! be read back after whatever may happen to the storage.
//!
//! - *Durable*: equal, and covered by a flush that succeeded. The map says `Synced`.
//!   Nothing that a storage may do by right takes it away.
//! - *Unflushed*: equal as far as answers say. It counts as equal while all goes well, and
//!   the map does not call it equal. A flush every `FLUSH_EVERY` keeps it small, so
//!   what a loss costs is seconds of copying, not the disk.
//!
//! # When trust is withdrawn
//!
//! | what happened | what is no longer believed |
//! |---|---|
//! | the destination answers with an error, or is lost | what is unflushed |
//! | its server may have been gone | what is unflushed |
//! | its server came back in an older state | everything |
//! | a flush fails, for whatever reason | what is unflushed |
//! | it is opened anew, and is known to be the same | what is unflushed |
//! | it is opened anew, and is not known to be the same (a server never is) | everything |
//! | somebody else has written to it | everything |
//! | the source's storage may have forgotten | all that is equal |
//!
//! Where everything is withdrawn, so is that a place was never written: what is a hole on
//! the source is zeroed there, and not left out.
//!
//! A full destination refuses a write, and takes nothing back: only that is no reason. A
//! *flush* that says "full" is: the room was promised when the write was answered.
//!
//! # Invariants
//!
//! 1. All of it goes through `withdraw`, which voids three things together: what is equal
//!    (the map and the memory above it), the jobs under way (part of what they wrote may
//!    be forgotten when they end well), and what the verification has seen of either. A
//!    guest's write in flight leaves its regions behind.
//! 2. Trust is withdrawn before the pause is told: whoever hears of the pause finds the
//!    map as it is to be believed, also after a kill.
//! 3. What is unflushed is copied again and not compared. A kernel that could not write
//!    a page says so once and takes the page for clean: reading it would show what was
//!    never written, and so would the next flush.
//! 4. A flush covers what was equal when it began; what is withdrawn while it is under
//!    way, it does not cover.
//! 5. From the moment at which the commit is asked for, the commit decides which image is
//!    the truth: the switch-over is not undone. What a fault of the destination could take
//!    is not withdrawn either: a flush with nothing in flight was the commit's condition.
//!    What others wrote and what the source has lost is: the commit may fail, and then the
//!    map believes no copy.

use super::verify::AGAIN_MAX;
use super::{Action, Fault, Mirror, PauseReason, RegionMap, State};
use crate::Nanos;
use crate::durability::Loss;

/// What is no longer believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// What no flush of the destination covers.
    Unflushed,
    /// All that is equal: the two sides may differ anywhere.
    Equal,
    /// That, and that the destination was never written anywhere.
    Everything,
}

impl<M: RegionMap> Mirror<M> {
    /// The destination has failed.
    pub(super) fn destination_failed(
        &mut self,
        now: Nanos,
        fault: Fault,
        out: &mut Vec<Action>,
    ) {
        if fault != Fault::Full {
            self.withdraw(now, Doubt::Unflushed, out);
        }
        self.pause(now, PauseReason::Destination(fault), out);
    }

    /// Makes what a flush has covered durable; or withdraws trust, and pauses. Says
    /// whether it succeeded.
    pub(super) fn believe_flush(
        &mut self,
        now: Nanos,
        result: Result<(), Fault>,
        out: &mut Vec<Action>,
    ) -> bool {
        self.flush_at = now.plus(self.config.flush_every);
        match result {
            Ok(()) => self.regions.flush_ends(),
            Err(fault) => {
                self.withdraw(now, Doubt::Unflushed, out);
                self.pause(now, PauseReason::Destination(fault), out);
            }
        }
        result.is_ok()
    }

    /// Flushes the destination, if that is due.
    pub(super) fn flush_more(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if !self.running() || !self.regions.any_unflushed() {
            // What is equal from now on may stay unflushed for so long.
            self.flush_at = now.plus(self.config.flush_every);
        } else if now >= self.flush_at {
            self.flush_between(now, out);
        }
    }

    /// When the destination is to be flushed.
    pub(super) fn flush_due(&self) -> Option<Nanos> {
        let due = self.running() && self.regions.any_unflushed();
        (due && self.switch.may_flush()).then_some(self.flush_at)
    }

    /// The source may have lost what copies have.
    pub(super) fn source_forgot(&mut self, now: Nanos, why: Loss, out: &mut Vec<Action>) {
        // What differs from now on, the source may have made so.
        self.copier.differing.clear();
        if self.source_losses.lost(why) {
            self.withdraw(now, Doubt::Equal, out);
        }
        if self.switch.committing() {
            // Clients look at the source now, and at the destination after the commit.
            self.source_losses.owe();
        }
    }

    /// The source has carried out a flush, whoever asked for it, or could not.
    pub(super) fn source_has_flushed(
        &mut self,
        now: Nanos,
        ok: bool,
        out: &mut Vec<Action>,
    ) {
        if self.source_losses.flushed(ok) {
            self.withdraw(now, Doubt::Equal, out);
            if self.switch.committing() {
                // Nothing is compared any more.
                self.source_losses.owe();
            }
        }
    }

    /// Believes less than before. The one place where trust is withdrawn.
    pub(super) fn withdraw(&mut self, now: Nanos, doubt: Doubt, out: &mut Vec<Action>) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        if self.switch.committing() {
            if doubt != Doubt::Unflushed {
                self.regions.distrust(doubt == Doubt::Everything);
                self.begin_again();
            }
            return;
        }
        self.jobs.void();
        match doubt {
            Doubt::Unflushed => {
                if let Some((first, count)) = self.regions.distrust_unflushed()
                    && count > AGAIN_MAX as u64
                {
                    // Too many to be remembered one by one.
                    self.verify_from(first);
                }
            }
            Doubt::Equal | Doubt::Everything => {
                self.regions.distrust(doubt == Doubt::Everything);
                self.begin_again();
            }
        }
        self.undo_switch(now, out);
    }

    /// What others wrote while the migration stood still nobody has seen: what was read before,
    /// also by jobs under way, is older than that.
    pub(super) fn was_unwatched(&mut self) {
        self.jobs.void();
        self.verify_from(0);
    }

    fn begin_again(&mut self) {
        self.copier.restart();
        self.ahead.begins_again();
    }

    fn verify_from(&mut self, region: u64) {
        self.copier.verify_from(region);
        self.ahead.compares_again(region * self.config.region);
    }
}
