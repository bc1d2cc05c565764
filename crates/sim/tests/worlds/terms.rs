//! A controller's orders are carried out by the scheduler of the core.

use sterna_core::Nanos;
use sterna_core::qos::{Limit, Rate, Terms};
use sterna_sim::{Client, Controller, Orders, Seen, World};

use crate::{closed, near, plan, random};

/// Gives these orders once, at this moment.
struct Once(Nanos, Orders);

impl Controller for Once {
    fn step(&mut self, now: Nanos, _seen: Seen<'_>) -> Orders {
        if now >= self.0 { std::mem::take(&mut self.1) } else { Orders::default() }
    }
}

/// Two alike at one array, for a minute.
fn two() -> Vec<Client> {
    vec![closed("a", 32, random(8192, 100)), closed("b", 32, random(8192, 100))]
}

/// The rates of the two after the orders of the 10th second.
fn under(orders: Orders) -> (f64, f64) {
    let mut once = Once(Nanos::from_secs(10), orders);
    let series = World::run(plan("old-fc", 60, two()), &mut once);
    let rate = |client: usize| {
        let course = &series.clients[client];
        course.between(Nanos::from_secs(11), Nanos::MAX).iops()
    };
    (rate(0), rate(1))
}

#[test]
fn a_limit_holds_and_the_other_gets_the_rest() {
    let limit = Limit { requests: Some(100), ..Limit::default() };
    let terms = Terms { limit, ..Terms::default() };
    let (a, b) = under(Orders { terms: vec![(0, terms)], windows: Vec::new() });
    near(a, 100.0, 0.01);
    assert!(b > 1100.0, "{b}");
}

#[test]
fn a_depth_holds() {
    let terms = Terms { depth: Some(1), ..Terms::default() };
    let (a, b) = under(Orders { terms: vec![(0, terms)], windows: Vec::new() });
    // One among 33 in flight.
    near(a / (a + b), 1.0 / 33.0, 0.25);
}

#[test]
fn shares_and_reservations_hold_within_a_window() {
    let shares = Terms { shares: 3000, ..Terms::default() };
    let window = vec![(0, Some(16))];
    let (a, b) = under(Orders { terms: vec![(0, shares)], windows: window.clone() });
    near(a / b, 3.0, 0.05);
    let reserved =
        Terms { reservation: Some(Rate::Requests(900)), shares: 1, ..Terms::default() };
    let (a, b) = under(Orders { terms: vec![(0, reserved)], windows: window });
    near(a, 900.0, 0.03);
    assert!(b > 100.0, "{b}");
}
