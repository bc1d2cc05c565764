//! How fast QEMU's mirror may copy, and how fast it does.
//!
//! QEMU's mirror does not yield to the guest by itself; it has one limit, which is
//! changed tick by tick. So the copy stops up to a tick after the guest has come back,
//! and a chunk of it is in the guest's way then.

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::mirror::Allowance;

/// The guest is gone after so long without a request: the longest that a mirror of
/// ours waits.
const QUIET: Nanos = Nanos::from_millis(250);

/// How long what is said of the rate is averaged over.
const SMOOTH: f64 = 2.0;

/// The pace of one copy.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How long the guest has asked for nothing.
    quiet: Nanos,
    /// Bytes that were done at the last tick.
    done: Option<u64>,
    /// Bytes per second.
    rate: f64,
    /// Bytes that were copied under our eyes, and in which time.
    seen: u64,
    watched: Nanos,
}

impl Pace {
    /// Looks at what the guest did in a tick; says how long it was gone.
    pub(super) fn look(&mut self, window: &Window) -> Nanos {
        self.quiet = match window.total().operations {
            0 => self.quiet.plus(window.span),
            _ => Nanos(0),
        };
        if self.is_gone() { window.span } else { Nanos(0) }
    }

    fn is_gone(&self) -> bool {
        self.quiet >= QUIET
    }

    /// The copy begins now. (One that another daemon began is met where it is.)
    pub(super) fn begin(&mut self) {
        self.done = Some(0);
    }

    /// Takes note of how many bytes are done; says how many that is more.
    pub(super) fn note(&mut self, done: u64, span: Nanos) -> u64 {
        let Some(before) = self.done.replace(done) else { return 0 };
        let more = done.saturating_sub(before);
        self.seen += more;
        self.watched = self.watched.plus(span);
        let seconds = span.as_secs_f64();
        if seconds > 0.0 {
            let weight = (seconds / SMOOTH).min(1.0);
            self.rate += weight * (more as f64 / seconds - self.rate);
        }
        more
    }

    /// Bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Bytes per second, over all of the time in which the copy was watched.
    pub(super) fn average(&self) -> f64 {
        let seconds = self.watched.as_secs_f64();
        if seconds > 0.0 { self.seen as f64 / seconds } else { 0.0 }
    }

    /// Bytes per second that the copy may have now; unlimited without.
    pub(super) fn allowed(&self, allowance: Allowance) -> Option<u64> {
        if self.is_gone() { allowance.idle } else { allowance.busy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Nanos = Nanos::from_millis(100);

    fn window(requests: u64) -> Window {
        let mut window = Window { span: TICK, ..Window::default() };
        for _ in 0..requests {
            window.read.record(4096, TICK, Nanos(0), TICK);
        }
        window
    }

    #[test]
    fn a_guest_is_gone_after_a_while_and_back_at_once() {
        let mut pace = Pace::default();
        let shy = Allowance::IDLE_ONLY;
        for gone in [Nanos(0), Nanos(0), TICK] {
            assert_eq!(pace.look(&window(0)), gone);
        }
        assert_eq!(pace.allowed(shy), None);
        assert_eq!(pace.look(&window(1)), Nanos(0));
        assert_eq!(pace.allowed(shy), Some(0));
    }

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let mut pace = Pace::default();
        for tick in 0..100 {
            pace.note(tick * 1000, TICK);
        }
        assert!((9_000.0..=10_000.0).contains(&pace.rate()), "{}", pace.rate());
        assert_eq!(pace.note(99_500, TICK), 500);
    }

    #[test]
    fn an_average_is_of_what_was_watched() {
        let mut pace = Pace::default();
        pace.begin();
        for tick in 1..=10 {
            pace.note(tick * 1000, TICK);
        }
        assert!((pace.average() - 10_000.0).abs() < 1.0, "{}", pace.average());
        // Another daemon has copied the most of it.
        let mut resumed = Pace::default();
        for tick in 0..=10 {
            resumed.note((1 << 40) + tick * 1000, TICK);
        }
        assert!((resumed.average() - 10_000.0).abs() < 1.0, "{}", resumed.average());
        assert!(Pace::default().average() < 1.0, "and of nothing it is nothing");
    }
}
