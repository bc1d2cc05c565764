//! What datastores that give nothing back leave of the memory to the others.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::qos::{Portion, SLOW};

const BUDGET: u64 = 16 << 20;

/// Datastores that hang: what each holds, and for how long.
struct Hung {
    free: u64,
    held: Vec<u64>,
    oldest: Nanos,
}

impl Hung {
    fn new(datastores: usize) -> Hung {
        Hung { free: BUDGET, held: vec![0; datastores], oldest: Nanos(0) }
    }

    /// One of them is asked for more; whether it was given.
    fn ask(&mut self, datastore: usize, cost: u64, newcomer: bool) -> bool {
        let held = self.held[datastore];
        let portion = Portion { held, oldest: self.oldest, newcomer };
        let given = portion.may_take(cost, self.free);
        if given {
            self.free -= cost;
            self.held[datastore] += cost;
        }
        given
    }
}

#[test]
fn one_that_hangs_leaves_a_third_and_another_gets_in() {
    let mut hung = Hung::new(1);
    while hung.ask(0, 64 << 10, false) {}
    assert!(hung.free >= BUDGET / 3 && hung.free < BUDGET / 2, "{}", hung.free);
    let other = Portion { held: 0, oldest: Nanos(0), newcomer: true };
    assert!(other.may_take(1 << 20, hung.free));
}

#[test]
fn a_slow_one_gathers_nothing_anew() {
    let mut hung = Hung::new(1);
    while hung.ask(0, 64 << 10, false) {}
    hung.oldest = SLOW.plus(Nanos(1));
    // It has given most of it back, and is asked for more at once.
    hung.free += hung.held[0] - (64 << 10);
    hung.held[0] = 64 << 10;
    while hung.ask(0, 64 << 10, true) {}
    assert!(hung.free >= BUDGET * 8 / 9, "{}", hung.free);
}

proptest! {
    /// However many clients of however many datastores that hang ask for however much,
    /// in whatever order: what is left is enough for a datastore that works to get on.
    #[test]
    fn whoever_hangs_others_get_on(
        datastores in 1usize..4,
        asked in prop::collection::vec((0usize..4, 1u64..257, any::<bool>()), 0..600),
        slow_from in 0usize..600,
    ) {
        let mut hung = Hung::new(datastores);
        for (at, (datastore, units, newcomer)) in asked.into_iter().enumerate() {
            if at >= slow_from {
                hung.oldest = SLOW.plus(Nanos(1));
            }
            // The first command of a connection is cut to 128 KiB where memory is short.
            let cost = if newcomer { (units << 12).min(128 << 10) } else { units << 12 };
            hung.ask(datastore % datastores, cost, newcomer);
        }
        if datastores == 1 {
            prop_assert!(hung.free >= 256 << 10, "{} left", hung.free);
        }
        // Two small buffers are what any command gets on with.
        let well = Portion { held: 0, oldest: Nanos(0), newcomer: true };
        prop_assert!(well.may_take(8 << 10, hung.free), "{} left", hung.free);
    }
}
