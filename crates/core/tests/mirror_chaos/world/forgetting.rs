//! Images that forget, and that others write to while no daemon is there.
//!
//! By connection: its server is gone for a moment. By mount and by device: it fails, and
//! what it was not made to keep goes at once or when the operator has put it right
//! (`doomed`). While the daemon is away: nobody sees it. The source forgets by connection,
//! too: what the guest was answered and has not flushed is as it was before.

use sterna_core::durability::Loss;
use sterna_core::mirror::{
    Control, Doubt, Event, JobId, Phase, Side as Image, Suspicion,
};

use super::World;
use super::foreign::OVERWRITTEN;
use super::operation::{Effect, Operation};
use crate::images::Side;
use crate::mistake::Mistake;

/// In so many steps a new job begins to write, if any is to.
const STEPS_FOR_A_JOB: u64 = 300;

impl World {
    /// The destination's server is gone for a moment. Its jobs go on afterwards.
    pub(super) fn reconnects(&mut self) {
        if self.setup.mistake == Some(Mistake::JobNotVoided) {
            return self.forget_under_a_job();
        }
        self.forget(2);
        if self.setup.mistake != Some(Mistake::TrustAfterFault) {
            self.tell(Event::DestinationForgot);
        }
    }

    /// The loss is told, and only then comes, in the middle of a job that has begun since.
    fn forget_under_a_job(&mut self) {
        let voided = self.jobs_under_way();
        self.tell(Event::DestinationForgot);
        for _ in 0..STEPS_FOR_A_JOB {
            if self.ended.is_some() {
                return;
            }
            self.advance();
            let mut jobs = self.copies_half_done();
            jobs.retain(|(job, _)| !voided.contains(job));
            if let Some((_, blocks)) = jobs.pop() {
                return self.forget_of(&blocks, 1);
            }
        }
    }

    /// The source's server is gone for a moment.
    pub(super) fn source_forgets(&mut self) {
        self.source_loses();
        if self.setup.mistake != Some(Mistake::SourceLossNotTold) {
            self.tell(Event::SourceForgot(Loss::ServerAway));
        }
    }

    /// What the guest has not flushed may be as it was before.
    fn source_loses(&mut self) {
        for (block, value) in self.images.source_forgets(&mut self.random, 2) {
            self.guest.gives_up_block(self.clock, block, value);
        }
    }

    fn jobs_under_way(&self) -> Vec<JobId> {
        let job = |operation: &Operation| match &operation.effect {
            Effect::CopyRead { job, .. } | Effect::CopyWrite { job, .. } => Some(job.id),
            _ => None,
        };
        self.operations.iter().filter_map(job).collect()
    }

    /// The copies of which some is written, with their blocks.
    fn copies_half_done(&self) -> Vec<(JobId, Vec<u64>)> {
        let copy = |operation: &Operation| match &operation.effect {
            Effect::CopyWrite { job, data } if operation.left.len() < data.len() => {
                Some((job.id, self.blocks_of(&operation.effect)))
            }
            _ => None,
        };
        self.operations.iter().filter_map(copy).collect()
    }

    /// The operator lets a paused migration go on, having put right what there was.
    pub(super) fn resume(&mut self) {
        if std::mem::take(&mut self.doomed) {
            self.forget(1);
        }
        let paused = matches!(self.mirror.phase(), Phase::Paused(_));
        let writes = self.operations.iter().any(|o| o.effect.writes_destination());
        if self.setup.reopens && paused && !writes && self.random.one_in(2) {
            if !self.opens() {
                return; // Refused: it stays paused.
            }
            self.forget(2);
            if self.random.one_in(3) {
                self.overwrite_destination();
            }
            self.tell(Event::Doubted(self.doubt_of_destination()));
            self.notes_copy(); // Opening it may have changed it.
        }
        // The daemon asks for it before the mirror goes on.
        let forgotten = self.setup.mistake == Some(Mistake::WritesWhilePausedForgotten);
        if self.setup.unwatched && paused {
            self.overwritten_in_pause = false;
            if self.setup.mistake != Some(Mistake::UnwatchedPauseBelieved) {
                self.tell(Event::Unwatched);
            }
        }
        if std::mem::take(&mut self.overwritten_in_pause) && !forgotten {
            self.tell(Event::Doubted(Doubt::Everything));
        }
        self.resumes += 1;
        self.tell(Event::Control(Control::Resume));
    }

    /// The migration stands still, and somebody writes to the copy.
    pub(super) fn others_write_while_paused(&mut self) {
        let ours = self.operations.iter().any(|o| o.effect.leads_to_writes());
        if !ours {
            // What falls among our own writes is found by another look: a copy that was
            // being read when the migration was paused is still written.
            self.overwrite_destination();
            self.overwritten_in_pause = true;
        }
    }

    /// The VM was off while the migration stood still, and a backup was put in the image's
    /// place. The daemon looks before the guest writes again.
    pub(super) fn vm_comes_back(&mut self) {
        self.vm_is_off = false;
        if !matches!(self.mirror.phase(), Phase::Paused(_)) {
            return;
        }
        self.overwrite_source();
        if self.setup.mistake != Some(Mistake::SourceWritesWhilePausedUnseen) {
            let written = Suspicion::Written(Image::Source);
            self.tell(Event::Doubted(written.doubt()));
        }
    }

    /// What happens to the images while no daemon is there.
    pub(super) fn while_away(&mut self, power: bool) {
        self.goes_away(power);
        (self.overwritten_in_pause, self.vm_is_off) = (false, false);
        if std::mem::take(&mut self.doomed) {
            self.forget(1);
        }
        if self.setup.forgets_at_kill && self.random.one_in(2) {
            self.forget(2);
        }
        if self.setup.source_drops {
            self.source_loses();
        }
        if !self.random.one_in(self.setup.foreign) {
            return;
        }
        if self.random.one_in(2) {
            self.overwrite_destination();
        } else {
            self.overwrite_source();
        }
    }

    fn overwrite_source(&mut self) {
        self.others_change(Image::Source);
        for _ in 0..OVERWRITTEN {
            let block = self.random.below(self.setup.blocks);
            let value = self.guest.is_overwritten(self.clock, block);
            self.images.write(Side::Source, block as usize, value);
            self.images.acknowledged(block);
        }
    }

    fn overwrite_destination(&mut self) {
        self.others_change(Image::Destination);
        for _ in 0..OVERWRITTEN {
            let block = self.random.below(self.setup.blocks) as usize;
            self.images.overwrite_destination(block, 8_000_000 + self.clock);
        }
    }
}
