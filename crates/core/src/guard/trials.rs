//! Trial intervals: what the copy costs the guest, found by paired comparison.
//!
//! # Rule
//!
//! An application's load changes all the time, and what it did before the move says
//! little about what it would do now. So the copy runs in trials: some windows with a
//! copy (*trial*), some without (*baseline*). Each trial is compared with the baseline
//! right before and right after it:
//!
//! ```text
//!   base base | trial tail | base base          loss = 1 - IO/s(trial) / IO/s(base)
//!   trial trial trial trial | tail base base | trial trial trial trial
//! ```
//!
//! The first form is for a duty cycle below a half, the second for one above. A load that
//! rises or falls steadily cancels out.
//!
//! A part of the time at a higher rate costs the guest as much as all of the time at a
//! lower one, as far as the cost is in proportion. But it can be seen: a loss of a third
//! within a tenth of a second stands out of the noise, a loss of a fiftieth in each
//! second does not.
//!
//! # Special cases
//!
//! - If the load jumps, the outer intervals differ, and the comparison does not count.
//! - If the guest is idle for a while, all windows are forgotten: the next ones are not
//!   next to them.
//! - A window is one sample, a tenth of a second. If the guest has few requests, or slow
//!   ones, a window is several samples, so that there is something to count, and requests
//!   that begin in one window end in it or in the next.
//! - The window after a trial, its *tail*, belongs to the trial: requests that met the
//!   copy are still answered there, and what they lost is added.

use std::collections::VecDeque;

use super::Observation;
use crate::Nanos;

/// Answers that a window needs: samples are put together until there are so many.
pub(super) const ANSWERS: u64 = 8;

/// And until they are so many times as long as a request takes: what is begun in a trial
/// then ends in it, or in its tail.
pub(super) const RESPONSES: f64 = 2.0;

/// Or until they are so long.
pub(super) const LONG: Nanos = Nanos::from_secs(1);

/// Answers that a comparison needs: of fewer, one more here than there is all or nothing.
const FEW: u64 = 4;

/// The windows after a trial in which requests are still answered that met it. What
/// they lost is the trial's.
const TAIL: usize = 1;

/// Windows without a copy to compare with, on each side of a trial. One is less than
/// what a disk does between two of its own hiccups.
const CLEAN: usize = 2;

/// Windows without a copy between two trials, at least.
const BASELINE_MIN: usize = TAIL + CLEAN;

/// At most: a trial every 2 s, so that the loop learns of changes.
const BASELINE_MAX: usize = 19;

/// Windows with a copy at most: a baseline every 2 s.
const TRIAL_MAX: usize = 18;

/// Windows of a long trial that are compared with a baseline, on each side of it: older
/// ones tell of another load.
const NEAR: usize = 4;

/// A loss or a gain beyond these is of another load, whatever is copied: twice the IO/s,
/// or ten times the response time.
const LOSS_MIN: f64 = -1.0;
const GROWTH_MOST: f64 = 10.0;

/// If the outer windows differ by more than this part, something has happened in
/// between.
const JUMP: f64 = 0.3;

/// One paired comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
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
struct Interval {
    baseline: bool,
    /// In which copy mode the trial was.
    mode: usize,
    windows: u32,
    operations: u64,
    span: Nanos,
    response: Nanos,
    copied: u64,
}

/// Several windows as one.
fn sum<'a>(windows: impl Iterator<Item = &'a Interval>) -> Interval {
    windows.fold(Interval::default(), |sum, window| Interval {
        baseline: window.baseline,
        mode: window.mode,
        windows: sum.windows + window.windows,
        operations: sum.operations + window.operations,
        span: sum.span.plus(window.span),
        response: sum.response.plus(window.response),
        copied: sum.copied + window.copied,
    })
}

impl Interval {
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
    fn is_enough(&self) -> bool {
        let long = self.span.0 as f64 >= RESPONSES * self.latency();
        self.operations >= ANSWERS && long
    }
}

/// Whether the next sample belongs to a trial or to the baseline, and the comparisons.
#[derive(Debug)]
pub(super) struct Trials {
    /// Windows with a copy in each trial.
    trial_windows: usize,
    /// Windows without one between two trials.
    baseline_windows: usize,
    /// The last busy windows, without a gap; the newest first.
    recent: VecDeque<Interval>,
    /// The window under way.
    here: Interval,
}

impl Trials {
    /// Trials in which the copy has this part of the time, about.
    pub(super) fn new(part: f64) -> Self {
        let mut trials = Trials {
            trial_windows: 1,
            baseline_windows: BASELINE_MIN,
            recent: VecDeque::new(),
            here: Interval::default(),
        };
        trials.set_duty_cycle(part);
        trials
    }

    /// The copy has this part of the time from now on, as near as whole windows come.
    pub(super) fn set_duty_cycle(&mut self, part: f64) {
        let part = part.clamp(0.01, 0.99);
        let off = (1.0 / part - 1.0).round() as usize;
        self.baseline_windows = off.clamp(BASELINE_MIN, BASELINE_MAX);
        let on = (self.baseline_windows as f64 * part / (1.0 - part)).round() as usize;
        self.trial_windows = on.clamp(1, TRIAL_MAX);
    }

    /// The part of the time in which the copy goes on.
    pub(super) fn duty_cycle(&self) -> f64 {
        self.trial_windows as f64 / (self.trial_windows + self.baseline_windows) as f64
    }

    /// The part of the time that trials have whose windows are so many times as long as
    /// those of the baseline.
    pub(super) fn time_share(&self, stretch: f64) -> f64 {
        let on = self.duty_cycle() * stretch;
        on / (on + 1.0 - self.duty_cycle())
    }

    /// Whether the next sample shall be one without a copy.
    pub(super) fn next_is_baseline(&self) -> bool {
        match self.recent.front() {
            Some(Interval { baseline: false, .. }) => {
                self.run(0, false) >= self.trial_windows
            }
            _ => self.run(0, true) < self.baseline_windows,
        }
    }

    /// Forgets what was seen: it has nothing to do with what comes.
    pub(super) fn interrupt(&mut self) {
        self.recent.clear();
        self.here = Interval::default();
    }

    /// Looks at a sample in this copy mode; the last answer of
    /// [`Trials::next_is_baseline`] said whether it was one of the baseline. Gives a
    /// comparison if the sample completes one.
    pub(super) fn look(
        &mut self,
        seen: &Observation<'_>,
        mode: usize,
    ) -> Option<Comparison> {
        let baseline = self.next_is_baseline();
        if !seen.is_busy() {
            self.interrupt();
            return None;
        }
        let total = seen.guest.total();
        let sample = Interval {
            baseline,
            mode,
            windows: 0,
            operations: total.operations,
            span: seen.guest.span,
            response: total.response,
            copied: seen.copied,
        };
        self.here = sum([self.here, sample].iter());
        if !self.here.is_enough() && self.here.span < LONG {
            return None;
        }
        let window = Interval { windows: 1, ..std::mem::take(&mut self.here) };
        self.recent.push_front(window);
        self.recent.truncate(BASELINE_MAX + TRIAL_MAX + BASELINE_MAX);
        match baseline {
            true if self.run(0, true) == BASELINE_MIN => self.compare_trial(),
            false if self.run(0, false) == NEAR => self.compare_baseline(),
            _ => None,
        }
    }

    /// Whether the next sample begins a trial.
    pub(super) fn begins_trial(&self) -> bool {
        self.recent.front().is_none_or(|last| last.baseline) && !self.next_is_baseline()
    }

    /// In the third window of the baseline after a long trial: the loss, from that trial
    /// alone. Said once.
    pub(super) fn early_loss(&self) -> Option<f64> {
        if self.here.span > Nanos(0) {
            return None;
        }
        let long =
            self.run(0, true) == BASELINE_MIN && self.run(BASELINE_MIN, false) >= NEAR;
        let on = || sum(self.recent.range(BASELINE_MIN..BASELINE_MIN + NEAR));
        let off = || sum(self.recent.range(..CLEAN));
        long.then(|| loss(&on(), &off()))
    }

    /// Windows of this kind in a row, from the one of this age on.
    fn run(&self, age: usize, baseline: bool) -> usize {
        self.recent.iter().skip(age).take_while(|it| it.baseline == baseline).count()
    }

    /// A short trial against the baseline around it.
    fn compare_trial(&self) -> Option<Comparison> {
        let on = self.run(BASELINE_MIN, false);
        let before = BASELINE_MIN + on;
        if on == 0 || on >= NEAR || self.run(before, true) < CLEAN {
            return None;
        }
        let tail = sum(self.recent.range(CLEAN..BASELINE_MIN));
        let on = sum(self.recent.range(BASELINE_MIN..before));
        let after = sum(self.recent.range(..CLEAN));
        let before = sum(self.recent.range(before..before + CLEAN));
        steady(&before, &on, &after)?;
        let off = sum([before, after].iter());
        // Its last chunks end after it, and so do the requests that waited for them.
        let part = tail.span.as_secs_f64() / on.span.as_secs_f64().max(1e-9);
        let copied = on.copied + tail.copied;
        let near = compare(&Interval { copied, ..on }, &off);
        Some(Comparison { loss: near.loss + loss(&tail, &off) * part, ..near })
    }

    /// A baseline against the long trials around it.
    fn compare_baseline(&self) -> Option<Comparison> {
        let off = self.run(NEAR, true);
        let before = NEAR + off;
        let (left, right) = (self.recent.get(before), self.recent.front());
        let mixed = left.map(|it| it.mode) != right.map(|it| it.mode);
        if off <= TAIL || self.run(before, false) < NEAR || mixed {
            return None;
        }
        let after = sum(self.recent.range(..NEAR));
        let off = sum(self.recent.range(NEAR..before - TAIL));
        let before = sum(self.recent.range(before..before + NEAR));
        steady(&before, &off, &after)?;
        (off.operations > 0).then(|| compare(&sum([before, after].iter()), &off))
    }
}

/// Nothing if the load has jumped in between, or there was next to none: of some
/// requests, as those that make blocks zeroes, no answers are counted.
fn steady(before: &Interval, between: &Interval, after: &Interval) -> Option<()> {
    let answers = before.operations + between.operations + after.operations;
    let (before, after) = (before.iops(), after.iops());
    let some = before > 0.0 && after > 0.0 && answers >= FEW;
    (some && (before - after).abs() <= JUMP * (before + after) / 2.0).then_some(())
}

/// The part of the IO/s without the copy that is missing.
fn loss(on: &Interval, off: &Interval) -> f64 {
    (1.0 - on.iops() / off.iops().max(1e-9)).max(LOSS_MIN)
}

fn compare(on: &Interval, off: &Interval) -> Comparison {
    Comparison {
        rate: on.copied as f64 / on.span.as_secs_f64().max(1e-9),
        loss: loss(on, off),
        growth: (on.latency() / off.latency().max(1.0)).min(GROWTH_MOST),
        iops: off.iops(),
        stretch: on.length() / off.length().max(1e-9),
    }
}
