//! The loop that keeps the guest's 99th percentile of response times below a bound.
//!
//! # Rule
//!
//! The loop compares the 99th percentile of the last second with the bound (if the guest
//! has few requests, of the last hundred of them), and the rate follows as in PARDA
//! (Gulati, Ahmad, Waldspurger, FAST 2009). The threshold is fixed and not the loop's own
//! past, which is what made PARDA stable:
//!
//! ```text
//! rate(t+1) = rate(t) * (1 + G (AIM * bound / p99(t) - 1)) + BETA
//! ```
//!
//! A percentile is a late and noisy signal with a knee behind it. So a window above the
//! bound halves the rate at once, and the rate at which that happened becomes a ceiling,
//! which the rate approaches only slowly: without it the loop would run into the knee
//! every few seconds. Later the rate approaches the ceiling faster, as the reason for it
//! becomes old.
//!
//! If halving does not help, nothing is copied until the loop knows whose doing the
//! slowness was ([`Attribution`]). If it was not the copy's, it never was, and the copy
//! goes on as if the rate had only been halved.
//!
//! If the loop knows nothing, it begins with the least rate that a copier is given: a
//! fast device shows only afterwards what more would do, and a guest with few requests
//! only after seconds.
//!
//! # Special cases
//!
//! - The edges of a burst say little about the rate: the copy was faster before the
//!   guest came. But a guest whose bursts are shorter than a window has nothing but
//!   edges. There the rate goes down, and not up.
//! - One slow request in a window of few is a stray if nine in ten of its neighbours take
//!   no more than half the bound: the rate is halved, as it may be the first of many, but
//!   it gets no ceiling.
//!
//! # Failures
//!
//! If the guest is above the bound whatever is copied, next to nothing is copied
//! meanwhile, and the status says that the bound is out of reach ([`BaselineTail`]). If
//! its writes also wait for the destination, the least is copied all the same, so that
//! they end.

use std::collections::VecDeque;

use super::attribution::{Attribution, SuspectRate, Verdict};
use super::baseline_tail::BaselineTail;
use super::experience::LatencyExperience;
use super::{GuardStatus, LEAST, MOST, Observation, START, Unreachable};
use crate::Nanos;
use crate::measure::Spread;

/// Windows of which the percentile is taken, at least: a second.
const RECENT: usize = 10;

/// At most, however few requests there are in them: ten seconds with answers in each
/// window. A guest that asks for nothing for as long is another afterwards.
const LONGEST: usize = 100;

/// Windows between two steps, at least: half a second, so that half of what is seen is
/// new.
const EVERY: usize = 5;

/// The bound that is aimed at, as a part of the real one. Percentiles of a second vary
/// by some 20 % by themselves.
const AIM: f64 = 0.7;

/// Of a guest with few requests: those of a hundred requests vary by half as much again.
const AIM_FEW: f64 = 0.5;

/// The part of each step.
const G: f64 = 0.3;

/// What the rate tries for more, bytes per second: so that it leaves the ground.
const BETA: f64 = (256 << 10) as f64;

/// A step goes no further up than this factor.
const UP: f64 = 1.25;

/// What is left of the rate when the guest was above the bound.
const DOWN: f64 = 0.5;

/// What is left of the ceiling.
const CEILING: f64 = 0.8;

/// A window is above the bound by itself with more slow requests than this part: of a
/// tenth of a second, three times what the bound leaves of all.
const HERE: f64 = 0.03;

/// One slow request of so many is none of an event; of fewer it may be.
const FEW_HERE: u64 = 10;

/// The ceiling rises by this part with each step: by a fifth in 10 s, and later where it
/// takes longer to a hundred requests.
const RISE: f64 = 0.01;

/// And by this one where it is known to have been the copy, and to go on when that has
/// stopped: by a tenth in 50 s, as each time costs seconds.
const RISE_LITTLE: f64 = 0.001;

/// After so many steps it rises faster and faster, as what it was learned from becomes
/// old: by half in 20 s, and a hundred times in 85 s.
const RISES: f64 = 30.0;

/// Requests that a percentile needs: of fewer than a hundred, the 99th is the longest,
/// and one of them may be that by chance.
const REQUESTS: u64 = 100;

/// A loop begins with this part of the rate that an earlier one held.
const BEGIN: f64 = 0.5;

/// The part of a new step in the rate that is held.
const HELD: f64 = 1.0 / 16.0;

/// Steps after which that is known.
const HELD_KNOWN: u32 = 8;

/// A loop that keeps response times below a bound.
#[derive(Debug)]
pub(super) struct LatencyLoop {
    bound: Nanos,
    rate: f64,
    ceiling: f64,
    /// Steps up since it was lowered.
    rises: f64,
    recent: VecDeque<Spread>,
    /// Windows since the last step.
    since: usize,
    /// Whether the rate from which it came down was too much.
    attribution: Attribution,
    /// Windows with answers in a row in which the guest was there for a part only.
    edges: usize,
    windows: u32,
    /// Windows without answers in a row.
    silent: usize,
    baseline: BaselineTail,
    p99: Option<Nanos>,
    /// The rate at which the bound was held, smoothed, and the steps in that.
    held: f64,
    held_steps: u32,
    experienced: bool,
}

impl LatencyLoop {
    /// A loop for this bound, above zero.
    pub(super) fn new(bound: Nanos) -> Self {
        LatencyLoop {
            bound,
            rate: LEAST,
            ceiling: MOST,
            rises: 0.0,
            recent: VecDeque::new(),
            since: 0,
            attribution: Attribution::default(),
            edges: 0,
            windows: 0,
            silent: 0,
            baseline: BaselineTail::default(),
            p99: None,
            held: 0.0,
            held_steps: 0,
            experienced: false,
        }
    }

    /// The same loop, beginning below the rate that an earlier
    /// one held whose bound was no higher.
    pub(super) fn like(self, known: &LatencyExperience) -> Self {
        if known.bound > self.bound {
            return self;
        }
        LatencyLoop { rate: (known.rate * BEGIN).max(LEAST), experienced: true, ..self }
    }

    /// Whether it began so.
    pub(super) fn is_experienced(&self) -> bool {
        self.experienced
    }

    /// The rate at which the bound was held, if that is known.
    pub(super) fn held(&self) -> Option<LatencyExperience> {
        let known = self.held_steps >= HELD_KNOWN && self.held >= LEAST;
        known.then_some(LatencyExperience { rate: self.held, bound: self.bound })
    }

    /// Looks at a window.
    pub(super) fn step(&mut self, seen: &Observation<'_>) {
        let answers = !seen.guest.response.is_empty();
        self.baseline.look(seen, self.bound);
        self.silent = if answers { 0 } else { self.silent.saturating_add(1) };
        if self.silent == LONGEST {
            self.baseline = BaselineTail::default();
            self.interrupt();
        }
        if answers {
            self.recent.push_back(seen.guest.response.clone());
            self.windows = self.windows.saturating_add(1);
            self.since += 1;
            self.edges = if seen.is_busy() { 0 } else { self.edges + 1 };
        }
        self.forget();
        let mut all = Spread::default();
        self.recent.iter().for_each(|it| all.merge(it));
        self.p99 = percentile(&all);
        if self.baseline.is_mirrored() || seen.copied > 0 && !seen.is_busy() {
            // Something is copied all the time: nobody can tell whose doing it is.
            self.attribution.dismiss();
        }
        let tells = answers && (seen.is_busy() || self.edges >= RECENT);
        if let Some(p99) = self.p99.filter(|_| tells) {
            self.follow(p99, seen, &all);
        }
    }

    /// What was seen says nothing of what comes.
    pub(super) fn interrupt(&mut self) {
        self.recent.clear();
        self.p99 = None;
        self.attribution.dismiss();
        self.baseline.interrupt();
    }

    /// The busy rate, bytes per second.
    pub(super) fn rate(&self) -> u64 {
        let least = if self.baseline.is_mirrored() { LEAST } else { 0.0 };
        if self.rate < LEAST { least as u64 } else { self.rate as u64 }
    }

    /// The 99th percentile of the last second, or of the last hundred requests; nothing
    /// of a guest that has not asked for long.
    pub(super) fn p99(&self) -> Option<Nanos> {
        self.p99
    }

    /// Whether the bound is held.
    pub(super) fn status(&self) -> GuardStatus {
        match self.baseline.slow_part() {
            Some(slow) if self.baseline.is_mirrored() => {
                GuardStatus::Unreachable(Unreachable::MirrorLatency { slow })
            }
            Some(slow) => GuardStatus::Unreachable(Unreachable::OwnLatency { slow }),
            None if self.windows < RECENT as u32 => GuardStatus::Learning,
            None if self.p99.is_some_and(|p99| p99 > self.bound) => {
                GuardStatus::Converging
            }
            None if self.attribution.is_open() || self.rate() == 0 => {
                GuardStatus::Learning
            }
            None => GuardStatus::Holding,
        }
    }

    /// The bound is held with so many bytes per second copied.
    fn hold(&mut self, rate: f64) {
        self.held_steps = self.held_steps.saturating_add(1);
        self.held += HELD.max(1.0 / f64::from(self.held_steps)) * (rate - self.held);
    }

    /// Lets go of windows that are not needed any more.
    fn forget(&mut self) {
        let mut requests: u64 = self.recent.iter().map(Spread::len).sum();
        while let Some(oldest) = self.recent.front()
            && self.recent.len() > RECENT
            && (self.recent.len() > LONGEST || requests - oldest.len() >= REQUESTS)
        {
            requests -= oldest.len();
            self.recent.pop_front();
        }
    }

    /// A second has too few requests for a percentile.
    fn are_few(&self) -> bool {
        self.recent.len() > RECENT
    }

    fn follow(&mut self, p99: Nanos, seen: &Observation<'_>, all: &Spread) {
        // A window above the bound by itself: more of it than one in a hundred.
        let slow = seen.guest.response.longer_than(self.bound);
        let here = slow as f64 > HERE * seen.guest.response.len() as f64;
        let few = seen.guest.response.len() < FEW_HERE;
        match self.attribution.look(here && (slow > 1 || few), seen.copied == 0) {
            Some(Verdict::NotTheCopy(suspect)) => return self.go_on(suspect),
            Some(Verdict::TheCopy) => self.baseline.drop_doubtful(),
            None => {}
        }
        if self.attribution.is_open() {
            return;
        }
        // Of few requests none speaks for itself.
        let here = here && !self.are_few();
        if (here || p99 > self.bound) && self.since >= 2 {
            let usual = all.quantile(0.9).unwrap_or_default();
            let stray = slow == 1 && p99 <= self.bound && usual.0 <= self.bound.0 / 2;
            self.since = 0;
            self.fall(seen.copied > 0, stray);
            return;
        }
        let enough = all.len() >= REQUESTS || self.recent.len() >= LONGEST;
        let early = self.since < EVERY.max(self.recent.len() / 2);
        if early || !enough || self.edges > 0 {
            return;
        }
        self.since = 0;
        // What came in gaps is not beside the guest.
        self.hold(seen.copy_rate().min(self.rate));
        self.attribution.dismiss();
        self.baseline.drop_doubtful();
        let aim = if self.are_few() { AIM_FEW } else { AIM };
        let short = aim * self.bound.0 as f64 / (p99.0 as f64).max(1.0);
        let factor = 1.0 + G * (short - 1.0);
        let used = (2.0 * seen.copy_rate()).max(START).max(self.rate);
        let rise = if self.attribution.was_the_copy() {
            RISE_LITTLE
        } else {
            self.rises += 1.0;
            RISE * (self.rises / RISES).max(1.0)
        };
        self.ceiling = (self.ceiling * (1.0 + rise)).min(MOST);
        self.rate = (self.rate * factor.min(UP) + BETA).min(self.ceiling).min(used);
    }

    /// That rate was not too much: it goes on, as if it had only been halved.
    fn go_on(&mut self, suspect: SuspectRate) {
        (self.ceiling, self.rate) = (suspect.ceiling, (suspect.rate * DOWN).max(LEAST));
        self.since = 0;
        self.recent.clear();
        self.baseline.count_doubtful();
    }

    /// Copies less: half, and nothing if that does not help.
    fn fall(&mut self, copies: bool, stray: bool) {
        if stray {
            self.rate *= DOWN;
            return;
        }
        let LatencyLoop { rate, ceiling, .. } = *self;
        // In an edge it may have been the copy of the gap before it.
        if copies && self.edges == 0 {
            self.ceiling = ceiling.min(rate * CEILING).max(LEAST);
            self.rises = 0.0;
        }
        if copies {
            // What was seen at that rate is not held against the next.
            self.recent.clear();
        }
        let helps = !self.attribution.suspect(rate, ceiling);
        self.rate = if helps { rate * DOWN } else { rate.min(LEAST / 2.0) };
    }
}

/// The 99th percentile; of fewer than a hundred requests, the longest but one.
fn percentile(all: &Spread) -> Option<Nanos> {
    let but_one = 1.0 - 1.5 / all.len().max(2) as f64;
    all.quantile(if all.len() < REQUESTS { but_one } else { 0.99 })
}
