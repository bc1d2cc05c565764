//! How fast the copier goes: the size of its chunks, how many are in flight,
//! and the operator's limit.
//!
//! Chunk and depth are one ladder with few rungs, from gentle to greedy, all
//! within 12 MiB, so that a migration stays within its memory. Each window the throughput at the present rung is
//! measured; the pace climbs while that pays and steps back when it does not,
//! then rests for a while before it tries again, since devices change.
//!
//! The limit is a token bucket that may go into debt by one chunk: a chunk is
//! charged in full when it starts and what turned out to be zeroes is refunded.

use crate::Nanos;

/// The rungs: bytes in a chunk, chunks in flight.
const LADDER: [(u64, usize); 6] = [
    (256 << 10, 4),
    (512 << 10, 4),
    (1 << 20, 4),
    (1 << 20, 8),
    (1 << 20, 12),
    (2 << 20, 6),
];

/// The rung to begin with: close to the best on most devices, and not yet greedy.
const FIRST_RUNG: usize = 3;

/// The smallest chunk; with a low limit, chunks shrink so that the copier stays
/// smooth instead of bursting.
const CHUNK_MIN: u64 = 64 << 10;

/// How long a rung is measured. Long enough for some hundred chunks on a fast
/// device and a handful on a slow one.
const WINDOW: Nanos = Nanos::from_millis(300);

/// A climb must gain this much to be kept; less is noise.
const GAIN: f64 = 1.04;

/// Windows to stay on a rung after the neighbours were found no better.
const REST: u32 = 20;

/// The limit's burst: as much as this span allows.
const BURST: Nanos = Nanos::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Search {
    /// Measuring the rung we are on, to compare others with it.
    Measuring,
    /// Trying a neighbour; the figure to beat, and the rung to go back to.
    Trying { best: f64, home: usize },
    /// Staying for so many windows.
    Resting(u32),
}

/// How fast the copier goes.
#[derive(Debug)]
pub(super) struct Pace {
    rung: usize,
    search: Search,
    upwards: bool,
    window_start: Nanos,
    window_bytes: u64,
    /// Bytes per second, smoothed over windows; what ETA is made from.
    smoothed: f64,
    limit: Option<u64>,
    tokens: f64,
    filled: Nanos,
}

impl Pace {
    pub(super) fn new(now: Nanos, limit: Option<u64>) -> Self {
        let mut pace = Pace {
            rung: FIRST_RUNG,
            search: Search::Measuring,
            upwards: true,
            window_start: now,
            window_bytes: 0,
            smoothed: 0.0,
            limit: None,
            tokens: 0.0,
            filled: now,
        };
        pace.set_limit(now, limit);
        pace
    }

    /// Sets or lifts the limit in bytes per second; in force at once.
    pub(super) fn set_limit(&mut self, now: Nanos, limit: Option<u64>) {
        self.limit = limit.map(|rate| rate.max(1));
        self.tokens = 0.0;
        self.filled = now;
    }

    /// Bytes that a chunk should have now.
    pub(super) fn chunk(&self) -> u64 {
        let chunk = LADDER[self.rung].0;
        match self.limit {
            // A tenth of a second's allowance, as a power of two.
            Some(rate) => chunk.min((rate / 10).next_power_of_two()).max(CHUNK_MIN),
            None => chunk,
        }
    }

    /// Chunks that may be in flight now.
    pub(super) fn depth(&self) -> usize {
        LADDER[self.rung].1
    }

    fn fill(&mut self, now: Nanos) {
        if let Some(rate) = self.limit {
            let burst = (rate as f64 * BURST.as_secs_f64()).max(1.0);
            let earned = rate as f64 * now.since(self.filled).as_secs_f64();
            self.tokens = (self.tokens + earned).min(burst);
            self.filled = now;
        }
    }

    /// Whether a chunk may start now; if not, when.
    pub(super) fn allows(&mut self, now: Nanos) -> Result<(), Nanos> {
        self.fill(now);
        match self.limit {
            Some(rate) if self.tokens < 0.0 => {
                let wait = -self.tokens / rate as f64;
                Err(now.plus(Nanos((wait * 1e9) as u64 + 1)))
            }
            _ => Ok(()),
        }
    }

    /// A chunk of `bytes` starts.
    pub(super) fn charge(&mut self, bytes: u64) {
        if self.limit.is_some() {
            self.tokens -= bytes as f64;
        }
    }

    /// A chunk of `bytes` has ended; `written` of them went over the wire.
    pub(super) fn done(&mut self, now: Nanos, bytes: u64, written: u64) {
        if self.limit.is_some() {
            self.tokens += bytes.saturating_sub(written) as f64;
        }
        self.window_bytes += bytes;
        let span = now.since(self.window_start);
        if span >= WINDOW {
            let rate = self.window_bytes as f64 / span.as_secs_f64();
            self.smoothed = if self.smoothed == 0.0 {
                rate
            } else {
                0.7 * self.smoothed + 0.3 * rate
            };
            self.window_start = now;
            self.window_bytes = 0;
            self.search(rate);
        }
    }

    /// The copier stood still until `now`: a window must not span the gap.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.window_start = now;
        self.window_bytes = 0;
        self.search = Search::Measuring;
        self.smoothed = 0.0;
    }

    /// What the copier gets through, bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.smoothed
    }

    fn neighbour(&self) -> Option<usize> {
        if self.upwards {
            (self.rung + 1 < LADDER.len()).then(|| self.rung + 1)
        } else {
            self.rung.checked_sub(1)
        }
    }

    /// A window at the present rung gave `rate`: where next?
    fn search(&mut self, rate: f64) {
        if self.limit.is_some() {
            return; // The limit decides, not the rung.
        }
        self.search = match self.search {
            Search::Measuring => self.step_from(rate),
            Search::Trying { best, .. } if rate > best * GAIN => self.step_from(rate),
            Search::Trying { home, .. } => {
                self.rung = home;
                self.upwards = !self.upwards;
                Search::Resting(REST)
            }
            Search::Resting(0) => Search::Measuring,
            Search::Resting(left) => Search::Resting(left - 1),
        };
    }

    fn step_from(&mut self, rate: f64) -> Search {
        match self.neighbour() {
            Some(next) => {
                let home = self.rung;
                self.rung = next;
                Search::Trying { best: rate, home }
            }
            None => {
                self.upwards = !self.upwards;
                Search::Resting(REST)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Runs the pace against a device for `seconds`; gives the bytes copied.
    fn run(pace: &mut Pace, seconds: u64, device: impl Fn(u64, usize) -> f64) -> u64 {
        let (mut now, mut copied) = (Nanos(0), 0);
        while now < Nanos::from_secs(seconds) {
            if let Err(later) = pace.allows(now) {
                now = later;
                continue;
            }
            let chunk = pace.chunk();
            pace.charge(chunk);
            let took = chunk as f64 / device(chunk, pace.depth());
            now = now.plus(Nanos((took * 1e9) as u64));
            pace.done(now, chunk, chunk);
            copied += chunk;
        }
        copied
    }

    #[test]
    fn a_limit_is_kept_within_two_percent() {
        let mut pace = Pace::new(Nanos(0), Some(50 * MIB));
        let copied = run(&mut pace, 20, |_, _| 1e9);
        let expected = 20.0 * 50.0 * MIB as f64;
        let ratio = copied as f64 / expected;
        assert!((0.98..1.02).contains(&ratio), "copied {ratio} of the allowance");
    }

    #[test]
    fn zeroes_are_not_charged() {
        let mut pace = Pace::new(Nanos(0), Some(MIB));
        pace.charge(4 * MIB);
        assert!(pace.allows(Nanos(1)).is_err());
        pace.done(Nanos(2), 4 * MIB, 0);
        assert_eq!(pace.allows(Nanos(3)), Ok(()));
    }

    #[test]
    fn a_device_that_rewards_depth_is_given_depth() {
        let mut pace = Pace::new(Nanos(0), None);
        run(&mut pace, 10, |chunk, depth| (chunk * depth as u64) as f64 * 100.0);
        assert!(pace.chunk() * pace.depth() as u64 >= 8 * MIB);
    }

    #[test]
    fn a_device_that_does_not_care_is_not_given_more() {
        let mut pace = Pace::new(Nanos(0), None);
        let before = (pace.chunk(), pace.depth());
        run(&mut pace, 3, |_, _| 5e8);
        assert_eq!((pace.chunk(), pace.depth()), before);
    }

    #[test]
    fn a_low_limit_makes_chunks_small() {
        let pace = Pace::new(Nanos(0), Some(MIB));
        assert_eq!(pace.chunk(), 128 << 10);
    }
}
