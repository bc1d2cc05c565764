//! What a run has come to so far.
//!
//! Users tell what they did, and once a second a window is closed. What is told before
//! the measurement has begun is shown as it happens, and forgotten; so is what is told
//! after its end, so that an order counts only if it ended within the time that orders
//! per second are counted over.
//!
//! Pure: moments are counted from the run's start.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::session::Kind;

/// Times beyond this are counted as this. (Ten minutes.)
const LONGEST_US: u64 = 600_000_000;
/// A line is made of the windows of ten seconds, whose ends are not to the millisecond
/// where they should be.
const LINE: Duration = Duration::from_millis(9_500);
/// How many kinds of things have a time.
const KINDS: usize = 5;

/// What happened in some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// When it ended, in seconds from the end of the warm-up: during it, negative.
    pub at_s: f64,
    /// Orders that were acknowledged.
    pub orders: u64,
    /// Orders a second.
    pub orders_per_s: f64,
    /// Orders that were due in it and have been acknowledged, then or (in the series of a
    /// report) since. In a closed loop an order is due when its user begins with it.
    pub due: u64,
    /// Purchases that were rolled back.
    pub rollbacks: u64,
    /// Visits that ended with an error.
    pub errors: u64,
    /// Of the response times of orders in microseconds: the median.
    pub p50_us: u64,
    /// The 95th percentile.
    pub p95_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
    /// For how long the oldest order under way has been waiting at the window's end.
    pub waiting_us: u64,
    /// Users who had a connection at the window's end.
    pub connected: usize,
}

/// Response times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How many there were.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: u64,
    /// The 95th percentile.
    pub p95_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// Of a thousand, all but one were shorter.
    pub p999_us: u64,
    /// The longest.
    pub max_us: u64,
}

/// Errors of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// What PostgreSQL calls it, or `connection` or `login`.
    pub kind: String,
    /// How often.
    pub count: u64,
    /// The words of the first one.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Measured,
    Over,
}

/// Where a user is.
#[derive(Clone, Copy, Debug, Default)]
struct User {
    connected: bool,
    /// Since when an order is under way.
    since: Option<Duration>,
}

/// Counts of a window or a line.
struct Part {
    began: Duration,
    times: Histogram<u64>,
    due: u64,
    rollbacks: u64,
    errors: u64,
}

/// The figures of a run.
pub(crate) struct Tally {
    phase: Phase,
    /// When the measurement begins, or began.
    start: Duration,
    second: Part,
    line: Part,
    users: Vec<User>,
    times: [Histogram<u64>; KINDS],
    rollbacks: u64,
    troubles: BTreeMap<String, (u64, String)>,
    reconnects: u64,
    last_order: Duration,
    longest_pause: Duration,
    series: Vec<Window>,
}

/// All figures at the end of a run.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) seconds: f64,
    pub(crate) times: [Times; KINDS],
    pub(crate) rollbacks: u64,
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) reconnects: u64,
    pub(crate) longest_pause: Duration,
    pub(crate) waiting: Duration,
    pub(crate) series: Vec<Window>,
}

impl Tally {
    /// Nothing yet; the measurement is to begin at `start`.
    pub(crate) fn new(users: usize, start: Duration) -> Tally {
        Tally {
            phase: Phase::WarmUp,
            start,
            second: Part::new(Duration::ZERO),
            line: Part::new(Duration::ZERO),
            users: vec![User::default(); users],
            times: std::array::from_fn(|_| histogram()),
            rollbacks: 0,
            troubles: BTreeMap::new(),
            reconnects: 0,
            last_order: start,
            longest_pause: Duration::ZERO,
            series: Vec::new(),
        }
    }

    /// The warm-up is over.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.phase = Phase::Measured;
        (self.start, self.last_order) = (now, now);
        self.second = Part::new(now);
        self.line = Part::new(now);
    }

    /// A user has a connection, or has it no more.
    pub(crate) fn connected(&mut self, user: usize, connected: bool) {
        self.users[user].connected = connected;
    }

    /// A connection that was lost is there again.
    pub(crate) fn reconnected(&mut self) {
        if self.phase == Phase::Measured {
            self.reconnects += 1;
        }
    }

    /// A user begins with an order that was due then.
    pub(crate) fn started(&mut self, user: usize, due: Duration) {
        self.users[user].since = Some(due);
    }

    /// Something took so long.
    pub(crate) fn took(&mut self, kind: Kind, time: Duration) {
        if self.phase == Phase::Measured {
            record(&mut self.times[kind as usize], time);
        }
    }

    /// A user's order was acknowledged; it was due then.
    pub(crate) fn ordered(&mut self, user: usize, due: Duration, now: Duration) {
        self.users[user].since = None;
        let time = now.saturating_sub(due);
        record(&mut self.second.times, time);
        self.was_due(due);
        if self.phase == Phase::Measured {
            record(&mut self.times[Kind::Order as usize], time);
            let pause = now.saturating_sub(self.last_order);
            self.longest_pause = self.longest_pause.max(pause);
            self.last_order = now;
        }
    }

    /// Counts an order to the window in which it was due.
    fn was_due(&mut self, due: Duration) {
        if due >= self.second.began {
            self.second.due += 1;
            return;
        }
        if due >= self.line.began {
            self.line.due += 1;
        }
        let at_s = due.as_secs_f64() - self.start.as_secs_f64();
        // Of those that were due before the measurement, no window tells.
        let index = self.series.partition_point(|window| window.at_s <= at_s);
        if let Some(window) = self.series.get_mut(index).filter(|_| at_s >= 0.0) {
            window.due += 1;
        }
    }

    /// A user's purchase was rolled back.
    pub(crate) fn rolled_back(&mut self, user: usize) {
        self.users[user].since = None;
        self.second.rollbacks += 1;
        if self.phase == Phase::Measured {
            self.rollbacks += 1;
        }
    }

    /// A user's visit ended with an error.
    pub(crate) fn failed(&mut self, user: usize, kind: &str, text: &str) {
        self.users[user].since = None;
        self.second.errors += 1;
        if self.phase == Phase::Measured {
            let entry = self.troubles.entry(kind.to_owned());
            entry.or_insert_with(|| (0, text.to_owned())).0 += 1;
        }
    }

    /// Closes a window; every ten seconds it gives what happened since the last line.
    pub(crate) fn tick(&mut self, now: Duration) -> Option<Window> {
        let part = std::mem::replace(&mut self.second, Part::new(now));
        if self.phase == Phase::Measured {
            let window = self.window(&part, now);
            self.series.push(window);
        }
        self.line.add(&part);
        if now.saturating_sub(self.line.began) < LINE {
            return None;
        }
        let line = std::mem::replace(&mut self.line, Part::new(now));
        Some(self.window(&line, now))
    }

    /// The measurement is over. One that has not begun has measured no time.
    pub(crate) fn end(&mut self, now: Duration) -> Figures {
        if self.phase == Phase::WarmUp {
            self.begin(now);
        }
        let waiting = self.waiting(now);
        if self.second.began < now {
            let _ = self.tick(now);
        }
        self.phase = Phase::Over;
        let pause = now.saturating_sub(self.last_order);
        let troubles = self.troubles.iter().map(|(kind, (count, text))| Trouble {
            kind: kind.clone(),
            count: *count,
            text: text.clone(),
        });
        Figures {
            seconds: now.saturating_sub(self.start).as_secs_f64(),
            times: std::array::from_fn(|kind| times(&self.times[kind])),
            rollbacks: self.rollbacks,
            troubles: troubles.collect(),
            reconnects: self.reconnects,
            longest_pause: self.longest_pause.max(pause),
            waiting,
            series: std::mem::take(&mut self.series),
        }
    }

    /// For how long the oldest order under way has been waiting.
    fn waiting(&self, now: Duration) -> Duration {
        let oldest = self.users.iter().filter_map(|user| user.since).min();
        oldest.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    fn window(&self, part: &Part, now: Duration) -> Window {
        let span = now.saturating_sub(part.began).as_secs_f64().max(1e-9);
        let (orders, times) = (part.times.len(), times(&part.times));
        Window {
            at_s: now.as_secs_f64() - self.start.as_secs_f64(),
            orders,
            orders_per_s: orders as f64 / span,
            due: part.due,
            rollbacks: part.rollbacks,
            errors: part.errors,
            p50_us: times.p50_us,
            p95_us: times.p95_us,
            p99_us: times.p99_us,
            max_us: times.max_us,
            waiting_us: self.waiting(now).as_micros() as u64,
            connected: self.users.iter().filter(|user| user.connected).count(),
        }
    }
}

impl Part {
    fn new(began: Duration) -> Part {
        Part { began, times: histogram(), due: 0, rollbacks: 0, errors: 0 }
    }

    fn add(&mut self, other: &Part) {
        self.times.add(&other.times).expect("the bounds are the same");
        self.due += other.due;
        self.rollbacks += other.rollbacks;
        self.errors += other.errors;
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).expect("the bounds are right")
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(time.as_micros().max(1) as u64);
}

fn times(of: &Histogram<u64>) -> Times {
    Times {
        count: of.len(),
        mean_us: of.mean(),
        p50_us: of.value_at_quantile(0.5),
        p95_us: of.value_at_quantile(0.95),
        p99_us: of.value_at_quantile(0.99),
        p999_us: of.value_at_quantile(0.999),
        max_us: of.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn only_what_ends_in_the_measured_time_counts() {
        let mut tally = Tally::new(1, s(10));
        tally.ordered(0, s(4), s(5));
        tally.rolled_back(0);
        tally.begin(s(10));
        tally.ordered(0, s(9), s(11));
        tally.ordered(0, s(12), s(13));
        let figures = tally.end(s(20));
        tally.ordered(0, s(19), s(21));
        assert_eq!(figures.times[Kind::Order as usize].count, 2);
        assert_eq!((figures.rollbacks, figures.seconds), (0, 10.0));
    }

    #[test]
    fn of_a_run_that_ends_in_its_warm_up_nothing_was_measured() {
        let mut tally = Tally::new(1, s(60));
        tally.ordered(0, s(1), s(2));
        tally.tick(s(3));
        let figures = tally.end(s(4));
        assert_eq!((figures.seconds, figures.longest_pause), (0.0, s(0)));
        assert_eq!(figures.times[Kind::Order as usize].count, 0);
        assert!(figures.series.is_empty());
    }

    #[test]
    fn a_line_is_ten_windows_and_the_series_has_each() {
        let mut tally = Tally::new(1, s(0));
        tally.begin(s(0));
        let mut lines = Vec::new();
        for second in 1..=20 {
            tally.ordered(0, s(second - 1), s(second));
            lines.extend(tally.tick(s(second)));
        }
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[1].orders, lines[1].orders_per_s), (10, 1.0));
        assert_eq!(tally.end(s(20)).series.len(), 20);
    }

    #[test]
    fn a_server_that_stands_still_is_seen_while_it_does() {
        let mut tally = Tally::new(2, s(0));
        tally.begin(s(0));
        tally.ordered(0, s(0), s(1));
        tally.started(1, s(1));
        for second in 1..=10 {
            tally.tick(s(second));
        }
        let figures = tally.end(s(10));
        assert_eq!(figures.series[6].orders, 0);
        assert_eq!(figures.series[6].waiting_us, 6_000_000);
        assert_eq!((figures.longest_pause, figures.waiting), (s(9), s(9)));
    }

    #[test]
    fn an_order_is_counted_to_the_window_in_which_it_was_due() {
        let mut tally = Tally::new(1, s(1));
        tally.begin(s(1));
        tally.ordered(0, s(0), s(2));
        tally.tick(s(2));
        tally.tick(s(3));
        // Nobody was served for two seconds; one was due at the very end of the first.
        for due in [1500, 2000, 2500, 3000] {
            tally.ordered(0, Duration::from_millis(due), s(3));
        }
        let series = tally.end(s(4)).series;
        let due: Vec<u64> = series.iter().map(|window| window.due).collect();
        let orders: Vec<u64> = series.iter().map(|window| window.orders).collect();
        assert_eq!((due, orders), (vec![1, 2, 1], vec![1, 0, 4]));
    }

    #[test]
    fn errors_are_counted_by_their_kind() {
        let mut tally = Tally::new(1, s(0));
        tally.begin(s(0));
        tally.failed(0, "57P01", "the first");
        tally.failed(0, "57P01", "the second");
        tally.failed(0, "connection", "gone");
        let troubles = tally.end(s(1)).troubles;
        assert_eq!((troubles[0].count, troubles[0].text.as_str()), (2, "the first"));
        assert_eq!(troubles[1].kind, "connection");
    }

    #[test]
    fn during_the_warm_up_time_is_counted_down() {
        let mut tally = Tally::new(1, s(60));
        let lines: Vec<Window> = (1..=10).filter_map(|at| tally.tick(s(at))).collect();
        assert_eq!(lines[0].at_s, -50.0);
    }
}
