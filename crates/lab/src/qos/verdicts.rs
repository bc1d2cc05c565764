//! What the experiment must show, and whether it did.
//!
//! Pure: a record and its phases in, verdicts out. So the same requirements hold for
//! an experiment on a real clock and for one in virtual time. A phase that was never
//! reached has no verdict; what never came to be in its phase has failed.

use sterna_console::format::span;
use sterna_report::Verdict;

use super::plan::Step;
use super::run::{Outcome, Stretch};
use super::stage::OLTP;
use super::wish::Wish;
use crate::judge::{first_there, held, there_after};
use crate::record::{Metric, Sample, figure};

/// What the database must lose at least when the others come: else there is nothing
/// that a service level could show.
const DROP: f64 = 0.6;
/// Seconds until a target is held.
const SETTLE: f64 = 10.0;
/// The part of a target that is gone past at most.
const OVERSHOOT: f64 = 0.1;
/// The part of the time that a target is kept, once it was reached: a dent now and then
/// is chance.
const KEPT: f64 = 0.95;
/// A response time this many times below its target is more than was asked for.
const ENOUGH: f64 = 1.5;
/// What the others may lose while the database has more than was asked for: a loop looks
/// for some seconds before it lets go.
const NEEDLESS: f64 = 0.1;
/// Seconds until a limit is in force.
const FORCE: f64 = 1.0;
/// How far above its limit a window may be: a quarter of a second holds few requests,
/// and one more or less is much.
const ABOVE: f64 = 1.25;
/// The part of a limit that the database must get, as long as it asks for more: a limit
/// is a promise as well.
const GIVEN: f64 = 0.9;
/// Seconds until the database is back when its limit is lifted.
const BACK: f64 = 2.0;
/// What it must have then, of what it had alone.
const AS_BEFORE: f64 = 0.9;
/// Seconds that a schedule may be late: it goes by whole seconds.
const LATE: f64 = 1.0;
/// Seconds until a target that cannot be reached is named.
const NAME: f64 = 30.0;

/// The verdicts, in the order of the phases.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    let judge = Judge { outcome };
    let mut verdicts = Vec::new();
    let mut limited = None;
    for (at, stretch) in outcome.stretches.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &outcome.stretches[before]);
        match stretch.step {
            Step::Contention => verdicts.extend(judge.contention(stretch)),
            Step::Cruise(_) => verdicts.extend(judge.cruise(stretch, before)),
            Step::Unreachable => verdicts.push(unreachable(stretch)),
            Step::Limit(_) => {
                verdicts.extend(judge.limit(stretch).into_iter().flatten());
                limited = stretch.wish;
            }
            Step::Freed => verdicts.extend(judge.freed(stretch, limited)),
            Step::Schedule => {
                verdicts.extend(judge.schedule(stretch).into_iter().flatten());
            }
            Step::Alone | Step::Released | Step::AloneAgain => {}
        }
    }
    verdicts
}

/// At most so many seconds, of what took so many if it ever came to be.
fn in_time(what: String, took: Option<f64>, most: f64) -> Verdict {
    Verdict {
        what,
        measured: took.map_or("never".into(), |seconds| match seconds {
            0.0 => "at once".into(),
            seconds => span(seconds),
        }),
        bar: format!("at most {most:.0} s"),
        value: took,
        passed: took.is_some_and(|seconds| seconds <= most),
    }
}

fn unreachable(stretch: &Stretch) -> Verdict {
    let took = stretch.named.as_ref().map(|named| named.at - stretch.from);
    in_time("out of reach: until the daemon says so".into(), took, NAME)
}

struct Judge<'o> {
    outcome: &'o Outcome,
}

impl Judge<'_> {
    /// What the database got from one moment to another.
    fn oltp(&self, from: f64, until: f64) -> &[Sample] {
        let oltp = self.outcome.record.tracks.first();
        oltp.map_or(&[], |track| track.between(from, until))
    }

    fn during(&self, stretch: &Stretch) -> &[Sample] {
        self.oltp(stretch.from, stretch.until)
    }

    /// What the database got alone.
    fn alone(&self, metric: Metric) -> Option<f64> {
        let alone = self.outcome.stretches.first()?;
        figure(self.oltp(alone.calm(), alone.until), metric)
    }

    fn contention(&self, stretch: &Stretch) -> Option<Verdict> {
        let alone = self.alone(Metric::Bytes)?;
        let beside = figure(self.during(stretch), Metric::Bytes)?;
        let lost = 1.0 - beside / alone;
        Some(Verdict {
            what: format!("contention: throughput that {OLTP} loses"),
            measured: format!("{:.0} %", lost * 100.0),
            bar: format!("at least {:.0} %", DROP * 100.0),
            value: Some(lost * 100.0),
            passed: lost >= DROP,
        })
    }

    fn cruise(&self, stretch: &Stretch, before: Option<&Stretch>) -> Vec<Verdict> {
        let (Some(wish), Some(before)) = (stretch.wish, before) else {
            return Vec::new();
        };
        let metric = wish.metric;
        let came_from = figure(self.during(before), metric).unwrap_or_default();
        let samples = self.during(stretch);
        let found = held(samples, stretch.from, came_from, wish.target());
        let what = |what: &str| format!("cruise in {}: {what}", metric.unit());
        let settled = found.and_then(|held| held.settled);
        let mut verdicts = vec![in_time(what("until within tolerance"), settled, SETTLE)];
        // Of what never came near there is nothing more to say.
        let (Some(found), Some(settled)) = (found, settled) else { return verdicts };
        verdicts.push(match metric {
            // To be quicker than that is no fault; that others pay for it is.
            Metric::Response | Metric::Slowest => {
                let lost = self.needless(stretch, wish);
                Verdict {
                    what: what("what the others lose without need"),
                    measured: format!("{:.1} %", lost * 100.0),
                    bar: format!("at most {:.0} %", NEEDLESS * 100.0),
                    value: Some(lost * 100.0),
                    passed: lost <= NEEDLESS,
                }
            }
            Metric::Bytes | Metric::Requests => Verdict {
                what: what("overshoot"),
                measured: format!("{:.1} %", found.overshoot * 100.0),
                bar: format!("below {:.0} %", OVERSHOOT * 100.0),
                value: Some(found.overshoot * 100.0),
                passed: found.overshoot < OVERSHOOT,
            },
        });
        let rest = stretch.until - stretch.from - settled;
        verdicts.push(Verdict {
            what: what("swings from side to side"),
            measured: format!("{} in {}", found.swings, span(rest)),
            bar: "none".into(),
            value: Some(found.swings as f64),
            passed: found.swings == 0,
        });
        verdicts.push(Verdict {
            what: what("kept, once within tolerance"),
            measured: format!("{:.1} %", found.kept * 100.0),
            bar: format!("at least {:.0} %", KEPT * 100.0),
            value: Some(found.kept * 100.0),
            passed: found.kept >= KEPT,
        });
        verdicts
    }

    /// The part of their throughput that the others lose while the database has more than
    /// was asked for.
    fn needless(&self, stretch: &Stretch, wish: Wish) -> f64 {
        let Some(beside) = self.outcome.phase(Step::Contention) else { return 0.0 };
        let before = self.outcome.others(beside.from, beside.until);
        let samples = self.during(stretch);
        if samples.is_empty() || before <= 0.0 {
            return 0.0;
        }
        let lost = |sample: &Sample| {
            let has = sample.figure(wish.metric)?;
            let now = self.outcome.others(sample.at - sample.span, sample.at);
            (has * ENOUGH < wish.value).then(|| (1.0 - now / before).clamp(0.0, 1.0))
        };
        // A sum of nothing is a negative zero.
        let all = samples.iter().filter_map(lost).fold(0.0, |all, lost| all + lost);
        all / samples.len() as f64
    }

    fn limit(&self, stretch: &Stretch) -> Option<[Verdict; 2]> {
        let wish = stretch.wish?;
        let took = self.in_force(wish, stretch.from, stretch.until);
        let unit = wish.metric.unit();
        let force = in_time(format!("limit in {unit}: until in force"), took, FORCE);
        let rest = self.oltp(stretch.from + FORCE, stretch.until);
        let given = figure(rest, wish.metric)? / wish.value;
        let given = Verdict {
            what: format!("limit in {unit}: what {OLTP} gets of it"),
            measured: format!("{:.1} %", given * 100.0),
            bar: format!("at least {:.0} %", GIVEN * 100.0),
            value: Some(given * 100.0),
            passed: given >= GIVEN,
        };
        Some([force, given])
    }

    /// Seconds until the database is held to a limit.
    fn in_force(&self, wish: Wish, from: f64, until: f64) -> Option<f64> {
        let below = |value: f64| value <= wish.value * ABOVE;
        there_after(self.oltp(from, until), from, wish.metric, below)
    }

    /// Seconds until the database has what it had alone.
    fn back(&self, metric: Metric, from: f64, until: f64) -> Option<f64> {
        let least = self.alone(metric)? * AS_BEFORE;
        first_there(self.oltp(from, until), from, metric, |value| value >= least)
    }

    fn freed(&self, stretch: &Stretch, limited: Option<Wish>) -> Option<Verdict> {
        let metric = limited?.metric;
        let took = self.back(metric, stretch.from, stretch.until);
        let what = format!("limit in {}: until back when lifted", metric.unit());
        Some(in_time(what, took, BACK))
    }

    fn schedule(&self, stretch: &Stretch) -> Option<[Verdict; 2]> {
        let (wish, (opens, closes)) = (stretch.wish?, stretch.opening?);
        // One that is in force before its second is as wrong as one that comes late.
        let before = figure(self.oltp(stretch.from, opens), wish.metric)?;
        let early = before < self.alone(wish.metric)? * AS_BEFORE;
        let late = |what: &str, took: Option<f64>| {
            in_time(format!("schedule: late to {what}"), took, LATE)
        };
        let mut open = late("open", self.in_force(wish, opens, closes));
        if early {
            (open.measured, open.value, open.passed) = ("too early".into(), None, false);
        }
        let close = late("close", self.back(wish.metric, closes, stretch.until));
        Some([open, close])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::run::Named;
    use crate::record::{Record, Track};

    /// What the database gets each second, as `course` has it.
    fn track(seconds: f64, course: impl Fn(f64) -> f64) -> Track {
        let sample = |at: usize| {
            let at = (at + 1) as f64 / 4.0;
            let operations = course(at - 0.25) / 4.0;
            Sample {
                at,
                span: 0.25,
                operations,
                bytes: operations * 8000.0,
                // 16 under way.
                response_ms: 16.0 * 250.0,
                slowest_ms: None,
            }
        };
        let samples = (0..(seconds * 4.0) as usize).map(sample).collect();
        Track { name: OLTP.into(), samples }
    }

    fn outcome(track: Track, steps: &[(Step, f64)]) -> Outcome {
        let mut outcome = Outcome {
            record: Record { tracks: vec![track], ..Record::default() },
            stretches: Vec::new(),
        };
        let mut from = 0.0;
        for &(step, seconds) in steps {
            let until = from + seconds;
            let alone = outcome.record.tracks[0].between(0.0, steps[0].1);
            let wish = Wish::of(step, alone);
            let (opening, named) = (None, None);
            outcome.stretches.push(Stretch { step, from, until, wish, opening, named });
            from = until;
        }
        outcome
    }

    fn told(outcome: &Outcome) -> Vec<(String, String, bool)> {
        let all = verdicts(outcome).into_iter();
        all.map(|verdict| (verdict.what, verdict.measured, verdict.passed)).collect()
    }

    #[test]
    fn an_experiment_without_contention_has_failed() {
        let steps = [(Step::Alone, 10.0), (Step::Contention, 10.0)];
        let drops = |beside: f64| {
            let track = track(20.0, |at| if at < 10.0 { 2000.0 } else { beside });
            told(&outcome(track, &steps))
        };
        let what = "contention: throughput that oltp loses".to_owned();
        assert_eq!(drops(300.0), [(what.clone(), "85 %".into(), true)]);
        assert_eq!(drops(1000.0), [(what, "50 %".into(), false)]);
    }

    #[test]
    fn a_target_is_judged_by_four_requirements() {
        let steps = [
            (Step::Alone, 10.0),
            (Step::Contention, 10.0),
            (Step::Cruise(Metric::Requests), 60.0),
        ];
        // 1000 are asked for; there are after 4 s.
        let good = track(80.0, |at| match at {
            ..10.0 => 2000.0,
            ..24.0 => 300.0,
            _ => 1000.0,
        });
        let found = verdicts(&outcome(good, &steps));
        let figures: Vec<&str> =
            found[1..].iter().map(|verdict| verdict.measured.as_str()).collect();
        assert_eq!(figures, ["4.0 s", "0.0 %", "0 in 56 s", "100.0 %"]);
        assert!(found.iter().all(|verdict| verdict.passed), "{found:#?}");

        let never = track(80.0, |at| if at < 10.0 { 2000.0 } else { 300.0 });
        let found = told(&outcome(never, &steps));
        assert_eq!((found[1].1.as_str(), found[1].2), ("never", false));
    }

    #[test]
    fn what_the_others_lose_for_more_than_was_asked_for_is_a_fault() {
        let steps = [
            (Step::Alone, 10.0),
            (Step::Contention, 10.0),
            (Step::Cruise(Metric::Response), 60.0),
        ];
        // 8 ms alone, 12 are asked for. The neighbour has a tenth, from 20 s on.
        let with = |has: f64| {
            let oltp = track(80.0, |at| match at {
                ..10.0 => 2000.0,
                ..20.0 => 300.0,
                _ => 16.0 / has * 1000.0,
            });
            let other = track(80.0, |at| if at < 20.0 { 1000.0 } else { 100.0 });
            let mut outcome = outcome(oltp, &steps);
            outcome.record.tracks.push(other);
            let found = told(&outcome);
            let (_, measured, passed) =
                found.iter().find(|it| it.0.contains("without need")).expect("a verdict");
            (measured.clone(), *passed)
        };
        assert_eq!(with(11.0), ("0.0 %".into(), true));
        assert_eq!(with(7.5), ("90.0 %".into(), false));
    }

    #[test]
    fn limits_are_judged_when_they_come_and_when_they_go() {
        let steps = [
            (Step::Alone, 10.0),
            (Step::Limit(Metric::Requests), 10.0),
            (Step::Freed, 10.0),
        ];
        let with = |force: f64, back: f64| {
            let track = track(30.0, |at| match at {
                _ if at < 10.0 + force => 2000.0,
                _ if at < 20.0 + back => 100.0,
                _ => 2000.0,
            });
            told(&outcome(track, &steps))
        };
        let quick = with(0.25, 0.5);
        let figures: Vec<&str> = quick.iter().map(|(_, text, _)| text.as_str()).collect();
        assert_eq!(figures, ["250 ms", "100.0 %", "500 ms"]);
        assert!(quick.iter().all(|(_, _, passed)| *passed), "{quick:?}");
        let slow: Vec<bool> =
            with(1.5, 3.0).iter().map(|(_, _, passed)| *passed).collect();
        assert_eq!(slow, [false, true, false]);
    }

    #[test]
    fn a_schedule_may_be_neither_late_nor_early() {
        let steps = [(Step::Alone, 10.0), (Step::Schedule, 20.0)];
        let with = |opens: f64, closes: f64| {
            let track = track(30.0, |at| match at {
                _ if at >= opens && at < closes => 200.0,
                _ => 2000.0,
            });
            let mut outcome = outcome(track, &steps);
            outcome.stretches[1].opening = Some((14.0, 22.0));
            told(&outcome).iter().map(|verdict| verdict.2).collect::<Vec<bool>>()
        };
        assert_eq!(with(14.0, 22.0), [true, true]);
        assert_eq!(with(14.5, 22.5), [true, true]);
        assert_eq!(with(16.0, 22.0), [false, true]);
        assert_eq!(with(11.0, 22.0), [false, true]);
        assert_eq!(with(14.0, 24.0), [true, false]);
    }

    #[test]
    fn a_target_out_of_reach_must_be_named() {
        let steps = [(Step::Alone, 10.0), (Step::Unreachable, 30.0)];
        let mut outcome = outcome(track(40.0, |_| 2000.0), &steps);
        assert!(!told(&outcome)[0].2);
        let named = Named { at: 22.0, reason: "the array is too slow".into() };
        outcome.stretches[1].named = Some(named);
        let (_, measured, passed) = &told(&outcome)[0];
        assert_eq!((measured.as_str(), *passed), ("12 s", true));
    }
}
