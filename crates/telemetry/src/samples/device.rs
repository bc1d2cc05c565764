//! What is learned of a datastore's device from its traffic.

use sterna_api::Device;
use sterna_core::Nanos;
use sterna_core::measure::{LqFit, LqLine, Window};

/// A point of the line is of this long: enough requests for a mean.
const POINT: Nanos = Nanos::from_secs(1);

/// A device's line, and the traffic that will be its next point.
#[derive(Debug, Default)]
pub(super) struct DeviceLine {
    line: LqLine,
    next: Window,
    until: Nanos,
}

impl DeviceLine {
    /// Adds a window that ended now. A pause begins a new point: what lies on both
    /// sides of one is not the mean of a load.
    pub(super) fn add(&mut self, now: Nanos, window: &Window) {
        let start = Nanos(now.0.saturating_sub(window.span.0));
        if start.since(self.until) > window.span {
            self.next = Window::default();
        }
        self.until = now;
        self.next.extend(window);
        if self.next.span >= POINT {
            self.line.add(now, &std::mem::take(&mut self.next));
        }
    }

    /// Learns what a probe has found.
    pub(super) fn probed(&mut self, now: Nanos, found: LqFit) {
        self.line.probed(now, found);
    }

    /// The line, as far as it is known by now.
    pub(super) fn fit(&self, now: Nanos) -> LqFit {
        self.line.fit(now)
    }

    /// The most requests per second that it has done lately.
    pub(super) fn most(&self, now: Nanos) -> Option<f64> {
        self.line.most(now)
    }

    /// What is known by now.
    pub(super) fn view(&self, now: Nanos) -> Device {
        let micros = |span: Nanos| span.0 as f64 / 1e3;
        match self.fit(now) {
            LqFit::Line(line) => Device::Line {
                unloaded_us: micros(line.unloaded),
                slope_us: line.slope / 1e3,
                slope_error_us: line.slope_error / 1e3,
                peak_iops: line.peak(),
                points: line.points as u64,
                seen_from: line.seen.0,
                seen_to: line.seen.1,
            },
            LqFit::TooFew { points } => Device::TooFew { points: points as u64 },
            LqFit::NoVariation { seen } => {
                Device::NoVariation { seen_from: seen.0, seen_to: seen.1 }
            }
            LqFit::Flat { seen, latency } => Device::Flat {
                service_us: micros(latency),
                seen_from: seen.0,
                seen_to: seen.1,
            },
        }
    }
}
