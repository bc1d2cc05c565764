//! What others do to the destination's file while it is open: they remove it, put another
//! one in its place, put it back, shorten it, or write to it (`foreign`).
//!
//! The daemon goes on with the file that it has open. It looks at the name before the seal
//! and before the source is removed, and opens the file by its name after a restart; so a
//! disk never comes to depend on a file that nobody finds again. That a file was shortened
//! it sees by its length, in the same look, and then believes nothing of it.
//!
//! What others write between the seal and a commit becomes the disk's if that commit
//! succeeds, which is known; so in these worlds they write then only if it is going to fail.
//!
//! These worlds are kinder than a machine in two things that are known: a file that was
//! shortened and has grown to its length again by later writes is noticed all the same; and
//! so is, by the daemon that starts, what others did in the seconds before a kill in which
//! nobody looked.

use sterna_core::mirror::{Control, Event, Fault, Phase};

use super::World;
use super::operation::Operation;
use crate::mistake::Mistake;

/// What the name of the destination's image leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Here,
    Gone,
    Another,
}

impl World {
    /// Somebody does something to the destination's file.
    pub(super) fn meddle(&mut self) {
        match self.random.below(7) {
            0 => self.name = Name::Gone,
            1 => self.name = Name::Another,
            2..=3 => self.name = Name::Here,
            _ if self.sealed => {}
            4 => self.shorten(),
            _ => self.somebody_writes(),
        }
    }

    /// Somebody comes between the seal and the end, which is a moment.
    pub(super) fn meddle_at_the_commit(&mut self) {
        if self.setup.meddling > 0 && !self.calm && self.random.one_in(4) {
            self.name = Name::Gone;
        }
    }

    /// Somebody writes beneath a commit, which is under way, and the daemon sees it at once
    /// or later.
    pub(super) fn meddle_beneath_the_commit(&mut self) {
        let fails = self.operations.last().is_some_and(Operation::is_commit_that_fails);
        let comes = self.setup.meddling > 0 && !self.calm && self.random.one_in(2);
        if fails && comes {
            self.somebody_writes();
            if self.random.one_in(2) {
                let doubted = self.notice_others();
                self.later.push(doubted);
            }
        }
    }

    fn shorten(&mut self) {
        let from = self.random.below(self.setup.blocks);
        for block in from..self.setup.blocks {
            self.images.overwrite_destination(block as usize, 0);
        }
        self.shortened = Some(self.shortened.map_or(from, |before| before.min(from)));
    }

    /// The look before the seal. As the daemon does it, the mirror hears of a file that was
    /// spoilt first, or only then.
    pub(super) fn look(&mut self, sealed: Result<(), Fault>) -> Result<(), Fault> {
        self.sealed_well = self.name == Name::Here && !self.is_spoilt();
        let seen = if self.setup.mistake == Some(Mistake::SealedWithoutLook) {
            sealed
        } else if self.is_spoilt() {
            let doubted = self.notice_others();
            if self.random.one_in(2) {
                self.tell(doubted);
            } else {
                self.later.push(doubted);
            }
            Err(Fault::Lost)
        } else if self.name == Name::Here {
            sealed
        } else {
            Err(Fault::Lost)
        };
        self.sealed = seen.is_ok();
        seen
    }

    /// A disk is switched over to what was sealed, and to nothing that nobody finds.
    pub(super) fn check_sealed(&self) {
        assert!(self.sealed, "the destination is not sealed");
        assert!(self.sealed_well, "the destination was astray when it was sealed");
    }

    /// Whether the source may be removed: the destination is where a daemon that starts
    /// finds it.
    pub(super) fn is_found(&self) -> bool {
        let looks = self.setup.mistake != Some(Mistake::RemovedWithoutLook);
        self.name == Name::Here || !looks
    }

    /// Whether a destination that is opened anew is the one that it was. The operator may
    /// have put it back.
    pub(super) fn opens(&mut self) -> bool {
        if self.random.one_in(2) {
            self.name = Name::Here;
        }
        self.name == Name::Here
    }

    /// A daemon that starts does not find the destination. The operator gives the move up.
    pub(super) fn gives_up(&mut self) {
        assert!(matches!(self.mirror.phase(), Phase::Paused(_)));
        self.tell(Event::Control(Control::Cancel));
    }

    /// At the end a daemon that starts must find an image with all that there was.
    pub(super) fn check_found(&self, freed: bool) {
        let found = self.name == Name::Here;
        assert!(
            found || !freed,
            "the destination has no name, and the source is removed"
        );
    }
}
