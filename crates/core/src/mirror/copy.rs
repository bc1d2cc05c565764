//! The copier's way over the disk: which region next.
//!
//! The first pass goes through the disk segment by segment, in the order of its
//! `copy_order`. Before a segment is copied, a scan asks the source for the holes of the
//! window that it is in, unless that was the last one asked about. A hole needs no copy
//! where the destination reads as zeroes and was never written; elsewhere it is zeroed.
//! What guest writes or failures put behind is copied in further passes.
//!
//! A guest write that touches a region while a job works on it makes the job's
//! result void for that region, and counts as a round. After `ROUNDS_MAX` rounds
//! the region is claimed: its writes wait (within patience) until one small job
//! has run undisturbed.

use std::ops::Range;

use super::converge::{Tally, Verdict};
use super::copier::{ROUNDS_MAX, Work};
use super::{Action, JobKind, Mirror, Notice, PauseReason, RegionMap, Stored};
use crate::Nanos;

/// Bytes that one zero job covers; a destination that cannot zero quickly writes
/// them within the time limit even at 10 MB/s.
const ZERO_MAX: u64 = 8 << 20;

impl<M: RegionMap> Mirror<M> {
    /// Starts as many jobs as the pace allows.
    pub(super) fn copy_more(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.copier.wake = None;
        if !self.running() || self.switch.holding() {
            return;
        }
        match self.watch(now) {
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
            if self.bad.doubts_source() {
                return self.ask_witness(now, out);
            }
            // Guests wait for claimed regions: no rate holds them up.
            if let Some(work) = self.claimed_work() {
                self.start(now, work, out);
                continue;
            }
            let (in_flight, at_source) = (self.jobs.bytes(), self.jobs.bytes_at_source());
            if let Err(later) = self.pace.allows(now, in_flight, at_source) {
                self.copier.wake = later;
                self.converge.held_back();
                return;
            }
            if let Some(work) = self.next_copy(out) {
                self.start(now, work, out);
            } else if let Some((region, range)) = self.next_probe() {
                self.start_probe(now, region, range, out);
            } else if let Some(work) = self.next_verify() {
                self.start(now, work, out);
            } else {
                return;
            }
        }
    }

    /// Whether the end comes nearer.
    fn watch(&mut self, now: Nanos) -> Verdict {
        if self.jobs.any_held() {
            self.converge.held_back();
        }
        let tally =
            Tally { behind: self.regions.behind(), caught_up: self.regions.caught_up() };
        self.converge.watch(now, (!self.copier.first_pass).then_some(tally))
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
        // Regions with bad sectors are alone.
        let bad = self.bad.of(work.regions.start);
        let job = self.jobs.start(now, work.kind, work.regions, range, bad, work.verify);
        for region in busy {
            self.jobs.touch(&(region..region + 1));
        }
        out.push(Action::Start(job));
    }

    /// On from the cursor, segment by segment, pass by pass.
    fn next_copy(&mut self, out: &mut Vec<Action>) -> Option<Work> {
        let mut wrapped = false;
        loop {
            let rest = self.copier.rest(self.regions.count());
            match self.regions.next_behind(rest) {
                Some(region) => {
                    if let Some(regions) = self.copier.to_be_scanned(region) {
                        return self.scan(regions);
                    }
                    if let Some(work) = self.work_at(region) {
                        return Some(work);
                    }
                }
                None if self.copier.next_segment() => {}
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

    /// One at a time.
    fn scan(&self, regions: Range<u64>) -> Option<Work> {
        let regions = regions.start..regions.end.min(self.regions.count());
        let scan = Work { kind: JobKind::Scan, regions, verify: false };
        (!self.jobs.scanning()).then_some(scan)
    }

    /// The work that begins at `region`, which is behind. Moves the cursor on in
    /// any case.
    fn work_at(&mut self, region: u64) -> Option<Work> {
        self.copier.cursor = region + 1;
        if let Some(end) = self.jobs.covering(region) {
            self.copier.cursor = end;
            return None;
        }
        if self.copier.is_claimed(region) || self.bad.is_aside(region) {
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
        } else if !self.bad.is_alone(region) {
            let bytes = if kind == JobKind::Zero { ZERO_MAX } else { self.pace.chunk() };
            // It may be longer than what its segment has left.
            let last = region + (bytes / self.config.region).max(1);
            let last = last.min(self.copier.limit(self.regions.count()));
            while end < last && self.goes_with(end, kind) {
                end += 1;
            }
        }
        self.copier.cursor = end;
        Some(Work { kind, regions: region..end, verify: false })
    }

    fn kind_of(&self, region: u64) -> JobKind {
        match self.regions.stored(region) {
            // What is a sector that cannot be read would stay as it is, believed or not.
            Stored::Suspect if !self.bad.has(region) => JobKind::Compare,
            _ if self.copier.is_hole(region) || self.bad.of(region).is_all() => {
                JobKind::Zero
            }
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
            && !self.bad.is_alone(region)
            && !self.bad.is_aside(region)
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
            let taken = self.jobs.covering(region).is_some();
            if taken || self.regions.is_busy(region) || self.bad.is_aside(region) {
                continue;
            }
            let regions = region..region + 1;
            if !self.regions.is_equal(region) {
                let kind = self.kind_of(region);
                return Some(Work { kind, regions, verify: false });
            }
            if self.copier.again.contains(&region) && !self.bad.of(region).is_all() {
                return Some(Work { kind: JobKind::Compare, regions, verify: true });
            }
            self.copier.release(region);
        }
        None
    }
}
