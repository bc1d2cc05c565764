//! What is under way: it begins, lands block by block in any order, and completes.
//!
//! An operation of a guest, of the copier or of the switch-over is one
//! [`Operation`]. Trouble is decided when it begins: how long it takes, and whether
//! it fails, which it does after some of its blocks have landed.

use std::collections::BTreeMap;

use sterna_core::Nanos;
use sterna_core::durability::Loss;
use sterna_core::mirror::{
    Commit, Event, FLUSH_TIMEOUT, Fault, Job, JobKind, JobOutcome, MirrorEnd, RequestId,
    RequestKind,
};

use super::World;
use crate::images::{Flush, Side, SourceFlush, blocks_of, ranges};
use crate::mistake::Mistake;
use crate::random::Random;
use crate::setup::BLOCK;

/// In the number of a block that is compared: the destination's.
const ON_DESTINATION: u64 = 1 << 32;

/// What goes on for so long hangs.
const HANGS: Nanos = Nanos::from_secs(5);

/// Something under way that lands block by block and then completes.
#[derive(Debug)]
pub(super) enum Effect {
    Read { id: RequestId, on: Side },
    Write { id: RequestId, on: Side },
    Flush { id: RequestId, flush: SourceFlush },
    CopyRead { job: Job, data: BTreeMap<u64, u64> },
    CopyWrite { job: Job, data: BTreeMap<u64, u64> },
    Scan { job: Job, holes: Vec<u64> },
    Probe { job: Job },
    Compare { job: Job, seen: BTreeMap<u64, [Option<u64>; 2]> },
    FlushDestination(Flush),
    FlushSource(SourceFlush),
    Prepare,
    Seal,
    Commit,
}

/// An effect, and how far it is.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) effect: Effect,
    /// Blocks (and for comparisons, sides) that have not landed yet.
    pub(super) left: Vec<u64>,
    /// Cannot complete before this.
    pub(super) not_before: Nanos,
    /// Whose trouble it shares.
    at_risk: Option<Side>,
    /// It will fail, having done no more than what is `left` now.
    fails: bool,
}

impl Effect {
    /// The side whose slowness, hangs and failures it shares, if any. The steps of
    /// the switch-over count as the destination's; a comparison reads both.
    fn at_risk(&self, random: &mut Random) -> Option<Side> {
        match self {
            Effect::Compare { .. } if random.one_in(2) => Some(Side::Source),
            Effect::Write { on: Side::Source, .. }
            | Effect::CopyRead { .. }
            | Effect::FlushSource(_) => Some(Side::Source),
            Effect::Read { .. }
            | Effect::Flush { .. }
            | Effect::Scan { .. }
            | Effect::Probe { .. }
            | Effect::Write { on: Side::Moved, .. } => None,
            _ => Some(Side::Destination),
        }
    }

    /// Whether the fault of an operation that was at this risk is the destination's own.
    fn is_asked_of_destination(&self, at_risk: Option<Side>) -> bool {
        match self {
            Effect::Compare { .. } => at_risk == Some(Side::Destination),
            Effect::Write { on, .. } => *on == Side::Destination,
            Effect::CopyWrite { .. } | Effect::FlushDestination(_) | Effect::Seal => true,
            _ => false,
        }
    }

    /// Whether it writes to the destination.
    pub(super) fn writes_destination(&self) -> bool {
        match self {
            Effect::Write { on, .. } => *on != Side::Source,
            // Its writes have not begun, but no flush that begins now covers them.
            Effect::CopyWrite { .. } => true,
            _ => false,
        }
    }

    /// Whether it writes to the destination, now or once it has read what.
    pub(super) fn leads_to_writes(&self) -> bool {
        self.writes_destination() || matches!(self, Effect::CopyRead { .. })
    }

    /// Whether it reads a block so numbered from the source.
    fn reads_source(&self, numbered: u64) -> bool {
        match self {
            Effect::Read { on, .. } => *on == Side::Source,
            Effect::Compare { .. } => numbered & ON_DESTINATION == 0,
            Effect::CopyRead { .. } | Effect::Probe { .. } => true,
            _ => false,
        }
    }

    /// Whether the commit must not overtake it.
    pub(super) fn forbids_commit(&self) -> bool {
        matches!(self, Effect::Write { .. } | Effect::CopyWrite { .. })
    }
}

impl Operation {
    /// Whether it is a commit of which nothing comes.
    pub(super) fn is_commit_that_fails(&self) -> bool {
        self.fails && matches!(self.effect, Effect::Commit)
    }

    /// Whether it is a commit of which something may come.
    pub(super) fn may_commit(&self) -> bool {
        !self.fails && matches!(self.effect, Effect::Commit)
    }
}

impl World {
    pub(super) fn start_request(&mut self, id: RequestId, on: Side) {
        let request = match on {
            Side::Source => self.guest.source_started(id, self.now),
            Side::Destination | Side::Moved => &self.guest.open()[&id],
        };
        let blocks = request.blocks.clone().collect();
        let effect = match (request.kind, on) {
            (RequestKind::Write, _) => Effect::Write { id, on },
            (RequestKind::Flush, Side::Source) => {
                Effect::Flush { id, flush: self.images.source_flush_begins() }
            }
            _ => Effect::Read { id, on },
        };
        self.begin(effect, blocks);
    }

    pub(super) fn start_job(&mut self, job: Job) {
        let blocks: Vec<u64> =
            job.bad.rest_of(job.range).into_iter().flat_map(blocks_of).collect();
        match job.kind {
            JobKind::Probe => {
                self.probes += 1;
                self.begin(Effect::Probe { job }, blocks);
            }
            JobKind::Scan => self.begin(Effect::Scan { job, holes: vec![] }, blocks),
            JobKind::Copy { .. } => {
                self.begin(Effect::CopyRead { job, data: BTreeMap::new() }, blocks);
            }
            JobKind::Zero => {
                let blocks: Vec<u64> = blocks_of(job.range).collect();
                let data = blocks.iter().map(|block| (*block, 0)).collect();
                self.begin(Effect::CopyWrite { job, data }, blocks);
            }
            JobKind::Compare => {
                let both = blocks.iter().flat_map(|b| [*b, b | ON_DESTINATION]).collect();
                self.begin(Effect::Compare { job, seen: BTreeMap::new() }, both);
            }
        }
    }

    /// The destination is flushed: what was answered by now.
    pub(super) fn flush(&mut self) {
        let mut open = Vec::new();
        for operation in self.operations.iter().filter(|o| o.effect.writes_destination())
        {
            open.extend(self.blocks_of(&operation.effect));
        }
        let flush = self.images.flush_begins(open);
        self.begin(Effect::FlushDestination(flush), vec![]);
        if self.setup.mistake == Some(Mistake::FlushAcknowledgedEarly) {
            self.later.push(Event::Flushed(Ok(())));
        }
    }

    /// All blocks that a write writes.
    pub(super) fn blocks_of(&self, effect: &Effect) -> Vec<u64> {
        match effect {
            Effect::Write { id, .. } => self.guest.blocks(*id).collect(),
            Effect::CopyWrite { job, .. } => blocks_of(job.range).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, effect: Effect, mut left: Vec<u64>) {
        let at_risk = effect.at_risk(&mut self.random);
        let source = at_risk == Some(Side::Source);
        let destination = at_risk == Some(Side::Destination);
        let mut delay = self.random.below(200_000);
        let mut fails = false;
        if !self.calm {
            if destination && self.setup.destination_slow {
                delay += self.random.below(90_000_000);
            }
            if destination && self.random.one_in(self.setup.hangs) {
                delay += 30_000_000_000;
            }
            if matches!(effect, Effect::Flush { .. } | Effect::FlushSource(_)) {
                delay += self.source_flush_takes();
            }
            let commits = matches!(effect, Effect::Commit);
            if commits && self.random.one_in(self.setup.slow_commits) {
                delay += self.random.below(4_000_000_000);
            }
            fails = commits && self.random.one_in(self.setup.failing_commits)
                || destination && self.random.one_in(self.setup.destination_fails)
                || source && self.random.one_in(self.setup.source_fails);
        }
        if fails {
            let reads =
                matches!(effect, Effect::CopyRead { .. } | Effect::Compare { .. });
            self.unreadable += u64::from(source && reads);
            left.truncate(self.random.below(left.len() as u64 + 1) as usize);
        }
        if matches!(effect, Effect::Write { on: Side::Source, .. }) {
            self.notes_write();
        } else if effect.writes_destination() {
            self.notes_copy();
        }
        let not_before = self.now.plus(Nanos(delay));
        self.operations.push(Operation { effect, left, not_before, at_risk, fails });
    }

    /// Whether something is under way that hangs. In calm nothing begins to.
    pub(super) fn hangs(&self) -> bool {
        self.operations.iter().any(|o| o.not_before.since(self.now) >= HANGS)
    }

    /// Takes an operation a step further.
    pub(super) fn go_on_with(&mut self, pick: usize) {
        if self.operations[pick].left.is_empty() {
            let operation = self.operations.swap_remove(pick);
            self.complete(operation);
        } else {
            let left = self.operations[pick].left.len() as u64;
            let at = self.random.below(left) as usize;
            let block = self.operations[pick].left.swap_remove(at);
            self.land(pick, block);
        }
    }

    /// One block of an operation takes effect.
    pub(super) fn land(&mut self, pick: usize, numbered: u64) {
        let block = numbered & !ON_DESTINATION;
        let b = block as usize;
        if self.operations[pick].effect.reads_source(numbered)
            && self.images.is_bad(block, self.clock)
        {
            return self.finds_bad(pick);
        }
        let images = &mut self.images;
        match &mut self.operations[pick].effect {
            Effect::Write { id, on } => images.write(*on, b, self.guest.value(*id)),
            Effect::Read { id, on } => {
                self.guest.finds(*id, block, images.found(*on, b));
            }
            Effect::CopyRead { data, .. } => {
                data.insert(block, images.source[b]);
            }
            Effect::CopyWrite { job, data } => {
                let fresh = job.kind == JobKind::Copy { fresh: true };
                let value = data[&block];
                let lie = !self.calm && self.random.one_in(self.setup.lies);
                let skipped = fresh && value == 0;
                if !skipped && !lie {
                    images.write(Side::Destination, b, value);
                }
            }
            Effect::Scan { holes, .. } if images.source[b] == 0 => holes.push(block),
            Effect::Compare { seen, .. } => {
                let sides = seen.entry(block).or_default();
                if numbered & ON_DESTINATION == 0 {
                    sides[0] = Some(images.source[b]);
                } else {
                    sides[1] = Some(images.destination[b]);
                }
            }
            _ => {}
        }
    }

    /// An operation cannot read a block: it fails, whatever else it has read.
    fn finds_bad(&mut self, pick: usize) {
        let operation = &mut self.operations[pick];
        let copies = matches!(operation.effect, Effect::CopyRead { .. });
        if copies && self.setup.mistake == Some(Mistake::UnreadableTakenForZeroes) {
            return;
        }
        operation.left.clear();
        operation.fails = true;
        operation.at_risk = Some(Side::Source);
        if let Effect::Probe { job } = &operation.effect
            && job.range.len == BLOCK
        {
            *self.tries.entry(job.range.offset / BLOCK).or_insert(0) += 1;
        }
        let is_job = !matches!(operation.effect, Effect::Read { .. });
        self.unreadable += u64::from(is_job);
    }

    fn complete(&mut self, operation: Operation) {
        let Operation { effect, at_risk, fails, .. } = operation;
        let fault =
            [Fault::Full, Fault::Error(5), Fault::Lost][self.random.below(3) as usize];
        let result = if fails { Err(fault) } else { Ok(()) };
        let result = match effect.is_asked_of_destination(at_risk) {
            true => self.suffer(result),
            false => result,
        };
        match effect {
            Effect::Read { id, on: Side::Source }
            | Effect::Write { id, on: Side::Source } => self.source_done(id, !fails),
            Effect::Flush { id, flush } => {
                let ok = self.source_is_flushed(&flush) && !fails;
                self.source_done(id, ok);
            }
            Effect::Write { id, on: Side::Destination } => {
                self.tell(Event::DestinationDone { id, result });
                self.guest.settled(id);
            }
            Effect::Read { id, .. } | Effect::Write { id, on: Side::Moved } => {
                self.answered(id);
            }
            Effect::Compare { job, .. } if fails && at_risk != Some(Side::Source) => {
                let fault = result.err().unwrap_or(fault);
                self.job_done(job, JobOutcome::DestinationFailed(fault));
            }
            Effect::CopyRead { job, .. }
            | Effect::Compare { job, .. }
            | Effect::Probe { job }
                if fails =>
            {
                self.job_done(job, JobOutcome::SourceFailed(5));
            }
            Effect::Probe { job } => self.job_done(job, JobOutcome::Readable),
            Effect::CopyRead { job, data } => self.write_copy(job, data),
            Effect::CopyWrite { job, data } => {
                let written = data.len() as u64 * BLOCK;
                let copied = result.map(|()| JobOutcome::Copied { written });
                self.job_done(job, copied.unwrap_or_else(JobOutcome::DestinationFailed));
            }
            Effect::Scan { job, holes } => {
                self.job_done(job, JobOutcome::Scanned(ranges(holes)));
            }
            Effect::Compare { job, mut seen } => {
                let read = seen.len() as u64 * BLOCK;
                seen.retain(|_, sides| sides[0] != sides[1]);
                let differing = ranges(seen.into_keys());
                self.job_done(job, JobOutcome::Compared { differing, read });
            }
            Effect::FlushDestination(flush) => self.flush_done(&flush, result),
            Effect::FlushSource(flush) => {
                let ok = self.source_is_flushed(&flush) && !fails;
                self.tell(Event::SourceFlushed(ok));
            }
            Effect::Prepare => {
                let takes = Nanos(self.random.below(30_000_000));
                self.tell(Event::Prepared((!fails).then_some(takes)));
            }
            Effect::Seal => {
                let sealed = self.look(result);
                self.tell(Event::Sealed(sealed));
            }
            Effect::Commit => {
                let commit = if fails { Commit::Failed } else { Commit::Durable };
                self.tell(Event::Committed(commit));
            }
        }
    }

    /// A flush of the source has ended: it tells of what was dropped, and clients look at what
    /// is there. Says whether it told of nothing.
    fn source_is_flushed(&mut self, flush: &SourceFlush) -> bool {
        if self.ended == Some(MirrorEnd::Completed) {
            return true; // The disk has left it.
        }
        let dropped = self.images.source_flush_ends(flush, &mut self.random);
        for (block, value) in &dropped {
            self.guest.finds_instead(self.clock, *block, *value);
            self.ever_dropped.insert(*block);
        }
        if !dropped.is_empty() {
            self.tell(Event::SourceForgot(Loss::FlushFailed));
        }
        dropped.is_empty()
    }

    /// What was lost while the source failed each flush was not compared. The driver tells
    /// clients once more: a block holds what the source has, or what its copy has.
    pub(super) fn leaves_what_is_owed(&mut self) {
        if self.setup.mistake == Some(Mistake::OwedNotTold) {
            return;
        }
        for block in 0..self.setup.blocks {
            let copied = self.images.destination[block as usize];
            if self.is_owed(block) && self.images.source[block as usize] != copied {
                self.guest.gives_up_block(self.clock, block, copied);
            }
        }
    }

    /// Whether a block was lost, and may not have been compared since.
    pub(super) fn is_owed(&self, block: u64) -> bool {
        self.mirror.owes_comparison() && self.ever_dropped.contains(&block)
    }

    /// How much longer than usual a flush of the source takes.
    fn source_flush_takes(&mut self) -> u64 {
        let slow =
            if self.setup.source_slow { self.random.below(300_000_000) } else { 0 };
        let hangs = self.random.one_in(self.setup.source_hangs);
        slow + if hangs { FLUSH_TIMEOUT.0 + 80_000_000_000 } else { 0 }
    }

    /// The source is to be flushed before the switch-over.
    pub(super) fn flush_source(&mut self) {
        if self.setup.mistake == Some(Mistake::SourceNotFlushed) {
            self.later.push(Event::SourceFlushed(true));
        } else {
            let flush = self.images.source_flush_begins();
            self.begin(Effect::FlushSource(flush), vec![]);
        }
    }

    fn write_copy(&mut self, job: Job, mut data: BTreeMap<u64, u64>) {
        for block in blocks_of(job.range) {
            data.entry(block).or_insert(0); // Bad, and known to be.
        }
        let blocks = data.keys().copied().collect();
        self.begin(Effect::CopyWrite { job, data }, blocks);
    }

    fn source_done(&mut self, id: RequestId, ok: bool) {
        if ok && self.guest.writes(id) {
            for block in self.guest.blocks(id) {
                self.images.acknowledged(block);
                self.tries.remove(&block);
            }
        }
        self.guest.source_done(id, self.now, ok);
        self.tell(Event::SourceDone { id, ok });
    }

    fn job_done(&mut self, job: Job, outcome: JobOutcome) {
        self.tell(Event::JobDone { job: job.id, outcome });
    }

    /// What a fault of the destination takes with it, at once or later. Gives what the
    /// mirror is told.
    fn suffer(&mut self, result: Result<(), Fault>) -> Result<(), Fault> {
        let aborts = self.setup.aborts && !self.calm;
        match result {
            Err(Fault::Error(_) | Fault::Lost) if aborts => {
                if self.random.one_in(2) {
                    self.forget(2);
                } else {
                    self.doomed = true;
                }
                match self.setup.mistake {
                    Some(Mistake::TrustAfterFault) => Err(Fault::Full),
                    _ => result,
                }
            }
            result => result,
        }
    }

    /// What the destination was not made to keep is gone, once in `n` blocks. A flush that
    /// is under way covers what is left.
    pub(super) fn forget(&mut self, n: u64) {
        let all: Vec<u64> = (0..self.setup.blocks).collect();
        self.forget_of(&all, n);
    }

    /// The same of these blocks.
    pub(super) fn forget_of(&mut self, blocks: &[u64], n: u64) {
        self.images.forget(blocks, &mut self.random, n);
        for pick in 0..self.operations.len() {
            if let Effect::FlushDestination(flush) = &self.operations[pick].effect {
                let flush = self.images.flush_begins(flush.open().to_vec());
                self.operations[pick].effect = Effect::FlushDestination(flush);
            }
        }
    }

    fn flush_done(&mut self, flush: &Flush, result: Result<(), Fault>) {
        match result {
            Ok(()) => {
                self.images.flush_ends(flush, &mut self.random);
                self.old_map = self.mirror.map().clone();
            }
            Err(_) => self.images.flush_fails(&mut self.random),
        }
        if self.setup.mistake != Some(Mistake::FlushAcknowledgedEarly) {
            self.tell(Event::Flushed(result));
        }
    }
}
