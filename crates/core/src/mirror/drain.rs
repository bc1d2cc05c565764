//! What may be in flight while the guest is idle, so that its first request on
//! coming back does not wait long.
//!
//! A device serves what it was given before it serves the guest. So what the copier
//! has at the source must be done within [`DRAIN`]: as many bytes as the source reads
//! in that time. The window follows the time that reads take, as PARDA's does
//! (Gulati, Ahmad, Waldspurger, FAST 2009):
//!
//! ```text
//! w(t+1) = (1 - G) w(t) + G (DRAIN / time(t)) w(t)
//! ```
//!
//! A device that is slow whatever it is given (a server far away) is left with the
//! least window; no window would make the guest's own requests any faster there.

use crate::Nanos;

/// How long the guest's first request may wait for reads of the copier. A disk
/// takes that long for a seek and a turn, so an application built for disks does not
/// notice one; and all devices that Sterna was measured on reach their full speed
/// with less in flight.
pub(super) const DRAIN: Nanos = Nanos::from_millis(5);

/// The part of each step.
const G: f64 = 0.125;

/// A step changes the window by no more than this factor: one slow read among many
/// is a hiccup.
const STEP_MAX: f64 = 2.0;

/// The window to begin with: 5 ms of 200 MB/s.
const FIRST: f64 = (1 << 20) as f64;

/// Below this a device stands idle between two reads.
const MIN: f64 = (256 << 10) as f64;

/// All the memory that the copier has.
const MAX: f64 = (12 << 20) as f64;

/// How many bytes the copier may have at the source.
#[derive(Debug)]
pub(super) struct Drain {
    window: f64,
}

impl Drain {
    pub(super) fn new() -> Self {
        Drain { window: FIRST }
    }

    /// Bytes that may be at the source at once.
    pub(super) fn window(&self) -> u64 {
        self.window as u64
    }

    /// Bytes in a chunk at most: two fit the window, so that the source has the next
    /// when it is done with one.
    pub(super) fn chunk(&self) -> u64 {
        1 << (self.window() / 2).ilog2()
    }

    /// The source has read a chunk of so many bytes in `took`, with `in_flight` there.
    pub(super) fn read(&mut self, bytes: u64, took: Nanos, in_flight: u64) {
        let wanted = DRAIN.0 as f64 / (took.0 as f64).max(1.0);
        let step = 1.0 + G * (wanted.clamp(1.0 / STEP_MAX, STEP_MAX) - 1.0);
        // A window that was not used up says nothing about a larger one.
        if step < 1.0 || (in_flight + bytes) as f64 > self.window {
            self.window = (self.window * step).clamp(MIN, MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the window against a device with a queue; gives bytes per second.
    fn settle(drain: &mut Drain, rate: f64, floor: Nanos) -> f64 {
        let mut speed = 0.0;
        for _ in 0..500 {
            let window = drain.window() as f64;
            let took = (window / rate).max(floor.as_secs_f64());
            drain.read(drain.chunk(), Nanos((took * 1e9) as u64), drain.window());
            speed = window / took;
        }
        speed
    }

    #[test]
    fn what_is_in_flight_is_done_in_time_at_full_speed() {
        for mib in [100.0, 500.0, 2000.0] {
            let rate = mib * 1048576.0;
            let mut drain = Drain::new();
            let speed = settle(&mut drain, rate, Nanos::from_micros(80));
            let takes = drain.window() as f64 / rate;
            assert!(takes < 0.0055, "{mib} MiB/s: {takes} s in flight");
            assert!(speed > 0.95 * rate, "{mib} MiB/s: {speed}");
        }
    }

    #[test]
    fn a_device_that_is_slow_in_any_case_gets_the_least_window() {
        let mut drain = Drain::new();
        settle(&mut drain, 1e9, Nanos::from_millis(50));
        assert_eq!(drain.window(), MIN as u64);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut drain = Drain::new();
        for _ in 0..100 {
            drain.read(64 << 10, Nanos::from_micros(100), 64 << 10);
        }
        assert_eq!(drain.window(), FIRST as u64);
    }
}
