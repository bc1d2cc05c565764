//! A device that the guest and the copier share, and a guest.
//!
//! The device is the L-Q line: latency is linear in what is outstanding, and its slope
//! is one over the peak. By Little's law that is `L = own / (1 - load)`. What the
//! guest gets follows from it: N requests in flight with a pause between an answer and
//! the next request (closed loop), or requests that come when they come (open loop).
//!
//! All that is measured is noisy: counts by chance, and a load that wanders.

use sterna_core::Nanos;
use sterna_core::guard::Observation;
use sterna_core::measure::{Spread, Traffic, Window};
use sterna_core::mirror::{Allowance, CopyMode};

use crate::random::Random;

pub(crate) const WINDOW: Nanos = Nanos::from_millis(100);

/// Parts of a window in which everything stands still.
const PARTS: u32 = 10;

/// Bytes in the shortest chunk.
const CHUNK: f64 = 65536.0;

/// Bytes in the longest that a guard asks for.
const CHUNK_MAX: f64 = 1048576.0;

/// What the copier lets itself have in flight, as a time of its busy rate, and at least
/// a chunk.
const FLIGHT: f64 = 0.012;

/// A device of which no more than this part is left has reached its longest latency.
const FULL: f64 = 0.002;

/// When the guest counts as idle.
const QUIET: f64 = 0.01;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Seconds that a request takes alone.
    pub(crate) own: f64,
    /// Requests per second at most.
    pub(crate) peak: f64,
    /// Requests that the shortest chunk of the copy weighs.
    pub(crate) weight: f64,
    /// The part of that which a longer chunk weighs no more than once.
    pub(crate) each: f64,
}

impl Device {
    /// Requests that a byte weighs in chunks of this length.
    fn weigh(&self, chunk: f64) -> f64 {
        let part = 1.0 - self.each + self.each * CHUNK / chunk;
        self.weight * part / CHUNK
    }

    fn slow_down(&mut self, factor: f64) {
        self.own *= factor;
        self.peak /= factor;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// So many requests in flight, with so many seconds between two.
    Closed { depth: f64, pause: f64 },
    /// So many requests per second.
    Open { rate: f64 },
}

/// How the load and the device change over time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Course {
    Steady,
    /// From this second on the guest does this much more or less.
    Step {
        at: f64,
        factor: f64,
    },
    /// On for so many seconds, then off.
    Bursts {
        on: f64,
        off: f64,
    },
    /// Up and down by this part with this period in seconds.
    Sinus {
        part: f64,
        period: f64,
    },
    /// For a second out of so many, the device is slower by this factor.
    Hiccups {
        every: f64,
        factor: f64,
    },
    /// One request of so many takes longer by this factor.
    Strays {
        of: f64,
        factor: f64,
    },
    /// A cache that takes so many bytes, and writes down so many a second. When it is
    /// full, the device is slower by this factor until half of that is written down.
    Cache {
        bytes: f64,
        down: f64,
        factor: f64,
    },
    /// From this second on the device is slower by this factor.
    SlowDown {
        at: f64,
        factor: f64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) device: Device,
    pub(crate) load: Load,
    pub(crate) course: Course,
    /// How far the load wanders (one deviation).
    pub(crate) wander: f64,
}

/// What a window really was, without noise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Truth {
    /// Requests that the guest got done.
    pub(crate) done: f64,
    /// Requests that it would have got done alone.
    pub(crate) alone: f64,
    pub(crate) copied: f64,
    pub(crate) idle: f64,
}

pub(crate) struct Plant {
    setup: Setup,
    random: Random,
    now: f64,
    wander: f64,
    quiet_since: f64,
    /// Bytes that the cache has not written down, and whether it was full.
    cached: f64,
    full: bool,
}

/// What was measured in a window.
pub(crate) struct Measured {
    window: Window,
    copied: u64,
    idle: Nanos,
}

impl Measured {
    pub(crate) fn observation(&self) -> Observation<'_> {
        Observation {
            guest: &self.window,
            copied: self.copied,
            idle: self.idle,
            mirror_wait: Nanos(0),
            mirrored_writes: 0,
            idle_processors: Some(1.0),
        }
    }

    /// How long requests took.
    pub(crate) fn response(&self) -> &Spread {
        &self.window.response
    }
}

/// What the guest gets beside so many requests per second of a copy: requests per
/// second, and how long each takes.
pub(crate) fn share(device: Device, load: Load, copy: f64) -> (f64, f64) {
    let copy = copy.min(0.98 * device.peak);
    let latency = |rate: f64| {
        let left = 1.0 - (rate + copy) / device.peak;
        device.own / left.max(FULL)
    };
    match load {
        Load::Open { rate } => {
            let most = (device.peak * 0.998 - copy).max(0.0);
            (rate.min(most), latency(rate.min(most)))
        }
        Load::Closed { depth, pause } => {
            let rate = closed(device, depth, pause, copy);
            (rate, latency(rate))
        }
    }
}

/// The rate at which a closed loop and a device meet: `rate * (pause + latency(rate)) = depth`.
fn closed(device: Device, depth: f64, pause: f64, copy: f64) -> f64 {
    let Device { own, peak, .. } = device;
    // What is left of the device beside the copy, before the guest's own part.
    let left = 1.0 - copy / peak;
    let linear = pause * left + own + depth / peak;
    let root = (linear * linear - 4.0 * pause / peak * depth * left).max(0.0).sqrt();
    let rate = 2.0 * depth * left / (linear + root);
    // Latency grows no further where next to nothing is left.
    if left - rate / peak < FULL {
        (depth / (pause + own / FULL)).min(peak)
    } else {
        rate
    }
}

/// What a copier gets that may have so much in flight, of the most that it is allowed,
/// where a rate has this latency.
fn in_flight(most: f64, chunk: f64, latency: impl Fn(f64) -> f64) -> f64 {
    let in_flight = (FLIGHT * most).max(chunk);
    let fits = |rate: f64| rate * latency(rate) <= in_flight;
    if fits(most) {
        return most;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..20 {
        let rate = (low + high) / 2.0;
        if fits(rate) { low = rate } else { high = rate }
    }
    low
}

impl Plant {
    pub(crate) fn new(setup: Setup, seed: u64) -> Self {
        let random = Random::new(seed ^ 0xc0ffee);
        Plant {
            setup,
            random,
            now: 0.0,
            wander: 0.0,
            quiet_since: 0.0,
            cached: 0.0,
            full: false,
        }
    }

    /// The device and the load at this moment; no load while the guest pauses.
    fn at(&self, now: f64) -> (Device, Option<Load>) {
        let Setup { mut device, load, course, .. } = self.setup;
        let mut factor = (1.0 + self.wander).max(0.1);
        match course {
            Course::Steady => {}
            Course::Step { at, factor: step } if now >= at => factor *= step,
            Course::Bursts { on, off } if now % (on + off) >= on => {
                return (device, None);
            }
            Course::Sinus { part, period } => {
                factor *= 1.0 + part * (now / period * std::f64::consts::TAU).sin();
            }
            Course::SlowDown { at, factor } if now >= at => device.slow_down(factor),
            Course::Cache { factor, .. } if self.full => device.slow_down(factor),
            Course::Hiccups { every, factor } if now % every >= every - 1.0 => {
                device.slow_down(factor);
            }
            _ => {}
        }
        let load = match load {
            Load::Closed { depth, pause } => {
                Load::Closed { depth: depth * factor, pause }
            }
            Load::Open { rate } => Load::Open { rate: rate * factor },
        };
        (device, Some(load))
    }

    /// The rate of a copy, bytes per second, that costs the guest this part of its
    /// requests at this moment.
    pub(crate) fn affordable(&self, part: f64) -> f64 {
        let (device, load) = self.at(self.now);
        let Some(load) = load else { return 0.0 };
        let alone = share(device, load, 0.0).0;
        let (mut low, mut high) = (0.0, device.peak);
        for _ in 0..40 {
            let copy = (low + high) / 2.0;
            let kept = share(device, load, copy).0 / alone;
            if kept > 1.0 - part { low = copy } else { high = copy }
        }
        low / device.weigh(CHUNK_MAX)
    }

    /// One window under an allowance.
    pub(crate) fn window(&mut self, allowance: Allowance) -> (Measured, Truth) {
        let step = WINDOW.as_secs_f64() / f64::from(PARTS);
        let (mut truth, mut time) = (Truth::default(), 0.0);
        let mut counted = 0.0;
        for _ in 0..PARTS {
            let before = truth.copied;
            self.wander = 0.99 * self.wander
                + self.setup.wander
                    * (1.0_f64 - 0.99 * 0.99).sqrt()
                    * self.random.normal();
            let (device, load) = self.at(self.now);
            let chunk = match allowance.mode {
                CopyMode::Even | CopyMode::ShortChunks => CHUNK,
                CopyMode::Burst => CHUNK_MAX,
            };
            let full = 0.9 * device.peak / device.weigh(chunk);
            match load {
                None => {
                    let idle = self.now - self.quiet_since >= QUIET;
                    let rate = if idle { allowance.idle } else { allowance.busy };
                    truth.copied += rate.map_or(full, |it| (it as f64).min(full)) * step;
                    truth.idle += if idle { step } else { 0.0 };
                }
                Some(load) => {
                    self.quiet_since = self.now + step;
                    let most = allowance.busy.map_or(full, |it| it as f64).min(full);
                    let weigh = |rate: f64| rate * device.weigh(chunk);
                    let rate =
                        in_flight(most, chunk, |rate| share(device, load, weigh(rate)).1);
                    let (done, latency) = share(device, load, weigh(rate));
                    truth.copied += rate * step;
                    truth.done += done * step;
                    truth.alone += share(device, load, 0.0).0 * step;
                    // Requests of a closed loop come more evenly than by chance.
                    let chance = match load {
                        Load::Open { .. } => 1.0,
                        Load::Closed { .. } => 0.5,
                    };
                    let noise = chance * (done * step).sqrt() * self.random.normal();
                    let seen = (done * step + noise).max(0.0);
                    counted += seen;
                    time += seen * latency;
                }
            }
            self.now += step;
            self.cache(truth.copied - before, step);
        }
        let measured = self.measure(counted, time, &truth);
        (measured, truth)
    }

    fn cache(&mut self, copied: f64, step: f64) {
        if let Course::Cache { bytes, down, .. } = self.setup.course {
            self.cached = (self.cached + copied - down * step).max(0.0);
            self.full = self.cached > if self.full { bytes / 2.0 } else { bytes };
        }
    }

    /// How many times longer a request takes.
    fn stray(&mut self) -> f64 {
        match self.setup.course {
            Course::Strays { of, factor } if self.random.unit() * of < 1.0 => factor,
            _ => 1.0,
        }
    }

    fn measure(&mut self, counted: f64, time: f64, truth: &Truth) -> Measured {
        let mut window = Window { span: WINDOW, ..Window::default() };
        let operations = counted.round() as u64;
        if operations > 0 {
            let mean = time / counted;
            let mut sum = 0.0;
            // No more than are needed for a percentile of a second.
            let samples = operations.min(60);
            for _ in 0..samples {
                let span = mean * (0.6 + 0.4 * self.random.exponential()) * self.stray();
                sum += span;
                window.response.record(Nanos((span * 1e9) as u64));
            }
            let response = Nanos((sum / samples as f64 * operations as f64 * 1e9) as u64);
            window.read = Traffic {
                operations,
                bytes: operations * 8192,
                response,
                service: response,
                ..Traffic::default()
            };
        }
        let idle = Nanos((truth.idle * 1e9) as u64);
        Measured { window, copied: truth.copied as u64, idle }
    }
}
