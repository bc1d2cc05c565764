//! What keeps machines from being moved to and fro.

use sterna_core::Nanos;
use sterna_placement::hosts::{CooldownSettings, Cooldowns, Pinned};

fn minutes(count: u64) -> Nanos {
    Nanos::from_secs(count * 60)
}

#[test]
fn something_must_not_be_right_for_some_rounds_in_a_row() {
    let (mut cooldowns, hold) = (Cooldowns::default(), CooldownSettings::default());
    for not_right in [true, true, false, true, true] {
        cooldowns.round(not_right);
        assert!(!cooldowns.is_held(&hold));
    }
    cooldowns.round(true);
    assert!(cooldowns.is_held(&hold));
}

#[test]
fn a_machine_that_moves_again_soon_stays_twice_as_long() {
    let (mut cooldowns, hold) = (Cooldowns::default(), CooldownSettings::default());
    let until = |cooldowns: &Cooldowns, now| {
        cooldowns.pinned(now, "web", &hold).map(|(_, until)| until)
    };
    cooldowns.see(minutes(0), "web", "a");
    assert_eq!(until(&cooldowns, minutes(0)), None);
    cooldowns.moved(minutes(1), "web", "b", &hold);
    assert_eq!(until(&cooldowns, minutes(10)), Some(minutes(11)));
    assert_eq!(until(&cooldowns, minutes(11)), None);
    cooldowns.moved(minutes(12), "web", "a", &hold);
    assert_eq!(until(&cooldowns, minutes(12)), Some(minutes(32)));
    cooldowns.moved(minutes(32), "web", "b", &hold);
    assert_eq!(until(&cooldowns, minutes(33)), Some(minutes(72)));
    // Long after that, all is forgotten.
    cooldowns.moved(minutes(500), "web", "a", &hold);
    assert_eq!(until(&cooldowns, minutes(501)), Some(minutes(510)));
}

#[test]
fn however_often_it_moves_it_stays_no_longer_than_the_longest() {
    let (mut cooldowns, hold) = (Cooldowns::default(), CooldownSettings::default());
    for at in 0..100 {
        cooldowns.moved(minutes(at), "web", if at % 2 == 0 { "a" } else { "b" }, &hold);
    }
    let (_, until) = cooldowns.pinned(minutes(100), "web", &hold).expect("it stays");
    assert_eq!(until, minutes(99 + 24 * 60));
}

#[test]
fn a_machine_that_somebody_else_moves_is_left_alone() {
    let (mut cooldowns, hold) = (Cooldowns::default(), CooldownSettings::default());
    assert!(!cooldowns.see(minutes(0), "web", "a"), "it is new");
    assert!(!cooldowns.see(minutes(1), "web", "a"));
    assert!(cooldowns.see(minutes(2), "web", "b"), "we did not put it there");
    let foreign = Some((Pinned::Foreign, minutes(62)));
    assert_eq!(cooldowns.pinned(minutes(30), "web", &hold), foreign);
    assert_eq!(cooldowns.pinned(minutes(62), "web", &hold), None);
    assert!(!cooldowns.see(minutes(63), "web", "b"));
}

#[test]
fn what_is_known_outlives_the_process() {
    let (mut cooldowns, hold) = (Cooldowns::default(), CooldownSettings::default());
    cooldowns.moved(minutes(1), "web", "b", &hold);
    let mut next = Cooldowns::default();
    cooldowns.histories().for_each(|(vm, known)| next.recall(vm.clone(), known.clone()));
    assert_eq!(
        next.pinned(minutes(2), "web", &hold),
        cooldowns.pinned(minutes(2), "web", &hold)
    );
    next.keep(|vm| vm != "web");
    assert_eq!(next.pinned(minutes(2), "web", &hold), None);
}

#[test]
fn a_machine_that_could_not_be_moved_is_left_alone_for_longer_each_time() {
    let (mut cooldowns, hold) = (Cooldowns::default(), CooldownSettings::default());
    let failed = |until| Some((Pinned::Failed, minutes(until)));
    cooldowns.failed(minutes(0), "web", "a", &hold);
    assert_eq!(cooldowns.pinned(minutes(1), "web", &hold), failed(10));
    cooldowns.failed(minutes(10), "web", "a", &hold);
    assert_eq!(cooldowns.pinned(minutes(11), "web", &hold), failed(30));
    // Once it has moved, only that counts.
    cooldowns.moved(minutes(31), "web", "b", &hold);
    let (pinned, _) = cooldowns.pinned(minutes(32), "web", &hold).expect("it stays");
    assert_eq!(pinned, Pinned::Cooling);
    // It stays for a minute even if nothing is to cool down.
    let none = CooldownSettings { cooldown: Nanos(0), ..hold };
    cooldowns.failed(minutes(500), "web", "b", &none);
    assert_eq!(cooldowns.pinned(minutes(500), "web", &none), failed(501));
}
