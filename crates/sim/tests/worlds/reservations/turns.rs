//! Classes whose clients come and go: what the next one has, and gives back.

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::{
    Attained, Attainment, ClassId, Reserved, WindowControl, threshold,
};
use sterna_sim::{Controller, Orders, Plan, Seen, Series, Uncontrolled, World};

use super::{client, open, terms};
use crate::plan;

/// A class of all clients but the last, which is a neighbour; and what was said of it.
#[derive(Default)]
struct Together(WindowControl, Vec<Attained>);

impl Controller for Together {
    fn step(&mut self, _now: Nanos, seen: Seen<'_>) -> Orders {
        let (class, terms) = (ClassId(1), terms(700));
        let mut window = Window::default();
        let (_, own) = seen.clients.split_last().expect("clients");
        own.iter().for_each(|one| window.join(one));
        let reserved: Vec<_> =
            Reserved::of(class, &terms, &window, &window).into_iter().collect();
        let window = self.0.step(&seen.arrays[0], threshold(None), &reserved);
        self.1.extend(self.0.attained());
        Orders { windows: vec![(0, Some(window))], ..Orders::default() }
    }
}

#[test]
fn who_does_more_than_when_it_was_tried_in_vain_does_not_wait_for_half_an_hour() {
    // Tried after 2, 6 and 14 minutes, and next after half an hour.
    let late = Nanos::from_secs(900);
    let clients =
        vec![open(300.0), client("more", 8).starting(late), client("neighbour", 24)];
    let plan = Plan { period: Nanos::from_secs(1), ..plan("old-fc", 1200, clients) };
    let series = World::run(plan, &mut Together::default());
    let between = |from: Nanos, to: Nanos| -> f64 {
        (0..2).map(|client| series.clients[client].between(from, to).iops()).sum()
    };
    let before = between(late, late.plus(Nanos::from_secs(10)));
    let after = between(late.plus(Nanos::from_secs(180)), Nanos::MAX);
    println!("{before:.0}, then {after:.0} of 700");
    assert!(after > 0.95 * 700.0, "{before:.0}, then {after:.0} of 700");
}

#[test]
fn who_asks_for_less_than_when_it_was_tried_in_vain_gives_it_back() {
    let later = Nanos::from_secs(100);
    let clients = || {
        let busy = client("busy", 8).ending(later);
        vec![busy, open(100.0).starting(later), client("neighbour", 24)]
    };
    let neighbour = |series: &Series, after: u64| {
        let from = later.plus(Nanos::from_secs(after));
        series.clients[2].between(from, from.plus(Nanos::from_secs(60))).iops()
    };
    let with = |controller: &mut dyn Controller| {
        let plan = Plan { period: Nanos::from_secs(1), ..plan("old-fc", 300, clients()) };
        World::run(plan, controller)
    };
    let before = neighbour(&with(&mut Uncontrolled), 120);
    let mut together = Together::default();
    let series = with(&mut together);
    let (soon, late) = (neighbour(&series, 0), neighbour(&series, 120));
    println!("{before:.0} without, {soon:.0} at first, then {late:.0}");
    assert_eq!(together.1[90].state, Attainment::Lacking);
    assert!(soon > 0.93 * before, "{soon:.0} of {before:.0}");
    assert!(late > 0.95 * before, "{late:.0} of {before:.0}");
    let sated = together.1[110..].iter().filter(|one| one.state == Attainment::Sated);
    assert!(sated.count() > 180, "{:?}", together.1[110]);
}

/// A class of which one client is there at a time, with all that is reserved for it.
#[derive(Default)]
struct InTurns(Together);

impl Controller for InTurns {
    fn step(&mut self, now: Nanos, seen: Seen<'_>) -> Orders {
        let all = (0..seen.clients.len() - 1).map(|one| (one, terms(700))).collect();
        Orders { terms: all, ..self.0.step(now, seen) }
    }
}

#[test]
fn who_had_all_and_asks_for_less_gives_it_back_and_has_it_again_at_once() {
    let [less, more] = [100, 200].map(Nanos::from_secs);
    let clients = || {
        let busy = client("busy", 8).ending(less);
        let open = open(100.0).starting(less).ending(more);
        vec![busy, open, client("busy", 8).starting(more), client("neighbour", 64)]
    };
    let with = |controller: &mut dyn Controller| {
        let plan = Plan { period: Nanos::from_secs(1), ..plan("old-fc", 300, clients()) };
        World::run(plan, controller)
    };
    let between = |series: &Series, client: usize, from: u64, to: u64| {
        let [from, to] = [from, to].map(Nanos::from_secs);
        series.clients[client].between(from, to).iops()
    };
    let free = between(&with(&mut Uncontrolled), 3, 150, 200);
    let mut turns = InTurns::default();
    let series = with(&mut turns);
    let had = between(&series, 0, 50, 100);
    let given: Vec<f64> = (100..200)
        .step_by(10)
        .map(|at| between(&series, 3, at, at + 10) / free)
        .collect();
    let again = between(&series, 2, 205, 260);
    println!("had {had:.0} of 700, then {given:.2?} given back, and {again:.0} again");
    assert!(had > 0.97 * 700.0, "{had:.0}");
    assert!(given[5..].iter().all(|part| *part > 0.9), "{given:.2?}");
    assert!(again > 0.97 * 700.0, "{again:.0}");
}

#[test]
fn who_had_all_with_many_at_a_time_lacks_it_with_one() {
    let later = Nanos::from_secs(100);
    let busy = client("busy", 8).ending(later);
    let clients = vec![busy, client("one", 1).starting(later), client("neighbour", 64)];
    let plan = Plan { period: Nanos::from_secs(1), ..plan("old-fc", 400, clients) };
    let mut turns = InTurns::default();
    World::run(plan, &mut turns);
    let said = &turns.0.1;
    assert_eq!(said[95].state, Attainment::Kept);
    let count = |state| said[110..].iter().filter(|one| one.state == state).count();
    let (lacking, sought) = (count(Attainment::Lacking), count(Attainment::Sought));
    println!("{lacking} s of 290 lacking, {sought} sought");
    assert!(lacking > 260 && sought < 15, "{lacking} s, {sought} s");
}
