//! Whom it has helped that somebody did something.

use sterna_core::hurt::{Deed, Deeds, Effect, State};
use sterna_core::{DiskId, Nanos};

const DISK: DiskId = DiskId(7);

/// A disk that is hurt or not, and what its requests take.
fn state(ails: bool, millis: u64) -> State {
    State { ails, takes: (millis > 0).then_some(Nanos::from_millis(millis)) }
}

fn limited() -> Deeds {
    let mut deeds = Deeds::default();
    let ailing = [(DISK, Some(Nanos::from_millis(15)))];
    deeds.note(Nanos::from_secs(100), made("policy 5 was made"), ailing);
    deeds
}

/// A deed about policy 5.
fn made(what: &str) -> Deed {
    Deed { what: what.into(), policy: Some(5), again: None, holds: Vec::new() }
}

#[test]
fn whom_a_limit_has_helped_is_said_once() {
    let mut deeds = limited();
    assert_eq!(deeds.step(Nanos::from_secs(130), |_| state(true, 14)), []);
    let (what, ago, before) = deeds.of(Nanos::from_secs(130), DISK).unwrap();
    assert_eq!((what, ago), ("policy 5 was made", Nanos::from_secs(30)));
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
    let paused = Deed { policy: None, ..made("move 7 was paused") };
    deeds.note(Nanos::from_secs(120), paused, ailing);
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
    let paused = Deed { policy: None, ..made("move 7 was paused") };
    deeds.note(at(165), paused, [(DISK, Some(Nanos::from_millis(3)))]);
    let [one] = &deeds.step(at(170), |_| state(false, 2))[..] else { panic!() };
    assert_eq!(one.what, "policy 5 was made");
}

#[test]
fn a_limit_that_has_helped_and_was_removed_is_remembered_with_its_command() {
    let mut deeds = limited();
    let at = Nanos::from_secs;
    deeds.step(at(140), |_| state(false, 3));
    assert_eq!(deeds.taken_back(at(150), DISK, None), None, "it is in force");
    let again = Some("sterna policy limit batch 8M".to_owned());
    let removed = Deed { again, ..made("policy 5 was removed") };
    deeds.note(at(200), removed, []);
    let proven = deeds.taken_back(at(260), DISK, None).unwrap();
    assert_eq!((proven.took, proven.ago), (Nanos::from_millis(3), at(60)));
    assert_eq!(proven.again, "sterna policy limit batch 8M");
    deeds.step(at(30_000), |_| state(false, 3));
    assert_eq!(deeds.taken_back(at(30_000), DISK, None), None, "the load is another one");
}

#[test]
fn a_policy_without_which_a_disk_is_worse_may_be_made_again() {
    let (mut deeds, at) = (Deeds::default(), Nanos::from_secs);
    let again = Some("sterna policy cruise gold 18ms".to_owned());
    let own = DiskId(8);
    let removed = Deed { again, holds: vec![own], ..made("policy 5 was removed") };
    let took = Some(Nanos::from_millis(16));
    deeds.note(at(100), removed, [(DISK, took), (own, took)]);
    assert_eq!(deeds.taken_back(at(128), own, Some(at(1))), None, "it held that disk");
    let missed = |takes| deeds.taken_back(at(128), DISK, Some(Nanos::from_millis(takes)));
    assert_eq!(missed(17), None, "chance");
    let missed = missed(60).unwrap();
    assert_eq!((missed.took, missed.ago), (Nanos::from_millis(16), at(28)));
    assert_eq!(missed.again, "sterna policy cruise gold 18ms");
    assert_eq!(limited().taken_back(at(128), DISK, Some(at(1))), None, "it was made");
}
