//! The verification pass: both sides of every region are read and compared while
//! the guest goes on.
//!
//! It compares regions that count as equal, in order. Those that a guest write
//! disturbed, or that were copied after the pass had gone by, are compared `again`.
//! What differs is copied, and then compared again; a region that goes on to differ
//! means that the destination does not keep what it is given.

use std::collections::BTreeSet;

use super::copier::Work;
use super::jobs::InFlight;
use super::{Action, JobKind, Listed, Mirror, Notice, PauseReason, RegionMap};
use crate::{ByteRange, Nanos};

/// Regions that wait to be compared again before the verification pass waits.
pub(super) const AGAIN_MAX: usize = 4096;

/// Times that a region may differ after being copied before the migration
/// pauses: the destination does not keep what it is given.
const DIFFERING_MAX: u8 = 3;

impl<M: RegionMap> Mirror<M> {
    /// The next comparison of the verification pass.
    pub(super) fn next_verify(&mut self) -> Option<Work> {
        if !self.copier.verifying() {
            return None;
        }
        let compare =
            |regions| Some(Work { kind: JobKind::Compare, regions, verify: true });
        let again: Vec<_> = self.copier.again.iter().copied().take(AGAIN_MAX).collect();
        for region in again {
            if self.bad.of(region).is_all() {
                self.copier.again.remove(&region); // There is nothing to compare.
                continue;
            }
            let taken = self.jobs.covering(region).is_some() || self.bad.is_aside(region);
            if taken || !self.regions.is_equal(region) {
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
            let chunk = match self.bad.is_alone(first) {
                true => 1,
                false => (self.pace.chunk() / self.config.region).max(1),
            };
            let last = (first + chunk).min(self.regions.count());
            let mut end = first;
            while end < last
                && self.comparable(end)
                && (end == first || !self.bad.is_alone(end))
            {
                end += 1;
            }
            self.copier.verify_cursor = end;
            if end > first && self.bad.of(first).is_all() {
                continue;
            }
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
            && !self.bad.is_aside(region)
    }

    /// Bytes that were compared and found equal, if that was asked for.
    pub(super) fn verified(&self) -> Option<u64> {
        self.copier.verify.then(|| {
            let again = self.copier.again.len() as u64;
            let regions = self.copier.verify_cursor.saturating_sub(again);
            (regions * self.config.region).min(self.config.size)
        })
    }

    /// Whether all that can be read is copied and, if asked for, verified.
    pub(super) fn all_done(&self) -> bool {
        let verified = !self.copier.verify
            || self.copier.again.is_empty()
                && self.copier.verify_cursor == self.regions.count()
                && !self.jobs.verifying();
        self.regions.behind() == 0 && !self.copier.first_pass && verified
    }

    /// Regions that keep the switch-over from happening: behind, or copied and not yet
    /// compared.
    pub(super) fn left(&self) -> u64 {
        let again = self.copier.again.iter();
        let equal = again.filter(|region| self.regions.is_equal(**region)).count();
        self.regions.behind() + equal as u64
    }

    /// A comparison of the verification pass came to nothing.
    pub(super) fn compare_again(&mut self, job: &InFlight) {
        if job.verify {
            self.copier.again.extend(job.regions.clone());
        }
    }

    pub(super) fn compared(
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
                self.bad.was_read(region);
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
        let differing = &self.copier.differing;
        let many = differing.len() > AGAIN_MAX;
        let is_stubborn = |times: u8| many || times >= DIFFERING_MAX;
        let mut regions: Vec<u64> = differing
            .iter()
            .filter(|(_, times)| is_stubborn(**times))
            .map(|it| *it.0)
            .collect();
        if !regions.is_empty() {
            regions.sort_unstable();
            let bytes = |region| self.regions.bytes(region..region + 1);
            self.copier.stubborn = regions.into_iter().map(bytes).collect();
            self.copier.differing.clear();
            self.pause(now, PauseReason::Differing(self.differing().places), out);
        }
    }

    /// What has gone on to differ, since the migration was last let go on.
    pub(super) fn differing(&self) -> Listed {
        Listed::of(self.copier.stubborn.iter().copied())
    }
}
