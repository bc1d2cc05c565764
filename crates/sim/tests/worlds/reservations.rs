//! Reservations where the array is not slow by all that it is given, so that it alone
//! would say who comes first.

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::{
    Attained, Attainment, ClassId, Rate, Reserved, Terms, WindowControl, threshold,
};
use sterna_sim::{
    Client, Controller, Load, Orders, Plan, Seen, Series, Uncontrolled, World,
};

use crate::{closed, plan, random};

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

/// A device that takes so long for a request, whatever else is there, for a second in
/// which these were there.
fn flat(millis: u64, there: f64) -> Window {
    let (span, service) = (Nanos::from_secs(1), Nanos::from_millis(millis));
    let operations = (there * 1000.0 / millis as f64) as u64;
    let mut window = Window { span, ..Window::default() };
    window.read.operations = operations;
    window.read.service = Nanos(service.0 * operations);
    window
}

#[test]
fn a_limit_in_the_other_unit_is_no_reason_to_give_up_what_is_reserved_until_it_is_reached()
 {
    let mut own = flat(10, 4.0);
    own.read.bytes = 8192 * own.read.operations;
    let fewest = |bytes| {
        let mut terms = terms(1000);
        terms.limit.bytes = Some(bytes);
        let mut control = WindowControl::default();
        let fewest = (0..30).map(|_| {
            let reserved = Reserved::of(ClassId(1), &terms, &own, &own);
            let reserved: Vec<_> = reserved.into_iter().collect();
            control.step(&flat(10, 28.0), threshold(None), &reserved)
        });
        fewest.min().expect("steps")
    };
    let (high, reached) = (fewest(4 * own.read.bytes), fewest(own.read.bytes));
    assert!(high < 28 && reached >= 28, "{high} and {reached} of 28 under way");
}

#[test]
fn a_device_that_is_slow_by_itself_is_not_choked_by_a_trial() {
    let mut control = WindowControl::default();
    let mut done = 0.0;
    for second in 0..600 {
        let there = f64::from(control.window()).min(200.0);
        let own = flat(40, there.min(8.0));
        let reserved = Reserved::of(ClassId(1), &terms(1000), &own, &own);
        let seen = flat(40, there);
        control.step(&seen, threshold(None), &reserved.into_iter().collect::<Vec<_>>());
        done += if second < 15 { 0.0 } else { seen.iops() / 585.0 };
    }
    println!("{done:.0} of 5000");
    assert!(done > 0.8 * 5000.0, "{done:.0} of 5000");
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

/// A second in which so many requests were answered, and so many were under way on
/// average, all of them at the device.
fn second(rate: u64, under_way: u64) -> Window {
    let mut window = Window { span: Nanos::from_secs(1), ..Window::default() };
    let there = Nanos::from_secs(under_way);
    window.read.operations = rate;
    (window.read.response, window.read.service) = (there, there);
    window
}

/// Steps with a class under these terms that did so much, beside others with so many at
/// the device that it does not help to slow them; gives the windows.
fn steps(
    control: &mut WindowControl,
    count: u32,
    terms: &Terms,
    own: &Window,
) -> Vec<u32> {
    let step = |_| {
        let reserved = Reserved::of(ClassId(1), terms, own, own);
        let mut all = second(1000, 40);
        all.join(own);
        let reserved: Vec<_> = reserved.into_iter().collect();
        control.step(&all, threshold(Some(Nanos::from_millis(30))), &reserved)
    };
    (0..count).map(step).collect()
}

fn state(control: &WindowControl) -> Attainment {
    control.attained().next().expect("a class").state
}

#[test]
fn who_has_less_and_fewer_under_way_than_when_it_was_tried_is_tried_again() {
    let (mut control, terms) = (WindowControl::default(), terms(1000));
    steps(&mut control, 30, &terms, &second(500, 20));
    assert_eq!(state(&control), Attainment::Lacking);
    let own = second(100, 14);
    steps(&mut control, 5, &terms, &own);
    assert_eq!(state(&control), Attainment::Sated);
    let said = (0..130).map(|_| {
        steps(&mut control, 1, &terms, &own);
        state(&control)
    });
    assert!(said.filter(|it| *it == Attainment::Lacking).count() > 5);
}

#[test]
fn a_second_without_answers_does_not_end_a_trial() {
    let (mut control, terms) = (WindowControl::default(), terms(1000));
    let own = second(500, 8);
    let before = steps(&mut control, 2, &terms, &own);
    // What was answered then had waited for long.
    steps(&mut control, 1, &terms, &second(500, 100));
    let after = steps(&mut control, 8, &terms, &own);
    assert_eq!(after.iter().min(), Some(&8), "{before:?}, then {after:?}");
}

#[test]
fn what_waits_for_a_classs_own_queue_depth_is_no_reason_not_to_slow_others() {
    let mut control = WindowControl::default();
    let terms = Terms { depth: Some(4), ..terms(1000) };
    // 64 are under way, four of them at the device.
    let mut own = second(500, 64);
    own.read.service = Nanos::from_secs(4);
    let windows = steps(&mut control, 12, &terms, &own);
    assert_eq!(windows.iter().min(), Some(&4), "{windows:?}");
}
