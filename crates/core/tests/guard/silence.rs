//! A guest that gets no answers, or few, or waits for what no comparison shows.

use sterna_core::Nanos;
use sterna_core::guard::{Guard, GuardAim, GuardStatus, Observation, Remaining};
use sterna_core::measure::Window;
use sterna_core::mirror::Allowance;

use crate::plant::WINDOW;
use crate::run::keep_97;

/// A tenth of a second with so many answers, each after so many ms, and so many
/// requests that wait at its end.
fn window(answers: u64, millis: u64, in_flight: u32) -> Window {
    let mut window = Window { span: WINDOW, in_flight, ..Window::default() };
    let took = Nanos::from_millis(millis);
    for _ in 0..answers {
        window.read.record(8192, took, Nanos(0), took);
        window.response.record(took);
    }
    window
}

/// Shows the guard so many windows, of which the one of each number is as given; the
/// copier takes what it may, at most 600 MiB/s.
fn show(guard: &mut Guard, count: u64, guest: impl Fn(u64) -> Window) -> Allowance {
    show_mirrored(guard, count, 0.0, guest)
}

/// The same, with this part of the guest's time waiting for the destination alone.
fn show_mirrored(
    guard: &mut Guard,
    count: u64,
    part: f64,
    guest: impl Fn(u64) -> Window,
) -> Allowance {
    let mut allowance = Guard::FIRST;
    for number in 0..count {
        let guest = guest(number);
        let busy = allowance.busy.unwrap_or(u64::MAX).min(600 << 20);
        let copied = (busy as f64 * WINDOW.as_secs_f64()) as u64;
        let mirrored = Nanos((guest.read.response.0 as f64 * part) as u64);
        let seen = seen(&guest, copied, mirrored);
        allowance = guard.step(&seen, Remaining::default());
    }
    allowance
}

fn seen(guest: &Window, copied: u64, mirror_wait: Nanos) -> Observation<'_> {
    Observation {
        guest,
        copied,
        idle: Nanos(0),
        mirror_wait,
        mirrored_writes: 0,
        idle_processors: Some(1.0),
    }
}

fn bound() -> GuardAim {
    GuardAim { p99: Some(Nanos::from_millis(5)), ..GuardAim::default() }
}

#[test]
fn nothing_is_copied_and_nothing_holds_while_the_guest_hangs() {
    for aim in [keep_97(), bound()] {
        let mut guard = Guard::new(aim);
        show(&mut guard, 600, |_| window(200, 1, 2));
        assert_eq!(guard.status(), GuardStatus::Holding, "{aim:?}");
        let allowance = show(&mut guard, 10, |_| window(0, 0, 8));
        assert_eq!(allowance, Allowance::IDLE_ONLY, "{aim:?}");
        assert_eq!(guard.status(), GuardStatus::Converging, "{aim:?}");
        assert_eq!(guard.busy_rate(), Some(0), "{aim:?}");
    }
}

#[test]
fn a_guest_that_is_answered_again_is_copied_beside() {
    let mut guard = Guard::new(keep_97());
    show(&mut guard, 600, |_| window(200, 1, 2));
    show(&mut guard, 100, |_| window(0, 0, 8));
    show(&mut guard, 100, |_| window(200, 1, 2));
    assert_eq!(guard.status(), GuardStatus::Holding);
    assert!(guard.busy_rate() > Some(100 << 20), "{:?}", guard.busy_rate());
}

#[test]
fn what_was_learned_of_a_fast_guest_is_not_held_against_a_slow_one() {
    let mut guard = Guard::new(keep_97());
    show(&mut guard, 600, |_| window(200, 1, 2));
    // Three requests per second, one in flight at any time.
    show(&mut guard, 6000, |number| window(u64::from(number % 3 == 0), 300, 1));
    let (iops, _) = guard.kept().expect("a minute is enough to know it");
    assert!((2.0..6.0).contains(&iops), "{iops} IO/s");
}

#[test]
fn a_guest_whose_few_requests_cannot_be_compared_is_unknown() {
    let mut guard = Guard::new(keep_97());
    show(&mut guard, 600, |_| window(200, 1, 2));
    // It jumps up and down so that no two windows are alike.
    let jumps = |number: u64| window([1, 40, 9, 400, 3][number as usize / 7 % 5], 1, 1);
    show(&mut guard, 6000, jumps);
    assert_ne!(guard.kept().map(|(iops, _)| iops as u64), Some(2000));
}

#[test]
fn a_guest_whose_requests_are_not_counted_spoils_no_comparison() {
    // Whatever it is compared with when the load changes.
    for before in 600..620 {
        let mut guard = Guard::new(keep_97());
        show(&mut guard, before, |_| window(200, 1, 2));
        // It discards blocks, and reads one now and then.
        show(&mut guard, 6000, |number| window(u64::from(number % 50 == 0), 1, 0));
        show(&mut guard, 300, |_| window(200, 1, 2));
        let (iops, kept) = guard.kept().expect("half a minute is enough to know it");
        assert!((1900.0..2100.0).contains(&iops), "{before}: {iops} IO/s");
        assert!(kept > 0.999, "{before}: {kept}");
        assert_eq!(guard.status(), GuardStatus::Holding, "{before}");
        assert!(guard.busy_rate() > Some(100 << 20), "{before}: {:?}", guard.busy_rate());
    }
}

#[test]
fn what_mirrored_writes_cost_is_taken_off_what_is_kept() {
    let mut guard = Guard::new(keep_97());
    show_mirrored(&mut guard, 900, 0.02, |_| window(200, 1, 2));
    let (_, kept) = guard.kept().expect("it has been compared");
    assert!((0.979..0.981).contains(&kept), "{kept}");
    assert_eq!(guard.status(), GuardStatus::Holding);
    let allowance = show_mirrored(&mut guard, 900, 0.1, |_| window(200, 1, 2));
    let status = guard.status().to_string();
    assert!(status.starts_with("unreachable: writing to both images"), "{status}");
    assert_ne!(allowance.idle, Some(0));
    assert!(guard.busy_rate() > Some(0), "only the end of the move helps");
}

#[test]
fn where_mirrored_writes_cost_too_much_the_copy_may_cost_as_much() {
    let mut guard = Guard::new(keep_97());
    let (mut busy, mut lost) = (0, 0.0);
    for number in 0..3000 {
        // Each MiB/s costs a hundredth of its IO/s, whatever is mirrored a tenth.
        let loss = busy as f64 / (100_u64 << 20) as f64;
        let guest = window((2000.0 * (1.0 - loss)) as u64, 1, 2);
        let mirrored = Nanos(guest.read.response.0 / 10);
        let copied = (busy as f64 * WINDOW.as_secs_f64()) as u64;
        let seen = seen(&guest, copied, mirrored);
        busy = guard.step(&seen, Remaining::default()).busy.unwrap_or(0).min(50 << 20);
        lost += if number >= 1500 { loss / 1500.0 } else { 0.0 };
    }
    assert!((0.07..0.13).contains(&lost), "{lost:.3} to the copy");
}

#[test]
fn short_gaps_are_left_to_the_guest_while_all_processors_are_busy() {
    let guest = window(200, 1, 2);
    for (aim, leaves) in
        [(keep_97(), true), (bound(), true), (GuardAim::default(), false)]
    {
        let mut guard = Guard::new(aim);
        let mut leaves_idle_gaps = |idle_processors: Option<f64>| {
            let seen = Observation { idle_processors, ..seen(&guest, 0, Nanos(0)) };
            guard.step(&seen, Remaining::default()).leaves_idle_gaps
        };
        // What is not known yet changes nothing for later.
        assert_eq!(
            [None, Some(0.15)].map(&mut leaves_idle_gaps),
            [leaves, false],
            "{aim:?}"
        );
        // Its own copying does not make it change its mind.
        let said =
            [0.5, 0.15, 0.05, 0.15, 0.3, 0.15].map(|idle| leaves_idle_gaps(Some(idle)));
        assert_eq!(said, [false, false, leaves, leaves, false, false], "{aim:?}");
    }
}
