//! Reads of the source that failed, and those that find out why. What is known of it, and
//! the rule, is in `bad`.

use super::bad::{Searched, is_of_a_place};
use super::jobs::InFlight;
use super::{Action, JobKind, Mirror, PauseReason, RegionMap, Sectors};
use crate::{ByteRange, Nanos};

/// Failed reads of the source in a row, for reasons that are not about a place, before the
/// migration pauses.
const SOURCE_RETRIES: u32 = 3;

impl<M: RegionMap> Mirror<M> {
    /// A copy or a comparison could not read the source.
    pub(super) fn source_failed(
        &mut self,
        now: Nanos,
        job: &InFlight,
        errno: i32,
        out: &mut Vec<Action>,
    ) {
        if !is_of_a_place(errno) {
            return self.source_is_away(now, errno, out);
        }
        self.bad.source_failed(job.job.range.offset, errno);
        for region in job.regions.clone() {
            self.copier.claims.remove(&region); // No write waits while it is searched.
        }
        if !self.bad.failed(job.regions.clone()) {
            self.pause(now, PauseReason::Source(errno), out);
        }
    }

    fn source_is_away(&mut self, now: Nanos, errno: i32, out: &mut Vec<Action>) {
        self.copier.source_errors += 1;
        if self.copier.source_errors >= SOURCE_RETRIES {
            self.pause(now, PauseReason::Source(errno), out);
        }
    }

    /// Reads a sector somewhere else, before anything else. If none is left that could
    /// be read, it is the source that cannot.
    pub(super) fn ask_witness(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if let Some(range) = self.bad.next_witness() {
            self.start_probe(now, range.offset / self.config.region, range, out);
        } else if let Some(errno) = self.bad.no_witness() {
            self.pause(now, PauseReason::Source(errno), out);
        }
    }

    /// The next piece of a region that is searched for bad sectors, one at a time.
    pub(super) fn next_probe(&mut self) -> Option<(u64, ByteRange)> {
        let left = self.regions.behind() > 0 || self.copier.first_pass;
        let jobs = &self.jobs;
        self.bad.begin_search(left, |region| jobs.covering(region).is_some());
        let narrowing = self.bad.narrowing.as_mut()?;
        let region = narrowing.region;
        if self.jobs.covering(region).is_some() {
            return None;
        }
        narrowing.next().map(|range| (region, range))
    }

    pub(super) fn start_probe(
        &mut self,
        now: Nanos,
        region: u64,
        range: ByteRange,
        out: &mut Vec<Action>,
    ) {
        self.pace.charge(range.len);
        let (regions, bad) = (region..region + 1, Sectors::default());
        let job = self.jobs.start(now, JobKind::Probe, regions, range, bad, false);
        self.bad.started(job.id);
        out.push(Action::Start(job));
    }

    /// A piece, or a witness, was read or could not be.
    pub(super) fn probed(
        &mut self,
        now: Nanos,
        job: &InFlight,
        result: Result<(), i32>,
        out: &mut Vec<Action>,
    ) {
        let id = job.job.id;
        let is_witness = self.bad.is_witness(id);
        let narrowing =
            self.bad.narrowing.as_mut().filter(|narrowing| narrowing.is_for(id));
        match result {
            Ok(()) => {
                narrowing.into_iter().for_each(|narrowing| narrowing.readable());
                self.copier.source_errors = 0;
                self.bad.source_reads();
            }
            Err(errno) if is_of_a_place(errno) => {
                narrowing.into_iter().for_each(|narrowing| narrowing.unreadable());
                if is_witness {
                    self.bad.witness_failed();
                } else {
                    self.bad.source_failed(job.job.range.offset, errno);
                }
            }
            Err(errno) => {
                narrowing.into_iter().for_each(|narrowing| narrowing.unknown());
                if is_witness {
                    self.bad.witness_failed();
                }
                self.source_is_away(now, errno, out);
            }
        }
        self.end_search(now, out);
    }

    /// Takes in what a search has found, if it has come to its end.
    fn end_search(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let Some((region, searched)) = self.bad.end_search() else { return };
        let any = self.bad.has(region);
        if any {
            self.regions.set_marred(region, true);
        }
        match searched {
            Searched::Found => {}
            Searched::Readable => self.regions.fall_behind(region),
            Searched::InVain => {
                // EIO: what all of these errors come to for whoever reads.
                self.pause(now, PauseReason::Source(5), out);
            }
        }
        if !any {
            self.regions.set_marred(region, false);
        }
    }

    /// A guest's write has succeeded: what it covers can be read again.
    pub(super) fn heal(&mut self, range: ByteRange) {
        let regions = self.regions.of(range);
        for region in self.bad.wrote(range, regions) {
            self.regions.set_marred(region, false);
        }
    }

    /// Pauses if nothing is left to do but what cannot be read.
    pub(super) fn stop_for_bad(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let stuck = self.running()
            && !self.bad.allow_switch()
            && self.bad.all_tried()
            && self.jobs.is_empty()
            && self.all_done();
        if stuck {
            let places = self.bad.listed().places;
            self.pause(now, PauseReason::BadSectors(places), out);
        }
    }
}
