//! A destination that forgets, and images that others write to.
//!
//! By connection: its server is gone for a moment. By mount and by device: it fails, and
//! what it was not made to keep goes at once or when the operator has put it right
//! (`doomed`). While the daemon is away: nobody sees it.

use sterna_core::mirror::{
    Control, Doubt, Event, JobId, MemoryMap, Phase, RegionMap, Stored,
};

use super::World;
use super::operation::{Effect, Operation};
use crate::images::Side;
use crate::mistake::Mistake;

/// Blocks that somebody else writes.
const OVERWRITTEN: u64 = 4;

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
        let paused = matches!(self.mirror.progress().phase, Phase::Paused(_));
        let writes = self.operations.iter().any(|o| o.effect.writes_destination());
        if self.setup.reopens && paused && !writes && self.random.one_in(2) {
            if !self.opens() {
                return; // Refused: it stays paused.
            }
            self.forget(2);
            let doubt = if self.random.one_in(3) {
                self.overwrite_destination();
                Doubt::Everything
            } else {
                Doubt::Unflushed
            };
            self.tell(Event::Doubted(doubt));
        }
        // The daemon asks for it before the mirror goes on.
        let forgotten = self.setup.mistake == Some(Mistake::WritesWhilePausedForgotten);
        if std::mem::take(&mut self.overwritten) && !forgotten {
            self.tell(Event::Doubted(Doubt::Everything));
        }
        self.resumes += 1;
        self.tell(Event::Control(Control::Resume));
    }

    /// The migration stands still, and somebody writes to the copy.
    pub(super) fn others_write_while_paused(&mut self) {
        let ours = self.operations.iter().any(|o| o.effect.writes_destination());
        if !ours {
            // What falls among our own writes is found by another look.
            self.overwrite_destination();
            self.overwritten = true;
        }
    }

    /// What happens to the images while no daemon is there, and what the one that comes
    /// next makes of the map.
    pub(super) fn while_away(&mut self, map: &mut MemoryMap) {
        if std::mem::take(&mut self.doomed) {
            self.forget(1);
        }
        if self.setup.forgets_at_kill && self.random.one_in(2) {
            self.forget(2);
        }
        // By the file's own time, which is later than our last write to it.
        let hidden = self.setup.mistake == Some(Mistake::WritesWhilePausedHidden);
        if std::mem::take(&mut self.overwritten) && !hidden {
            map.distrust();
        }
        if !self.random.one_in(self.setup.foreign) {
            return;
        }
        let believed = self.setup.mistake == Some(Mistake::ForeignWriteBelieved);
        if self.random.one_in(2) {
            self.overwrite_destination();
            if !believed {
                map.distrust();
            }
        } else {
            for _ in 0..OVERWRITTEN {
                let block = self.random.below(self.setup.blocks);
                let value = self.guest.is_overwritten(self.clock, block);
                self.images.write(Side::Source, block as usize, value);
                self.images.acknowledged(block);
            }
            if !believed {
                map.replace_synced(Stored::Suspect);
            }
        }
    }

    fn overwrite_destination(&mut self) {
        for _ in 0..OVERWRITTEN {
            let block = self.random.below(self.setup.blocks) as usize;
            self.images.overwrite_destination(block, 8_000_000 + self.clock);
        }
    }
}
