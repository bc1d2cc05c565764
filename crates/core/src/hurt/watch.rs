//! One disk, step by step: whether it is hurt, and whether it has a load.

use super::slower::{Slower, Slowing};
use super::usual::{Compared, REQUESTS_LEAST, Usual};
use crate::Nanos;
use crate::measure::Summary;

/// How long a step is: long enough for a mean, and short enough that two of them are told
/// within seconds.
pub const STEP: Nanos = Nanos::from_secs(5);
/// Slow are requests that take so many times as long as usual, ...
const RISEN: f64 = 3.0;
/// ... and longer by at least this: what takes 0.3 ms instead of 0.1 hurts nobody.
pub(super) const RISEN_BY: Nanos = Nanos::from_micros(500);
/// They are slow no more below this, or ...
pub(super) const FALLEN: f64 = 1.5;
/// ... if they take longer by less than this.
pub(super) const FALLEN_BY: Nanos = Nanos::from_micros(250);
/// Slow steps in a row that make a disk hurt.
pub(super) const SLOW_STEPS: u32 = 2;
/// Other steps in a row after which it is not hurt any more.
pub(super) const WELL_STEPS: u32 = 6;
/// Of a slow step so much is learned: what lasts becomes usual, but not soon.
const SLOW_WEIGHT: f32 = 0.1;
/// From so many requests per second on a disk has a load, ...
const LOADED: f64 = 10.0;
/// ... and below this it has none.
const QUIET: f64 = 1.0;
/// Steps with a load after which it has begun.
const LOADED_STEPS: u32 = 2;
/// Steps without one after which it has ended: a minute.
pub(super) const QUIET_STEPS: u32 = 12;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// The disk is hurt from now on.
    Rose(Hurt),
    /// It is hurt no more.
    Fell {
        /// For how long it was.
        lasted: Nanos,
        /// The worst step's mean; nothing if its requests hung.
        worst: Option<Nanos>,
        /// Whether that is since it asks for hardly anything any more.
        quiet: bool,
    },
    /// A load begins.
    Began {
        /// Requests per second.
        iops: f64,
    },
    /// It has ended.
    Ended {
        /// How long it lasted.
        lasted: Nanos,
    },
}

/// How a disk is hurt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hurt {
    /// When the first slow step began.
    pub since: Nanos,
    /// What its requests took in the last step that had any; nothing if they hang.
    pub took: Option<Nanos>,
    /// What the same requests usually take, if that is known.
    pub usual: Option<Nanos>,
    /// What was promised, if it is missed.
    pub promised: Option<Nanos>,
}

/// A disk that is watched.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    usual: Usual,
    slowing: Slowing,
    hurt: Option<Hurt>,
    worst: Option<Nanos>,
    /// Steps in a row that speak against the state: slow ones, or others if it is hurt.
    against: u32,
    /// Since when it has a load.
    loaded: Option<Nanos>,
    /// Steps in a row that speak against that.
    turning: u32,
}

/// How a step was.
#[derive(Clone, Copy)]
enum Step {
    Slow(Hurt),
    Between(Hurt),
    /// Requests take so long, as they should.
    Well(Nanos),
    /// Too few requests to tell.
    Quiet,
}

impl Watch {
    /// One step that ended now, with what is promised to the mean of its requests. Says what
    /// has changed, if anything has.
    pub fn step(
        &mut self,
        now: Nanos,
        did: &Summary,
        promised: Option<Nanos>,
    ) -> [Option<Turn>; 2] {
        let compared = self.usual.compare(did);
        let step = Watch::judge(now, did, compared, promised);
        let slower = self.slowing.step(now, compared);
        let slow = slower || matches!(step, Step::Slow(_));
        self.usual.learn(now, did, if slow { SLOW_WEIGHT } else { 1.0 });
        [self.turn(now, step), self.load(now, did)]
    }

    /// A disk of which it was learned before what is usual.
    pub fn knowing(usual: Usual) -> Watch {
        Watch { usual, ..Watch::default() }
    }

    /// How much slower than usual it is, if it is, and not hurt.
    pub fn slower(&self) -> Option<Slower> {
        self.slowing.slower().filter(|_| self.hurt.is_none())
    }

    /// Since when it has a load, if it has one.
    pub fn loaded(&self) -> Option<Nanos> {
        self.loaded
    }

    /// How it is hurt, if it is.
    pub fn hurt(&self) -> Option<Hurt> {
        self.hurt
    }

    /// What is usual for it.
    pub fn usual(&self) -> &Usual {
        &self.usual
    }

    fn judge(
        now: Nanos,
        did: &Summary,
        compared: Option<Compared>,
        promised: Option<Nanos>,
    ) -> Step {
        let since = Nanos(now.0.saturating_sub(STEP.0));
        let hurt =
            |took, usual, promised| Hurt { since, took: Some(took), usual, promised };
        let count = did.read.operations + did.write.operations;
        if count == 0 {
            let hangs = Hurt { since, took: None, usual: None, promised: None };
            return if did.in_flight > 0 { Step::Slow(hangs) } else { Step::Quiet };
        }
        let mean = Nanos((did.outstanding() * 1e9 / did.iops()) as u64);
        let missed = promised.filter(|most| mean > *most);
        match compared {
            Some(Compared { took, usual }) if above(took, usual, RISEN, RISEN_BY) => {
                Step::Slow(hurt(took, Some(usual), missed))
            }
            compared if missed.is_some() => {
                Step::Slow(hurt(mean, compared.map(|it| it.usual), missed))
            }
            Some(Compared { took, usual }) if above(took, usual, FALLEN, FALLEN_BY) => {
                Step::Between(hurt(took, Some(usual), None))
            }
            Some(Compared { took, .. }) => Step::Well(took),
            // Nothing is promised any more, and what is usual is not known yet.
            None if promised.is_some() || count >= REQUESTS_LEAST => Step::Well(mean),
            None => Step::Quiet,
        }
    }

    fn turn(&mut self, now: Nanos, step: Step) -> Option<Turn> {
        let Some(hurt) = &mut self.hurt else {
            let Step::Slow(slow) = step else {
                self.against = 0;
                return None;
            };
            self.against += 1;
            if self.against < SLOW_STEPS {
                return None;
            }
            let before = u64::from(self.against - 1) * STEP.0;
            let since = Nanos(slow.since.0.saturating_sub(before));
            let hurt = Hurt { since, ..slow };
            (self.hurt, self.worst, self.against) = (Some(hurt), hurt.took, 0);
            return Some(Turn::Rose(hurt));
        };
        let (well, quiet) = match step {
            Step::Slow(now) | Step::Between(now) => {
                self.worst = self.worst.max(now.took);
                *hurt = Hurt { since: hurt.since, ..now };
                (false, false)
            }
            // It may come back, but what is said of it is what it takes now.
            Step::Well(took) => {
                (hurt.took, hurt.promised) = (Some(took), None);
                (true, false)
            }
            Step::Quiet => (true, true),
        };
        self.against = if well { self.against + 1 } else { 0 };
        // A pause of the application is no recovery.
        let needed = if quiet { QUIET_STEPS } else { WELL_STEPS };
        if self.against < needed {
            return None;
        }
        let well_for = u64::from(self.against) * STEP.0;
        let lasted = Nanos(now.since(hurt.since).0.saturating_sub(well_for));
        (self.hurt, self.against) = (None, 0);
        Some(Turn::Fell { lasted, worst: self.worst.take(), quiet })
    }

    fn load(&mut self, now: Nanos, did: &Summary) -> Option<Turn> {
        let iops = did.iops();
        let (turns, needed) = match self.loaded {
            None => (iops >= LOADED, LOADED_STEPS),
            // What hangs is a load.
            Some(_) => (iops < QUIET && did.in_flight == 0, QUIET_STEPS),
        };
        self.turning = if turns { self.turning + 1 } else { 0 };
        if self.turning < needed {
            return None;
        }
        let first = Nanos(now.0.saturating_sub(u64::from(self.turning) * STEP.0));
        self.turning = 0;
        match self.loaded.take() {
            None => {
                self.loaded = Some(first);
                Some(Turn::Began { iops })
            }
            Some(since) => Some(Turn::Ended { lasted: first.since(since) }),
        }
    }
}

/// Whether requests took so many times as long as usual, and longer by that much.
pub(super) fn above(took: Nanos, usual: Nanos, times: f64, by: Nanos) -> bool {
    took.0 as f64 > usual.0 as f64 * times && took > usual.plus(by)
}
