//! What is counted about a disk.
//!
//! Counted on the disk's reactor without atomics, and copied out through its
//! mailbox. The histograms are made with the first request of their kind, so
//! that many idle disks cost nothing.

use hdrhistogram::Histogram;
use sterna_core::Nanos;

use crate::image::ImageOp;

/// Response times are told apart from 1 us on; nothing below is real.
const LOW: u64 = 1_000;
/// Anything longer counts as this, 100 s.
const HIGH: u64 = 100_000_000_000;
/// Two figures: an error of at most 1%.
const FIGURES: u8 = 2;

/// A disk in figures, since it was attached.
#[derive(Clone, Debug)]
pub struct DiskStats {
    /// Connections open now.
    pub connections: u32,
    /// Requests being carried out now.
    pub in_flight: u32,
    /// Reads.
    pub read: Traffic,
    /// Writes.
    pub write: Traffic,
    /// Flushes.
    pub flushes: u64,
    /// Discards and write-zeroes.
    pub zeroes: u64,
    /// Requests answered with an error.
    pub errors: u64,
}

/// Requests of one kind.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// How many were answered well.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their response times in nanoseconds. Counters only grow: subtract an
    /// earlier snapshot to get an interval.
    pub times: Histogram<u64>,
}

/// The counters of a disk while it runs.
#[derive(Default)]
pub(crate) struct Counters {
    read: Kind,
    write: Kind,
    flushes: u64,
    zeroes: u64,
    errors: u64,
}

#[derive(Default)]
struct Kind {
    operations: u64,
    bytes: u64,
    times: Option<Histogram<u64>>,
}

impl Counters {
    /// Counts a request that was answered.
    pub(crate) fn record(&mut self, op: &ImageOp, ok: bool, took: Nanos) {
        if !ok {
            self.errors += 1;
            return;
        }
        match op {
            ImageOp::Read { buf, .. } => self.read.record(buf.len(), took),
            ImageOp::Write { buf, .. } => self.write.record(buf.len(), took),
            ImageOp::Flush => self.flushes += 1,
            ImageOp::Zero { .. } => self.zeroes += 1,
            ImageOp::Extents { .. } | ImageOp::Cache { .. } | ImageOp::Clone { .. } => {}
        }
    }

    pub(crate) fn snapshot(&self, connections: u32, in_flight: u32) -> DiskStats {
        DiskStats {
            connections,
            in_flight,
            read: self.read.snapshot(),
            write: self.write.snapshot(),
            flushes: self.flushes,
            zeroes: self.zeroes,
            errors: self.errors,
        }
    }
}

impl Kind {
    fn record(&mut self, bytes: usize, took: Nanos) {
        self.operations += 1;
        self.bytes += bytes as u64;
        self.times.get_or_insert_with(histogram).saturating_record(took.0);
    }

    fn snapshot(&self) -> Traffic {
        Traffic {
            operations: self.operations,
            bytes: self.bytes,
            times: self.times.clone().unwrap_or_else(histogram),
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LOW, HIGH, FIGURES).expect("the bounds are constants")
}
