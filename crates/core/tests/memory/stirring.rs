//! Whether a guest that sleeps needs its memory.

use sterna_core::Nanos;
use sterna_core::memory::{Need, Stirring, was_idle};

const MIB: u64 = 1 << 20;

/// What an idle Linux with PostgreSQL touched of what was out, in the seconds after its memory had
/// gone out and been freed: measured twice on Debian 12, of 470 MiB.
const IDLE: [[u64; 30]; 2] = [
    [
        75, 13, 2, 0, 1694, 720, 0, 0, 0, 4, 64, 73, 0, 0, 0, 20, 10, 0, 0, 0, 0, 0, 0,
        0, 561, 1, 2, 0, 0, 0,
    ],
    [
        58, 48, 6, 4, 0, 0, 0, 92, 1, 0, 1, 1, 0, 0, 0, 46, 0, 0, 1626, 1, 0, 6, 0, 1, 0,
        0, 0, 0, 0, 0,
    ],
];

const FLASH: Nanos = Nanos::from_micros(200);
const SATA: Nanos = Nanos::from_millis(12);

/// When a guest is first seen to need its memory, and why, if it does so each 100 ms.
fn seen(
    out: u64,
    access: Nanos,
    looks: impl Iterator<Item = (u64, u64)>,
) -> Option<(Nanos, Need)> {
    let mut stirring = Stirring::new(Nanos(0), out, access);
    looks.zip(1..).find_map(|((waits, back), tick)| {
        let now = Nanos::from_millis(tick * 100);
        stirring.look(now, waits, back).map(|need| (now, need))
    })
}

/// The looks of seconds, each of which had so many pages: waited for, or in memory as well.
fn spread(seconds: &[u64], waits: bool) -> impl Iterator<Item = (u64, u64)> {
    let ticks = |pages: &u64| {
        let pages = *pages;
        (0..10).map(move |tick| pages * (tick + 1) / 10 - pages * tick / 10)
    };
    let all: Vec<u64> = seconds.iter().flat_map(ticks).collect();
    all.into_iter().map(move |pages| (if waits { pages } else { 0 }, pages))
}

#[test]
fn an_idle_database_sleeps_on_while_what_it_touches_is_in_memory_as_well() {
    for seconds in &IDLE {
        assert_eq!(seen(470 * MIB, SATA, spread(seconds, false)), None);
    }
    // For an hour.
    let hour = IDLE[0].repeat(120);
    assert_eq!(seen(470 * MIB, SATA, spread(&hour, false)), None);
}

#[test]
fn a_timer_wakes_nobody_even_if_the_device_hangs_for_others() {
    let hour = [0, 0, 0, 9, 0, 0, 0, 9].repeat(450);
    for access in [FLASH, SATA, Nanos::from_secs(1)] {
        assert_eq!(seen(470 * MIB, access, spread(&hour, true)), None, "{access}");
    }
}

#[test]
fn a_guest_that_waits_all_the_time_is_seen_within_half_a_second() {
    for access in [FLASH, Nanos::from_millis(6), SATA] {
        // One processor, which waits for one page after the other.
        let each = Nanos::from_millis(100).0 / access.0;
        let looks = std::iter::repeat_n((each, each), 100);
        let (when, need) = seen(470 * MIB, access, looks).expect("it is seen");
        assert_eq!(need, Need::Waits);
        assert!(when <= Nanos::from_millis(500), "{access}: {when}");
    }
}

#[test]
fn a_guest_that_waits_all_the_time_for_a_device_that_others_use_is_seen_within_seconds() {
    // Flash that was measured alone, and takes 5 ms for each page now.
    let looks = std::iter::repeat_n((20, 20), 600);
    let (when, need) = seen(4096 * MIB, FLASH, looks).expect("it is seen");
    assert_eq!(need, Need::Waits);
    assert!(when <= Nanos::from_secs(11), "{when}");
    // The bursts of an idle one are not steady, though it waits for each page.
    let none = seen(470 * MIB, Nanos::from_micros(80), spread(&IDLE[0].repeat(20), true));
    assert_eq!(none, None);
}

#[test]
fn a_guest_that_uses_a_good_part_is_seen_though_it_waits_for_nothing() {
    let looks = std::iter::repeat_n((0, 100), 600);
    let (when, need) = seen(470 * MIB, SATA, looks).expect("it is seen");
    assert_eq!(need, Need::Uses);
    // A sixteenth of 470 MiB are 7,520 pages.
    assert_eq!(when, Nanos::from_millis(7600));
    // Of little, little says nothing.
    let looks = std::iter::repeat_n((0, 1), 600);
    assert_eq!(seen(4 * MIB, SATA, looks), None);
}

#[test]
fn one_that_was_woken_and_used_no_more_than_an_idle_one_was_idle() {
    let minute = IDLE[0].iter().sum::<u64>() * 4096;
    assert_eq!(was_idle(470 * MIB, minute), Some(true));
    assert_eq!(was_idle(470 * MIB, 40 * MIB), Some(false));
    // However much is out, and not of one with little.
    assert_eq!(was_idle(16 << 30, 900 * MIB), Some(false));
    assert_eq!(was_idle(100 * MIB, 4 * MIB), None);
}

#[test]
fn one_that_was_seen_is_counted_anew() {
    let mut stirring = Stirring::new(Nanos(0), 470 * MIB, SATA);
    let at = Nanos::from_millis;
    assert_eq!(stirring.look(at(100), 30, 30), Some(Need::Waits));
    assert_eq!(stirring.look(at(200), 10, 10), None);
}
