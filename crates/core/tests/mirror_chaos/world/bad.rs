//! Sectors of the source that cannot be read: from the beginning or later, for good, for a
//! while, or until somebody writes to them.
//!
//! What must hold: only such sectors stay behind; one is left behind only if the operator
//! has said so, and if no write to it was acknowledged since it went bad; and the search
//! for them takes no more reads than it has to.

use std::collections::BTreeSet;

use sterna_core::mirror::{Control, Event, PauseReason, Places};

use super::World;
use crate::images::{Side, blocks_of};
use crate::setup::SECTORS;

/// Of a world in which reads fail, a block that is bad for a while is so for this many
/// steps at most.
const WHILE: u64 = 400;

impl World {
    /// The source has bad blocks already.
    pub(super) fn begin_bad(&mut self) {
        for block in 0..self.setup.blocks {
            if self.random.one_in(self.setup.bad) {
                self.images.goes_bad(block, u64::MAX);
            }
        }
    }

    /// A block goes bad, for good or for a while.
    pub(super) fn goes_bad(&mut self) {
        let block = self.random.below(self.setup.blocks);
        let until = match self.random.one_in(2) {
            true => u64::MAX,
            false => self.clock + self.random.below(WHILE),
        };
        self.images.goes_bad(block, until);
    }

    /// What the operator does about bad sectors before the migration goes on.
    pub(super) fn see_to_bad(&mut self, reason: PauseReason) {
        match reason {
            PauseReason::BadSectors(_) if self.setup.skips_bad => {
                self.skips_bad = true;
                self.tell(Event::Control(Control::SkipBad));
            }
            // So much of it is bad that it looks as if nothing could be read.
            PauseReason::Source(_) => self.images.recover(&mut self.random, false),
            PauseReason::BadSectors(_) => self.images.recover(&mut self.random, true),
            _ => {}
        }
    }

    fn bad_blocks(&self) -> BTreeSet<u64> {
        self.mirror.findings().bad.ranges.into_iter().flat_map(blocks_of).collect()
    }

    /// The migration stands still for bad sectors: they are bad, and all else is copied.
    pub(super) fn check_bad(&mut self, places: Places) {
        let bad = self.bad_blocks();
        assert_eq!(self.mirror.findings().bad.places, places);
        assert!(!bad.is_empty());
        for &block in &bad {
            assert!(self.images.was_bad(block), "block {block} can be read");
        }
        if !self.guest.writes_any() && !self.is_spoilt() {
            let mut both = self.images.source.iter().zip(&self.images.destination);
            let behind = both.position(|(source, destination)| source != destination);
            let behind = behind.filter(|block| !bad.contains(&(*block as u64)));
            assert_eq!(behind, None, "a block that can be read is behind");
        }
    }

    /// At the commit both images agree, but for what is left behind knowingly: on the
    /// destination that is zeroes, or what was copied when it could be read.
    pub(super) fn check_skipped(&mut self) {
        let bad = self.bad_blocks();
        assert!(bad.is_empty() || self.skips_bad, "nobody has said so");
        for block in 0..self.setup.blocks {
            let at = block as usize;
            let (source, found) = (self.images.source[at], self.images.destination[at]);
            // What the source's cache has dropped the destination has got from the guest.
            let guests = self.images.found(Side::Source, at);
            if source == found || guests == found || self.is_owed(block) {
                continue;
            }
            assert!(bad.contains(&block), "block {block} differs at the commit");
            assert!(self.images.was_bad(block), "block {block} was written since");
            let tries = self.tries.get(&block).copied().unwrap_or(0);
            assert!(tries >= 2, "block {block} was tried {tries} times");
            let copied = self.guest.may_hold(block).contains(&found);
            assert!(found == 0 || copied, "block {block} holds {found}");
            self.guest.gives_up_block(self.clock, block, found);
        }
    }

    /// Each read that fails leads to a few that look for the reason, and each time that
    /// the migration goes on, every sector that is known to be bad is tried once.
    pub(super) fn check_probes(&self) {
        let most = 4 * self.unreadable + self.resumes * self.setup.blocks + SECTORS;
        assert!(self.probes <= most, "{} reads, of {most} at most", self.probes);
    }
}
