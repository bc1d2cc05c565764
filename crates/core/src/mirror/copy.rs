//! The copier: which region next, and what became of it.
//!
//! The first pass goes forward through the disk, in windows: a scan asks the
//! source for the holes of a window, then the rest of the window is copied. A
//! hole needs no copy where the destination reads as zeroes and was never
//! written; elsewhere it is zeroed. What guest writes or failures put behind is
//! copied in further passes.
//!
//! A guest write that touches a region while a job works on it makes the job's
//! result void for that region, and counts as a round. After `ROUNDS_MAX` rounds
//! the region is claimed: its writes wait (within patience) until one small job
//! has run undisturbed.
//!
//! The verification pass compares regions that count as equal, in order; those
//! that were disturbed, or copied after the pass had gone by, are compared
//! `again`.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::converge::Verdict;
use super::jobs::InFlight;
use super::{
    Action, Config, JobId, JobKind, Mirror, Notice, Outcome, PauseReason, RegionMap,
    State, Stored,
};
use crate::{ByteRange, Nanos};

/// Copies of a region that guest writes may spoil before its writes wait.
const ROUNDS_MAX: u8 = 3;

/// Regions claimed at the same time: few, since their writes wait.
const CLAIMS_MAX: usize = 8;

/// Regions whose rounds are counted; others count as never disturbed.
const ROUNDS_TRACKED: usize = 4096;

/// Bytes that one scan asks the source about: a second's copying on a fast
/// device, so that scans are rare and what they say is young.
const SCAN_WINDOW: u64 = 1 << 30;

/// Bytes that one zero job covers; a destination that cannot zero quickly writes
/// them within the time limit even at 10 MB/s.
const ZERO_MAX: u64 = 8 << 20;

/// Failed source reads in a row before the migration pauses.
const SOURCE_RETRIES: u32 = 3;

/// Regions that wait to be compared again before the verification pass waits.
const AGAIN_MAX: usize = 4096;

/// Times that a region may differ after being copied before the migration
/// pauses: the destination does not keep what it is given.
const DIFFERING_MAX: u8 = 3;

/// The copier's memory.
#[derive(Debug)]
pub(super) struct Copier {
    cursor: u64,
    first_pass: bool,
    scan: bool,
    window: Range<u64>,
    holes: Vec<u64>,
    rounds: HashMap<u64, u8>,
    claims: BTreeSet<u64>,
    wake: Option<Nanos>,
    source_errors: u32,
    verify: bool,
    verify_cursor: u64,
    again: BTreeSet<u64>,
    differing: HashMap<u64, u8>,
    /// Bytes written to the destination by jobs.
    pub(super) copied: u64,
}

/// A job that could start.
struct Work {
    kind: JobKind,
    regions: Range<u64>,
    verify: bool,
}

impl Copier {
    pub(super) fn new(config: &Config) -> Self {
        Copier {
            cursor: 0,
            first_pass: true,
            scan: config.scan,
            window: 0..0,
            holes: Vec::new(),
            rounds: HashMap::new(),
            claims: BTreeSet::new(),
            wake: None,
            source_errors: 0,
            verify: config.verify,
            verify_cursor: 0,
            again: BTreeSet::new(),
            differing: HashMap::new(),
            copied: 0,
        }
    }

    pub(super) fn wake(&self) -> Option<Nanos> {
        self.wake
    }

    pub(super) fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    pub(super) fn is_claimed(&self, region: u64) -> bool {
        self.claims.contains(&region)
    }

    pub(super) fn release_claims(&mut self) {
        self.claims.clear();
    }

    pub(super) fn verifying(&self) -> bool {
        self.verify && !self.first_pass
    }

    /// Regions that are behind though the first pass has gone by them.
    pub(super) fn late(&self, behind: u64, regions: u64) -> u64 {
        let ahead = if self.first_pass { regions - self.cursor } else { 0 };
        behind.saturating_sub(ahead)
    }

    /// A guest write touches `regions`: they are holes no longer.
    pub(super) fn touch(&mut self, regions: &Range<u64>) {
        let start = regions.start.max(self.window.start);
        for region in start..regions.end.min(self.window.end) {
            let bit = region - self.window.start;
            self.holes[(bit / 64) as usize] &= !(1 << (bit % 64));
        }
    }

    fn is_hole(&self, region: u64) -> bool {
        self.window.contains(&region) && {
            let bit = region - self.window.start;
            self.holes[(bit / 64) as usize] >> (bit % 64) & 1 == 1
        }
    }

    fn set_window(&mut self, window: Range<u64>) {
        self.holes = vec![0; (window.end - window.start).div_ceil(64) as usize];
        self.window = window;
    }

    fn set_hole(&mut self, region: u64) {
        let bit = region - self.window.start;
        self.holes[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    /// How far the first pass may go before the next scan.
    fn limit(&self, regions: u64) -> u64 {
        if self.first_pass && self.scan { self.window.end } else { regions }
    }

    fn rounds(&self, region: u64) -> u8 {
        self.rounds.get(&region).copied().unwrap_or(0)
    }

    fn add_round(&mut self, region: u64) {
        if self.rounds.len() < ROUNDS_TRACKED || self.rounds.contains_key(&region) {
            *self.rounds.entry(region).or_insert(0) += 1;
        }
    }

    /// Makes the region's writes wait, if not too many are waiting already.
    fn claim(&mut self, region: u64) -> bool {
        let room = self.claims.len() < CLAIMS_MAX;
        if room {
            self.claims.insert(region);
        }
        room
    }

    fn release(&mut self, region: u64) {
        self.claims.remove(&region);
        self.rounds.remove(&region);
    }

    /// A region was copied: if the verification pass has gone by, compare again.
    fn recopied(&mut self, region: u64) {
        if self.verify && region < self.verify_cursor {
            self.again.insert(region);
        }
    }
}

impl<M: RegionMap> Mirror<M> {
    /// Starts as many jobs as the pace allows.
    pub(super) fn copy_more(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.copier.wake = None;
        if !self.running() || self.switch.holding() {
            return;
        }
        let tail = !self.copier.first_pass;
        match self.converge.watch(now, tail, self.regions.behind()) {
            Verdict::GoOn => {}
            Verdict::Raised => self.tell_patience(out),
            Verdict::Hopeless => {
                let reason = PauseReason::NotConverging {
                    behind: self.regions.behind(),
                    patience: self.converge.patience(),
                };
                self.pause(now, reason, out);
                return;
            }
        }
        while self.jobs.len() < self.pace.depth() {
            // Guests wait for claimed regions: the limit does not hold them up.
            if let Some(work) = self.claimed_work() {
                self.start(now, work, out);
                continue;
            }
            if let Err(later) = self.pace.allows(now) {
                self.copier.wake = Some(later);
                return;
            }
            let Some(work) = self.next_copy(out).or_else(|| self.next_verify()) else {
                return;
            };
            self.start(now, work, out);
        }
    }

    /// Late writes keep the switch-over from happening: let them wait longer.
    pub(super) fn raise_patience(&mut self, out: &mut Vec<Action>) {
        if self.converge.raise() {
            self.tell_patience(out);
        }
    }

    fn tell_patience(&self, out: &mut Vec<Action>) {
        let patience = self.converge.patience();
        out.push(Action::Notice(Notice::PatienceRaised(patience)));
    }

    fn start(&mut self, now: Nanos, work: Work, out: &mut Vec<Action>) {
        let range = self.regions.bytes(work.regions.clone());
        if matches!(work.kind, JobKind::Copy { .. } | JobKind::Zero) {
            // A crash from here on finds a destination that may hold anything.
            for region in work.regions.clone() {
                self.regions.set_late(region);
            }
        }
        if work.kind != JobKind::Scan {
            self.pace.charge(range.len);
        }
        let busy: Vec<u64> = match work.kind {
            // A scan covers regions with writes in flight; what it says of them
            // may be older than what such a write leaves.
            JobKind::Scan => {
                work.regions.clone().filter(|r| self.regions.is_busy(*r)).collect()
            }
            _ => Vec::new(),
        };
        let job = self.jobs.start(now, work.kind, work.regions, range, work.verify);
        for region in busy {
            self.jobs.touch(&(region..region + 1));
        }
        out.push(Action::Start(job));
    }

    /// On from the cursor, window by window, pass by pass.
    fn next_copy(&mut self, out: &mut Vec<Action>) -> Option<Work> {
        let count = self.regions.count();
        let mut wrapped = false;
        loop {
            let limit = self.copier.limit(count);
            let next = self.regions.next_behind(self.copier.cursor);
            match next.filter(|region| *region < limit) {
                Some(region) => {
                    if let Some(work) = self.work_at(region, limit) {
                        return Some(work);
                    }
                }
                None if limit < count => {
                    self.copier.cursor = limit;
                    return self.next_scan(limit);
                }
                None if wrapped => return None,
                None => {
                    wrapped = true;
                    self.copier.cursor = 0;
                    if self.copier.first_pass {
                        self.copier.first_pass = false;
                        out.push(Action::Notice(Notice::FirstPassDone));
                        if self.copier.verify {
                            out.push(Action::Notice(Notice::Verifying));
                        }
                    }
                }
            }
        }
    }

    fn next_scan(&self, from: u64) -> Option<Work> {
        if self.jobs.scanning() {
            return None;
        }
        let window = (SCAN_WINDOW / self.config.region).max(1);
        let regions = from..(from + window).min(self.regions.count());
        Some(Work { kind: JobKind::Scan, regions, verify: false })
    }

    /// The work that begins at `region`, which is behind. Moves the cursor on in
    /// any case.
    fn work_at(&mut self, region: u64, limit: u64) -> Option<Work> {
        self.copier.cursor = region + 1;
        if let Some(end) = self.jobs.covering(region) {
            self.copier.cursor = end;
            return None;
        }
        if self.copier.is_claimed(region) {
            return None;
        }
        if self.regions.is_busy(region) {
            // In the first pass, left for later; then there is no later.
            if !self.copier.first_pass {
                self.copier.claim(region);
            }
            return None;
        }
        let kind = self.kind_of(region);
        let mut end = region + 1;
        if self.copier.rounds(region) >= ROUNDS_MAX {
            self.copier.claim(region);
        } else {
            let bytes = if kind == JobKind::Zero { ZERO_MAX } else { self.pace.chunk() };
            let last = (region + (bytes / self.config.region).max(1)).min(limit);
            while end < last && self.goes_with(end, kind) {
                end += 1;
            }
        }
        self.copier.cursor = end;
        Some(Work { kind, regions: region..end, verify: false })
    }

    fn kind_of(&self, region: u64) -> JobKind {
        match self.regions.stored(region) {
            Stored::Suspect => JobKind::Compare,
            _ if self.copier.is_hole(region) => JobKind::Zero,
            Stored::Absent => JobKind::Copy { fresh: self.config.reads_zero },
            _ => JobKind::Copy { fresh: false },
        }
    }

    /// Whether `region` can be part of a job of that kind that begins before it.
    fn goes_with(&self, region: u64, kind: JobKind) -> bool {
        !self.regions.is_equal(region)
            && !self.regions.is_busy(region)
            && self.jobs.covering(region).is_none()
            && !self.copier.is_claimed(region)
            && self.copier.rounds(region) < ROUNDS_MAX
            && self.kind_of(region) == kind
    }

    /// A job for a claimed region whose writes have all landed. Claims that have
    /// nothing left to do are released.
    fn claimed_work(&mut self) -> Option<Work> {
        if self.copier.claims.is_empty() {
            return None;
        }
        let claims: Vec<_> = self.copier.claims.iter().copied().collect();
        for region in claims {
            if self.jobs.covering(region).is_some() || self.regions.is_busy(region) {
                continue;
            }
            let regions = region..region + 1;
            if !self.regions.is_equal(region) {
                let kind = self.kind_of(region);
                return Some(Work { kind, regions, verify: false });
            }
            if self.copier.again.contains(&region) {
                return Some(Work { kind: JobKind::Compare, regions, verify: true });
            }
            self.copier.release(region);
        }
        None
    }

    /// The next comparison of the verification pass.
    fn next_verify(&mut self) -> Option<Work> {
        if !self.copier.verifying() {
            return None;
        }
        let compare =
            |regions| Some(Work { kind: JobKind::Compare, regions, verify: true });
        let again: Vec<_> = self.copier.again.iter().copied().take(AGAIN_MAX).collect();
        for region in again {
            if self.jobs.covering(region).is_some() || !self.regions.is_equal(region) {
                continue;
            }
            if self.regions.is_busy(region) {
                self.copier.claim(region);
                continue;
            }
            return compare(region..region + 1);
        }
        while self.copier.verify_cursor < self.regions.count()
            && self.copier.again.len() < AGAIN_MAX
        {
            let first = self.copier.verify_cursor;
            let last = first + (self.pace.chunk() / self.config.region).max(1);
            let mut end = first;
            while end < last.min(self.regions.count()) && self.comparable(end) {
                end += 1;
            }
            self.copier.verify_cursor = end;
            if end > first {
                return compare(first..end);
            }
            self.copier.again.insert(first);
            self.copier.verify_cursor += 1;
        }
        None
    }

    fn comparable(&self, region: u64) -> bool {
        self.regions.is_equal(region)
            && !self.regions.is_busy(region)
            && self.jobs.covering(region).is_none()
    }

    /// Bytes that were compared and found equal, if that was asked for.
    pub(super) fn verified(&self) -> Option<u64> {
        self.copier.verify.then(|| {
            let regions = self.copier.verify_cursor - self.copier.again.len() as u64;
            (regions * self.config.region).min(self.config.size)
        })
    }

    /// Whether all is copied and, if asked for, verified.
    pub(super) fn all_done(&self) -> bool {
        let verified = !self.copier.verify
            || self.copier.again.is_empty()
                && self.copier.verify_cursor == self.regions.count()
                && !self.jobs.verifying();
        self.regions.behind() == 0 && !self.copier.first_pass && verified
    }

    pub(super) fn job_done(
        &mut self,
        now: Nanos,
        id: JobId,
        outcome: &Outcome,
        out: &mut Vec<Action>,
    ) {
        let job = self.jobs.take(id);
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        match outcome {
            Outcome::Scanned(holes) => self.scanned(&job, holes),
            Outcome::SourceFailed(_) if job.job.kind == JobKind::Scan => {
                self.scanned(&job, &[]);
            }
            Outcome::Copied { written } => {
                self.copier.source_errors = 0;
                self.copier.copied += written;
                self.pace.done(now, job.job.range.len, *written);
                self.copied(&job);
            }
            Outcome::Compared { differing } => {
                self.copier.source_errors = 0;
                self.pace.done(now, job.job.range.len, job.job.range.len);
                self.compared(now, &job, differing, out);
            }
            Outcome::SourceFailed(errno) => {
                self.copier.source_errors += 1;
                self.compare_again(&job);
                if self.copier.source_errors >= SOURCE_RETRIES {
                    self.pause(now, PauseReason::Source(*errno), out);
                }
            }
            Outcome::DestinationFailed(fault) => {
                self.compare_again(&job);
                self.pause(now, PauseReason::Destination(*fault), out);
            }
        }
    }

    /// A comparison of the verification pass came to nothing.
    fn compare_again(&mut self, job: &InFlight) {
        if job.verify {
            self.copier.again.extend(job.regions.clone());
        }
    }

    fn scanned(&mut self, job: &InFlight, holes: &[ByteRange]) {
        self.copier.set_window(job.regions.clone());
        for hole in holes {
            let inside = self.regions.inside(*hole);
            let start = inside.start.max(job.regions.start);
            for region in start..inside.end.min(job.regions.end) {
                if job.touched(region) || self.regions.is_equal(region) {
                    continue;
                }
                let busy = self.regions.is_busy(region);
                match self.regions.stored(region) {
                    _ if busy => {}
                    Stored::Absent if self.config.reads_zero => {
                        self.regions.set_synced(region);
                    }
                    _ => self.copier.set_hole(region),
                }
            }
        }
    }

    fn copied(&mut self, job: &InFlight) {
        for region in job.regions.clone() {
            if job.touched(region) {
                self.copier.add_round(region);
            } else {
                self.regions.set_synced(region);
                self.copier.recopied(region);
                self.caught_up(region);
            }
        }
    }

    /// The region is equal; its claim ends unless it must be compared first.
    fn caught_up(&mut self, region: u64) {
        if !self.copier.again.contains(&region) {
            self.copier.release(region);
        }
    }

    fn compared(
        &mut self,
        now: Nanos,
        job: &InFlight,
        differing: &[ByteRange],
        out: &mut Vec<Action>,
    ) {
        let mut differ = BTreeSet::new();
        for range in differing {
            differ.extend(self.regions.of(*range));
        }
        let mut found = 0;
        for region in job.regions.clone() {
            if job.touched(region) {
                self.copier.add_round(region);
                if job.verify {
                    self.copier.again.insert(region);
                }
            } else if differ.contains(&region) {
                self.regions.set_late(region);
                if job.verify {
                    found += 1;
                    self.copier.again.insert(region);
                    *self.copier.differing.entry(region).or_insert(0) += 1;
                }
            } else {
                self.copier.again.remove(&region);
                self.regions.set_synced(region);
                if !job.verify {
                    self.copier.recopied(region);
                }
                self.caught_up(region);
            }
        }
        if found > 0 {
            self.report_differing(now, found, out);
        }
    }

    fn report_differing(&mut self, now: Nanos, found: u64, out: &mut Vec<Action>) {
        out.push(Action::Notice(Notice::Differing { regions: found }));
        let counts = self.copier.differing.values();
        let stubborn = counts.filter(|times| **times >= DIFFERING_MAX).count() as u64;
        let many = self.copier.differing.len() > AGAIN_MAX;
        if stubborn > 0 || many {
            let regions =
                if many { self.copier.differing.len() as u64 } else { stubborn };
            self.copier.differing.clear();
            self.pause(now, PauseReason::Differing { regions }, out);
        }
    }
}
