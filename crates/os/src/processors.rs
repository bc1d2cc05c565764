//! How much of this host's processors is idle.
//!
//! The kernel counts in hundredths of a second, so it is looked at over a second. Where
//! it does not tell, all of them count as idle.

use std::fs;
use std::time::{Duration, Instant};

/// The time over which it is looked.
const SPAN: Duration = Duration::from_secs(1);

/// Ticks that all processors were idle, and all ticks, since the host's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    fn now() -> Option<Ticks> {
        Ticks::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The file's first line: `cpu user nice system idle iowait irq softirq steal …`.
    fn of(text: &str) -> Option<Ticks> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        // What guests use is in what users use.
        let ticks = line.split_whitespace().take(8).map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        let (&idle, &waiting) = (ticks.get(3)?, ticks.get(4)?);
        Some(Ticks { idle: idle + waiting, all: ticks.iter().sum() })
    }

    /// The part of the ticks since then that was idle.
    fn idle_since(&self, then: &Ticks) -> f64 {
        if self.all <= then.all {
            return 1.0; // It does not count.
        }
        let idle = self.idle.saturating_sub(then.idle);
        (idle as f64 / (self.all - then.all) as f64).min(1.0)
    }
}

/// The host's processors.
#[derive(Debug)]
pub struct Processors {
    since: Option<(Instant, Ticks)>,
    idle: Option<f64>,
}

impl Processors {
    /// Looks at them for the first time.
    pub fn watched() -> Processors {
        Processors {
            since: Ticks::now().map(|ticks| (Instant::now(), ticks)),
            idle: None,
        }
    }

    /// The part of them that was idle in the last second; nothing if nobody asked then.
    pub fn idle(&mut self) -> Option<f64> {
        let Some((since, then)) = self.since else { return Some(1.0) };
        let passed = since.elapsed();
        if passed >= SPAN {
            let Some(now) = Ticks::now() else { return Some(1.0) };
            self.idle = (passed < 2 * SPAN).then(|| now.idle_since(&then));
            self.since = Some((Instant::now(), now));
        }
        self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read() {
        let then = Ticks::of("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2").unwrap();
        assert_eq!(then, Ticks { idle: 80, all: 100 });
        let now = Ticks { idle: 90, all: 300 };
        assert!((now.idle_since(&then) - 0.05).abs() < 1e-9);
        assert_eq!(then.idle_since(&then), 1.0, "it does not count");
        assert_eq!(Ticks::of("cpu0 1 2 3 4 5"), None);
        assert_eq!(Ticks::of(""), None);
    }

    #[test]
    fn this_host_tells() {
        let mut processors = Processors::watched();
        assert!(processors.since.is_some());
        assert_eq!(processors.idle(), None, "it has not been looked at for a second");
    }
}
