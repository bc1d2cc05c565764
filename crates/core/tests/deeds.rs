//! Whom it has helped that somebody did something.

use sterna_core::hurt::{Again, Deed, Deeds, Effect, Kind, State};
use sterna_core::{DiskId, Nanos};

const DISK: DiskId = DiskId(7);

/// A disk that is hurt or not, and what its requests take.
fn state(ails: bool, millis: u64) -> State {
    State { ails, takes: (millis > 0).then_some(Nanos::from_millis(millis)) }
}

fn limited() -> Deeds {
    let mut deeds = Deeds::default();
    let ailing = [(DISK, Some(Nanos::from_millis(15)))];
    deeds.note(Nanos::from_secs(100), &made("policy 5 was made"), ailing);
    deeds
}

/// A deed about policy 5.
fn made(what: &str) -> Deed {
    Deed { what: what.into(), kind: Kind::Makes(5), holds: Vec::new() }
}

/// A limit of class batch is removed.
fn removed(policy: u64, holds: &[DiskId]) -> Deed {
    let again = Again {
        policy,
        class: "batch".into(),
        bytes_per_second: 8 << 20,
        command: format!("sterna policy limit batch {policy}M"),
    };
    let kind = Kind::TakesBack(Some(again));
    Deed { what: format!("policy {policy} was removed"), kind, holds: holds.to_vec() }
}

#[test]
fn whom_a_limit_has_helped_is_said_once() {
    let mut deeds = limited();
    assert_eq!(deeds.step(Nanos::from_secs(130), |_| state(true, 14)), []);
    let (what, ago, before) = deeds.of(Nanos::from_secs(130), DISK).unwrap();
    assert_eq!((what.as_str(), ago), ("policy 5 was made", Nanos::from_secs(30)));
    assert_eq!(before, Some(Nanos::from_millis(15)));
    let effects = deeds.step(Nanos::from_secs(140), |_| state(false, 3));
    let helped = Effect {
        what: "policy 5 was made".into(),
        ago: Nanos::from_secs(40),
        disk: DISK,
        before: Some(Nanos::from_millis(15)),
        now: Some(Nanos::from_millis(3)),
        helped: true,
    };
    assert_eq!(effects, [helped]);
    assert_eq!(deeds.step(Nanos::from_secs(145), |_| state(false, 3)), []);
}

#[test]
fn what_has_not_helped_after_a_minute_is_said_and_so_is_what_helps_later() {
    let mut deeds = limited();
    let at = Nanos::from_secs;
    let [not_yet] = &deeds.step(at(160), |_| state(true, 14))[..] else { panic!() };
    assert!(!not_yet.helped);
    assert_eq!(deeds.step(at(300), |_| state(true, 14)), [], "once");
    let [later] = &deeds.step(at(400), |_| state(false, 3))[..] else { panic!() };
    assert!(later.helped);
}

#[test]
fn what_recovers_long_afterwards_or_asks_for_nothing_was_not_helped() {
    let mut deeds = limited();
    deeds.step(Nanos::from_secs(700), |_| state(true, 14));
    assert_eq!(deeds.step(Nanos::from_secs(705), |_| state(false, 3)), []);
    let mut deeds = limited();
    assert_eq!(deeds.step(Nanos::from_secs(110), |_| state(false, 0)), []);
    assert_eq!(deeds.of(Nanos::from_secs(110), DISK), None);
}

#[test]
fn only_the_latest_deed_counts_for_a_disk() {
    let mut deeds = limited();
    let ailing = [(DISK, Some(Nanos::from_millis(14)))];
    let paused = Deed { kind: Kind::Other, ..made("move 7 was paused") };
    deeds.note(Nanos::from_secs(120), &paused, ailing);
    let [one] = &deeds.step(Nanos::from_secs(150), |_| state(false, 3))[..] else {
        panic!()
    };
    assert_eq!(one.what, "move 7 was paused");
}

#[test]
fn what_helps_already_is_not_said_to_be_in_vain_and_keeps_the_credit() {
    let mut deeds = limited();
    let at = Nanos::from_secs;
    assert_eq!(deeds.step(at(160), |_| state(true, 3)), [], "not well, and far better");
    let paused = Deed { kind: Kind::Other, ..made("move 7 was paused") };
    deeds.note(at(165), &paused, [(DISK, Some(Nanos::from_millis(3)))]);
    let [one] = &deeds.step(at(170), |_| state(false, 2))[..] else { panic!() };
    assert_eq!(one.what, "policy 5 was made");
}

#[test]
fn a_limit_that_has_helped_and_was_removed_is_remembered_with_its_command() {
    let mut deeds = limited();
    let at = Nanos::from_secs;
    deeds.step(at(140), |_| state(false, 3));
    let taken_back = |deeds: &Deeds, now| deeds.taken_back(now, DISK, None, |_| true);
    assert_eq!(taken_back(&deeds, at(150)), None, "it is in force");
    deeds.note(at(200), &removed(5, &[]), []);
    let proven = taken_back(&deeds, at(260)).unwrap();
    assert_eq!((proven.took, proven.ago), (Nanos::from_millis(3), at(60)));
    assert_eq!(proven.limits[0].command, "sterna policy limit batch 5M");
    deeds.step(at(30_000), |_| state(false, 3));
    assert_eq!(taken_back(&deeds, at(30_000)), None, "the load is another one");
}

#[test]
fn a_policy_without_which_a_disk_is_worse_may_be_made_again() {
    let (mut deeds, at) = (Deeds::default(), Nanos::from_secs);
    let own = DiskId(8);
    let took = Some(Nanos::from_millis(16));
    deeds.note(at(100), &removed(5, &[own]), [(DISK, took), (own, took)]);
    let missed = |disk, takes| {
        let takes = Some(Nanos::from_millis(takes));
        deeds.taken_back(at(128), disk, takes, |_| true)
    };
    assert_eq!(missed(own, 60), None, "it held that disk");
    assert_eq!(missed(DISK, 17), None, "chance");
    let proven = missed(DISK, 60).unwrap();
    assert_eq!((proven.took, proven.ago), (Nanos::from_millis(16), at(28)));
    assert_eq!(proven.limits[0].policy, 5);
    let made = limited().taken_back(at(128), DISK, Some(at(1)), |_| true);
    assert_eq!(made, None, "it was made");
}

#[test]
fn a_limit_that_is_looser_than_what_holds_is_not_advised() {
    let (mut deeds, at) = (Deeds::default(), Nanos::from_secs);
    deeds.note(at(100), &removed(5, &[]), [(DISK, Some(Nanos::from_millis(6)))]);
    let missed = |most: u64| {
        let tighter = |again: &Again| again.bytes_per_second < most;
        deeds.taken_back(at(128), DISK, Some(Nanos::from_millis(12)), tighter)
    };
    assert!(missed(10 << 20).is_some());
    assert_eq!(missed(8 << 20), None);
}

#[test]
fn what_was_done_at_the_same_time_is_named_together_and_proves_nothing_of_one() {
    let (mut deeds, at) = (Deeds::default(), Nanos::from_secs);
    let took = Some(Nanos::from_millis(6));
    deeds.note(at(100), &removed(3, &[]), [(DISK, took)]);
    deeds.note(at(101), &removed(9, &[]), [(DISK, took), (DiskId(8), took)]);
    let missed = |disk| {
        let takes = Some(Nanos::from_millis(12));
        let proven = deeds.taken_back(at(128), disk, takes, |_| true).unwrap();
        proven.limits.iter().map(|one| one.policy).collect::<Vec<_>>()
    };
    assert_eq!((missed(DISK), missed(DiskId(8))), (vec![3, 9], vec![9]));
    let (what, ago, _) = deeds.of(at(128), DISK).unwrap();
    assert_eq!(what, "policy 3 was removed, and policy 9 was removed");
    assert_eq!(ago, at(28));
    let mut both = limited();
    both.note(
        at(103),
        &Deed { kind: Kind::Makes(6), ..made("policy 6 was made") },
        [(DISK, Some(Nanos::from_millis(15)))],
    );
    assert_eq!(
        both.step(at(140), |_| state(false, 3)).len(),
        1,
        "one effect of two deeds"
    );
    both.note(at(200), &removed(5, &[]), []);
    assert_eq!(both.taken_back(at(260), DISK, None, |_| true), None);
}

#[test]
fn a_limit_helps_no_disk_that_it_slows() {
    let mut deeds = Deeds::default();
    let limit = Deed { holds: vec![DISK], ..made("policy 5 was made") };
    let ailing = [(DISK, Some(Nanos::from_millis(98)))];
    deeds.note(Nanos::from_secs(100), &limit, ailing);
    assert_eq!(deeds.step(Nanos::from_secs(140), |_| state(false, 7)), []);
    assert_eq!(deeds.of(Nanos::from_secs(140), DISK), None);
}
