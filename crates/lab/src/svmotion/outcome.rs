//! The experiment as it went, and what follows from it. Pure: moments are seconds from
//! the experiment's start.

use std::fmt;

use sterna_workload::dvdstore;

use super::plan::{Disk, State, Way};
use super::watch::{Flow, Tick, together};
use crate::record::Mark;

/// The bytes of the study's copies.
const CHUNK: f64 = 65536.0;

/// One migration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) disk: Disk,
    pub(super) state: State,
    pub(super) way: Way,
    /// From the old array to the new one, or back.
    pub(super) forth: bool,
    /// When it was asked for.
    pub(super) from: f64,
    /// When it was seen to have ended.
    pub(super) until: f64,
    /// Without a migration, and with the disk where this one found it: before it, and if
    /// the disk came back, after that.
    pub(super) calm: Vec<(f64, f64)>,
    pub(super) moved: Moved,
}

/// What whoever moved a disk says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moved {
    /// The disk's size.
    pub(super) bytes: u64,
    /// How long it took.
    pub(super) seconds: f64,
    /// How long the guest was held at the switch-over, in milliseconds, if it is known.
    pub(super) held_ms: Option<f64>,
}

impl Trial {
    /// The trial in words: `data, high, old → new, NBD`.
    pub(super) fn words(&self) -> String {
        let path = if self.forth { "old → new" } else { "new → old" };
        format!("{}, {}, {path}, {}", self.disk, self.state, self.way)
    }

    /// What repeats of it have in common.
    pub(super) fn kind(&self) -> (Disk, State, Way, bool) {
        (self.disk, self.state, self.way, self.forth)
    }

    /// How long it took, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.moved.seconds
    }

    /// Bytes that were moved in a second.
    pub(super) fn rate(&self) -> f64 {
        self.moved.bytes as f64 / self.seconds().max(1e-3)
    }
}

/// Orders of one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Second {
    /// When it ended.
    pub(super) at: f64,
    /// Orders a second.
    pub(super) orders: f64,
    /// Orders that were acknowledged in it.
    pub(super) acknowledged: u64,
    /// Orders that were due in it, and were acknowledged at some time.
    pub(super) due: u64,
    /// Of the response times of orders, the 99th percentile, in milliseconds; nothing
    /// of no orders.
    pub(super) p99_ms: Option<f64>,
    /// The longest that somebody has waited for an order by then, in milliseconds.
    pub(super) slowest_ms: f64,
}

impl Second {
    /// What a window of the store's report says; its clock began at `from`.
    pub(super) fn of(from: f64, window: &dvdstore::Window) -> Second {
        let ms = |us: u64| us as f64 / 1e3;
        Second {
            at: from + window.at_s,
            orders: window.orders_per_s,
            acknowledged: window.orders,
            due: window.due,
            p99_ms: (window.orders > 0).then(|| ms(window.p99_us)),
            slowest_ms: ms(window.max_us.max(window.waiting_us)),
        }
    }
}

/// A mean, and what chance makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    pub(super) value: f64,
    /// Its standard error.
    pub(super) error: f64,
}

/// The orders that a part is of: `3 due`, `1820 usual`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Basis {
    pub(super) orders: f64,
    /// Whether they were due meanwhile, or are as many as usual in that time.
    pub(super) due: bool,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} {}", self.orders, if self.due { "due" } else { "usual" })
    }
}

/// The experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) ticks: Vec<Tick>,
    pub(super) seconds: Vec<Second>,
    pub(super) trials: Vec<Trial>,
    pub(super) marks: Vec<Mark>,
    /// Orders that were acknowledged, and how many of them are missing.
    pub(super) orders: (u64, u64),
    /// Orders that failed.
    pub(super) failed: u64,
    /// What the guest found wrong.
    pub(super) complaints: Option<String>,
    /// The processors' clock, if it is known.
    pub(super) clock: Option<f64>,
}

impl Outcome {
    fn seconds(&self, from: f64, until: f64) -> impl Iterator<Item = &Second> {
        self.seconds.iter().filter(move |it| it.at - 1.0 >= from && it.at <= until)
    }

    /// The seconds in which a migration went on, if only for a part of one: it may be
    /// over in less.
    fn seconds_beside(&self, trial: &Trial) -> impl Iterator<Item = &Second> {
        let (from, until) = (trial.from, trial.until);
        self.seconds.iter().filter(move |it| it.at > from && it.at - 1.0 < until)
    }

    fn seconds_without(&self, trial: &Trial) -> impl Iterator<Item = &Second> {
        trial.calm.iter().flat_map(|&(from, until)| self.seconds(from, until))
    }

    /// Orders a second without the migration. What it is before and what after count alike,
    /// however long each was looked at: a database grows.
    pub(super) fn without(&self, trial: &Trial) -> Option<Mean> {
        let spans = trial.calm.iter().map(|&(from, until)| self.seconds(from, until));
        let means: Vec<Mean> = spans.filter_map(mean_orders).collect();
        Some(Mean { error: error(&means), ..mean(&values(&means))? })
    }

    /// Orders a second during the migration.
    pub(super) fn during(&self, trial: &Trial) -> Option<Mean> {
        mean_orders(self.seconds_beside(trial))
    }

    /// The part of the orders that was kept. Of those that come at their own pace it is
    /// known how many were due meanwhile; else it is guessed from how many were made
    /// without the migration.
    pub(super) fn kept(&self, trial: &Trial) -> Option<Mean> {
        match trial.state {
            State::Low => self.kept_of_due(trial),
            _ => self.kept_of_usual(trial),
        }
    }

    /// The orders that the part that was kept is of.
    pub(super) fn basis(&self, trial: &Trial) -> Option<Basis> {
        let due = trial.state == State::Low;
        let orders = match due {
            true => self.seconds_beside(trial).map(|second| second.due as f64).sum(),
            false => {
                self.without(trial)?.value * self.seconds_beside(trial).count() as f64
            }
        };
        Some(Basis { orders, due })
    }

    fn kept_of_usual(&self, trial: &Trial) -> Option<Mean> {
        let (without, during) = (self.without(trial)?, self.during(trial)?);
        let value = during.value / without.value;
        let part = |mean: Mean| (mean.error / mean.value.max(1e-9)).powi(2);
        let error = value * (part(without) + part(during)).sqrt();
        (without.value > 0.0).then_some(Mean { value, error })
    }

    /// What is missing is by what more orders wait at the end than did at the beginning. So
    /// chance does as much in an hour as in a second, and what it does is seen in the
    /// seconds without the migration.
    fn kept_of_due(&self, trial: &Trial) -> Option<Mean> {
        let gained = |second: &Second| second.acknowledged as f64 - second.due as f64;
        let beside: f64 = self.seconds_beside(trial).map(gained).sum();
        let due: u64 = self.seconds_beside(trial).map(|second| second.due).sum();
        let without: Vec<f64> = self.seconds_without(trial).map(gained).collect();
        let chance = mean(&without)?.error * (without.len() as f64).sqrt();
        let due = due as f64;
        (due > 0.0).then(|| Mean { value: 1.0 + beside / due, error: chance / due })
    }

    /// The worst second's 99th percentile of orders, without the migration and during
    /// it, in milliseconds.
    pub(super) fn p99_ms(&self, trial: &Trial) -> [Option<f64>; 2] {
        fn worst<'s>(seconds: impl Iterator<Item = &'s Second>) -> Option<f64> {
            seconds.filter_map(|second| second.p99_ms).reduce(f64::max)
        }
        [worst(self.seconds_without(trial)), worst(self.seconds_beside(trial))]
    }

    /// The longest that a customer waited for an order during the migration, in
    /// milliseconds.
    pub(super) fn order_stall_ms(&self, trial: &Trial) -> Option<f64> {
        let seconds = self.seconds_beside(trial);
        seconds.map(|second| second.slowest_ms).reduce(f64::max)
    }

    fn ticks(&self, from: f64, until: f64) -> impl Iterator<Item = &Tick> {
        self.ticks.iter().filter(move |tick| tick.at >= from && tick.at <= until)
    }

    /// The longest that the guest waited for a disk during the migration, in
    /// milliseconds. What QEMU's mirror asks for comes the same way as the guest's own
    /// requests, so there it is not known.
    pub(super) fn disk_stall_ms(&self, trial: &Trial) -> Option<f64> {
        if trial.way == Way::Mirror {
            return None;
        }
        let ticks = self.ticks(trial.from, trial.until);
        ticks.filter_map(|tick| tick.slowest_ms).reduce(f64::max)
    }

    /// The source's reads and the destination's writes of the disk that moved: the copy's
    /// and the guest's.
    pub(super) fn sides(&self, trial: &Trial) -> [Flow; 2] {
        let at = trial.disk as usize;
        let ticks = || self.ticks(trial.from, trial.until);
        let (old, new) = (|tick: &Tick| tick.old[at], |tick: &Tick| tick.new[at]);
        match trial.forth {
            true => [
                together(ticks().map(|tick| old(tick)[0])),
                together(ticks().map(|tick| new(tick)[1])),
            ],
            false => [
                together(ticks().map(|tick| new(tick)[0])),
                together(ticks().map(|tick| old(tick)[1])),
            ],
        }
    }

    /// Processors that were busy in these spans, on average: QEMU's and the daemon's
    /// part.
    fn busy(&self, spans: &[(f64, f64)]) -> Option<[f64; 2]> {
        let (mut length, mut used) = (0.0, [0.0; 2]);
        for &(from, until) in spans {
            let mut ticks = self.ticks(from, until);
            let Some((first, last)) = ticks.next().zip(ticks.last()) else {
                continue;
            };
            length += last.at - first.at;
            // A machine that is off uses nothing.
            let guest = |tick: &Tick| tick.guest_cpu.unwrap_or_default();
            used[0] += guest(last) - guest(first);
            used[1] += last.daemon_cpu? - first.daemon_cpu?;
        }
        (length > 0.0).then(|| used.map(|seconds| seconds / length))
    }

    /// Seconds of processors for an order, without the migration and during it.
    pub(super) fn cpu_per_order(&self, trial: &Trial) -> [Option<f64>; 2] {
        let cost = |spans: &[(f64, f64)], orders: Option<Mean>| {
            let [guest, daemon] = self.busy(spans)?;
            let orders = orders?.value;
            (orders > 0.0).then(|| (guest + daemon) / orders)
        };
        let beside = [(trial.from, trial.until)];
        [cost(&trial.calm, self.without(trial)), cost(&beside, self.during(trial))]
    }

    /// Seconds of processors for each 64 KiB that was moved: what the daemon used more
    /// than as many orders cost it without the migration, and if QEMU moved them, what
    /// that did.
    pub(super) fn cpu_per_chunk(&self, trial: &Trial) -> Option<f64> {
        let moves = |[guest, daemon]: [f64; 2]| match trial.way {
            Way::VhostUser | Way::Nbd => daemon,
            Way::Mirror => guest + daemon,
        };
        let during = moves(self.busy(&[(trial.from, trial.until)])?);
        let without = moves(self.busy(&trial.calm)?);
        let busy = trial.state.is_busy();
        let work = if busy { self.kept_of_usual(trial)?.value } else { 1.0 };
        let seconds = (during - without * work).max(0.0) * trial.seconds();
        Some(seconds / (trial.moved.bytes as f64 / CHUNK))
    }
}

fn mean_orders<'s>(seconds: impl Iterator<Item = &'s Second>) -> Option<Mean> {
    mean(&seconds.map(|second| second.orders).collect::<Vec<f64>>())
}

/// The mean of some values, if there are any.
pub(super) fn mean(values: &[f64]) -> Option<Mean> {
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let value = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|one| (one - value).powi(2)).sum::<f64>();
    let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
    Some(Mean { value, error })
}

/// What each of some means is.
pub(super) fn values(means: &[Mean]) -> Vec<f64> {
    means.iter().map(|one| one.value).collect()
}

/// The error that the mean of some means has by their own.
pub(super) fn error(means: &[Mean]) -> f64 {
    let squares: f64 = means.iter().map(|one| one.error.powi(2)).sum();
    squares.sqrt() / means.len() as f64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The seconds that ended in a span.
    pub(in super::super) fn between(
        outcome: &mut Outcome,
        from: f64,
        until: f64,
    ) -> impl Iterator<Item = &mut Second> {
        outcome.seconds.iter_mut().filter(move |it| it.at > from && it.at <= until)
    }

    /// A migration at high load, from 20 s to 40 s, of 640 chunks.
    pub(in super::super) fn trial() -> Trial {
        Trial {
            disk: Disk::Data,
            state: State::High,
            way: Way::VhostUser,
            forth: true,
            from: 20.0,
            until: 40.0,
            calm: vec![(0.0, 20.0), (40.0, 60.0)],
            moved: Moved { bytes: 640 << 16, seconds: 20.0, held_ms: Some(3.0) },
        }
    }

    /// A minute with so many orders a second without the migration and during it.
    pub(in super::super) fn outcome(without: f64, during: f64) -> Outcome {
        let is_during = |at: f64| at > 20.0 && at <= 40.0;
        let seconds = (1..=60).map(f64::from).map(|at| Second {
            at,
            orders: if is_during(at) { during } else { without },
            acknowledged: if is_during(at) { during } else { without } as u64,
            due: without as u64,
            p99_ms: Some(if is_during(at) { 80.0 } else { 50.0 }),
            slowest_ms: at,
        });
        let flow = |bytes: f64, ms: f64| Flow {
            bytes,
            requests: bytes / 65536.0,
            response_ms: Some(ms),
        };
        let mut daemon = 0.0;
        let ticks = (0..=120).map(|half| {
            let at = f64::from(half) / 2.0;
            daemon += if is_during(at) { 0.15 } else { 0.05 };
            Tick {
                at,
                old: vec![[flow(1e6, 4.0), Flow::default()]; 3],
                new: vec![[Flow::default(), flow(1e6, 1.0)]; 3],
                slowest_ms: Some(at),
                guest_cpu: Some(at),
                daemon_cpu: Some(daemon),
            }
        });
        Outcome {
            ticks: ticks.collect(),
            seconds: seconds.collect(),
            trials: vec![trial()],
            orders: (100, 0),
            clock: Some(1e9),
            ..Outcome::default()
        }
    }

    #[test]
    fn what_is_kept_is_orders_during_against_orders_without() {
        let outcome = outcome(100.0, 90.0);
        let kept = outcome.kept(&trial()).unwrap();
        assert!((kept.value - 0.9).abs() < 1e-9 && kept.error < 1e-9, "{kept:?}");
        assert_eq!(outcome.p99_ms(&trial()), [Some(50.0), Some(80.0)]);
        assert_eq!(outcome.order_stall_ms(&trial()), Some(40.0));
        assert_eq!(outcome.disk_stall_ms(&trial()), Some(40.0));
    }

    #[test]
    fn of_orders_that_come_at_their_own_pace_those_that_were_due_count() {
        let mut outcome = outcome(10.0, 10.0);
        let low = Trial { state: State::Low, ..trial() };
        for second in between(&mut outcome, 20.0, 40.0) {
            // By chance more come.
            (second.due, second.acknowledged) = (20, 20);
        }
        let kept = outcome.kept(&low).unwrap();
        assert!((kept.value - 1.0).abs() < 1e-9 && kept.error < 1e-9, "{kept:?}");
        between(&mut outcome, 38.0, 40.0).for_each(|second| second.acknowledged = 0);
        let kept = outcome.kept(&low).unwrap();
        assert!((kept.value - 0.9).abs() < 1e-9 && kept.error < 1e-9, "{kept:?}");
        // Where one waits now and then without the migration, that is chance.
        for (at, second) in outcome.seconds.iter_mut().enumerate() {
            second.acknowledged += if at % 2 == 0 { 1 } else { 0 };
            second.due += if at % 2 == 0 { 0 } else { 1 };
        }
        let kept = outcome.kept(&low).unwrap();
        assert!((kept.error - 1.0 / 410.0).abs() < 1e-4, "{kept:?}");
    }

    #[test]
    fn a_migration_of_less_than_a_second_is_judged_by_the_second_it_was_in() {
        let short = Trial { from: 30.3, until: 30.7, ..trial() };
        let kept = outcome(100.0, 90.0).kept(&short).unwrap();
        assert!((kept.value - 0.9).abs() < 1e-9, "{kept:?}");
    }

    #[test]
    fn the_migration_costs_what_the_daemon_uses_more() {
        let outcome = outcome(100.0, 100.0);
        // 0.2 processors more for 20 s, for 640 chunks.
        let cost = outcome.cpu_per_chunk(&trial()).unwrap();
        assert!((cost - 4.0 / 640.0).abs() < 2e-4, "{cost}");
        // Orders that did not come did not cost anything.
        let fewer = self::outcome(100.0, 50.0).cpu_per_chunk(&trial()).unwrap();
        assert!((fewer - 5.0 / 640.0).abs() < 2e-4, "{fewer}");
        let [without, during] = outcome.cpu_per_order(&trial()).map(Option::unwrap);
        assert!((without - 0.011).abs() < 1e-4, "{without}");
        assert!((during - 0.013).abs() < 1e-4, "{during}");
    }

    #[test]
    fn of_no_orders_nothing_is_kept() {
        assert_eq!(outcome(0.0, 0.0).kept(&trial()), None);
        assert_eq!(Outcome::default().kept(&trial()), None);
        assert_eq!(Outcome::default().cpu_per_chunk(&trial()), None);
    }

    #[test]
    fn chance_is_said_with_a_mean() {
        let found = mean(&[8.0, 12.0, 8.0, 12.0]).unwrap();
        assert_eq!(found.value, 10.0);
        assert!((found.error - (16.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-9, "{found:?}");
        assert_eq!(mean(&[7.0]), Some(Mean { value: 7.0, error: 0.0 }));
        assert_eq!(mean(&[]), None);
    }
}
