//! The copier's memory: where it is, where the guest writes, which holes it knows of,
//! which regions keep being written and which of them are claimed, and how far the
//! verification is.

use std::collections::BTreeSet;
use std::ops::Range;

use super::bits::Bits;
use super::copy_order::CopyOrder;
use super::streams::Streams;
use super::{Config, JobKind};
use crate::{ByteRange, IdMap, Nanos};

/// Copies of a region that guest writes may spoil before its writes wait.
pub(super) const ROUNDS_MAX: u8 = 3;

/// Regions claimed at the same time: few, since their writes wait.
const CLAIMS_MAX: usize = 8;

/// Regions whose rounds are counted; others count as never disturbed.
const ROUNDS_TRACKED: usize = 4096;

/// The copier's memory.
#[derive(Debug)]
pub(super) struct Copier {
    pub(super) cursor: u64,
    pub(super) first_pass: bool,
    order: CopyOrder,
    streams: Streams,
    /// Bytes in a region.
    region: u64,
    scan: bool,
    /// Regions that a scan asks about: a power of two, and whole segments.
    scan_window: u64,
    window: Range<u64>,
    holes: Bits,
    pub(super) rounds: IdMap<u64, u8>,
    pub(super) claims: BTreeSet<u64>,
    pub(super) wake: Option<Nanos>,
    pub(super) source_errors: u32,
    pub(super) verify: bool,
    pub(super) verify_cursor: u64,
    pub(super) again: BTreeSet<u64>,
    pub(super) differing: IdMap<u64, u8>,
    /// Of these, the ranges that the migration has paused for.
    pub(super) stubborn: Vec<ByteRange>,
    /// Bytes written to the destination by jobs.
    pub(super) copied: u64,
}

/// A job that could start.
pub(super) struct Work {
    pub(super) kind: JobKind,
    pub(super) regions: Range<u64>,
    pub(super) verify: bool,
}

impl Copier {
    pub(super) fn new(config: &Config) -> Self {
        let order = CopyOrder::new(config.regions(), config.segment / config.region);
        let scan_window = (config.scan_window / config.region).next_power_of_two();
        Copier {
            cursor: 0,
            first_pass: true,
            scan_window: scan_window.max(order.segment()),
            order,
            streams: Streams::default(),
            region: config.region,
            scan: config.scan,
            window: 0..0,
            holes: Bits::default(),
            rounds: IdMap::default(),
            claims: BTreeSet::new(),
            wake: None,
            source_errors: 0,
            verify: config.verify,
            verify_cursor: 0,
            again: BTreeSet::new(),
            differing: IdMap::default(),
            stubborn: Vec::new(),
            copied: 0,
        }
    }

    /// Begins again: nothing that was copied is believed any more.
    pub(super) fn restart(&mut self) {
        self.cursor = 0;
        self.first_pass = true;
        self.order.restart();
        self.set_window(0..0);
        self.rounds.clear();
        self.claims.clear();
        self.verify_cursor = 0;
        self.again.clear();
    }

    /// The verification begins again at `region`, where it had gone by.
    pub(super) fn verify_from(&mut self, region: u64) {
        self.verify_cursor = self.verify_cursor.min(region);
        self.again.split_off(&region);
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
    pub(super) fn late(&self, behind: u64) -> u64 {
        let rest = self.order.current().end.saturating_sub(self.cursor);
        let ahead = if self.first_pass { self.order.ahead() + rest } else { 0 };
        behind.saturating_sub(ahead)
    }

    /// Goes on to the next segment of the first pass, if one is left.
    pub(super) fn next_segment(&mut self) -> bool {
        if !self.first_pass {
            return false;
        }
        let head = self.streams.head().map(|at| at / self.region);
        let is = self.order.go_on(head);
        if is {
            self.cursor = self.order.current().start;
        }
        is
    }

    /// A guest write to `range` touches `regions`: they are holes no longer.
    pub(super) fn touch(&mut self, range: ByteRange, regions: &Range<u64>) {
        if self.first_pass
            && let Some((from, to)) = self.streams.wrote(range)
        {
            self.order.passes(from / self.region, to / self.region);
        }
        let start = regions.start.max(self.window.start);
        for region in start..regions.end.min(self.window.end) {
            self.holes.clear(region - self.window.start);
        }
    }

    pub(super) fn is_hole(&self, region: u64) -> bool {
        self.window.contains(&region) && self.holes.has(region - self.window.start)
    }

    pub(super) fn set_window(&mut self, window: Range<u64>) {
        self.holes = Bits::none(window.end - window.start);
        self.window = window;
    }

    pub(super) fn set_hole(&mut self, region: u64) {
        self.holes.set(region - self.window.start);
    }

    /// What is to be gone through from where it is: the rest of its segment, or after
    /// the first pass of the disk.
    pub(super) fn rest(&self, regions: u64) -> Range<u64> {
        self.cursor..if self.first_pass { self.order.current().end } else { regions }
    }

    /// How far a job may go: its holes are known.
    pub(super) fn limit(&self, regions: u64) -> u64 {
        if self.first_pass && self.scan { self.window.end } else { regions }
    }

    /// Whether it is first asked which holes are about that region, and about which
    /// regions that is: some whole segments.
    pub(super) fn to_be_scanned(&self, region: u64) -> Option<Range<u64>> {
        if !self.first_pass || !self.scan || self.window.contains(&region) {
            return None;
        }
        let start = region / self.scan_window * self.scan_window;
        Some(start..start + self.scan_window)
    }

    pub(super) fn rounds(&self, region: u64) -> u8 {
        self.rounds.get(&region).copied().unwrap_or(0)
    }

    pub(super) fn add_round(&mut self, region: u64) {
        if self.rounds.len() < ROUNDS_TRACKED || self.rounds.contains_key(&region) {
            *self.rounds.entry(region).or_insert(0) += 1;
        }
    }

    /// Makes the region's writes wait, if not too many are waiting already.
    pub(super) fn claim(&mut self, region: u64) -> bool {
        let room = self.claims.len() < CLAIMS_MAX;
        if room {
            self.claims.insert(region);
        }
        room
    }

    pub(super) fn release(&mut self, region: u64) {
        self.claims.remove(&region);
        self.rounds.remove(&region);
    }

    /// A region was copied: if the verification pass has gone by, compare again.
    pub(super) fn recopied(&mut self, region: u64) {
        if self.verify && region < self.verify_cursor {
            self.again.insert(region);
        }
    }
}
