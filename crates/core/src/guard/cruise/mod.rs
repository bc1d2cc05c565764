//! Cruise control: one class gets what it was promised, and the others yield.
//!
//! # Rule
//!
//! Once a period the loop looks at what the class had (`reach`) and what the others
//! got, learns from it what the others may have (`law`), and splits that among them
//! (`share`). While anybody is held back for its sake, the class itself is held to its
//! target: a speed is held, and not only a least one. A class that nobody yields to is
//! not held, and one with a response time never is.
//!
//! # Invariants
//!
//! 1. Nobody is held below their floor, or below [`RATE_MIN`], unless the fallback asks
//!    for less than that.
//! 2. While the class has its target, and not much more to spare, nothing is changed.
//! 3. The others are never let go by more than a twentieth in a period, so that giving back
//!    does not undo what was gained; unless the class has had at least twice what it needs
//!    since the last cut: then nobody need yield, and they grow until it is felt (`law`).
//!
//! # Special cases
//!
//! - A class that asks for less than its target has all it wants. Where it seldom has a
//!   request under way, that is plain. Else it is found by what cutting does: less is
//!   under way, and the class gets no more. Then the others are let go, step by step, and
//!   the loop holds, saying so. (A response time that is missed is missed, however little
//!   is asked.)
//! - A class that has all that a limit of its own leaves it gets no more by what the others
//!   give up: they are let go, step by step, and the loop says so.
//! - A class that asks for nothing for [`IDLE`] periods lets the others go, also from a
//!   fallback. When it comes back, they begin with the most that was known to be well.
//! - Others that do not use what they may are no reason to allow them more: they may be
//!   resting. If they do not for [`UNUSED`] periods, the limits come off.
//! - If the others are at their floors and the target is not there for
//!   [`AT_FLOORS`] periods, the target is unreachable: the reason is named, the fallback
//!   applies, and after [`REST`] periods it is tried again: first all are free for a
//!   period.
//! - Where nobody else does anything, nobody can yield, and nothing is learned: a class
//!   that has less than its target asks for no more, or has all there is. Only a response
//!   time tells that it is missed. Who comes is not held before what they do was seen;
//!   who only rests keeps their limit, until it comes off.

mod law;
mod reach;
mod share;

use std::collections::{BTreeMap, VecDeque};

use crate::Nanos;
use crate::measure::Window;
use crate::qos::policy::{Cruise, Fallback};
use crate::qos::{ClassId, Goal, Limit};

use self::law::{Law, RAISE_MAX};
use self::reach::{Reach, hold, tolerance, uses_up};
use self::share::{Shares, USES};

pub use self::share::{Other, RATE_MIN};

/// How long a period is: enough requests for a mean on slow devices, and three of them
/// are well within the time to settle.
pub const PERIOD: Nanos = Nanos::from_secs(1);

/// The ease that is aimed at: a little more than the target, so that what a second
/// varies by itself is not felt.
const AIM: f64 = 1.10;

/// The ease that is kept while the others are held.
const SPARE: f64 = 1.03;

/// The ease from which on something is given back, if it was there for so many periods.
/// (Seconds differ: what one has to spare, the next may need.)
const PLENTY: f64 = 1.2;
const PLENTY_FOR: usize = 3;

/// Periods since the last cut of which the worst counts.
const RECENT: usize = 8;

/// The part of a new ease in the smoothed one, as long as the two differ by less than
/// the tolerance: what a second varies by itself is not acted on.
const SMOOTHING: f64 = 0.4;

/// Cuts in a row without effect before the class is taken to ask for no more.
const CUTS: u32 = 2;

/// Periods without a request after which a class counts as idle.
const IDLE: u32 = 3;

/// Periods in which nobody uses what they may, after which the limits come off.
const UNUSED: u32 = 10;

/// Periods at the floors before the target counts as unreachable.
const AT_FLOORS: u32 = 8;

/// Periods after which an unreachable target is tried again.
const REST: u32 = 60;

/// Why nobody can yield.
const ALONE: &str = "no other class sends requests";

/// What is allowed, and used up, may be measured so far from it.
const VARIES: f64 = 0.04;

/// What has become of the target.
#[derive(Clone, Debug, PartialEq)]
pub enum CruiseOutcome {
    /// It is there, within its tolerance, or the class asks for no more.
    Holding,
    /// It is not there yet.
    Converging,
    /// It cannot be had; the fallback applies.
    Unreachable(String),
}

/// What all are held to from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CruiseHold {
    /// The class itself.
    pub own: Limit,
    /// The others; those that are not in it are not held back.
    pub others: BTreeMap<ClassId, Limit>,
}

/// The loop for one class.
#[derive(Debug)]
pub struct CruiseControl {
    cruise: Cruise,
    /// What the class is held to by its own policies.
    limit: Limit,
    depth: Option<u32>,
    /// Bytes per second for all others together; nothing holds them back without it.
    allowed: Option<f64>,
    law: Law,
    shares: Shares,
    /// The ease of the class, smoothed.
    smoothed: Option<f64>,
    /// What it was since the last cut, the newest last.
    recent: VecDeque<f64>,
    /// For how many periods the class asked for nothing.
    idle: u32,
    /// For how many the others did not use what they may.
    unused: u32,
    at_floor: u32,
    /// For how many nobody else did anything, and the class was below its target.
    alone: u32,
    resting: u32,
    /// Why the target is out of reach, while it is.
    given_up: &'static str,
    outcome: CruiseOutcome,
    note: Option<&'static str>,
}

impl CruiseControl {
    /// A loop that has held nobody back yet.
    pub fn new(cruise: Cruise) -> CruiseControl {
        CruiseControl {
            cruise,
            limit: Limit::default(),
            depth: None,
            allowed: None,
            law: Law::default(),
            shares: Shares::default(),
            smoothed: None,
            recent: VecDeque::new(),
            idle: 0,
            unused: 0,
            at_floor: 0,
            alone: 0,
            resting: 0,
            given_up: "",
            outcome: CruiseOutcome::Converging,
            note: None,
        }
    }

    /// The class's own policies hold it to this from now on.
    pub fn limit_own(&mut self, limit: Limit, depth: Option<u32>) {
        (self.limit, self.depth) = (limit, depth);
    }

    /// What has become of the target.
    pub fn outcome(&self) -> &CruiseOutcome {
        &self.outcome
    }

    /// What else there is to say.
    pub fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// Whether the fallback applies now.
    pub fn fallback(&self) -> Option<Fallback> {
        matches!(self.outcome, CruiseOutcome::Unreachable(_))
            .then_some(self.cruise.fallback)
    }

    /// Looks at what the class and the others did in a period. Gives what they are held
    /// to from now on.
    pub fn step(&mut self, own: &Window, others: &[Other]) -> CruiseHold {
        let got: f64 = others.iter().map(Other::did).sum();
        self.note = None;
        let held = !self.shares.limits().is_empty();
        let limited = !self.limit.is_none() || self.depth.is_some();
        match Reach::of(&self.cruise, own, held, limited) {
            None => self.nothing_asked(),
            Some(reach) if self.is_limited(reach, own) => self.leaves_no_more(),
            Some(reach) => self.look(reach, got, others),
        }
        self.share(got, others);
        let others = self.shares.limits().clone();
        let own = if others.is_empty() { Limit::default() } else { hold(&self.cruise) };
        CruiseHold { own, others }
    }

    /// The class did nothing: it has what it asks for.
    fn nothing_asked(&mut self) {
        self.note = Some("the class sends no requests");
        self.rests();
        self.smoothed = None;
        self.at_floor = 0;
        self.idle += 1;
        if self.idle >= IDLE {
            if std::mem::take(&mut self.resting) > 0 {
                self.law.forget();
            }
            self.let_go();
        }
        if self.resting == 0 {
            self.outcome = CruiseOutcome::Holding;
        }
    }

    /// Whether it is a limit of the class's own that keeps it from its target.
    fn is_limited(&self, reach: Reach, own: &Window) -> bool {
        reach.speed < 1.0 - tolerance(&self.cruise) && uses_up(&self.limit, own)
    }

    /// Nobody's yielding would help.
    fn leaves_no_more(&mut self) {
        // What they did under a fallback says nothing of what they may have.
        if std::mem::take(&mut self.resting) > 0 {
            self.law.forget();
        }
        (self.idle, self.alone, self.smoothed) = (0, 0, None);
        self.recent.clear();
        self.has_all("the class's own limit permits no more");
    }

    fn look(&mut self, reach: Reach, got: f64, others: &[Other]) {
        self.idle = 0;
        if others.is_empty() {
            self.let_go();
            if std::mem::take(&mut self.resting) > 0 {
                self.law.forget();
            }
        } else if self.rests() {
            if self.resting > 0 {
                // What is said is of now, and not of when the loop gave up.
                self.outcome = unreachable(self.given_up, reach, self.cruise.target);
            }
            return;
        }
        if others.iter().all(Other::rests) {
            return self.alone(reach);
        }
        self.alone = 0;
        let tolerance = tolerance(&self.cruise);
        if !self.is_time() && reach.most() < 1.0 - tolerance {
            return self.asks_for_less();
        }
        let least = 1.0 - tolerance / 2.0;
        // What is measured varies; what is allowed, and used up, is known.
        let used_up = |allowed: &f64| (got / allowed - 1.0).abs() <= VARIES;
        let got = self.allowed.filter(used_up).unwrap_or(got);
        self.law.learn(got, reach.ease, reach.outstanding, least);
        let ease = self.smooth(reach.ease);
        let least = if self.allowed.is_some() { SPARE } else { least };
        if ease >= least {
            self.at_floor = 0;
            self.outcome = CruiseOutcome::Holding;
            self.law.enough();
            let use_it = |allowed: f64| got >= USES * allowed;
            let worst = self.worst(reach.ease);
            if worst > PLENTY && self.allowed.is_some_and(use_it) {
                self.raise(self.law.raise(got, worst, AIM));
            }
            return;
        }
        self.recent.clear();
        let within = ease >= 1.0 - tolerance;
        self.outcome =
            if within { CruiseOutcome::Holding } else { CruiseOutcome::Converging };
        if !self.is_time() && self.law.idle_cuts() >= CUTS {
            return self.asks_for_less();
        }
        let floors: f64 = others.iter().map(Other::least).sum();
        let before = self.allowed.unwrap_or(got).min(got.max(floors));
        if before <= floors * 1.01 {
            self.at_floor += 1;
            if self.at_floor >= AT_FLOORS && !within {
                self.give_up(reach);
            }
            self.allowed = Some(floors);
            return;
        }
        self.at_floor = 0;
        self.allowed = Some((before * self.law.cut(before, ease, AIM)).max(floors));
    }

    /// It has all it wants.
    fn asks_for_less(&mut self) {
        self.has_all("the class does not ask for more");
    }

    /// It has all that it can have: the others are let go, step by step.
    fn has_all(&mut self, why: &'static str) {
        self.note = Some(why);
        self.outcome = CruiseOutcome::Holding;
        self.at_floor = 0;
        self.raise(RAISE_MAX);
    }

    /// Whether the target is a response time: that is missed however little is asked.
    fn is_time(&self) -> bool {
        matches!(self.cruise.target, Goal::Response(_))
    }

    /// Nobody does anything that they could yield.
    fn alone(&mut self, reach: Reach) {
        self.smoothed = None;
        self.recent.clear();
        self.at_floor = 0;
        let missed = reach.speed < 1.0 - tolerance(&self.cruise);
        self.note = missed.then_some(ALONE);
        self.alone = if missed { self.alone + 1 } else { 0 };
        self.outcome = match (self.is_time() && missed, self.alone >= AT_FLOORS) {
            (false, _) => CruiseOutcome::Holding,
            (true, false) => CruiseOutcome::Converging,
            (true, true) => unreachable(ALONE, reach, self.cruise.target),
        };
    }

    /// Counts a period of rest. In the one that ends it, nobody is held any more, so what
    /// was seen in it is not looked at: it was of others who were held.
    fn rests(&mut self) -> bool {
        if self.resting == 0 {
            return false;
        }
        self.resting -= 1;
        if self.resting == 0 {
            self.let_go();
            self.law.forget();
            self.at_floor = 0;
            self.outcome = CruiseOutcome::Converging;
        }
        true
    }

    fn smooth(&mut self, ease: f64) -> f64 {
        let tolerance = tolerance(&self.cruise);
        let smoothed = match self.smoothed {
            Some(old) if (ease / old - 1.0).abs() <= tolerance => {
                old + SMOOTHING * (ease - old)
            }
            _ => ease,
        };
        self.smoothed = Some(smoothed);
        smoothed
    }

    /// The worst ease since the last cut; none to speak of if that was just now.
    fn worst(&mut self, ease: f64) -> f64 {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(ease);
        if self.recent.len() < PLENTY_FOR {
            return 0.0;
        }
        self.recent.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn raise(&mut self, factor: f64) {
        self.allowed = self.allowed.map(|allowed| allowed * factor);
    }

    /// Nobody is held back any more.
    fn let_go(&mut self) {
        (self.allowed, self.unused) = (None, 0);
        self.shares.release();
    }

    fn give_up(&mut self, reach: Reach) {
        (self.resting, self.given_up) = (REST, "the other classes are at their floors");
        self.outcome = unreachable(self.given_up, reach, self.cruise.target);
    }

    /// Splits what is allowed.
    fn share(&mut self, got: f64, others: &[Other]) {
        match self.fallback() {
            Some(Fallback::Release) => return self.shares.release(),
            Some(Fallback::Limit(goal)) => return self.shares.hold_to(goal, others),
            Some(Fallback::None) | None => {}
        }
        let Some(allowed) = self.allowed else { return self.shares.release() };
        let is_felt =
            self.outcome != CruiseOutcome::Holding && (got > 0.0 || self.resting > 0);
        let unused = !is_felt && got < USES * allowed;
        self.unused = if unused { self.unused + 1 } else { 0 };
        if self.unused > UNUSED {
            self.law.nobody_is_held();
            self.let_go();
        } else {
            self.shares.split(allowed, others);
        }
    }
}

fn unreachable(why: &str, reach: Reach, target: Goal) -> CruiseOutcome {
    let has = match target {
        Goal::Response(Nanos(span)) => {
            let took = Nanos((span as f64 / reach.speed.max(f64::MIN_POSITIVE)) as u64);
            format!("the requests of the class take {took}, target {target}")
        }
        Goal::Bytes(_) | Goal::Requests(_) => {
            format!("the class has {:.0} % of its target", reach.speed * 100.0)
        }
    };
    CruiseOutcome::Unreachable(format!("{why}, and {has}"))
}
