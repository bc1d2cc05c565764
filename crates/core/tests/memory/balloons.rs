//! Balloons, in guests that use more and less, fall silent, and run short.

use proptest::collection::vec;
use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::memory::{Balloon, GuestSays, HostState, reserve};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: Nanos = Nanos::from_secs(1);

/// What happens in a second: what the guest's programs use of its memory, whether it says
/// anything, and what the host wants.
type Second = (f64, bool, f64);

fn any_second() -> impl Strategy<Value = Second> {
    (0.0..1.0, proptest::bool::weighted(0.9), 0.0..1.2)
}

proptest! {
    #[test]
    fn a_balloon_stays_within_its_cap_and_takes_nothing_that_the_guest_needs(
        memory in 1..32_u64,
        cap in 0.0..1.0_f64,
        seconds in vec(any_second(), 1..400),
    ) {
        let memory = memory * 256 * MIB;
        let cap = (memory as f64 * cap) as u64;
        let mut balloon = Balloon::new(memory, cap, 0);
        let (mut now, mut says) = (Nanos(0), None);
        for (used, speaks, wanted) in seconds {
            now = now.plus(SECOND);
            let before = balloon.taken();
            let used = (memory as f64 * used) as u64;
            let available = memory.saturating_sub(used + before);
            if speaks {
                says = Some(GuestSays { available, at: now, has: before });
            }
            let wanted = (memory as f64 * wanted) as u64;
            let step = balloon.step(now, says, wanted);
            prop_assert_eq!(step.unwrap_or(before), balloon.taken());
            prop_assert!(balloon.taken() <= cap);
            let grown = balloon.taken().saturating_sub(before);
            if grown > 0 {
                prop_assert!(!speaks || available - grown >= balloon.floor());
                prop_assert!(balloon.taken() <= wanted);
                prop_assert!(grown <= memory / 20);
            }
            if speaks && available < balloon.floor() {
                prop_assert_eq!(balloon.taken(), 0, "it is short");
            }
        }
    }

    #[test]
    fn a_host_state_is_worse_the_less_there_is_and_does_not_flap(
        total in 1..512_u64,
        first in 0.0..2.0_f64,
        near in 0.9..1.1_f64,
    ) {
        let total = total * GIB;
        let of = |part: f64| (reserve(total) as f64 * part) as u64;
        let state = HostState::default().next(reserve(total), of(first));
        prop_assert_eq!(state.next(reserve(total), of(first)), state, "it is at rest");
        // Once worse, a tenth more or less does not change it back and forth.
        let worse = state.next(reserve(total), of(first * near.min(1.0)));
        let then = worse.next(reserve(total), of(first));
        prop_assert!(then >= state);
        prop_assert_eq!(then.next(reserve(total), of(first * near.min(1.0))), worse.max(then));
    }
}

#[test]
fn a_gigabyte_is_taken_in_time_from_a_guest_that_has_it() {
    let mut balloon = Balloon::new(8 * GIB, 4 * GIB, 0);
    let mut now = Nanos(0);
    while balloon.taken() < GIB {
        now = now.plus(SECOND);
        let says = GuestSays {
            available: 6 * GIB - balloon.taken(),
            at: now,
            has: balloon.taken(),
        };
        balloon.step(now, Some(says), GIB);
    }
    assert!(now <= Nanos::from_secs(30), "it took {now}");
}

#[test]
fn a_guest_that_runs_short_gets_all_back_and_is_left_alone() {
    let mut balloon = Balloon::new(4 * GIB, 2 * GIB, GIB);
    let short = |at| Some(GuestSays { available: 100 * MIB, at, has: GIB });
    assert_eq!(balloon.step(SECOND, short(SECOND), GIB), Some(0));
    let rich = |at| Some(GuestSays { available: 3 * GIB, at, has: 0 });
    let later = Nanos::from_secs(250);
    assert_eq!(balloon.step(later, rich(later), GIB), None);
    let later = Nanos::from_secs(400);
    assert!(balloon.step(later, rich(later), GIB).is_some_and(|taken| taken > 0));
}

#[test]
fn a_guest_that_says_nothing_loses_nothing_more_and_gets_all_back() {
    let mut balloon = Balloon::new(4 * GIB, 2 * GIB, GIB);
    let says = Some(GuestSays { available: 2 * GIB, at: Nanos(0), has: GIB });
    assert_eq!(balloon.step(Nanos::from_secs(20), says, 2 * GIB), None);
    assert_eq!(balloon.step(Nanos::from_secs(31), says, 2 * GIB), Some(0));
    let mut never = Balloon::new(4 * GIB, 2 * GIB, 0);
    assert_eq!(never.step(SECOND, None, 2 * GIB), None);
}

#[test]
fn a_balloon_is_released_whole() {
    let mut balloon = Balloon::new(4 * GIB, 2 * GIB, GIB);
    assert_eq!((balloon.release(), balloon.release()), (Some(0), None));
}

#[test]
fn the_reserve_is_vspheres() {
    assert_eq!(reserve(28_000_000_000), 899_000_000);
    assert_eq!(reserve(128_000_000_000), 1_899_000_000);
    let total = 28_000_000_000;
    let at = |available| HostState::default().next(reserve(total), available);
    let states = [900_000_000, 800_000_000, 500_000_000, 200_000_000].map(at);
    let expected = [HostState::High, HostState::Soft, HostState::Hard, HostState::Low];
    assert_eq!(states, expected);
}

#[test]
fn a_balloon_that_has_not_taken_what_it_was_asked_for_is_asked_for_no_more() {
    let mut balloon = Balloon::new(4 * GIB, 2 * GIB, 0);
    let says = |at, has| Some(GuestSays { available: 3 * GIB, at, has });
    let first = balloon.step(SECOND, says(SECOND, 0), GIB).expect("it takes some");
    let later = Nanos::from_secs(60);
    assert_eq!(balloon.step(later, says(later, 0), GIB), None);
    assert!(balloon.step(later, says(later, first), GIB) > Some(first));
}

#[test]
fn what_could_not_be_asked_for_does_not_count_as_taken() {
    let mut balloon = Balloon::new(4 * GIB, 2 * GIB, 0);
    let says = |at| Some(GuestSays { available: 3 * GIB, at, has: 0 });
    let first = balloon.step(SECOND, says(SECOND), GIB);
    balloon.has_only(0);
    let later = Nanos::from_secs(60);
    assert_eq!(balloon.step(later, says(later), GIB), first);
}
