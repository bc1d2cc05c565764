//! How much is asked for at a time beside a guest that has faults.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::memory::{DEPTH_MOST, GRANULE, Pace, TierSpeed};

const DISK: TierSpeed =
    TierSpeed { access: Nanos::from_micros(13_200), sequential: 80e6 };
const LOOK: Nanos = Nanos::from_millis(100);

/// A guest whose processors run for so long between two faults each, in seconds.
struct Guest {
    processors: u32,
    runs: f64,
    pace: Pace,
    now: Nanos,
    /// What is left of a fault that was not counted whole.
    rest: f64,
}

impl Guest {
    fn new(processors: u32, runs: f64) -> Guest {
        let pace = Pace::new(DISK, processors);
        Guest { processors, runs, pace, now: Nanos(0), rest: 0.0 }
    }

    /// How long a fault takes behind so many granules, in seconds.
    fn wait(depth: u32) -> f64 {
        DISK.seek() + f64::from(depth) * GRANULE as f64 / DISK.sequential
    }

    /// Faults in so many looks, each granule taking as long as it does alone.
    fn looks(&mut self, count: u32) {
        for _ in 0..count {
            let of_one = self.runs + Guest::wait(self.pace.depth());
            self.rest += f64::from(self.processors) * LOOK.as_secs_f64() / of_one;
            self.pace.faults(self.now, self.rest.trunc());
            self.rest = self.rest.fract();
            self.now = self.now.plus(LOOK);
        }
    }

    /// What the guest loses in all at this depth, if the wake alone would take a second.
    fn lost(&self, depth: u32) -> f64 {
        let wait = Guest::wait(depth);
        let left = self.runs + wait - 2.0 * f64::from(self.processors) * DISK.seek();
        if left > 0.0 { wait / left } else { f64::INFINITY }
    }
}

#[test]
fn a_guest_that_stands_still_has_its_memory_back_soon() {
    let mut guest = Guest::new(1, 0.001);
    let at_first = guest.pace.depth();
    guest.looks(50);
    let depth = guest.pace.depth();
    assert_eq!(at_first, depth, "it is taken to stand still until it is seen to run");
    // The wake gets four times as long as the ways to a fault and back take.
    let streams = f64::from(depth) * GRANULE as f64 / DISK.sequential;
    assert!((streams / (2.0 * DISK.seek()) - 4.0).abs() < 0.1, "{streams} s");
}

#[test]
fn a_guest_that_waits_now_and_then_waits_for_little() {
    let mut guest = Guest::new(2, 0.5);
    guest.looks(50);
    assert_eq!(guest.pace.depth(), 1);
}

#[test]
fn a_guest_that_waits_for_nothing_has_nobody_wait() {
    let mut guest = Guest::new(2, 1_000.0);
    guest.looks(100);
    assert_eq!(guest.pace.depth(), DEPTH_MOST);
}

#[test]
fn where_others_use_the_device_the_queue_stays_short() {
    let mut guest = Guest::new(1, 0.001);
    guest.pace.others(true);
    guest.looks(50);
    assert_eq!(guest.pace.depth(), 1);
    guest.pace.others(false);
    assert!(guest.pace.depth() > DEPTH_MOST);
    // So it does if the guest waits for nothing, and gains least.
    let mut guest = Guest::new(2, 1_000.0);
    guest.pace.others(true);
    guest.looks(100);
    assert_eq!(guest.pace.depth(), 1);
}

#[test]
fn a_guest_with_many_processors_has_each_wait_for_a_quarter_of_a_second_at_most() {
    let pace = Pace::new(DISK, 64);
    assert!(Guest::wait(pace.depth()) - DISK.seek() <= 0.25);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_other_depth_would_cost_the_guest_much_less(
        processors in 1..4_u32,
        runs in 0.0..0.5_f64,
    ) {
        let bound = 2.0 * f64::from(processors) * DISK.seek();
        // Near the bound it stays as it is.
        prop_assume!(!(0.8 * bound..2.5 * bound).contains(&runs));
        let deepest = Pace::new(DISK, processors).depth();
        let mut guest = Guest::new(processors, runs);
        guest.looks(120);
        let lost = guest.lost(guest.pace.depth());
        let best = guest.lost(1).min(guest.lost(deepest));
        prop_assert!(lost <= best * 1.1, "{lost} at {}, {best}", guest.pace.depth());
    }
}
