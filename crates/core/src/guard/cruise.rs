//! Cruise control: one class gets what it was promised, and the others yield.
//!
//! # Rule
//!
//! More of the others slows the class down, and nobody knows how much before it was
//! tried. So the first cut is small, and from then on two points tell: what the others
//! got, and how fast the class was. Between them two laws are common:
//!
//! - *shared*: others that are held to a rate take so much of the device's time, and
//!   the class has the rest. Its speed is `alone - b * others`.
//! - *queued*: requests of the class wait behind those of the others. Its time, one
//!   over the speed, is `own + slope * others`.
//!
//! Both are drawn through the two points, and the more careful answer counts: of two
//! cuts the smaller, and of two raises the smaller. So the class comes to its target
//! from below, and does not shoot over it.
//!
//! # Invariants
//!
//! 1. Nobody is held below their floor, or below [`RATE_MIN`].
//! 2. While the class has its target within half the tolerance, nothing is changed.
//! 3. The others are never let go by more than [`RAISE_MAX`] in a period, so that
//!    giving back does not undo what was gained.
//!
//! # Special cases
//!
//! - A class that asks for less than its target has all it wants. It is found by what
//!   cutting does: nothing. Then the others are let go, step by step, and the loop
//!   holds, saying so.
//! - A class among the others that does not use what it is allowed leaves it to those
//!   that do; it keeps enough to begin with.
//! - If the others are at their floors and the target is not there for
//!   [`PATIENCE`] periods, the target is unreachable: the reason is named, the fallback
//!   applies, and after [`REST`] periods it is tried again.

use std::collections::BTreeMap;

use crate::measure::Window;
use crate::qos::policy::{Cruise, Fallback};
use crate::qos::{ClassId, Goal};
use crate::{Bytes, Nanos};

/// How long a period is: enough requests for a mean on slow devices, and three of them
/// are well within the time to settle.
pub const PERIOD: Nanos = Nanos::from_secs(1);

/// Bytes per second that everybody is left: guests give a disk up that does not answer
/// for long.
pub const RATE_MIN: f64 = (1 << 20) as f64;

/// The first cut, of which nothing is known.
const CUT_FIRST: f64 = 0.8;

/// The most that the others are cut by in a period: from all there is to a percent in
/// six of them.
const CUT_MAX: f64 = 0.4;

/// The most that they are let go by.
const RAISE_MAX: f64 = 1.25;

/// Two points of the line tell something if the others differ by this factor.
const APART: f64 = 1.2;

/// A cut by `APART` or more that shortens the time by less than this did nothing.
const EFFECT: f64 = 0.03;

/// The part of a new time in the smoothed one, as long as the two differ by less than
/// the tolerance: what a second varies by itself is not acted on.
const SMOOTHING: f64 = 0.4;

/// Cuts in a row without effect before the class is taken to ask for no more.
const CUTS: u32 = 2;

/// Periods at the floors before the target counts as unreachable.
const PATIENCE: u32 = 8;

/// Periods after which an unreachable target is tried again.
const REST: u32 = 60;

/// A class uses what it is allowed from this part on.
const USES: f64 = 0.9;

/// What a sum that does not change varies by when it is measured.
const VARIES: f64 = 0.04;

/// What a class gets that does not use its part: so much of what it did.
const ROOM: f64 = 1.25;

/// Of an equal part, what a class keeps that asks for nothing now.
const TO_BEGIN: f64 = 0.25;

/// One of the others.
#[derive(Clone, Debug)]
pub struct Other {
    /// Which.
    pub class: ClassId,
    /// What it did in the period.
    pub window: Window,
    /// Bytes per second that it must not be held below.
    pub floor: f64,
}

/// What has become of the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is there, within its tolerance, or the class asks for no more.
    Holding,
    /// It is not there yet.
    Converging,
    /// It cannot be had; the fallback applies.
    Unreachable(String),
}

/// The loop for one class.
#[derive(Debug)]
pub struct CruiseControl {
    cruise: Cruise,
    /// Bytes per second for all others together; nothing holds them back without it.
    allowed: Option<f64>,
    /// What the last two points that differ tell.
    law: Option<Law>,
    /// How it is split now.
    limits: BTreeMap<ClassId, u64>,
    /// The time that the class takes now, smoothed.
    smoothed: Option<f64>,
    /// What the others got, and the time that the class took.
    last: Option<(f64, f64)>,
    idle_cuts: u32,
    at_floor: u32,
    resting: u32,
    outcome: Outcome,
    note: Option<&'static str>,
}

impl CruiseControl {
    /// A loop that has held nobody back yet.
    pub fn new(cruise: Cruise) -> CruiseControl {
        CruiseControl {
            cruise,
            allowed: None,
            law: None,
            limits: BTreeMap::new(),
            smoothed: None,
            last: None,
            idle_cuts: 0,
            at_floor: 0,
            resting: 0,
            outcome: Outcome::Converging,
            note: None,
        }
    }

    /// What has become of the target.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What else there is to say.
    pub fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// Whether the fallback applies now.
    pub fn fallback(&self) -> Option<Fallback> {
        matches!(self.outcome, Outcome::Unreachable(_)).then_some(self.cruise.fallback)
    }

    /// Looks at what the class and the others did in a period. Gives what each of the
    /// others may have from now on, in bytes per second; those that are not in it are
    /// not held back.
    pub fn step(&mut self, own: &Window, others: &[Other]) -> BTreeMap<ClassId, u64> {
        let got: f64 = others.iter().map(|other| other.window.bytes_per_second()).sum();
        self.note = None;
        match self.time(own) {
            None => self.idle(),
            Some(time) => self.look(own, time, got, others),
        }
        self.limits = self.share(others);
        self.limits.clone()
    }

    /// The class did nothing: it has what it asks for.
    fn idle(&mut self) {
        self.note = Some("the class asks for nothing");
        self.rest_over();
        if self.resting == 0 {
            self.outcome = Outcome::Holding;
        }
        (self.last, self.smoothed) = (None, None);
        self.at_floor = 0;
        self.raise(RAISE_MAX);
    }

    fn look(&mut self, own: &Window, time: f64, got: f64, others: &[Other]) {
        if self.rest_over() {
            return;
        }
        let (target, tolerance) = (self.target(), self.tolerance());
        // What is measured varies; what is allowed, and used up, is known.
        let used_up = |allowed: &f64| (got / allowed - 1.0).abs() <= VARIES;
        let got = self.allowed.filter(used_up).unwrap_or(got);
        self.learn(time, got);
        let time = self.smooth(time);
        let error = time / target - 1.0;
        let within = error <= tolerance;
        if error.abs() <= tolerance / 2.0 {
            self.at_floor = 0;
            self.outcome = Outcome::Holding;
            return;
        }
        if error < 0.0 {
            self.at_floor = 0;
            self.outcome = Outcome::Holding;
            self.raise(self.factor(time, got));
            return;
        }
        self.outcome = if within { Outcome::Holding } else { Outcome::Converging };
        if self.idle_cuts >= CUTS {
            // What the others got made no difference.
            self.note = Some("the class does not ask for more");
            self.outcome = Outcome::Holding;
            self.raise(RAISE_MAX);
            return;
        }
        let floors: f64 = others.iter().map(floor).sum();
        let before = self.allowed.unwrap_or(got).min(got.max(floors));
        if before <= floors * 1.01 {
            self.at_floor += 1;
            if self.at_floor >= PATIENCE && !within {
                self.give_up(own);
            }
            self.allowed = Some(floors);
            return;
        }
        self.at_floor = 0;
        self.allowed = Some((before * self.factor(time, before)).max(floors));
    }

    /// Counts a period of rest; whether it goes on.
    fn rest_over(&mut self) -> bool {
        if self.resting > 0 {
            self.resting -= 1;
            if self.resting == 0 {
                (self.allowed, self.last, self.law) = (None, None, None);
                (self.at_floor, self.idle_cuts) = (0, 0);
                self.outcome = Outcome::Converging;
            }
        }
        self.resting > 0
    }

    /// What the others have to be multiplied with to bring the class to its target.
    fn factor(&self, time: f64, got: f64) -> f64 {
        let (target, cuts) = (self.target(), time > self.target());
        // The near edge of what counts as there: what is cut too much is felt at once.
        let aim = if cuts { target * (1.0 + self.tolerance() / 2.0) } else { target };
        let wanted = match &self.law {
            Some(law) => law.factor(time, got, aim.min(time.max(target))),
            None if cuts => CUT_FIRST,
            None => RAISE_MAX,
        };
        let wanted = wanted.clamp(CUT_MAX, RAISE_MAX);
        // Close to the target, half the way: the rest may be noise. Giving back is
        // never urgent.
        let close = (time / target - 1.0).abs() <= 2.0 * self.tolerance();
        if close || !cuts { wanted.sqrt() } else { wanted }
    }

    fn smooth(&mut self, time: f64) -> f64 {
        let tolerance = self.tolerance();
        let smoothed = match self.smoothed {
            Some(old) if (time / old - 1.0).abs() <= tolerance => {
                old + SMOOTHING * (time - old)
            }
            _ => time,
        };
        self.smoothed = Some(smoothed);
        smoothed
    }

    /// Learns what the class takes alone, and whether cutting the others does anything.
    fn learn(&mut self, time: f64, got: f64) {
        let Some((before, then)) = self.last else {
            self.last = Some((got, time));
            return;
        };
        let (less, more) = (before.min(got), before.max(got));
        if more < less * APART || more < RATE_MIN {
            return; // Too close to each other to tell anything.
        }
        let did_nothing = (then / time - 1.0).abs() < EFFECT;
        if !did_nothing {
            self.idle_cuts = 0;
        } else if got < before {
            self.idle_cuts += 1;
        }
        // A class that is faster the more the others get says nothing of this.
        if (then - time) * (before - got) > 0.0 {
            let shared = (1.0 / time - 1.0 / then) / (before - got);
            let own = time - (then - time) / (before - got) * got;
            self.law = Some(Law { shared, own: own.clamp(0.0, 0.98 * time) });
        }
        self.last = Some((got, time));
    }

    fn raise(&mut self, factor: f64) {
        if self.resting == 0 {
            self.allowed = self.allowed.map(|allowed| allowed * factor.max(1.0));
        }
    }

    fn give_up(&mut self, own: &Window) {
        let gets = match self.cruise.target {
            Goal::Bytes(_) => format!("{}/s", Bytes(own.bytes_per_second() as u64)),
            Goal::Requests(_) => format!("{:.0} IO/s", own.iops()),
            Goal::Response(_) => {
                let total = own.total();
                total.mean(total.response).unwrap_or_default().to_string()
            }
        };
        self.resting = REST;
        self.outcome = Outcome::Unreachable(format!(
            "the others are at their floors, and the class gets {gets} of {}",
            self.cruise.target
        ));
    }

    /// How the allowance is split. Nothing of it if nobody is held back any more.
    fn share(&mut self, others: &[Other]) -> BTreeMap<ClassId, u64> {
        match self.fallback() {
            Some(Fallback::Release) => return BTreeMap::new(),
            Some(Fallback::Limit(goal)) => return held_to(goal, others),
            Some(Fallback::None) | None => {}
        }
        let Some(allowed) = self.allowed else { return BTreeMap::new() };
        let demands: Vec<f64> = others
            .iter()
            .map(|other| self.demand(other, allowed, others.len()))
            .collect();
        let used: f64 = others.iter().map(|one| one.window.bytes_per_second()).sum();
        let sated = demands.iter().all(|demand| demand.is_finite());
        if sated && self.outcome == Outcome::Holding && used < allowed * USES / RAISE_MAX
        {
            // The limits hold nobody back, and come off.
            (self.allowed, self.last) = (None, None);
            return BTreeMap::new();
        }
        let parts = pour(allowed, &demands);
        let limit =
            |(other, part): (&Other, f64)| (other.class, part.max(floor(other)) as u64);
        others.iter().zip(parts).map(limit).collect()
    }

    /// What one of the others would do with it; no end to it for one that uses all it
    /// may.
    fn demand(&self, other: &Other, allowed: f64, many: usize) -> f64 {
        let did = other.window.bytes_per_second();
        match self.limits.get(&other.class) {
            Some(limit) if did >= USES * *limit as f64 => f64::INFINITY,
            _ => (did * ROOM).max(allowed / many as f64 * TO_BEGIN),
        }
    }

    /// The time that the class took in a window: a response, or from one request or
    /// byte to the next. Nothing if it did nothing.
    fn time(&self, window: &Window) -> Option<f64> {
        let total = window.total();
        let rate = match self.cruise.target {
            Goal::Response(_) => return total.mean(total.response).map(|it| it.0 as f64),
            Goal::Bytes(_) => window.bytes_per_second(),
            Goal::Requests(_) => window.iops(),
        };
        (rate > 0.0).then(|| 1e9 / rate)
    }

    fn target(&self) -> f64 {
        match self.cruise.target {
            Goal::Response(span) => span.0 as f64,
            Goal::Bytes(rate) | Goal::Requests(rate) => 1e9 / rate as f64,
        }
    }

    fn tolerance(&self) -> f64 {
        f64::from(self.cruise.tolerance.percent()) / 100.0
    }
}

/// Pours an allowance over demands: the small ones are met, and the others get the
/// same. What is left when all are met is poured over them as well.
fn pour(allowed: f64, demands: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|a, b| demands[*a].total_cmp(&demands[*b]));
    let mut parts = vec![0.0; demands.len()];
    let (mut left, mut many) = (allowed, demands.len());
    for at in order {
        parts[at] = demands[at].min(left / many as f64);
        left -= parts[at];
        many -= 1;
    }
    let more = left / demands.len().max(1) as f64;
    parts.into_iter().map(|part| part + more).collect()
}

/// What the class loses to the others.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// Shared: speed lost for each byte per second of the others.
    shared: f64,
    /// Queued: the time that the class takes alone.
    own: f64,
}

impl Law {
    /// What the others, who got so much while the class took this time, have to be
    /// multiplied with. The more careful of two answers.
    fn factor(&self, time: f64, got: f64, target: f64) -> f64 {
        let more = (1.0 / target - 1.0 / time) / self.shared.max(f64::MIN_POSITIVE);
        let shared = (got - more) / got.max(1.0);
        // Of a class that is slower alone than its target, nothing is enough.
        let queued = (target - self.own).max(0.0) / (time - self.own).max(target * 1e-3);
        if time > target { shared.max(queued) } else { shared.min(queued) }
    }
}

/// What one of the others is left.
fn floor(other: &Other) -> f64 {
    other.floor.max(RATE_MIN)
}

/// Everybody held to a goal; one in another metric than bytes counts at the size of
/// request that the class has.
fn held_to(goal: Goal, others: &[Other]) -> BTreeMap<ClassId, u64> {
    let limit = |other: &Other| {
        let total = other.window.total();
        let size = (total.bytes as f64 / total.operations.max(1) as f64).max(4096.0);
        let rate = match goal {
            Goal::Bytes(rate) => rate as f64,
            Goal::Requests(rate) => rate as f64 * size,
            Goal::Response(span) => size / span.as_secs_f64(),
        };
        (other.class, rate.max(other.floor) as u64)
    };
    others.iter().map(limit).collect()
}
