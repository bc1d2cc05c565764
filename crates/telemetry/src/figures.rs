//! What the application notices of a migration.
//!
//! The figures from before the move come from `samples`. While the move runs, all windows of
//! its disk are added up; and half a second is a window of its own, of which the worst counts:
//! that is what an application would complain about, and it must not drown in an average.

use sterna_api::{Application, Figures};
use sterna_core::Nanos;
use sterna_core::measure::{Summary, Window};

/// How long a window is of which the worst counts: two a second show a stall of the
/// length that guests notice.
const NOTICED: Nanos = Nanos::from_millis(500);
/// The span of what is shown as "now".
pub const RECENT: Nanos = Nanos::from_secs(10);
/// The percentile that figures speak of.
const PERCENTILE: f64 = 0.99;

/// A span in microseconds, as the API has it.
pub(crate) fn micros(span: Nanos) -> f64 {
    span.0 as f64 / 1e3
}

/// The figures of a window.
fn figures(window: &Window) -> Figures {
    Figures {
        window_s: window.span.as_secs_f64(),
        iops: window.iops(),
        bytes_per_second: window.bytes_per_second(),
        p99_us: window.response.quantile(PERCENTILE).map(micros),
    }
}

/// The figures of several windows; none before the first.
pub fn summarized(summary: &Summary) -> Option<Figures> {
    (summary.span > Nanos(0)).then(|| Figures {
        window_s: summary.span.as_secs_f64(),
        iops: summary.iops(),
        bytes_per_second: summary.bytes_per_second(),
        p99_us: summary.p99.map(micros),
    })
}

/// The figures of two times together. Of percentiles, no more is known than that theirs
/// lies between the two: the worse one is no understatement.
fn together(a: Figures, b: Figures) -> Figures {
    let window_s = a.window_s + b.window_s;
    let mean = |of_a: f64, of_b: f64| {
        (of_a * a.window_s + of_b * b.window_s) / window_s.max(f64::MIN_POSITIVE)
    };
    Figures {
        window_s,
        iops: mean(a.iops, b.iops),
        bytes_per_second: mean(a.bytes_per_second, b.bytes_per_second),
        p99_us: worse(a.p99_us, b.p99_us),
    }
}

/// What an application notices of a migration.
#[derive(Debug)]
pub struct Watch {
    /// What was recorded of the migration before this watch began.
    earlier: Figures,
    /// All windows so far.
    during: Window,
    /// Those that are not yet long enough together.
    now: Window,
    application: Application,
}

impl Watch {
    /// A watch that begins now, with what was before; after a restart of the
    /// daemon, with what was recorded.
    pub fn new(application: Application) -> Watch {
        Watch {
            earlier: application.during.unwrap_or_default(),
            during: Window::default(),
            now: Window::default(),
            application,
        }
    }

    /// Adds the disk's next window, while so much is the bound of its percentile, in
    /// microseconds.
    pub fn add(&mut self, window: &Window, bound: Option<u64>) {
        self.now.extend(window);
        if self.now.span < NOTICED {
            return;
        }
        let now = std::mem::take(&mut self.now);
        self.during.extend(&now);
        let noticed = figures(&now);
        self.application.worst_p99_us =
            worse(self.application.worst_p99_us, noticed.p99_us);
        if let Some(bound) = bound {
            let is_above = noticed.p99_us.is_some_and(|p99| p99 > bound as f64);
            let above = if is_above { noticed.window_s } else { 0.0 };
            *self.application.above_p99_s.get_or_insert(0.0) += above;
        }
        self.application.now = Some(noticed);
        self.application.during = Some(together(self.earlier, figures(&self.during)));
    }

    /// What was noticed so far.
    pub fn application(&self) -> Application {
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

    const TICK: Nanos = Nanos::from_millis(100);

    /// A tick with so many requests of 4 KiB that took so long each.
    fn tick(requests: u64, micros: u64) -> Window {
        let mut window = Window { span: TICK, ..Window::default() };
        for _ in 0..requests {
            let took = Nanos::from_micros(micros);
            window.read.record(4096, took, Nanos(0), took);
            window.response.record(took);
        }
        window
    }

    fn add(watch: &mut Watch, ticks: usize, window: &Window) {
        for _ in 0..ticks {
            watch.add(window, None);
        }
    }

    #[test]
    fn how_long_the_percentile_was_above_its_bound_is_counted() {
        let mut watch = Watch::new(Application::default());
        for (micros, bound) in [(100, None), (9000, Some(5000)), (100, Some(5000))] {
            (0..5).for_each(|_| watch.add(&tick(10, micros), bound));
        }
        assert_eq!(watch.application().above_p99_s, Some(0.5));
    }

    #[test]
    fn figures_are_of_half_a_second_and_of_all() {
        let mut watch = Watch::new(Application::default());
        add(&mut watch, 4, &tick(100, 200));
        assert_eq!(watch.application(), Application::default(), "not yet");
        add(&mut watch, 6, &tick(100, 200));
        add(&mut watch, 10, &tick(0, 0));
        let noticed = watch.application();
        let (now, during) = (noticed.now.unwrap(), noticed.during.unwrap());
        assert_eq!((now.window_s, now.iops, now.p99_us), (0.5, 0.0, None));
        assert_eq!((during.window_s, during.iops), (2.0, 500.0));
        assert_eq!(during.bytes_per_second, 500.0 * 4096.0);
        let p99 = during.p99_us.unwrap();
        assert!((190.0..210.0).contains(&p99), "{p99}");
    }

    #[test]
    fn the_worst_window_does_not_drown_in_the_average() {
        let mut watch = Watch::new(Application::default());
        add(&mut watch, 5, &tick(1000, 100));
        add(&mut watch, 5, &tick(1, 50_000));
        add(&mut watch, 5, &tick(1000, 100));
        let noticed = watch.application();
        assert!(noticed.worst_p99_us.unwrap() > 48_000.0);
        assert!(noticed.now.unwrap().p99_us.unwrap() < 110.0);
        assert!(noticed.during.unwrap().p99_us.unwrap() < 110.0);
    }

    #[test]
    fn what_was_recorded_before_a_restart_counts_by_its_time() {
        let mut first = Watch::new(Application::default());
        add(&mut first, 30, &tick(100, 200));
        let recorded = first.application();
        let mut second = Watch::new(recorded);
        assert_eq!(second.application(), recorded, "nothing is new yet");
        // After the restart, a second in which nobody has come back yet.
        add(&mut second, 10, &tick(0, 0));
        let during = second.application().during.unwrap();
        assert_eq!((during.window_s, during.iops), (4.0, 750.0));
        assert_eq!(during.bytes_per_second, 750.0 * 4096.0);
        assert_eq!(during.p99_us, recorded.during.unwrap().p99_us);
        add(&mut second, 5, &tick(100, 9000));
        assert!(second.application().during.unwrap().p99_us.unwrap() > 8000.0);
    }

    #[test]
    fn what_was_recorded_before_a_restart_is_the_worst_until_there_is_worse() {
        let worst_p99_us = Some(9000.0);
        let mut watch =
            Watch::new(Application { worst_p99_us, ..Application::default() });
        add(&mut watch, 5, &tick(10, 100));
        assert_eq!(watch.application().worst_p99_us, worst_p99_us);
        add(&mut watch, 5, &tick(10, 20_000));
        assert!(watch.application().worst_p99_us > worst_p99_us);
    }
}
