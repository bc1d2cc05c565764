//! The published experiment: a database of 2000 IO/s that a backup and a load generator
//! leave 300, and its targets, each for five minutes.

use sterna_core::Nanos;
use sterna_core::guard::cruise::CruiseOutcome;
use sterna_core::qos::Goal;
use sterna_sim::{Access, Client, Controller, Cruising, Load, Orders, Plan, Seen, World};

use crate::speeds::{Speeds, speed};
use crate::{cruise, is_time};

const BESIDE: Nanos = Nanos::from_secs(5);
const WISH: Nanos = Nanos::from_secs(15);
const END: Nanos = Nanos::from_secs(325);

fn plan() -> Plan {
    let client = |name, outstanding, bytes, read_percent, random| {
        let access = Access { bytes, read_percent, random, size: 100 << 30 };
        Client::new(name, Load::Closed { outstanding }, access)
    };
    Plan {
        seed: 1,
        period: Nanos::from_secs(1),
        span: END,
        arrays: vec!["e4-fc".parse().expect("a model")],
        clients: vec![
            client("oltp", 16, 7 << 10, 80, true),
            client("backup", 72, 256 << 10, 100, false).starting(BESIDE),
            client("stress", 32, 32 << 10, 50, true).starting(BESIDE),
        ],
        faults: Vec::new(),
        noise: 0.0,
    }
}

/// Cruises from the wish on; gives the speeds since then.
fn run(goal: Goal, plan: Plan) -> (Speeds, CruiseOutcome) {
    let mut cruising = Cruising::new(0, cruise(goal));
    let mut control = |now: Nanos, seen: Seen<'_>| match now < WISH {
        true => Orders::default(),
        false => cruising.step(now, seen),
    };
    let series = World::run(plan, &mut control);
    let course = &series.clients[0];
    let before = speed(&course.between(BESIDE, WISH), goal);
    assert!(before < 0.4, "there is no contention: {before}");
    (Speeds::between(course, WISH, Nanos::MAX, goal), cruising.outcome().clone())
}

fn is_held(goal: Goal) {
    let (speeds, outcome) = run(goal, plan());
    let settled = speeds.settled().expect("it settles");
    assert!(settled <= 10, "settled after {settled} s");
    if !is_time(goal) {
        assert!(speeds.peak() < 1.1, "peak {}", speeds.peak());
    }
    let kept = speeds.kept(settled);
    assert!(kept >= 0.95, "kept {kept}: {:.2?}", speeds.0);
    assert_eq!(outcome, CruiseOutcome::Holding);
}

#[test]
fn bytes_are_held_although_they_are_more_than_the_database_has_alone() {
    is_held(Goal::Bytes(15_000_000));
}

#[test]
fn requests_are_held() {
    is_held(Goal::Requests(1000));
}

#[test]
fn a_response_time_is_held() {
    is_held(Goal::Response(Nanos::from_millis(12)));
}

#[test]
fn a_target_out_of_reach_is_named_within_thirty_seconds() {
    let plan = Plan { span: WISH.plus(Nanos::from_secs(30)), ..plan() };
    let (_, outcome) = run(Goal::Bytes(28_000_000), plan);
    assert!(matches!(outcome, CruiseOutcome::Unreachable(_)), "{outcome:?}");
}
