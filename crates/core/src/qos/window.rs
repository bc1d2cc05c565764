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
//!
//! The threshold has to be one that the device can come down to. Where its latency with
//! nothing before it is known, the threshold follows from that. Elsewhere the window
//! sees for itself: where fewer requests at the device are answered as slowly as more
//! were, so that the throughput falls with the window, it takes that back and stays
//! there for a while.
//!
//! A reservation may need a smaller one (`shortage`). It comes before the throughput.

use super::attained::Attained;
use super::reserved::Reserved;
use super::shortage::Shortages;
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
const THRESHOLD: Nanos = Nanos::from_millis(30);

/// Less is not told from what a busy machine adds by itself.
const THRESHOLD_MIN: Nanos = Nanos::from_millis(2);

/// The latency to hold, in times of the device's own: there, a device whose latency
/// grows with what is there gives 90 % of all it can.
const TIMES: u64 = 10;

/// No less than that in times of its own: there it gives two thirds of all it can.
const TIMES_MIN: u64 = 3;

/// The window has to shrink to this part before what that brought is judged; what
/// throughput varies by itself is small against it.
const JUDGED: f64 = 0.7;

/// The throughput falls with the window if it falls by this power of it: by none if the
/// device is full, by one if each request is answered as slowly as before. It takes a
/// ninth of the throughput for that, more than it varies by itself.
const FALLS: f64 = 1.0 / 3.0;

/// The window binds if this part of it is at the device.
const BINDS: f64 = 0.8;

/// Steps for which a window that throughput falls below is kept: a minute, after which
/// the device may be another.
const KEPT: u32 = 60;

/// The latency to hold on a datastore, given what it takes with nothing before it, as
/// far as that is known.
pub fn threshold(unloaded: Option<Nanos>) -> Nanos {
    unloaded.map_or(THRESHOLD, |Nanos(own)| {
        let wanted = Nanos(own.saturating_mul(TIMES)).clamp(THRESHOLD_MIN, THRESHOLD);
        wanted.max(Nanos(own.saturating_mul(TIMES_MIN)))
    })
}

/// What a window let through.
#[derive(Clone, Copy, Debug)]
struct Let {
    at_device: f64,
    /// Requests per second.
    rate: f64,
}

/// The window of a datastore.
#[derive(Clone, Debug)]
pub struct WindowControl {
    window: f64,
    latency: Option<f64>,
    /// What was let through when the window began to shrink.
    before: Option<Let>,
    /// Below that throughput falls, and for how many steps that is believed.
    floor: Option<(f64, u32)>,
    shortages: Shortages,
    /// No more than this, for the sake of reservations.
    most: f64,
}

impl Default for WindowControl {
    fn default() -> Self {
        WindowControl {
            window: MAX,
            latency: None,
            before: None,
            floor: None,
            shortages: Shortages::default(),
            most: MAX,
        }
    }
}

impl WindowControl {
    /// Looks at what the datastore did in a period, and gives the window for the
    /// next: some hundred milliseconds each. `threshold` is the latency to hold, and
    /// `reserved` the classes that have reservations.
    pub fn step(
        &mut self,
        measured: &Measured,
        threshold: Nanos,
        reserved: &[Reserved],
    ) -> u32 {
        let at_device = measured.at_device();
        let most = self.shortages.step(at_device, reserved).unwrap_or(MAX);
        if std::mem::replace(&mut self.most, most) < self.window {
            // So few say nothing of what the window does.
            (self.before, self.latency) = (None, None);
            return self.window();
        }
        let total = measured.total();
        let Some(latency) = total.mean(total.service) else { return self.window() };
        let latency = (latency.0 as f64).max(1.0);
        let smoothed =
            self.latency.map_or(latency, |old| old + SMOOTHING * (latency - old));
        self.latency = Some(smoothed);
        let wanted = threshold.0 as f64 / smoothed * self.window + BETA;
        let next = (1.0 - G) * self.window + G * wanted;
        let room = (2.0 * at_device).max(MIN);
        let overrun = smoothed > threshold.0 as f64;
        let now = Let { at_device, rate: measured.iops() };
        let least = self.least(now, overrun);
        self.window = match next > self.window && self.window > room {
            // It is not the window that holds them back.
            true => self.window,
            false => next.clamp(MIN, MAX),
        };
        // Overrun from an open window: what is there is the window to begin with.
        if overrun {
            self.window = self.window.min(at_device.max(MIN));
        }
        self.window = self.window.max(least);
        self.window()
    }

    /// The smallest window that makes sense.
    fn least(&mut self, now: Let, overrun: bool) -> f64 {
        self.floor = self.floor.filter(|(_, steps)| *steps > 0);
        if let Some((_, steps)) = &mut self.floor {
            *steps -= 1;
        }
        let binds = now.at_device >= BINDS * self.window;
        self.before = match self.before.filter(|_| overrun && binds) {
            Some(before) if now.at_device <= before.at_device * JUDGED => {
                let fewer = (now.at_device / before.at_device).ln();
                if (now.rate / before.rate).ln() / fewer > FALLS {
                    self.floor = Some((before.at_device, KEPT));
                }
                Some(now)
            }
            Some(before) if now.at_device <= before.at_device => Some(before),
            _ => Some(now),
        };
        self.floor.map_or(MIN, |(least, _)| least)
    }

    /// What the classes that have reservations have of them.
    pub fn attained(&self) -> impl Iterator<Item = Attained> + '_ {
        self.shortages.attained()
    }

    /// The window as it is.
    pub fn window(&self) -> u32 {
        self.window.min(self.most).round() as u32
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

    /// What a device that takes long by itself still does after a minute and a half,
    /// with 200 requests that want to be there.
    fn slow_device(peak: f64, unloaded: Nanos) -> f64 {
        let mut control = WindowControl::default();
        let mut done = 0.0;
        for step in 0..150 {
            let at_device = f64::from(control.window()).min(200.0);
            let seen = device(peak, unloaded, at_device);
            control.step(&seen, threshold(None), &[]);
            done += if step < 50 { 0.0 } else { seen.iops() / 100.0 };
        }
        done
    }

    #[test]
    fn a_device_that_is_slow_by_itself_is_not_choked() {
        // 5000 and 2000 requests per second, with all 200 there.
        let rate = slow_device(1e6, Nanos::from_millis(40));
        assert!(rate > 0.95 * 5000.0, "{rate}");
        let rate = slow_device(1e6, Nanos::from_millis(100));
        assert!(rate > 0.95 * 2000.0, "{rate}");
    }

    #[test]
    fn a_slow_device_that_is_overrun_as_well_keeps_what_fills_it() {
        // 32 fill it.
        let rate = slow_device(800.0, Nanos::from_millis(40));
        assert!(rate > 0.9 * 800.0, "{rate}");
    }

    #[test]
    fn the_threshold_is_never_near_what_the_device_takes_by_itself() {
        let of = |millis| threshold(Some(Nanos::from_millis(millis)));
        assert_eq!(of(0), Nanos::from_millis(2));
        assert_eq!(of(1), Nanos::from_millis(10));
        assert_eq!(of(5), THRESHOLD);
        assert_eq!(of(40), Nanos::from_millis(120));
    }

    fn run(control: &mut WindowControl, asked: f64, steps: usize) -> (f64, Nanos) {
        let mut last = Window::default();
        for _ in 0..steps {
            let at_device = asked.min(f64::from(control.window()));
            last = device(3360.0, Nanos::from_millis(5), at_device);
            control.step(&last, THRESHOLD, &[]);
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
            let seen = device(300.0, Nanos::from_millis(5), at_device);
            control.step(&seen, THRESHOLD, &[]);
        }
        assert!(control.window() < 14, "{}", control.window());
        let (rate, _) = run(&mut control, 125.0, 40);
        assert!(rate > 3200.0, "{rate}");
    }
}
