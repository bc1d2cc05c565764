//! What is counted about a disk.
//!
//! Counted on the disk's reactor without atomics, and copied out through its
//! mailbox. What takes room is made with the first request of its kind, so that
//! many idle disks cost nothing.
//!
//! Two kinds of figures: those since the disk was attached, which only grow, and the
//! window since it was last taken, which is taken out ten times a second
//! (`Engine::take_windows`).

use std::sync::Arc;

use sterna_core::measure::{Pattern, Traffic, Window};
use sterna_core::qos::Pool;
use sterna_core::{DiskId, Nanos};

use crate::image::ImageOp;
use crate::times::Times;

/// A disk in figures, since it was attached.
#[derive(Clone, Debug, Default)]
pub struct DiskStats {
    /// Connections open now.
    pub connections: u32,
    /// Requests being carried out now.
    pub in_flight: u32,
    /// Reads that were answered well.
    pub read: Traffic,
    /// Writes that were answered well.
    pub write: Traffic,
    /// Flushes.
    pub flushes: u64,
    /// Discards and write-zeroes.
    pub zeroes: u64,
    /// Requests answered with an error.
    pub errors: u64,
}

/// How an image of a disk is reached. As long as it is the same, no way to it was lost: whoever
/// asks an export between the two has asked the one that the disk uses, if the server is one
/// for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The image's number: one that takes its place has another.
    pub image: u16,
    /// Connections to servers that it has lost.
    pub ways_lost: u64,
}

/// What a disk's requests are like, since it was attached.
#[derive(Clone, Debug)]
pub struct DiskProfile {
    /// Counts and sums.
    pub stats: DiskStats,
    /// Its reads; nothing before the first.
    pub read: Option<Box<Requests>>,
    /// Its writes; nothing before the first.
    pub write: Option<Box<Requests>>,
}

/// What requests of one kind are like.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Those that were answered well.
    pub traffic: Traffic,
    /// Their times.
    pub times: Times,
    /// Their pattern: counted as they come, the response times as they are answered.
    pub pattern: Pattern,
}

/// What a disk did in a window of time.
#[derive(Clone, Debug)]
pub struct DiskWindow {
    /// The disk.
    pub disk: DiskId,
    /// The datastore of its current image: see [`Budget::is`](crate::Budget::is).
    pub datastore: Arc<Pool>,
    /// What it did.
    pub window: Window,
}

/// How long a request took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    /// It waited for admission.
    pub(crate) queue: Nanos,
    /// From admission to its answer.
    pub(crate) service: Nanos,
}

/// The counters of a disk while it runs.
#[derive(Default)]
pub(crate) struct Counters {
    read: Option<Box<Requests>>,
    write: Option<Box<Requests>>,
    flushes: u64,
    zeroes: u64,
    errors: u64,
    window: Window,
    /// Whether the last window that was taken had something in it.
    was_busy: bool,
    /// Who is told of the next request.
    pub(crate) told: Option<Tell>,
}

/// Told once, on the disk's reactor: it must not wait.
pub(crate) type Tell = Box<dyn FnOnce() + Send>;

impl Counters {
    /// Counts a request that has come, when so many of the disk's are under way.
    pub(crate) fn arrived(&mut self, now: Nanos, op: &ImageOp, in_flight: usize) {
        if let Some(tell) = self.told.take() {
            tell();
        }
        let (requests, offset, length) = match op {
            ImageOp::Read { offset, buf } => (&mut self.read, offset, buf.len()),
            ImageOp::Write { offset, buf, .. } => (&mut self.write, offset, buf.len()),
            _ => return,
        };
        let requests = requests.get_or_insert_default();
        requests.pattern.arrived(now, *offset, length as u64, in_flight);
    }

    /// Counts a request that was answered.
    pub(crate) fn answered(&mut self, op: &ImageOp, ok: bool, took: Took) {
        let window = &mut self.window;
        if !ok {
            self.errors += 1;
            window.errors += 1;
            return;
        }
        let Took { queue, service } = took;
        let response = queue.plus(service);
        let (requests, traffic, length) = match op {
            ImageOp::Read { buf, .. } => (&mut self.read, &mut window.read, buf.len()),
            ImageOp::Write { buf, .. } => (&mut self.write, &mut window.write, buf.len()),
            ImageOp::Flush => {
                window.flush.record(0, response, queue, service);
                return self.flushes += 1;
            }
            ImageOp::Zero { len, .. } => {
                window.zero.record(*len, response, queue, service);
                return self.zeroes += 1;
            }
            ImageOp::Extents { .. } | ImageOp::Cache { .. } | ImageOp::Clone { .. } => {
                return;
            }
        };
        traffic.record(length as u64, response, queue, service);
        window.response.record(response);
        let requests = requests.get_or_insert_default();
        requests.traffic.record(length as u64, response, queue, service);
        requests.times.record(queue, service);
        requests.pattern.answered(response);
    }

    /// The window since the last one: if there was something in this one or the last,
    /// or something is under way.
    pub(crate) fn take_window(&mut self, span: Nanos, in_flight: u32) -> Option<Window> {
        let Window { flush, zero, errors, .. } = &self.window;
        let others = flush.operations + zero.operations + errors;
        let busy = in_flight > 0 || others + self.window.total().operations > 0;
        let was_busy = std::mem::replace(&mut self.was_busy, busy);
        (busy || was_busy).then(|| {
            let window = std::mem::take(&mut self.window);
            Window { span, in_flight, ..window }
        })
    }

    pub(crate) fn stats(&self, connections: u32, in_flight: u32) -> DiskStats {
        let traffic = |requests: &Option<Box<Requests>>| {
            requests.as_ref().map_or_else(Traffic::default, |requests| requests.traffic)
        };
        DiskStats {
            connections,
            in_flight,
            read: traffic(&self.read),
            write: traffic(&self.write),
            flushes: self.flushes,
            zeroes: self.zeroes,
            errors: self.errors,
        }
    }

    pub(crate) fn profile(&self, connections: u32, in_flight: u32) -> DiskProfile {
        DiskProfile {
            stats: self.stats(connections, in_flight),
            read: self.read.clone(),
            write: self.write.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::buffer::Pool;

    fn reads(offsets: impl Iterator<Item = u64>) -> Vec<ImageOp> {
        let pool = Pool::new(1 << 20).expect("a megabyte");
        let buffer = pool.get(4096).expect("a block");
        let read = |offset| ImageOp::Read { offset, buf: buffer.slice(0, 4096) };
        offsets.map(read).collect()
    }

    #[test]
    fn a_disk_that_has_become_idle_says_so_once() {
        let mut counters = Counters::default();
        let second = Nanos::from_secs(1);
        assert_eq!(counters.take_window(second, 0), None);
        let took = Took { queue: Nanos(0), service: Nanos::from_millis(1) };
        counters.answered(&reads([0].into_iter())[0], true, took);
        let window = counters.take_window(second, 0).expect("a read");
        assert_eq!((window.read.operations, window.span), (1, second));
        let idle = Window { span: second, ..Window::default() };
        assert_eq!(counters.take_window(second, 0), Some(idle));
        assert_eq!(counters.take_window(second, 0), None);
        // What hangs is not idle.
        assert_eq!(counters.take_window(second, 3).map(|it| it.in_flight), Some(3));
    }

    #[test]
    fn an_error_is_no_traffic_and_is_told() {
        let mut counters = Counters::default();
        let took = Took { queue: Nanos(0), service: Nanos::from_millis(1) };
        counters.answered(&reads([0].into_iter())[0], false, took);
        let stats = counters.stats(0, 0);
        assert_eq!((stats.errors, stats.read.operations), (1, 0));
        let window = counters.take_window(Nanos(1), 0).expect("an error");
        assert_eq!((window.errors, window.total().operations), (1, 0));
    }

    #[test]
    fn flushes_and_zeroes_are_timed_and_are_neither_reads_nor_writes() {
        let mut counters = Counters::default();
        let took = Took { queue: Nanos(10), service: Nanos::from_millis(2) };
        let (unmap, fua, fast) = (true, false, false);
        let zero = ImageOp::Zero { offset: 0, len: 4096, unmap, fua, fast };
        counters.answered(&ImageOp::Flush, true, took);
        counters.answered(&zero, true, took);
        let Window { flush, zero, read, write, .. } =
            counters.take_window(Nanos(1), 0).expect("a flush and a discard");
        assert_eq!((flush.operations, flush.bytes, flush.queue), (1, 0, Nanos(10)));
        assert_eq!((zero.operations, zero.bytes, zero.steps.len()), (1, 4096, 1));
        assert_eq!(read.operations + write.operations, 0);
    }

    /// The target is 100 ns. Run it alone, in a release build: `cargo test --release -p
    /// sterna-engine --lib -- --ignored --nocapture what_counting`.
    #[test]
    #[ignore = "a measurement"]
    fn what_counting_a_request_costs() {
        const ROUNDS: u64 = 2000;
        let scattered = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30) << 12;
        let all = reads((0..1024).map(scattered));
        for waited in [0, 70_000] {
            let mut counters = Counters::default();
            let mut now = 0;
            let start = Instant::now();
            for _ in 0..ROUNDS {
                for (at, op) in all.iter().enumerate() {
                    now += 10_000;
                    counters.arrived(Nanos(now), op, at % 32);
                    let service = Nanos(50_000 + (now >> 3) % 900_000);
                    let took = Took { queue: Nanos(waited * (at as u64 % 3)), service };
                    counters.answered(op, true, took);
                }
            }
            let nanos = start.elapsed().as_nanos() as f64;
            let each = nanos / (ROUNDS * all.len() as u64) as f64;
            println!("waits of {waited} ns: {each:.0} ns each");
        }
    }
}
