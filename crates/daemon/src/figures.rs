//! What applications get from their disks, window by window.
//!
//! The engine counts since a disk was attached; figures are differences between
//! two such counts. Of every disk the last seconds are kept, one count each
//! second, so that a migration can say what was *before* it. A disk that is
//! migrating is counted more often: the worst window of a migration is what an
//! application would complain about, and must not drown in an average.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sterna_api::{Application, Figures};
use sterna_engine::DiskStats;

/// How often every disk is counted.
pub(crate) const EVERY_DISK: Duration = Duration::from_secs(1);
/// How often a disk is counted that is migrating: two windows a second show a
/// stall of the length that guests notice.
pub(crate) const MIGRATING: Duration = Duration::from_millis(500);
/// How many counts of a disk are kept: ten seconds of figures. A count has two
/// histograms of some ten KiB, so this bounds what 250 disks need to tens of MiB.
const KEPT: usize = 11;
/// The percentile that figures speak of.
const PERCENTILE: f64 = 0.99;

/// What a disk had done at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    at: Instant,
    requests: u64,
    bytes: u64,
    /// Response times of reads and writes, in nanoseconds.
    response: Histogram<u64>,
}

impl Count {
    /// The engine's counters, at this moment.
    pub(crate) fn new(at: Instant, stats: &DiskStats) -> Count {
        let (read, write) = (&stats.read, &stats.write);
        let mut response = read.times.clone();
        // Both histograms have the engine's range; one that does not fit is
        // left out of the percentile, not of the counts.
        let _ = response.add(&write.times);
        let requests = read.operations + write.operations;
        Count { at, requests, bytes: read.bytes + write.bytes, response }
    }

    /// The figures of the window from `earlier` to this count.
    pub(crate) fn since(&self, earlier: &Count) -> Figures {
        let window_s = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        let per_second = |now: u64, then: u64| match window_s {
            0.0 => 0.0,
            _ => now.saturating_sub(then) as f64 / window_s,
        };
        Figures {
            window_s,
            iops: per_second(self.requests, earlier.requests),
            bytes_per_second: per_second(self.bytes, earlier.bytes),
            p99_us: self.p99_since(earlier),
        }
    }

    fn p99_since(&self, earlier: &Count) -> Option<f64> {
        let mut window = self.response.clone();
        window.subtract(&earlier.response).ok()?;
        let nanos = window.value_at_quantile(PERCENTILE);
        (!window.is_empty()).then_some(nanos as f64 / 1e3)
    }

    /// Whether this cannot follow `earlier`: the disk was attached anew.
    fn restarted(&self, earlier: &Count) -> bool {
        self.requests < earlier.requests
    }
}

/// The last seconds of a disk.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    counts: VecDeque<Count>,
}

impl Recent {
    /// Adds a count, and forgets what is too old.
    pub(crate) fn add(&mut self, count: Count) {
        if self.counts.back().is_some_and(|last| count.restarted(last)) {
            self.counts.clear();
        }
        if self.counts.len() == KEPT {
            self.counts.pop_front();
        }
        self.counts.push_back(count);
    }

    /// The figures of all that is kept: some ten seconds.
    pub(crate) fn figures(&self) -> Option<Figures> {
        let (first, last) = (self.counts.front()?, self.counts.back()?);
        (self.counts.len() > 1).then(|| last.since(first))
    }
}

/// What an application notices of a migration.
#[derive(Debug)]
pub(crate) struct Watch {
    first: Option<Count>,
    last: Option<Count>,
    application: Application,
}

impl Watch {
    /// A watch that begins now, with what was before; after a restart of the
    /// daemon, with what was recorded.
    pub(crate) fn new(application: Application) -> Watch {
        Watch { first: None, last: None, application }
    }

    /// Adds a count.
    pub(crate) fn add(&mut self, count: Count) {
        if self.last.as_ref().is_some_and(|last| count.restarted(last)) {
            (self.first, self.last) = (None, None);
        }
        if let Some(last) = &self.last {
            let now = count.since(last);
            self.application.worst_p99_us =
                worse(self.application.worst_p99_us, now.p99_us);
            self.application.now = Some(now);
        }
        let first = self.first.get_or_insert_with(|| count.clone());
        let during = count.since(first);
        if during.window_s > 0.0 {
            self.application.during = Some(during);
        }
        self.last = Some(count);
    }

    /// What was noticed so far.
    pub(crate) fn application(&self) -> Application {
        self.application
    }
}

fn worse(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that has answered `requests` in `micros` each, `at` seconds.
    fn count(start: Instant, at: u64, answers: &[(u64, u64)]) -> Count {
        let mut response = Histogram::new(3).unwrap();
        let mut requests = 0;
        for &(number, micros) in answers {
            response.record_n(micros * 1000, number).unwrap();
            requests += number;
        }
        let at = start + Duration::from_secs(at);
        Count { at, requests, bytes: requests * 4096, response }
    }

    #[test]
    fn figures_are_of_the_window_alone() {
        let start = Instant::now();
        let before = count(start, 0, &[(500, 9000)]);
        let after = count(start, 2, &[(500, 9000), (2000, 100)]);
        let figures = after.since(&before);
        assert_eq!((figures.iops, figures.bytes_per_second), (1000.0, 4_096_000.0));
        let p99 = figures.p99_us.unwrap();
        assert!((99.0..101.0).contains(&p99), "{p99}");
    }

    #[test]
    fn an_idle_disk_has_no_response_time() {
        let start = Instant::now();
        let idle = count(start, 0, &[]);
        assert_eq!(count(start, 1, &[]).since(&idle).p99_us, None);
    }

    #[test]
    fn the_last_seconds_are_kept_and_no_more() {
        let start = Instant::now();
        let mut recent = Recent::default();
        for second in 0..100 {
            recent.add(count(start, second, &[(second * 10, 100)]));
        }
        let figures = recent.figures().unwrap();
        assert_eq!((figures.window_s, figures.iops), (10.0, 10.0));
        // Attached anew: nothing of before counts.
        recent.add(count(start, 200, &[]));
        assert_eq!(recent.figures(), None);
    }

    #[test]
    fn the_worst_window_does_not_drown_in_the_average() {
        let start = Instant::now();
        let mut watch = Watch::new(Application::default());
        watch.add(count(start, 0, &[]));
        watch.add(count(start, 1, &[(1000, 100)]));
        watch.add(count(start, 2, &[(1000, 100), (5, 50_000)]));
        watch.add(count(start, 3, &[(2000, 100), (5, 50_000)]));
        let noticed = watch.application();
        assert!(noticed.worst_p99_us.unwrap() > 49_000.0);
        assert!(noticed.now.unwrap().p99_us.unwrap() < 110.0);
        assert!(noticed.during.unwrap().p99_us.unwrap() < 110.0);
    }
}
