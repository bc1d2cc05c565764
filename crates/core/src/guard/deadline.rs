//! When a migration will have ended, and how fast it must go to end in time.
//!
//! The copier has two speeds: one while the guest is there and one while it is idle.
//! How long the guest is idle, and what is copied meanwhile, is measured; what the gaps
//! do not bring must come beside the guest:
//!
//! ```text
//! left = time * (idle part * idle speed + (1 - idle part) * busy speed)
//! ```
//!
//! So a disk that is idle half of the time is moved in its gaps, and nothing is taken
//! from the guest that need not be. A window with both tells of the gaps what is not
//! the other speed's. The plan is made anew with each window: what went slower than
//! planned is made up for.

use super::{MOST, Observation};
use crate::Nanos;
use crate::measure::Mean;

/// The part of the time that is kept in reserve: what the guest writes meanwhile is
/// copied again, and the switch-over takes its time.
const RESERVE: f64 = 0.1;

/// The reserve at most, in seconds: half an hour.
const RESERVE_MAX: f64 = 1800.0;

/// With less time than this, in seconds, nothing is planned: it goes as fast as it can.
const TIME_MIN: f64 = 1.0;

/// Windows before anything is planned or said: 5 s.
const SURE: u32 = 50;

/// The part of a new window in how long the guest is idle: a minute counts, so that
/// bursts with gaps of half a minute come out right.
const SLOW: f64 = 1.0 / 600.0;

/// The part of a new window in a speed: 3 s count.
const FAST: f64 = 1.0 / 30.0;

/// A speed below this part of what is needed falls short of it.
const SHORT: f64 = 0.8;

/// A delay is not said to be longer: a hundred days. Of a copy that stands still nobody
/// can tell when it ends.
const LATE_MAX: Nanos = Nanos::from_secs(100 * 24 * 3600);

/// Late by less than this part of the time that is left is in time: it may yet change.
const HARDLY: f64 = 0.02;

/// What is known of the way to the end.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    /// The part of the time that the guest is idle.
    idle_time: Mean,
    /// Bytes per second while it is.
    idle_speed: Mean,
    /// Bytes per second while it is not, since there is a plan.
    busy_speed: Mean,
    /// In seconds.
    reserve: Option<f64>,
    /// Windows in a row in which more was needed beside the guest than was copied.
    short: u32,
}

impl Deadline {
    /// Looks at a window.
    pub(super) fn look(&mut self, seen: &Observation<'_>) {
        let idle = seen.idle_part();
        self.idle_time.add(idle, SLOW);
        if !seen.is_busy() {
            // What was copied beside it, in a window with both, is as usual.
            let beside = (1.0 - idle) * self.busy_speed.value();
            self.idle_speed.add((seen.copy_rate() - beside).max(0.0) / idle, FAST);
        } else if self.idle_time.count() > SURE {
            self.busy_speed.add(seen.copy_rate(), FAST);
        }
    }

    /// Bytes per second that must be copied beside the guest, so that `left` bytes are
    /// done in `time`; zero if the gaps suffice, or as long as nothing is known of them.
    pub(super) fn needs(&mut self, left: u64, time: Nanos) -> u64 {
        let time = time.as_secs_f64();
        let reserve = (time * RESERVE).min(RESERVE_MAX);
        let time = time - *self.reserve.get_or_insert(reserve);
        if time < TIME_MIN {
            self.short = SURE;
            return MOST as u64;
        }
        if self.idle_time.count() < SURE {
            return 0;
        }
        let wanted = left as f64 / time;
        let idle = self.idle_time.value();
        let beside = (wanted - idle * self.idle_speed.value()) / (1.0 - idle).max(0.01);
        let beside = beside.clamp(0.0, MOST);
        let short = self.busy_speed.value() < beside * SHORT;
        self.short = if short { self.short.saturating_add(1) } else { 0 };
        beside as u64
    }

    /// By how much `left` bytes will be late, at the speeds that were seen; nothing if
    /// they will be in time, or nobody can tell yet.
    pub(super) fn late(&self, left: u64, time: Nanos) -> Option<Nanos> {
        if self.short < SURE {
            return None;
        }
        let idle = self.idle_time.value();
        let speed =
            idle * self.idle_speed.value() + (1.0 - idle) * self.busy_speed.value();
        let lasts = left as f64 / speed.max(1.0);
        let time = time.as_secs_f64();
        let late = lasts - time;
        (late > time * HARDLY).then_some(Nanos((late * 1e9) as u64).min(LATE_MAX))
    }
}
