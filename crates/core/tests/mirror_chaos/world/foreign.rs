//! What others write to the destination's file while it is open.
//!
//! As the daemon does it: it looks every few seconds, and before the seal. It pauses the
//! migration and says that the file was written to; then nothing is believed of it, not
//! even that it was never written anywhere.

use sterna_core::mirror::{Control, Doubt, Event, Side, Suspicion};

use super::World;
use super::operation::Effect;
use crate::mistake::Mistake;
use crate::setup::SECTORS;

/// Blocks that somebody else writes.
pub(super) const OVERWRITTEN: u64 = 4;

/// In so many steps the daemon looks, once there is something to be seen.
const STEPS_TO_A_LOOK: u64 = 20;

impl World {
    /// Somebody writes to the destination's file, and nobody has looked yet.
    pub(super) fn somebody_writes(&mut self) {
        for _ in 0..OVERWRITTEN {
            let block = self.random.below(self.setup.blocks);
            self.images.overwrite_destination(block as usize, 8_000_000 + self.clock);
            self.overwritten.insert(block);
        }
    }

    /// Whether others have written to the destination's file, or shortened it, since it was
    /// looked at.
    pub(super) fn is_spoilt(&self) -> bool {
        self.shortened.is_some() || !self.overwritten.is_empty()
    }

    /// The same of the region of a block.
    pub(super) fn is_spoilt_at(&self, block: u64) -> bool {
        let region = block / SECTORS;
        let blocks = region * SECTORS..(region + 1) * SECTORS;
        self.shortened.is_some_and(|from| region >= from / SECTORS)
            || self.overwritten.range(blocks).next().is_some()
    }

    /// The look is over; gives what the mirror is to hear.
    pub(super) fn notice_others(&mut self) -> Event {
        self.shortened = None;
        self.overwritten.clear();
        Event::Doubted(match self.setup.mistake {
            Some(Mistake::ForeignWriteTakenForLoss) => Doubt::Equal,
            _ => Suspicion::Written(Side::Destination).doubt(),
        })
    }

    /// Whether the daemon looks at the files in this step, and sees something.
    pub(super) fn is_looked_at(&mut self) -> bool {
        self.is_spoilt() && self.random.one_in(STEPS_TO_A_LOOK)
    }

    /// It has seen something. The operator lets the migration go on, at once or later.
    pub(super) fn stop_copying(&mut self) {
        self.tell(Event::Control(Control::Pause));
        let doubted = self.notice_others();
        let commits =
            self.operations.iter().any(|one| matches!(one.effect, Effect::Commit));
        if !commits || self.setup.mistake != Some(Mistake::WritesAtCommitsForgotten) {
            self.tell(doubted);
        }
        if self.random.one_in(2) {
            self.resume();
        }
    }
}
