//! How much of a waking VM's memory is asked for at a time, beside the guest.
//!
//! **Rule.** A fault of the guest waits for what is outstanding at the device, and breaks its
//! order: the device goes there and back. So there are three depths:
//!
//! - A guest without faults waits for nothing: [`DEPTH_MOST`].
//! - A guest with some faults: as many granules as are still quick. One more for each round within
//!   [`SLOWER`] times what the device takes alone, and half of them if one takes longer.
//! - A guest that stands still: so many that the wake gets [`STREAM`] of the device's time.
//!
//! **When a guest stands still.** Each of its processors runs for some time `r`, and then waits for
//! a fault, `w`, which is longer the deeper the device's queue is. If it has `n` processors, faults
//! take `2 n s / (r + w)` of the device's time, where `s` is the way there (and back again), and
//! the wake gets the rest. What the guest loses in all is the part of the time that it waits,
//! `w / (r + w)`, for as long as the wake takes, which is as 1 to that rest:
//!
//! ```text
//! lost  ~  w / (r + w - 2 n s)
//! ```
//!
//! That grows with `w` if `r > 2 n s`, and falls with it if not. So if a guest's faults alone would
//! keep the device at least half busy for the time that it runs, the deepest queue costs it least:
//! the end comes sooner by more than its faults wait longer. Otherwise a short queue does.
//!
//! **Others.** All of that is the waking guest's own gain and loss. While somebody else asks the
//! same device for something, the queue stays short.

use super::granules::GRANULE;
use super::tier::TierSpeed;
use super::wake::{HOLD_PAYS, HOT_DEPTH};
use crate::Nanos;

/// Granules outstanding at most while a guest has some faults, or none: 2 MiB.
pub const DEPTH_MOST: u32 = 32;

/// A granule may take so many times as long as it does alone.
const SLOWER: f64 = 2.0;

/// The part of the device's time that a wake gets beside a guest that stands still. It takes 5/4 of
/// its shortest time then; much more would have each fault wait much longer for little.
const STREAM: f64 = 0.8;

/// A fault waits for so long at most for what was asked for before it, whatever the rule says:
/// people who wait for a page of a database take less than this for no pause.
const WAIT_MOST: Nanos = Nanos::from_millis(250);

/// Faults are counted for this long, and then a guest is judged...
const PERIOD: Nanos = Nanos::from_secs(1);

/// ... or longer, until there are so many: fewer say little...
const FAULTS_ENOUGH: f64 = 10.0;

/// ... but not longer than this.
const PERIOD_MOST: Nanos = Nanos::from_secs(3);

/// A guest that stands still does so until its faults take less than this part of what they must
/// have taken for it to be said: near the bound both ways cost it alike, and it does not go to and
/// fro between them.
const STAYS: f64 = 0.5;

/// A guest with fewer faults per second than this has none: nobody feels the wait for one.
const NO_FAULTS: f64 = 1.0;

/// The pace at one device.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    speed: TierSpeed,
    /// Of the guest.
    processors: f64,
    depth: u32,
    /// Granules that were fast enough since the depth was changed.
    good: u32,
    /// Since when faults are counted, and how many there were; nothing before the guest runs.
    counted: Option<(Nanos, f64)>,
    /// How many there were per second when they were counted last.
    faults: Option<f64>,
    /// The part of the time for which the guest runs, and does not wait for faults.
    runs: f64,
    /// Whether the guest stands still: a guest that wakes does, until something else is known.
    stands: bool,
    /// Whether somebody else uses the device.
    others: bool,
}

impl Pace {
    /// At a device that does so much, for a guest with so many processors.
    pub fn new(speed: TierSpeed, processors: u32) -> Pace {
        Pace {
            speed,
            processors: f64::from(processors.max(1)),
            depth: 1,
            good: 0,
            counted: None,
            faults: None,
            runs: 1.0,
            stands: true,
            others: false,
        }
    }

    /// How many granules may be outstanding.
    pub fn depth(&self) -> u32 {
        match self.faults {
            _ if self.others => self.depth,
            Some(faults) if faults < NO_FAULTS => DEPTH_MOST,
            _ if self.stands => self.deepest().max(self.depth),
            _ => self.depth,
        }
    }

    /// The guest runs, and had so many faults at this device since this was said last. The first
    /// time begins the count.
    pub fn faults(&mut self, now: Nanos, count: f64) {
        let Some((since, counted)) = &mut self.counted else {
            self.counted = Some((now, 0.0));
            return;
        };
        *counted += count;
        let time = now.since(*since);
        let is_enough = *counted >= FAULTS_ENOUGH && time >= PERIOD;
        if is_enough || time >= PERIOD_MOST {
            let faults = *counted / time.as_secs_f64();
            self.counted = Some((now, 0.0));
            self.judge(faults);
        }
    }

    /// The guest has had so many faults per second.
    fn judge(&mut self, faults: f64) {
        // What is outstanding comes before a fault.
        let wait = self.speed.seek() + f64::from(self.depth()) * self.speed.follows();
        self.runs = (1.0 - faults * wait / self.processors).max(0.0);
        let takes = 2.0 * faults * self.speed.seek();
        self.stands = takes >= if self.stands { STAYS * self.runs } else { self.runs };
        self.faults = Some(faults);
    }

    /// The part of the time for which the guest runs, as far as its faults say.
    pub fn runs(&self) -> f64 {
        self.runs
    }

    /// Whether somebody else uses the device, too.
    pub fn others(&mut self, others: bool) {
        self.others = others;
    }

    /// A granule took so long.
    pub fn took(&mut self, took: Nanos) {
        if took.as_secs_f64() > SLOWER * self.speed.access.as_secs_f64() {
            self.depth = (self.depth / 2).max(1);
            self.good = 0;
            return;
        }
        self.good += 1;
        if self.good >= self.depth {
            self.depth = (self.depth + 1).min(DEPTH_MOST);
            self.good = 0;
        }
    }

    /// Whether a hold makes the hot part come so much faster that it pays. Beside a guest that
    /// always has a fault, a device goes there and back once for each round of the depth.
    pub fn hold_pays(&self) -> bool {
        let round =
            f64::from(HOT_DEPTH) * GRANULE as f64 / self.speed.sequential.max(1.0);
        1.0 + 2.0 * self.speed.seek() / round >= HOLD_PAYS
    }

    /// How many granules may be outstanding beside a guest that stands still: between two rounds of
    /// its faults they take so long that the ways there and back are the rest.
    fn deepest(&self) -> u32 {
        let ways = 2.0 * self.processors * self.speed.seek();
        let round = ways * STREAM / (1.0 - STREAM);
        (round.min(WAIT_MOST.as_secs_f64()) / self.speed.follows()) as u32
    }
}
