//! Reservations where the array is not slow by all that it is given, so that it alone
//! would say who comes first.

use sterna_core::Nanos;
use sterna_core::qos::{
    Attained, Attainment, ClassId, Rate, Reserved, Terms, WindowControl, threshold,
};
use sterna_sim::{
    Client, Controller, Load, Orders, Plan, Seen, Series, Uncontrolled, World,
};

use crate::{closed, plan, random};

mod seconds;
mod turns;

/// By then what is reserved is there.
const SETTLED: Nanos = Nanos::from_secs(15);

/// These clients have reservations in IO/s, and the array has a window, as a daemon gives
/// them.
struct Daemon {
    reserved: Vec<(usize, u64)>,
    window: WindowControl,
    /// What was said of the first of them, second by second.
    said: Vec<Attained>,
}

impl Daemon {
    fn new(reserved: &[(usize, u64)]) -> Daemon {
        let (reserved, window) = (reserved.to_vec(), WindowControl::default());
        Daemon { reserved, window, said: Vec::new() }
    }
}

fn terms(reserved: u64) -> Terms {
    Terms { reservation: Some(Rate::Requests(reserved)), ..Terms::default() }
}

impl Controller for Daemon {
    fn step(&mut self, _now: Nanos, seen: Seen<'_>) -> Orders {
        let reserved = self.reserved.iter().filter_map(|(client, rate)| {
            let (window, class) = (&seen.clients[*client], ClassId(*client as u32 + 1));
            Reserved::of(class, &terms(*rate), window, window)
        });
        let reserved: Vec<_> = reserved.collect();
        let window = self.window.step(&seen.arrays[0], threshold(None), &reserved);
        self.said.extend(self.window.attained().next());
        let orders = self.reserved.iter().map(|(client, rate)| (*client, terms(*rate)));
        Orders { terms: orders.collect(), windows: vec![(0, Some(window))] }
    }
}

fn client(name: &str, outstanding: u32) -> Client {
    closed(name, outstanding, random(8192, 100))
}

fn open(rate: f64) -> Client {
    Client::new("open", Load::Open { rate }, random(8192, 100))
}

/// Ten minutes of these at one array.
fn world(clients: Vec<Client>, controller: &mut dyn Controller) -> Series {
    let period = Nanos::from_secs(1);
    World::run(Plan { period, ..plan("old-fc", 600, clients) }, controller)
}

fn rate(series: &Series, client: usize, from: Nanos) -> f64 {
    series.clients[client].between(from, Nanos::MAX).iops()
}

/// The rates of two clients from the 15th second to the tenth minute.
fn rates(one: Client, neighbour: u32, controller: &mut dyn Controller) -> (f64, f64) {
    let series = world(vec![one, client("neighbour", neighbour)], controller);
    (rate(&series, 0, SETTLED), rate(&series, 1, SETTLED))
}

fn with(one: Client, neighbour: u32, reserved: f64) -> (f64, f64) {
    let rates = rates(one, neighbour, &mut Daemon::new(&[(0, reserved as u64)]));
    println!("{reserved:.0} reserved: {:.0} and {:.0}", rates.0, rates.1);
    rates
}

#[test]
fn a_class_has_what_is_reserved_though_the_array_answers_all_within_its_threshold() {
    for (own, neighbour) in [(16, 16), (8, 24), (4, 28), (24, 8), (2, 8), (32, 64)] {
        let one = || client("reserved", own);
        let (before, beside) = rates(one(), neighbour, &mut Uncontrolled);
        let all = before + beside;
        // What it can have at all, in the time that the array needs for a request.
        let alone = rates(one(), 0, &mut Uncontrolled).0;
        for part in [0.5, 0.7] {
            let reserved = part * alone.min(all);
            let (has, other) = with(one(), neighbour, reserved);
            let what = format!("{own} beside {neighbour}: {before:.0} and {beside:.0}");
            assert!(has > 0.95 * reserved.min(all), "{what}: {has:.0} of {reserved:.0}");
            // Few requests at a time are all that a class with few has to be among.
            assert!(has + other > 0.35 * all, "{what}: {has:.0} and {other:.0}");
        }
    }
}

#[test]
fn a_class_that_asks_for_less_than_is_reserved_is_in_nobodys_way() {
    for rate in [50.0, 200.0, 400.0] {
        let (before, beside) = rates(open(rate), 24, &mut Uncontrolled);
        let (has, other) = with(open(rate), 24, 1000.0);
        assert!(has > 0.99 * before, "{has:.0} of {before:.0}");
        assert!(other > 0.95 * beside, "{rate}: {other:.0} of {beside:.0}");
    }
}

#[test]
fn more_than_can_be_had_is_no_reason_to_stop_the_others() {
    for own in [4, 8, 16] {
        let one = || client("reserved", own);
        let (before, beside) = rates(one(), 32, &mut Uncontrolled);
        let (has, other) = with(one(), 32, 1200.0);
        let what =
            format!("{own}: {before:.0} and {beside:.0}, then {has:.0} and {other:.0}");
        println!("{what}");
        assert!(has > 1.2 * before && other > 0.0, "{what}");
    }
}

#[test]
fn two_classes_that_are_short_have_more_than_before() {
    let clients = || vec![client("a", 4), client("b", 4), client("neighbour", 24)];
    let before = world(clients(), &mut Uncontrolled);
    let after = world(clients(), &mut Daemon::new(&[(0, 300), (1, 300)]));
    for one in [0, 1] {
        let (had, has) = (rate(&before, one, SETTLED), rate(&after, one, SETTLED));
        println!("{had:.0}, then {has:.0} of 300");
        assert!(has > 0.95 * 300.0, "{has:.0} of 300, {had:.0} before");
    }
}

#[test]
fn who_becomes_busier_than_before_is_not_pressed_for_ever() {
    // 100 more a second each minute, up to 400.
    let steps = (0..4).map(|at| open(100.0).starting(Nanos::from_secs(60 * at)));
    let neighbour = || client("neighbour", 24);
    let clients = || steps.clone().chain([neighbour()]).collect::<Vec<_>>();
    let mut daemon = Daemon::new(&(0..4).map(|at| (at, 250)).collect::<Vec<_>>());
    let late = Nanos::from_secs(300);
    let before = rate(&world(clients(), &mut Uncontrolled), 4, late);
    let after = rate(&world(clients(), &mut daemon), 4, late);
    println!("the neighbour: {before:.0}, then {after:.0}");
    assert!(after > 0.9 * before, "{after:.0} of {before:.0}");
}

#[test]
fn who_comes_while_nothing_is_short_of_anything_does_not_wait_for_minutes() {
    let comes = Nanos::from_secs(100);
    // It has less than is reserved all the time, as it does not ask for more.
    let clients = vec![client("reserved", 4), client("neighbour", 28).starting(comes)];
    let series = world(clients, &mut Daemon::new(&[(0, 700)]));
    let alone = series.clients[0].between(SETTLED, comes).iops();
    let soon = comes.plus(Nanos::from_secs(10));
    let beside = series.clients[0].between(soon, soon.plus(Nanos::from_secs(40))).iops();
    println!("alone {alone:.0}, beside {beside:.0}");
    assert!(beside > 0.6 * alone, "{beside:.0} of {alone:.0}");
}

/// Another reservation, from the hundredth second on.
struct Changed(Daemon, u64);

impl Controller for Changed {
    fn step(&mut self, now: Nanos, seen: Seen<'_>) -> Orders {
        if now >= Nanos::from_secs(100) {
            self.0.reserved[0].1 = self.1;
        }
        self.0.step(now, seen)
    }
}

#[test]
fn a_reservation_that_is_changed_a_little_is_not_lost_meanwhile() {
    for then in [580, 620] {
        let clients = vec![client("reserved", 8), client("neighbour", 24)];
        let mut changed = Changed(Daemon::new(&[(0, 600)]), then);
        let series = world(clients, &mut changed);
        let [from, to] = [100, 110].map(Nanos::from_secs);
        let has = series.clients[0].between(from, to).iops();
        println!("{then}: {has:.0}");
        assert!(has > 0.95 * then as f64, "{has:.0} of {then}");
    }
}

/// A limit in the other unit, far below what is reserved, until the hundredth second.
struct Limited(Daemon);

impl Controller for Limited {
    fn step(&mut self, now: Nanos, seen: Seen<'_>) -> Orders {
        let mut terms = terms(1000);
        if now < Nanos::from_secs(100) {
            terms.limit.bytes = Some(250 * 8192);
        }
        let own = &seen.clients[0];
        let reserved = Reserved::of(ClassId(1), &terms, own, own);
        let reserved: Vec<_> = reserved.into_iter().collect();
        let window = self.0.window.step(&seen.arrays[0], threshold(None), &reserved);
        self.0.said.extend(self.0.window.attained());
        Orders { terms: vec![(0, terms)], windows: vec![(0, Some(window))] }
    }
}

#[test]
fn who_was_limited_and_then_asks_for_more_than_can_be_had_lacks_it() {
    let clients = vec![client("limited", 8), client("neighbour", 64)];
    let mut limited = Limited(Daemon::new(&[]));
    world(clients, &mut limited);
    let said = &limited.0.said;
    let count = |from: usize, to: usize, state: Attainment| {
        said[from..to].iter().filter(|one| one.state == state).count()
    };
    let lacking = count(110, 400, Attainment::Lacking);
    println!("{lacking} s of 290 lacking, of {} said", said.len());
    assert!(count(10, 90, Attainment::Limited) > 75);
    assert!(lacking > 260, "{lacking} s");
}

#[test]
fn a_reservation_that_is_lowered_gives_back_what_is_more_than_it() {
    let clients = || vec![client("reserved", 8), client("neighbour", 64)];
    let fresh = world(clients(), &mut Daemon::new(&[(0, 300)]));
    let lowered = world(clients(), &mut Changed(Daemon::new(&[(0, 1000)]), 300));
    let all = |series: &Series| {
        let [from, to] = [115, 145].map(Nanos::from_secs);
        [0, 1].map(|one| series.clients[one].between(from, to).iops())
    };
    let (fresh, lowered) = (all(&fresh), all(&lowered));
    println!("{fresh:.0?} from the start, {lowered:.0?} lowered");
    assert!(lowered[0] > 0.95 * 300.0, "{lowered:.0?}");
    assert!(lowered[1] > 0.9 * fresh[1], "{lowered:.0?}, and {fresh:.0?}");
}

#[test]
fn a_class_that_asks_now_for_less_and_now_for_more_is_in_nobodys_way() {
    // Around what is reserved, and often above it; nothing but itself makes it less.
    for (reserved, swing, every) in [(400, 0.1, 8), (400, 0.2, 20), (450, 0.4, 60)] {
        let period = Nanos::from_secs(every);
        let load = Load::Sine { mean: 400.0, swing, period };
        let one = || Client::new("reserved", load, random(8192, 100));
        let (before, beside) = rates(one(), 16, &mut Uncontrolled);
        let (has, other) = with(one(), 16, f64::from(reserved));
        let what = format!("{reserved}, {swing}, {every} s");
        assert!(has > 0.97 * before, "{what}: {has:.0} of {before:.0}");
        assert!(other > 0.9 * beside, "{what}: {other:.0} of {beside:.0}");
    }
}

/// What is said of the first of these clients, which has a reservation: in how many of the
/// last five minutes' seconds, and what it has in the end.
fn said(clients: Vec<Client>, reserved: u64, state: Attainment) -> (usize, f64) {
    let mut daemon = Daemon::new(&[(0, reserved)]);
    let series = world(clients, &mut daemon);
    let late = daemon.said.len() - 300;
    let count = daemon.said[late..].iter().filter(|one| one.state == state).count();
    let (has, did) = (daemon.said.last().expect("steps").has, &series.clients[0]);
    let did = did.between(Nanos::from_secs(590), Nanos::MAX).iops();
    println!("{reserved}: {count} of 300 s {state:?}, {has:.0}, and did {did:.0}");
    assert!((has - did).abs() <= 0.1 * did, "{has:.0} is shown of {did:.0}");
    (count, has)
}

#[test]
fn how_far_a_reservation_is_attained_is_said_and_why_no_further() {
    let beside = |one| vec![one, client("neighbour", 24)];
    let (kept, has) = said(beside(client("one", 8)), 600, Attainment::Kept);
    assert!(kept > 270 && has > 570.0, "{kept} s, {has:.0}");
    // One request at a time, of which the array does not do so many.
    let (lacking, has) = said(beside(client("one", 1)), 600, Attainment::Lacking);
    assert!(lacking > 270 && has < 300.0, "{lacking} s, {has:.0}");
    for rate in [50.0, 200.0, 400.0] {
        let (sated, has) = said(beside(open(rate)), 1000, Attainment::Sated);
        assert!(sated > 270 && has > 0.9 * rate, "{rate}: {sated} s, {has:.0}");
    }
    let (alone, _) = said(vec![client("one", 1)], 600, Attainment::Alone);
    assert!(alone > 290, "{alone} s");
    let late = client("one", 8).starting(Nanos::from_secs(3600));
    let (idle, has) = said(beside(late), 600, Attainment::Idle);
    assert!(idle == 300 && has == 0.0, "{idle} s, {has:.0}");
}
