//! One disk, step by step: whether it is hurt, and whether it has a load.

use super::held::{Did, HELD_STEPS, Held, Slowed, Slowings};
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
        /// Why.
        end: End,
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

/// Why a disk is hurt no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its requests take what they should.
    Well,
    /// It asks for hardly anything any more.
    Quiet,
    /// It waits for a policy's sake, and only for that.
    OnPurpose,
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
    /// Whether its requests take what they should again: it is hurt until that has lasted.
    pub recovers: bool,
}

/// A disk that is watched.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    usual: Usual,
    slowing: Slowing,
    slowings: Slowings,
    /// What was promised in the last step.
    promised: Option<Nanos>,
    hurt: Option<Hurt>,
    worst: Option<Nanos>,
    /// Steps in a row that speak against the state: slow ones, or others if it is hurt.
    against: u32,
    /// Whether the last of these was one in which a policy made it wait.
    on_purpose: bool,
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
    /// A policy makes them wait: they take so long.
    OnPurpose(Option<Nanos>),
}

impl Watch {
    /// One step that ended now. Says what has changed, if anything has.
    pub fn step(&mut self, now: Nanos, did: &Did) -> [Option<Turn>; 2] {
        // A promise holds from the first step on that is wholly after it was made.
        let before = std::mem::replace(&mut self.promised, did.promised);
        let did = Did { promised: did.promised.filter(|_| before.is_some()), ..*did };
        let compared = self.usual.compare(&did.of_device());
        let felt = self.usual.compare(&did.summary);
        self.slowings.step(now, &did, felt.map(|it| it.usual));
        let step = Watch::judge(now, &did, compared);
        let slower = self.slowing.step(now, compared);
        let turn = self.turn(now, step);
        let slow = slower || self.hurt.is_some() || matches!(step, Step::Slow(_));
        // What is missed of a promise hurts whatever is usual: so it need not become usual.
        let missed = self.hurt.is_some_and(|hurt| hurt.promised.is_some());
        if did.is_usual() && !(missed && compared.is_some()) {
            self.usual.learn(now, &did.summary, if slow { SLOW_WEIGHT } else { 1.0 });
        }
        [turn, self.load(now, &did.summary)]
    }

    /// A disk of which it was learned before what is usual.
    pub fn knowing(usual: Usual) -> Watch {
        Watch { usual, ..Watch::default() }
    }

    /// How much slower than usual it is, if it is, and neither hurt nor slowed on purpose.
    pub fn slower(&self) -> Option<Slower> {
        let else_told = self.hurt.is_some() || self.slowings.slowed().is_some();
        self.slowing.slower().filter(|_| !else_told)
    }

    /// How it is slowed on purpose, if it is, and not hurt.
    pub fn slowed(&self) -> Option<Slowed> {
        self.slowings.slowed().filter(|_| self.hurt.is_none())
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

    fn judge(now: Nanos, did: &Did, compared: Option<Compared>) -> Step {
        let since = Nanos(now.0.saturating_sub(STEP.0));
        let hurt = |took, usual, promised| Hurt {
            since,
            took,
            usual,
            promised,
            recovers: false,
        };
        let Summary { read, write, in_flight, .. } = &did.summary;
        let count = read.operations + write.operations;
        if count == 0 {
            let hangs = hurt(None, None, None);
            return if *in_flight > 0 { Step::Slow(hangs) } else { Step::Quiet };
        }
        let felt = did.mean();
        // A limit of its own keeps no promise, and breaks none.
        let counts = match did.held {
            Some(Held::Limit) => Did { summary: did.of_device(), ..*did }.mean(),
            _ => felt,
        };
        let missed = did.promised.filter(|most| counts.is_some_and(|mean| mean > *most));
        // With the wait, as its client has it.
        let took = |device: Nanos| match did.held {
            None => Some(device),
            Some(_) => felt,
        };
        match compared {
            Some(Compared { took: device, usual })
                if above(device, usual, RISEN, RISEN_BY) =>
            {
                Step::Slow(hurt(took(device), Some(usual), missed))
            }
            compared if missed.is_some() => {
                Step::Slow(hurt(felt, compared.map(|it| it.usual), missed))
            }
            _ if did.is_slowed() => Step::OnPurpose(felt),
            Some(Compared { took: device, usual })
                if above(device, usual, FALLEN, FALLEN_BY) =>
            {
                Step::Between(hurt(took(device), Some(usual), None))
            }
            Some(Compared { took: device, .. }) => {
                Step::Well(took(device).unwrap_or(device))
            }
            // Nothing is promised any more, and what is usual is not known yet.
            None if did.promised.is_some() || count >= REQUESTS_LEAST => {
                Step::Well(felt.unwrap_or_default())
            }
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
        let end = match step {
            Step::Slow(now) | Step::Between(now) => {
                self.worst = self.worst.max(now.took);
                *hurt = Hurt { since: hurt.since, ..now };
                None
            }
            // It may come back, but what is said of it is what it takes now.
            Step::Well(took) => {
                (hurt.took, hurt.promised, hurt.recovers) = (Some(took), None, true);
                Some((End::Well, WELL_STEPS))
            }
            // A pause of the application is no recovery.
            Step::Quiet => Some((End::Quiet, QUIET_STEPS)),
            Step::OnPurpose(took) => {
                (hurt.took, hurt.promised, hurt.recovers) = (took, None, false);
                Some((End::OnPurpose, HELD_STEPS))
            }
        };
        // A wait on purpose is no recovery, and the other way round: each begins anew.
        let on_purpose = matches!(end, Some((End::OnPurpose, _)));
        let goes_on = std::mem::replace(&mut self.on_purpose, on_purpose) == on_purpose;
        self.against = match end {
            Some(_) if goes_on => self.against + 1,
            Some(_) => 1,
            None => 0,
        };
        let (end, _) = end.filter(|(_, needed)| self.against >= *needed)?;
        let well_for = u64::from(self.against) * STEP.0;
        let lasted = Nanos(now.since(hurt.since).0.saturating_sub(well_for));
        (self.hurt, self.against) = (None, 0);
        Some(Turn::Fell { lasted, worst: self.worst.take(), end })
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
