//! What a migration is told at its start, and the limits it keeps.

use super::step_table::CopyStep;
use crate::Nanos;

/// How long a mirrored write may take over the source's time before the guest
/// is answered without the destination. Twenty milliseconds is what a busy
/// disk array takes now and then anyway, so an application built for disks
/// does not notice it.
pub const PATIENCE: Nanos = Nanos::from_millis(20);

/// How far patience may be raised over its base so that a migration to a slow
/// destination still converges: a guest never waits longer than base + 80 ms.
pub const PATIENCE_RAISE_MAX: Nanos = Nanos::from_millis(80);

/// One step of raising.
pub const PATIENCE_STEP: Nanos = Nanos::from_millis(20);

/// How long the guest may be held at the switch-over.
pub const HOLD_BUDGET: Nanos = Nanos::from_millis(100);

/// How long an operation on the destination may take before the migration
/// pauses. Far beyond any healthy device, well below the 30 s after which
/// guests reset their disks.
pub const DESTINATION_TIMEOUT: Nanos = Nanos::from_secs(10);

/// How long a destination may be out of reach before the migration pauses. Long
/// enough for a server to be restarted, and for a link to come back; guests wait for
/// it no longer than patience anyway, so it is for the operator that it is short.
pub const REACH_TIMEOUT: Nanos = Nanos::from_secs(2);

/// How long the flush before the switch-over may take: it may have to empty a
/// large write cache behind a slow link, and the guest runs meanwhile.
pub const FLUSH_TIMEOUT: Nanos = Nanos::from_secs(120);

/// How long the destination is left without a flush while it holds what no flush covers.
/// That is what a resume copies again after a kill or a fault; and a flush, which makes a
/// guest's mirrored writes slower for as long as it takes, is rare enough not to be
/// noticed.
pub const FLUSH_EVERY: Nanos = Nanos::from_secs(5);

/// Bytes in one region of the map. Smaller regions copy less after a write,
/// larger ones need a smaller map; 64 KiB is a write's neighbourhood on most
/// arrays and a 1 TiB disk needs a map of 8 MiB.
pub const REGION: u64 = 64 << 10;

/// Bytes of a sector where the images say nothing else: what a drive can lose.
pub const SECTOR: u64 = 512;

/// Bytes that the copier goes through before it looks again where the guest writes. A
/// head that has to move between two of them loses a few percent; a small log has some
/// of them.
pub const SEGMENT: u64 = 8 << 20;

/// Bytes that one scan asks the source about: a second's copying on a fast device, so
/// that scans are rare and what they say is young.
pub const SCAN_WINDOW: u64 = 1 << 30;

/// What the copier may take while the guest is served, in bytes per second. It is
/// what a guard sets, beside the operator's limit; the smaller counts.
///
/// With both open, which is the default, the copier does not look at the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// While the guest is active: zero for nothing, `None` for no limit.
    pub busy: Option<u64>,
    /// While it is idle: zero for nothing, `None` for no limit.
    pub idle: Option<u64>,
    /// How what the busy rate brings is spread over time.
    pub mode: CopyMode,
    /// IdleGaps of the guest shorter than a quarter of a second are not used: it
    /// computes.
    pub leaves_idle_gaps: bool,
}

/// How the copier goes beside the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyMode {
    /// Evenly, in chunks that suit the guest's response times.
    #[default]
    Even,
    /// Evenly, in the shortest chunks.
    ShortChunks,
    /// What the rate brings in a [`CopyMode::SAMPLE`] comes at once, in long chunks, each
    /// time that the allowance is told, and nothing after it.
    Burst,
}

impl CopyMode {
    /// A guard's sample: it tells what comes at once anew for each.
    pub const SAMPLE: Nanos = Nanos::from_millis(100);

    /// Bytes that come at once, at most: they are all in flight at once, too, so that a
    /// head moves but once for them, and they fit the copier's memory.
    pub const BURST_MAX: u64 = 10 << 20;
}

impl Allowance {
    /// Nothing while the guest is active, and everything while it is idle.
    pub const IDLE_ONLY: Allowance = Allowance {
        busy: Some(0),
        idle: None,
        mode: CopyMode::Even,
        leaves_idle_gaps: false,
    };

    /// The busy rate, above zero, of what comes at once and has to be told anew for each
    /// sample; nothing of any other allowance.
    pub fn burst(&self) -> Option<u64> {
        self.busy.filter(|rate| *rate > 0 && self.mode == CopyMode::Burst)
    }
}

/// What a migration is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The disk's size in bytes.
    pub size: u64,
    /// Bytes in a region, a power of two.
    pub region: u64,
    /// Bytes that the copier goes through before it looks again where the guest writes;
    /// at least a region.
    pub segment: u64,
    /// Whether the source can name its holes.
    pub scan: bool,
    /// Bytes that it is asked about at a time; made a power of two, and at least a
    /// segment, so that no segment is in two of them.
    pub scan_window: u64,
    /// Whether the destination reads as zeroes where it was never written.
    pub reads_zero: bool,
    /// Bytes of the source that are allocated, and thus may have data; none where it cannot
    /// say. Only figures are made of it.
    pub allocated: Option<u64>,
    /// Compare both sides before the switch-over.
    pub verify: bool,
    /// What the copier keeps in flight, if it is not to find that out: a model of
    /// somebody else's copier.
    pub step: Option<CopyStep>,
    /// The copier's limit in bytes per second.
    pub rate: Option<u64>,
    /// What the copier may take while the guest is served.
    pub allowance: Allowance,
    /// The base of patience.
    pub patience: Nanos,
    /// How long the guest may be held.
    pub hold_budget: Nanos,
    /// How long the destination may take for one operation.
    pub destination_timeout: Nanos,
    /// How long the destination may be out of reach.
    pub reach_timeout: Nanos,
    /// How long the destination is left without a flush.
    pub flush_every: Nanos,
    /// Bytes of a sector, the least that either image takes; a power of two.
    pub sector: u64,
    /// Sectors of the source that cannot be read are left behind.
    pub skip_bad: bool,
}

impl Config {
    /// The usual configuration for a disk of `size` bytes.
    pub fn new(size: u64) -> Self {
        Config {
            size,
            region: REGION,
            segment: SEGMENT,
            scan: true,
            scan_window: SCAN_WINDOW,
            reads_zero: false,
            allocated: None,
            verify: false,
            step: None,
            rate: None,
            allowance: Allowance::default(),
            patience: PATIENCE,
            hold_budget: HOLD_BUDGET,
            destination_timeout: DESTINATION_TIMEOUT,
            reach_timeout: REACH_TIMEOUT,
            flush_every: FLUSH_EVERY,
            sector: SECTOR,
            skip_bad: false,
        }
    }

    /// How many regions the disk has; the last one may be short.
    pub fn regions(&self) -> u64 {
        self.size.div_ceil(self.region)
    }
}
