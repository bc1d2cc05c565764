//! What the copy costs the guest, found by copying in turns.
//!
//! An application's load changes all the time, and what it did before the migration
//! says little about what it would do now. So copying goes in turns, some windows with
//! it and some without, and each turn is compared with what is right before and right
//! after it:
//!
//! ```text
//!   off off | on tail | off off              loss = 1 - IO/s(on) / IO/s(off)
//!   on on on on | tail off off | on on on on
//! ```
//!
//! The first where copying has less of the time than the guest alone, the second where
//! it has more. A load that rises or falls steadily cancels out. One that jumps is
//! noticed, because then the outer windows differ among themselves; such a comparison
//! does not count, nor does one in which the guest was gone for a while.
//!
//! A window is a sample, of a tenth of a second; of a guest with few requests, or with
//! slow ones, it is several, so that there is something to count, and what begins in one
//! ends in it or in the next. So the window after a turn, its tail, is the turn's: what
//! its requests lost is added.
//!
//! A part of the time at a higher rate costs the guest as much as all of the time at a
//! lower one, as far as the cost is in proportion. But it can be seen: a loss of a
//! third within a tenth of a second stands out of the noise, one of a fiftieth in each
//! second does not.

use std::collections::VecDeque;

use super::Observation;
use crate::Nanos;

/// Answers that a window needs: samples are put together until there are so many.
pub(super) const ANSWERS: u64 = 8;

/// And until they are so many times as long as a request takes: what is begun in a turn
/// then ends in it, or in its tail.
pub(super) const RESPONSES: f64 = 2.0;

/// Or until they are so long.
pub(super) const LONG: Nanos = Nanos::from_secs(1);

/// Answers that a comparison needs: of fewer, one more here than there is all or nothing.
const FEW: u64 = 4;

/// The windows after a turn in which requests are still answered that met it. What
/// they lost is the turn's.
const TAIL: usize = 1;

/// Windows without a copy to compare with, on each side of a turn. One is less than
/// what a disk does between two of its own hiccups.
const CLEAN: usize = 2;

/// Windows without a copy between two turns, at least.
const OFF_MIN: usize = TAIL + CLEAN;

/// At most: a turn every 2 s, so that the loop learns of changes.
const OFF_MAX: usize = 19;

/// Windows with a copy at most: a pause every 2 s.
const ON_MAX: usize = 18;

/// Windows of a long turn that are compared with a pause, on each side of it: older
/// ones tell of another load.
const NEAR: usize = 4;

/// A loss or a gain beyond these is of another load, whatever is copied: twice the IO/s,
/// or ten times the response time.
const LOSS_MIN: f64 = -1.0;
const GROWTH_MOST: f64 = 10.0;

/// If the outer windows differ by more than this part, something has happened in
/// between.
const JUMP: f64 = 0.3;

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// Bytes per second that were copied beside the guest.
    pub(super) rate: f64,
    /// The part of the guest's IO/s that this cost; below zero by chance.
    pub(super) loss: f64,
    /// By what factor response times were longer.
    pub(super) growth: f64,
    /// The guest's IO/s without the copy.
    pub(super) iops: f64,
    /// How much longer a window with the copy was than one without it: there are as many
    /// answers in both.
    pub(super) stretch: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    off: bool,
    /// In which gear the copy was.
    gear: usize,
    windows: u32,
    operations: u64,
    span: Nanos,
    response: Nanos,
    copied: u64,
}

/// Several windows as one.
fn sum<'a>(windows: impl Iterator<Item = &'a Seen>) -> Seen {
    windows.fold(Seen::default(), |sum, window| Seen {
        off: window.off,
        gear: window.gear,
        windows: sum.windows + window.windows,
        operations: sum.operations + window.operations,
        span: sum.span.plus(window.span),
        response: sum.response.plus(window.response),
        copied: sum.copied + window.copied,
    })
}

impl Seen {
    fn iops(&self) -> f64 {
        self.operations as f64 / self.span.as_secs_f64().max(1e-9)
    }

    fn latency(&self) -> f64 {
        self.response.0 as f64 / (self.operations as f64).max(1.0)
    }

    /// Of a window, in seconds.
    fn length(&self) -> f64 {
        self.span.as_secs_f64() / f64::from(self.windows.max(1))
    }

    /// Whether there is enough to count.
    fn tells(&self) -> bool {
        let long = self.span.0 as f64 >= RESPONSES * self.latency();
        self.operations >= ANSWERS && long
    }
}

/// Whose turn it is, and what came of it.
#[derive(Debug)]
pub(super) struct Turns {
    /// Windows with a copy in each turn.
    on: usize,
    /// Windows without one between two turns.
    off: usize,
    /// The last busy windows, without a gap; the newest first.
    recent: VecDeque<Seen>,
    /// The window under way.
    here: Seen,
}

impl Turns {
    /// Turns in which the copy has this part of the time, about.
    pub(super) fn new(part: f64) -> Self {
        let mut turns =
            Turns { on: 1, off: OFF_MIN, recent: VecDeque::new(), here: Seen::default() };
        turns.set_part(part);
        turns
    }

    /// The copy has this part of the time from now on, as near as whole windows come.
    pub(super) fn set_part(&mut self, part: f64) {
        let part = part.clamp(0.01, 0.99);
        let off = (1.0 / part - 1.0).round() as usize;
        self.off = off.clamp(OFF_MIN, OFF_MAX);
        let on = (self.off as f64 * part / (1.0 - part)).round() as usize;
        self.on = on.clamp(1, ON_MAX);
    }

    /// The part of the time in which the copy goes on.
    pub(super) fn part(&self) -> f64 {
        self.on as f64 / (self.on + self.off) as f64
    }

    /// The part of the time that turns have whose windows are so many times as long as
    /// those of pauses.
    pub(super) fn time(&self, stretch: f64) -> f64 {
        let on = self.part() * stretch;
        on / (on + 1.0 - self.part())
    }

    /// Whether the next sample shall be one without a copy.
    pub(super) fn pauses(&self) -> bool {
        match self.recent.front() {
            Some(Seen { off: false, .. }) => self.run(0, false) >= self.on,
            _ => self.run(0, true) < self.off,
        }
    }

    /// Forgets what was seen: it has nothing to do with what comes.
    pub(super) fn interrupt(&mut self) {
        self.recent.clear();
        self.here = Seen::default();
    }

    /// Looks at a sample, of which the last answer of [`Turns::pauses`] said what it
    /// was, and in what gear. Gives a comparison if it completes one.
    pub(super) fn look(&mut self, seen: &Observation<'_>, gear: usize) -> Option<Pair> {
        let off = self.pauses();
        if !seen.is_busy() {
            self.interrupt();
            return None;
        }
        let total = seen.guest.total();
        let sample = Seen {
            off,
            gear,
            windows: 0,
            operations: total.operations,
            span: seen.guest.span,
            response: total.response,
            copied: seen.copied,
        };
        self.here = sum([self.here, sample].iter());
        if !self.here.tells() && self.here.span < LONG {
            return None;
        }
        let window = Seen { windows: 1, ..std::mem::take(&mut self.here) };
        self.recent.push_front(window);
        self.recent.truncate(OFF_MAX + ON_MAX + OFF_MAX);
        match off {
            true if self.run(0, true) == OFF_MIN => self.turn(),
            false if self.run(0, false) == NEAR => self.pause(),
            _ => None,
        }
    }

    /// Whether the next sample begins a turn.
    pub(super) fn begins(&self) -> bool {
        self.recent.front().is_none_or(|last| last.off) && !self.pauses()
    }

    /// At the end of a pause after a long turn: the loss, by what was before it alone.
    /// Said once.
    pub(super) fn glimpse(&self) -> Option<f64> {
        if self.here.span > Nanos(0) {
            return None;
        }
        let long = self.run(0, true) == OFF_MIN && self.run(OFF_MIN, false) >= NEAR;
        let on = || sum(self.recent.range(OFF_MIN..OFF_MIN + NEAR));
        let off = || sum(self.recent.range(..CLEAN));
        long.then(|| loss(&on(), &off()))
    }

    /// Windows of this kind in a row, from the one of this age on.
    fn run(&self, age: usize, off: bool) -> usize {
        self.recent.iter().skip(age).take_while(|it| it.off == off).count()
    }

    /// A short turn with what is around it.
    fn turn(&self) -> Option<Pair> {
        let on = self.run(OFF_MIN, false);
        let before = OFF_MIN + on;
        if on == 0 || on >= NEAR || self.run(before, true) < CLEAN {
            return None;
        }
        let tail = sum(self.recent.range(CLEAN..OFF_MIN));
        let on = sum(self.recent.range(OFF_MIN..before));
        let after = sum(self.recent.range(..CLEAN));
        let before = sum(self.recent.range(before..before + CLEAN));
        steady(&before, &on, &after)?;
        let off = sum([before, after].iter());
        // Its last chunks end after it, and so do the requests that waited for them.
        let part = tail.span.as_secs_f64() / on.span.as_secs_f64().max(1e-9);
        let copied = on.copied + tail.copied;
        let pair = pair(&Seen { copied, ..on }, &off);
        Some(Pair { loss: pair.loss + loss(&tail, &off) * part, ..pair })
    }

    /// A pause with what is around it.
    fn pause(&self) -> Option<Pair> {
        let off = self.run(NEAR, true);
        let before = NEAR + off;
        let (left, right) = (self.recent.get(before), self.recent.front());
        let mixed = left.map(|it| it.gear) != right.map(|it| it.gear);
        if off <= TAIL || self.run(before, false) < NEAR || mixed {
            return None;
        }
        let after = sum(self.recent.range(..NEAR));
        let off = sum(self.recent.range(NEAR..before - TAIL));
        let before = sum(self.recent.range(before..before + NEAR));
        steady(&before, &off, &after)?;
        (off.operations > 0).then(|| pair(&sum([before, after].iter()), &off))
    }
}

/// Nothing if the load has jumped in between, or there was next to none: of some
/// requests, as those that make blocks zeroes, no answers are counted.
fn steady(before: &Seen, between: &Seen, after: &Seen) -> Option<()> {
    let answers = before.operations + between.operations + after.operations;
    let (before, after) = (before.iops(), after.iops());
    let some = before > 0.0 && after > 0.0 && answers >= FEW;
    (some && (before - after).abs() <= JUMP * (before + after) / 2.0).then_some(())
}

/// The part of the IO/s without the copy that is missing.
fn loss(on: &Seen, off: &Seen) -> f64 {
    (1.0 - on.iops() / off.iops().max(1e-9)).max(LOSS_MIN)
}

fn pair(on: &Seen, off: &Seen) -> Pair {
    Pair {
        rate: on.copied as f64 / on.span.as_secs_f64().max(1e-9),
        loss: loss(on, off),
        growth: (on.latency() / off.latency().max(1.0)).min(GROWTH_MOST),
        iops: off.iops(),
        stretch: on.length() / off.length().max(1e-9),
    }
}
