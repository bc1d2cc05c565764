//! Reservations where the array is not slow by all that it is given, so that it alone
//! would say who comes first.

use sterna_core::Nanos;
use sterna_core::qos::{ClassId, Lack, Rate, Terms, WindowControl, threshold};
use sterna_sim::{Client, Controller, Load, Orders, Plan, Seen, Uncontrolled, World};

use crate::{closed, plan, random};

/// By then what is reserved is there.
const SETTLED: Nanos = Nanos::from_secs(15);

/// The first client has a reservation, and the array a window, as a daemon gives them.
struct Reserved {
    rate: Rate,
    window: WindowControl,
}

impl Controller for Reserved {
    fn step(&mut self, _now: Nanos, seen: Seen<'_>) -> Orders {
        let first = &seen.clients[0];
        let lack = Lack::of(ClassId(1), self.rate, first, first);
        let lacks: Vec<_> = lack.into_iter().collect();
        let window = self.window.step(&seen.arrays[0], threshold(None), &lacks);
        let terms = Terms { reservation: Some(self.rate), ..Terms::default() };
        Orders { terms: vec![(0, terms)], windows: vec![(0, Some(window))] }
    }
}

/// The rates of a client and of its neighbour, from the 15th second to the tenth minute.
fn rates(client: Client, neighbour: u32, controller: &mut dyn Controller) -> (f64, f64) {
    let neighbour = closed("neighbour", neighbour, random(8192, 100));
    let period = Nanos::from_secs(1);
    let plan = Plan { period, ..plan("old-fc", 600, vec![client, neighbour]) };
    let series = World::run(plan, controller);
    let rate = |at: usize| series.clients[at].between(SETTLED, Nanos::MAX).iops();
    (rate(0), rate(1))
}

fn with(client: Client, neighbour: u32, reserved: f64) -> (f64, f64) {
    let (rate, window) = (Rate::Requests(reserved as u64), WindowControl::default());
    let rates = rates(client, neighbour, &mut Reserved { rate, window });
    println!("{reserved:.0} reserved: {:.0} and {:.0}", rates.0, rates.1);
    rates
}

#[test]
fn a_class_has_what_is_reserved_though_the_array_answers_all_within_its_threshold() {
    for (own, neighbour) in [(16, 16), (8, 24), (4, 28), (24, 8), (2, 8), (32, 64)] {
        let client = || closed("reserved", own, random(8192, 100));
        let (before, beside) = rates(client(), neighbour, &mut Uncontrolled);
        let all = before + beside;
        // What it can have at all, in the time that the array needs for a request.
        let alone = rates(client(), 0, &mut Uncontrolled).0;
        for part in [0.5, 0.7] {
            let reserved = part * alone.min(all);
            let (has, other) = with(client(), neighbour, reserved);
            let what = format!("{own} beside {neighbour}: {before:.0} and {beside:.0}");
            assert!(has > 0.97 * reserved.min(all), "{what}: {has:.0} of {reserved:.0}");
            // Few requests at a time are all that a class with few has to be among.
            assert!(has + other > 0.5 * all, "{what}: {has:.0} and {other:.0}");
        }
    }
}

#[test]
fn a_class_that_asks_for_less_than_is_reserved_is_in_nobodys_way() {
    for rate in [50.0, 200.0, 400.0] {
        let load = Load::Open { rate };
        let client = || Client::new("reserved", load, random(8192, 100));
        let (before, beside) = rates(client(), 24, &mut Uncontrolled);
        let (has, other) = with(client(), 24, 1000.0);
        assert!(has > 0.99 * before, "{has:.0} of {before:.0}");
        assert!(other > 0.95 * beside, "{rate}: {other:.0} of {beside:.0}");
    }
}
