//! Figures, by interval and for the whole run, as lines of JSON.
//!
//! A request that was under way at an interval's end counts where it ends. So
//! that a stall shows while it lasts, an interval also carries the age of the
//! oldest request that is still waiting.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;

/// The figures of one interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// When it ended, since the run began.
    pub at: Duration,
    /// Reads, writes and the rest per second.
    pub ios: f64,
    /// Bytes per second.
    pub bytes: f64,
    /// Latencies in microseconds: half, 99 of 100, and all were not longer.
    pub us: [u64; 3],
    /// How long the oldest unanswered request has waited, in microseconds.
    pub waiting_us: u64,
    /// Connections that stand.
    pub connected: usize,
}

/// The figures of the run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// How long it ran.
    pub seconds: f64,
    /// Answered reads (all of them compared).
    pub reads: u64,
    /// Acknowledged writes, zeroes and trims.
    pub writes: u64,
    /// Acknowledged flushes.
    pub flushes: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// Blocks that did not hold what they must.
    pub wrong: u64,
    /// How often a connection was made again.
    pub reconnects: u64,
    /// Latencies as in [`Interval`].
    pub us: [u64; 3],
    /// When the longest request ended, in seconds since the run began.
    pub longest_at: f64,
}

/// Collects latencies.
pub(crate) struct Stats {
    began: std::time::Instant,
    interval: Histogram<u64>,
    total: Histogram<u64>,
    bytes: u64,
    last: Duration,
    longest: Duration,
    pub(crate) summary: Summary,
}

/// Latencies beyond this are counted as this. (Ten minutes.)
const LONGEST_US: u64 = 600_000_000;

impl Stats {
    pub(crate) fn new(began: std::time::Instant, seed: u64) -> Stats {
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_US, 3).expect("the bounds are right")
        };
        Stats {
            began,
            interval: histogram(),
            total: histogram(),
            bytes: 0,
            last: Duration::ZERO,
            longest: Duration::ZERO,
            summary: Summary { seed, ..Summary::default() },
        }
    }

    pub(crate) fn answered(&mut self, latency: Duration, bytes: u64) {
        self.interval.saturating_record(latency.as_micros().max(1) as u64);
        self.bytes += bytes;
        if latency > self.longest {
            self.longest = latency;
            self.summary.longest_at = self.began.elapsed().as_secs_f64();
        }
    }

    /// Closes an interval.
    pub(crate) fn interval(&mut self, waiting: Duration, connected: usize) -> Interval {
        let at = self.began.elapsed();
        let seconds = (at - self.last).as_secs_f64().max(1e-9);
        let out = Interval {
            at,
            ios: self.interval.len() as f64 / seconds,
            bytes: self.bytes as f64 / seconds,
            us: quantiles(&self.interval),
            waiting_us: waiting.as_micros() as u64,
            connected,
        };
        self.total.add(&self.interval).expect("the bounds are the same");
        self.interval.reset();
        self.bytes = 0;
        self.last = at;
        out
    }

    /// The figures of everything so far.
    pub(crate) fn finish(mut self) -> Summary {
        self.total.add(&self.interval).expect("the bounds are the same");
        self.summary.us = quantiles(&self.total);
        self.summary.us[2] = self.longest.as_micros() as u64;
        self.summary.seconds = self.began.elapsed().as_secs_f64();
        self.summary
    }
}

fn quantiles(histogram: &Histogram<u64>) -> [u64; 3] {
    [histogram.value_at_quantile(0.5), histogram.value_at_quantile(0.99), histogram.max()]
}

impl Interval {
    /// The interval as one line of JSON. `unix_ms` is the wall clock, by
    /// which a reader can match it with what it did to the server.
    pub fn json(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let [p50, p99, max] = self.us;
        format!(
            "{{\"at_ms\":{},\"unix_ms\":{},\"ios\":{:.1},\"bytes\":{:.0},\"p50_us\":{p50},\
             \"p99_us\":{p99},\"max_us\":{max},\"waiting_us\":{},\"connected\":{}}}",
            self.at.as_millis(),
            now.as_millis(),
            self.ios,
            self.bytes,
            self.waiting_us,
            self.connected,
        )
    }
}

impl Summary {
    /// The summary as one line of JSON.
    pub fn json(&self) -> String {
        let [p50, p99, max] = self.us;
        let mut out = format!(
            "{{\"seed\":{},\"seconds\":{:.3},\"reads\":{},\"writes\":{},\"flushes\":{}",
            self.seed, self.seconds, self.reads, self.writes, self.flushes
        );
        let _ = write!(
            out,
            ",\"errors\":{},\"wrong\":{},\"reconnects\":{},\"p50_us\":{p50},\
             \"p99_us\":{p99},\"longest_us\":{max},\"longest_at_s\":{:.3}}}",
            self.errors, self.wrong, self.reconnects, self.longest_at
        );
        out
    }
}
