//! What happened in one window of time.

use super::{Spread, Steps};
use crate::Nanos;

/// Requests of one kind that were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their response times, from their coming to their answer.
    pub response: Nanos,
    /// The part of it that they waited for the device.
    pub queue: Nanos,
    /// The part of it that they were at the device.
    pub service: Nanos,
    /// Their response times, counted in steps.
    pub steps: Steps,
}

impl Traffic {
    /// Counts one request.
    pub fn record(&mut self, bytes: u64, response: Nanos, queue: Nanos, service: Nanos) {
        self.operations += 1;
        self.bytes += bytes;
        self.response = self.response.plus(response);
        self.queue = self.queue.plus(queue);
        self.service = self.service.plus(service);
        self.steps.record(response);
    }

    /// Adds another's requests.
    pub fn merge(&mut self, other: &Traffic) {
        // Most windows have no requests of most kinds.
        if other.operations == 0 {
            return;
        }
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.response = self.response.plus(other.response);
        self.queue = self.queue.plus(other.queue);
        self.service = self.service.plus(other.service);
        self.steps.merge(&other.steps);
    }

    /// The mean of a sum of times; nothing of nothing.
    pub fn mean(&self, sum: Nanos) -> Option<Nanos> {
        (self.operations > 0).then(|| Nanos(sum.0 / self.operations))
    }

    /// The bytes of a request on average; nothing of nothing.
    pub fn size(&self) -> Option<f64> {
        (self.operations > 0).then(|| self.bytes as f64 / self.operations as f64)
    }
}

/// What a disk, a class or a datastore did in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// How long it was.
    pub span: Nanos,
    /// Reads that were answered.
    pub read: Traffic,
    /// Writes that were answered.
    pub write: Traffic,
    /// Their response times.
    pub response: Spread,
    /// Flushes that were answered.
    pub flush: Traffic,
    /// Discards and write-zeroes that were answered.
    pub zero: Traffic,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Requests under way at its end: with no answers in it, they hang.
    pub in_flight: u32,
}

impl Window {
    /// Reads and writes together.
    pub fn total(&self) -> Traffic {
        let mut total = self.read;
        total.merge(&self.write);
        total
    }

    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.per_second(self.total().operations)
    }

    /// Bytes read and written per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.total().bytes)
    }

    /// Requests under way on average (Little's law).
    pub fn outstanding(&self) -> f64 {
        match self.span.0 {
            0 => 0.0,
            span => self.total().response.0 as f64 / span as f64,
        }
    }

    /// Requests at the device on average, of those that were answered.
    pub fn at_device(&self) -> f64 {
        match self.span.0 {
            0 => 0.0,
            span => self.total().service.0 as f64 / span as f64,
        }
    }

    /// Whether nothing was answered, and nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.total().operations == 0
    }

    /// Adds what somebody else did in the same window.
    pub fn join(&mut self, other: &Window) {
        self.span = self.span.max(other.span);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
        self.absorb(other);
    }

    /// Adds the window that follows.
    pub fn extend(&mut self, next: &Window) {
        self.span = self.span.plus(next.span);
        self.in_flight = next.in_flight;
        self.absorb(next);
    }

    fn absorb(&mut self, other: &Window) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.response.merge(&other.response);
        self.flush.merge(&other.flush);
        self.zero.merge(&other.zero);
        self.errors += other.errors;
    }

    fn per_second(&self, count: u64) -> f64 {
        match self.span.0 {
            0 => 0.0,
            span => count as f64 * 1e9 / span as f64,
        }
    }
}
