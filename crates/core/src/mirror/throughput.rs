//! What the copier gets through.
//!
//! It is measured window by window, and known at two speeds: as it is now, and over so long a
//! time that it says when the rest is done.

use crate::Nanos;

/// How long throughput is measured. Long enough for some hundred chunks on a fast
/// device and a handful on a slow one.
const WINDOW: Nanos = Nanos::from_millis(300);

/// So long without a chunk is a throughput, too: none.
const LULL: Nanos = Nanos::from_secs(1);

/// What the time left is made from looks back over a quarter of the time that was copied,
/// but over no less than this, or people see it jump with each busy second of a guest.
const LOOKS_BACK_LEAST: Nanos = Nanos::from_secs(3);
/// And over no more, or it does not follow a night that is quieter than the day was.
const LOOKS_BACK_MOST: Nanos = Nanos::from_secs(120);

/// What the copier gets through, in bytes per second.
#[derive(Debug)]
pub(super) struct Throughput {
    window_start: Nanos,
    window_bytes: u64,
    /// Smoothed over windows.
    smoothed: f64,
    /// The same over the time that it looks back; nothing before the first window.
    steady: Option<f64>,
    /// The windows that are over, all together.
    measured: Nanos,
}

impl Throughput {
    /// None was measured yet.
    pub(super) fn new(now: Nanos) -> Throughput {
        Throughput {
            window_start: now,
            window_bytes: 0,
            smoothed: 0.0,
            steady: None,
            measured: Nanos(0),
        }
    }

    /// So many bytes are done. Gives the rate of the window, if that is over.
    pub(super) fn done(&mut self, now: Nanos, bytes: u64) -> Option<f64> {
        if bytes == 0 && self.window_bytes == 0 {
            // The way over a hole, which says nothing of the work behind it.
            self.window_start = now;
            return None;
        }
        self.window_bytes += bytes;
        self.end_window(now, WINDOW)
    }

    /// The same where nothing may be done for a while.
    pub(super) fn look(&mut self, now: Nanos) -> Option<f64> {
        self.end_window(now, LULL)
    }

    fn end_window(&mut self, now: Nanos, after: Nanos) -> Option<f64> {
        let span = now.since(self.window_start);
        if span < after {
            return None;
        }
        let rate = self.window_bytes as f64 / span.as_secs_f64();
        self.smoothed =
            if self.smoothed == 0.0 { rate } else { 0.7 * self.smoothed + 0.3 * rate };
        self.measured = self.measured.plus(span);
        let quarter = Nanos(self.measured.0 / 4);
        let looks_back = quarter.clamp(LOOKS_BACK_LEAST, LOOKS_BACK_MOST);
        let weight = 1.0 - (-span.as_secs_f64() / looks_back.as_secs_f64()).exp();
        let before = self.steady.unwrap_or(rate);
        self.steady = Some(before + weight * (rate - before));
        (self.window_start, self.window_bytes) = (now, 0);
        Some(rate)
    }

    /// From now on it goes on at another rate: with another limit.
    pub(super) fn changes(&mut self) {
        (self.steady, self.measured) = (None, Nanos(0));
    }

    /// The copier stood still until `now`: a window must not span the gap.
    pub(super) fn restart(&mut self, now: Nanos) {
        (self.window_start, self.window_bytes) = (now, 0);
        self.smoothed = 0.0;
    }

    /// As it is now.
    pub(super) fn rate(&self) -> f64 {
        self.smoothed
    }

    /// Over so long a time that it says when the rest is done; nothing while nothing is got
    /// through.
    pub(super) fn steady(&self) -> Option<f64> {
        self.steady.filter(|rate| *rate > 0.0 && self.smoothed > 0.0)
    }
}
