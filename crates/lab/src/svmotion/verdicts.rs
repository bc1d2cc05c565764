//! What the experiment must show, and whether it did. Pure.

use sterna_console::format::count;
use sterna_report::Verdict;

use super::case::Case;
use super::outcome::{Outcome, Trial};
use super::run::KEEP;

/// How long the guest may be held at a switch-over, in milliseconds: what the daemon
/// promises.
const HELD_MS: f64 = 100.0;
/// How many standard errors below the bar may still be chance.
const CHANCE: f64 = 2.0;

/// The verdicts: of each migration under load, of all switch-overs, and of the guest.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    let judged = |trial: &Trial| trial.way.is_guarded() && trial.state.is_busy();
    let busy = Case::all(outcome).into_iter().filter(|case| judged(case.trial()));
    let mut verdicts: Vec<Verdict> = busy.map(|case| kept(outcome, &case)).collect();
    verdicts.extend(guarded(outcome).next().map(|_| held(outcome)));
    verdicts.push(orders(outcome));
    verdicts.push(failed(outcome));
    verdicts.push(complaints(outcome));
    verdicts
}

/// What is there to compare with promises nothing.
fn guarded(outcome: &Outcome) -> impl Iterator<Item = &Trial> {
    outcome.trials.iter().filter(|trial| trial.way.is_guarded())
}

fn kept(outcome: &Outcome, case: &Case<'_>) -> Verdict {
    let kept = case.kept(outcome);
    // A part of three orders says less than one of a thousand.
    let of = case.basis(outcome).map_or(String::new(), |basis| format!(" of {basis}"));
    let percent = |part: f64| part * 100.0;
    Verdict {
        what: format!("{}: orders kept", case.trial().words()),
        measured: kept.map_or("nothing".into(), |kept| {
            format!("{:.1} ± {:.1} %{of}", percent(kept.value), percent(kept.error))
        }),
        bar: format!("at least {:.0} %", percent(KEEP)),
        value: kept.map(|kept| percent(kept.value)),
        passed: kept.is_some_and(|kept| kept.value + CHANCE * kept.error >= KEEP),
    }
}

fn held(outcome: &Outcome) -> Verdict {
    let held = guarded(outcome).map(|trial| trial.moved.held_ms);
    // One that does not say is one that nobody knows of.
    let longest = held.reduce(|one, other| Some(one?.max(other?)));
    let longest = longest.flatten();
    Verdict {
        what: "the longest switch-over".into(),
        measured: longest.map_or("unknown".into(), |ms| format!("{ms:.1} ms")),
        bar: format!("at most {HELD_MS:.0} ms"),
        value: longest,
        passed: longest.is_some_and(|ms| ms <= HELD_MS),
    }
}

fn orders(outcome: &Outcome) -> Verdict {
    let (all, lost) = outcome.orders;
    let shops = outcome.trials.iter().any(|trial| trial.state.is_busy());
    Verdict {
        what: "acknowledged orders that are missing".into(),
        measured: format!("{lost} of {all}"),
        bar: "none".into(),
        value: Some(lost as f64),
        passed: lost == 0 && (all > 0 || !shops),
    }
}

fn failed(outcome: &Outcome) -> Verdict {
    Verdict {
        what: "orders that failed".into(),
        measured: outcome.failed.to_string(),
        bar: "none".into(),
        value: Some(outcome.failed as f64),
        passed: outcome.failed == 0,
    }
}

fn complaints(outcome: &Outcome) -> Verdict {
    // Each kind has a heading.
    let count_of =
        |said: &String| said.lines().filter(|line| !line.ends_with(':')).count().max(1);
    let lines = outcome.complaints.as_ref().map_or(0, count_of);
    Verdict {
        what: "complaints of kernel, file systems and PostgreSQL".into(),
        measured: match lines {
            0 => "nothing".into(),
            lines => count(lines as u64, "line"),
        },
        bar: "nothing".into(),
        value: Some(lines as f64),
        passed: outcome.complaints.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{between, outcome};
    use super::super::plan::{State, Way};
    use super::*;

    fn failing(outcome: &Outcome) -> Vec<String> {
        let all = verdicts(outcome).into_iter();
        all.filter(|verdict| !verdict.passed).map(|verdict| verdict.what).collect()
    }

    #[test]
    fn a_guest_that_notices_nothing_meets_every_requirement() {
        assert_eq!(failing(&outcome(100.0, 98.0)), Vec::<String>::new());
        assert_eq!(verdicts(&outcome(100.0, 98.0)).len(), 5);
    }

    #[test]
    fn orders_that_are_not_kept_fail() {
        let found = failing(&outcome(100.0, 90.0));
        assert_eq!(found, ["data, high, old → new, vhost-user: orders kept"]);
    }

    #[test]
    fn orders_that_were_due_and_did_not_come_fail() {
        let mut outcome = outcome(10.0, 10.0);
        assert_eq!(verdicts(&outcome)[0].measured, "100.0 ± 0.0 % of 200 usual");
        outcome.trials[0].state = State::Low;
        assert_eq!(verdicts(&outcome)[0].measured, "100.0 ± 0.0 % of 200 due");
        assert_eq!(failing(&outcome), Vec::<String>::new());
        between(&mut outcome, 38.0, 40.0).for_each(|second| second.acknowledged = 0);
        let found = failing(&outcome);
        assert_eq!(found, ["data, low, old → new, vhost-user: orders kept"]);
    }

    #[test]
    fn of_a_mirror_without_a_guard_nothing_is_asked() {
        let mut outcome = outcome(100.0, 50.0);
        let mirrors = outcome.trials.iter_mut();
        mirrors.for_each(|trial| {
            trial.way = Way::Mirror;
            trial.moved.held_ms = None;
        });
        assert_eq!(failing(&outcome), Vec::<String>::new());
    }

    #[test]
    fn what_chance_explains_is_kept() {
        let mut outcome = outcome(100.0, 96.0);
        for (at, second) in outcome.seconds.iter_mut().enumerate() {
            second.orders += if at % 2 == 0 { 20.0 } else { -20.0 };
        }
        assert_eq!(failing(&outcome), Vec::<String>::new());
    }

    #[test]
    fn each_trouble_of_the_guest_fails() {
        let mut outcome = outcome(100.0, 100.0);
        outcome.orders = (100, 1);
        outcome.failed = 2;
        outcome.complaints = Some("pg_amcheck:\nbroken".into());
        outcome.trials[0].moved.held_ms = None;
        assert_eq!(failing(&outcome).len(), 4);
        outcome.orders = (0, 0);
        assert_eq!(failing(&outcome).len(), 4);
    }
}
