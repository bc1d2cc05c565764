//! What others do to the destination's file while it is open: they remove it, put another
//! one in its place, put it back, or shorten it.
//!
//! The daemon goes on with the file that it has open. It looks at the name before the seal
//! and before the source is removed, and opens the file by its name after a restart; so a
//! disk never comes to depend on a file that nobody finds again. That a file was shortened
//! it sees by its length, in the same look, and then believes nothing that was equal. (These
//! worlds are kinder than a file system in one thing: a file that was shortened and has
//! grown to its length again by later writes is noticed all the same.)

use sterna_core::mirror::{Control, Doubt, Event, Fault, Phase};

use super::World;
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
        match self.random.below(5) {
            0 => self.name = Name::Gone,
            1 => self.name = Name::Another,
            2..=3 => self.name = Name::Here,
            _ if self.sealed => {}
            _ => self.shorten(),
        }
    }

    /// Somebody comes between the seal and the end, which is a moment.
    pub(super) fn meddle_at_the_commit(&mut self) {
        if self.setup.meddling > 0 && !self.calm && self.random.one_in(4) {
            self.name = Name::Gone;
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
    /// shortened first, or only then.
    pub(super) fn look(&mut self, sealed: Result<(), Fault>) -> Result<(), Fault> {
        self.sealed_well = self.name == Name::Here && self.shortened.is_none();
        let seen = if self.setup.mistake == Some(Mistake::SealedWithoutLook) {
            sealed
        } else if self.shortened.take().is_some() {
            if self.random.one_in(2) {
                self.tell(Event::Doubted(Doubt::Equal));
            } else {
                self.later.push(Event::Doubted(Doubt::Equal));
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
        assert!(matches!(self.mirror.progress().phase, Phase::Paused(_)));
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
