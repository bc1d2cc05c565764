//! How many requests may be at a datastore at once.
//!
//! Shares and reservations mean something only where requests wait before the
//! datastore and not in it: a device that is given all requests at once serves them
//! in an order of its own. So a datastore on which somebody has terms gets a window,
//! and the window follows the latency, as in PARDA (Gulati, Ahmad, Waldspurger, FAST
//! 2009): with a threshold L, a smoothed latency and a part G of each step,
//!
//! ```text
//! w(t+1) = (1 - G) w(t) + G (L / latency(t) w(t) + BETA)
//! ```
//!
//! At rest the latency is `L w / (w - BETA)`: a little above the threshold, by what
//! keeps the window trying for more. Where fewer requests come than the window lets
//! through the latency says nothing about a larger one; then the window may grow to
//! twice of what comes and stays there, so that it holds at once when more come.

use crate::Nanos;
use crate::measure::Window as Measured;

/// The part of each step: half the way in three steps.
const G: f64 = 0.2;

/// What the window tries for more. Small against any window that keeps a device busy.
const BETA: f64 = 1.0;

/// Fewer would leave a device idle between two requests.
const MIN: f64 = 2.0;

/// More are not told apart by any device: the window is open.
const MAX: f64 = 1024.0;

/// The part of a new latency in the smoothed one.
const SMOOTHING: f64 = 0.5;

/// Where nothing is known of a datastore: what arrays of disks take when they are
/// busy and not yet overrun.
pub const THRESHOLD: Nanos = Nanos::from_millis(30);

/// The window of a datastore.
#[derive(Clone, Debug)]
pub struct WindowControl {
    window: f64,
    latency: Option<f64>,
}

impl Default for WindowControl {
    fn default() -> Self {
        WindowControl { window: MAX, latency: None }
    }
}

impl WindowControl {
    /// Looks at what the datastore did in a period, and gives the window for the
    /// next: some hundred milliseconds each. `threshold` is the latency to hold.
    pub fn step(&mut self, measured: &Measured, threshold: Nanos) -> u32 {
        let total = measured.total();
        let Some(latency) = total.mean(total.service) else { return self.window() };
        let latency = (latency.0 as f64).max(1.0);
        let smoothed =
            self.latency.map_or(latency, |old| old + SMOOTHING * (latency - old));
        self.latency = Some(smoothed);
        let at_device = total.service.0 as f64 / measured.span.0.max(1) as f64;
        let wanted = threshold.0 as f64 / smoothed * self.window + BETA;
        let next = (1.0 - G) * self.window + G * wanted;
        let room = (2.0 * at_device).max(MIN);
        self.window = match next > self.window && self.window > room {
            // It is not the window that holds them back.
            true => self.window,
            false => next.clamp(MIN, MAX),
        };
        // Overrun from an open window: what is there is the window to begin with.
        if smoothed > threshold.0 as f64 {
            self.window = self.window.min(at_device.max(MIN));
        }
        self.window()
    }

    /// The window as it is.
    pub fn window(&self) -> u32 {
        self.window.round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Traffic, Window};

    /// A device of so many requests per second whose latency grows with what is there,
    /// for a period of 250 ms.
    fn device(peak: f64, unloaded: Nanos, at_device: f64) -> Window {
        let latency = (at_device / peak * 1e9).max(unloaded.0 as f64);
        let span = Nanos::from_millis(250);
        let operations = (at_device / latency * span.0 as f64) as u64;
        let service = Nanos((operations as f64 * latency) as u64);
        let read = Traffic { operations, service, ..Traffic::default() };
        Window { span, read, ..Window::default() }
    }

    fn run(control: &mut WindowControl, asked: f64, steps: usize) -> (f64, Nanos) {
        let mut last = Window::default();
        for _ in 0..steps {
            let at_device = asked.min(f64::from(control.window()));
            last = device(3360.0, Nanos::from_millis(5), at_device);
            control.step(&last, THRESHOLD);
        }
        let total = last.total();
        (last.total().operations as f64 * 4.0, total.mean(total.service).unwrap())
    }

    #[test]
    fn an_overrun_device_comes_to_its_threshold_within_three_seconds() {
        // 125 in flight at 3360 per second: 37 ms.
        let mut control = WindowControl::default();
        let (rate, latency) = run(&mut control, 125.0, 12);
        assert!((3300.0..3400.0).contains(&rate), "{rate}");
        assert!((29.0..32.5).contains(&latency.as_millis_f64()), "{latency}");
    }

    #[test]
    fn a_device_that_is_not_overrun_is_not_held_back() {
        let mut control = WindowControl::default();
        let (rate, latency) = run(&mut control, 60.0, 100);
        assert!((3300.0..3400.0).contains(&rate), "{rate}");
        assert!(latency < Nanos::from_millis(19), "{latency}");
    }

    #[test]
    fn a_window_that_was_small_opens_again() {
        let mut control = WindowControl::default();
        // A device that was slow for a while.
        for _ in 0..40 {
            let at_device = f64::from(control.window()).min(100.0);
            control.step(&device(300.0, Nanos::from_millis(5), at_device), THRESHOLD);
        }
        assert!(control.window() < 14, "{}", control.window());
        let (rate, _) = run(&mut control, 125.0, 40);
        assert!(rate > 3200.0, "{rate}");
    }
}
