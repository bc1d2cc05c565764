//! Storage DRS, by what it promises: what should move and why, what is refused, and that
//! it comes to rest.

mod choosing;
mod inventories;
mod rules;

use sterna_core::Nanos;
use sterna_core::measure::{Line, LqFit};
use sterna_placement::storage::{
    Advice, Because, Bounds, Cooldown, Datastore, Disk, Inventory, Over, PastMove,
    Pinned, Recommended, Refused, Rule, Strength, Why, Wish, advise, advise_where,
};

const GIB: u64 = 1 << 30;

/// A device of which a request alone takes so many milliseconds, and each other one under
/// way adds so many.
fn line(unloaded: f64, slope: f64) -> LqFit {
    LqFit::Line(Line {
        unloaded: Nanos((unloaded * 1e6) as u64),
        slope: slope * 1e6,
        slope_error: 0.0,
        points: 60,
        seen: (1.0, 64.0),
    })
}

/// A datastore of 100 GiB of which so many are taken, and where nobody asks for anything.
fn datastore(taken: u64, device: LqFit) -> Datastore {
    Datastore {
        capacity: 100 * GIB,
        free: (100 - taken) * GIB,
        shared_room: None,
        latency: None,
        mean: None,
        device,
        settling: false,
        takes_disks: true,
    }
}

/// The same, with so many milliseconds at the 95th percentile.
fn busy(taken: u64, device: LqFit, millis: u64) -> Datastore {
    Datastore { latency: Some(Nanos::from_millis(millis)), ..datastore(taken, device) }
}

/// A disk that takes so many GiB and asks for nothing.
fn idle(datastore: usize, taken: u64) -> Disk {
    let bytes = taken * GIB;
    Disk {
        datastore,
        taken: bytes,
        needs: bytes,
        promised: 0,
        outstanding: 0.0,
        iops: 0.0,
        pinned: None,
    }
}

/// A disk of 5 GiB with so many requests under way, and so many per second.
fn at_work(datastore: usize, outstanding: f64, iops: f64) -> Disk {
    Disk { outstanding, iops, ..idle(datastore, 5) }
}

fn ask(datastores: &[Datastore], disks: &[Disk]) -> Advice {
    with_rules(datastores, disks, &[])
}

fn inventory(datastores: &[Datastore], disks: &[Disk]) -> Inventory {
    let (datastores, disks) = (datastores.into(), disks.into());
    Inventory { datastores, disks, rules: Vec::new() }
}

fn with_rules(datastores: &[Datastore], disks: &[Disk], rules: &[Rule]) -> Advice {
    let (datastores, disks, rules) = (datastores.into(), disks.into(), rules.into());
    advise(&Inventory { datastores, disks, rules }, &Bounds::default())
}

fn rule(wish: Wish, strength: Strength, disks: &[usize]) -> Rule {
    Rule { wish, strength, disks: disks.into() }
}

/// Which disks should go where.
fn moves(advice: &Advice) -> Vec<(usize, usize)> {
    advice.moves.iter().map(|one| (one.disk, one.to)).collect()
}

/// Why the only disk that was refused stays.
fn refusal(advice: &Advice) -> Because {
    assert_eq!((advice.moves.len(), advice.refused.len()), (0, 1), "{advice:?}");
    advice.refused[0].because
}

const NO_TRAFFIC: LqFit = LqFit::TooFew { points: 0 };

#[test]
fn nothing_moves_where_all_is_within_bounds() {
    let fast = line(0.5, 0.1);
    let stores = [busy(80, fast, 15), datastore(0, fast)];
    let advice = ask(&stores, &[at_work(0, 8.0, 5000.0), idle(0, 60)]);
    assert_eq!(advice, Advice::default());
}

#[test]
fn of_a_full_datastore_the_least_that_is_enough_is_moved() {
    let stores = [datastore(90, NO_TRAFFIC), datastore(10, NO_TRAFFIC)];
    let disks = [idle(0, 40), idle(0, 12), idle(0, 9), idle(0, 2)];
    let advice = ask(&stores, &disks);
    // 10 GiB are too much.
    assert_eq!(moves(&advice), [(2, 1), (3, 1)], "{advice:#?}");
    let first = advice.moves[0];
    assert_eq!((first.why, first.from, first.priority), (Why::Over(Over::Space), 0, 3));
    assert_eq!((first.before[0].taken, first.after[0].taken), (0.90, 0.81));
    assert!((advice.moves[1].after[0].taken - 0.79).abs() < 1e-9);
    assert_eq!(advice.refused, []);
}

#[test]
fn between_82_and_79_percent_nothing_moves() {
    let stores = [datastore(82, NO_TRAFFIC), datastore(79, NO_TRAFFIC)];
    let advice = ask(&stores, &[idle(0, 1)]);
    assert_eq!(refusal(&advice), Because::AsFull(0.79));
    let stores = [datastore(82, NO_TRAFFIC), datastore(76, NO_TRAFFIC)];
    assert_eq!(moves(&ask(&stores, &[idle(0, 1)])), [(0, 1)]);
}

#[test]
fn no_datastore_is_filled_beyond_its_bound() {
    let stores = [datastore(95, NO_TRAFFIC), datastore(70, NO_TRAFFIC)];
    let advice = ask(&stores, &[idle(0, 20)]);
    assert_eq!(refusal(&advice), Because::Full(0.90));
    // A thick disk needs all of its size there.
    let thick = Disk { needs: 11 * GIB, ..idle(0, 1) };
    assert!(matches!(refusal(&ask(&stores, &[thick])), Because::Full(_)));
}

#[test]
fn load_leaves_a_slow_datastore_for_one_that_can_take_it() {
    let slow = line(5.0, 1.0);
    let stores = [busy(50, slow, 40), datastore(50, line(0.5, 0.05))];
    let disks = [at_work(0, 16.0, 640.0), at_work(0, 4.0, 160.0), idle(0, 5)];
    let advice = ask(&stores, &disks);
    assert_eq!(moves(&advice), [(0, 1)], "{advice:#?}");
    let one = &advice.moves[0];
    assert_eq!((one.why, one.priority), (Why::Over(Over::Latency), 2));
    let millis = |span: Option<Nanos>| span.expect("known").as_secs_f64() * 1e3;
    // By requests under way it takes 25 ms on average, and 9 ms with four of them.
    assert!((14.3..14.5).contains(&millis(one.after[0].latency)), "{one:#?}");
    assert!((2.0..2.1).contains(&millis(one.after[1].latency)), "{one:#?}");
}

#[test]
fn who_keeps_his_rate_does_not_go_where_that_is_too_much() {
    let stores = [busy(50, line(1.0, 0.1), 20), datastore(50, line(5.0, 2.0))];
    // 501 requests a second are more than it ever does; two under way would be 9 ms.
    let advice = ask(&stores, &[at_work(0, 2.0, 501.0)]);
    assert!(matches!(refusal(&advice), Because::Slow(_)), "{advice:?}");
}

#[test]
fn nobody_is_pushed_over_the_bound() {
    let device = line(1.0, 1.0);
    // 13 ms at 8 under way; with 8 more it would be about 24 ms.
    let stores = [busy(50, device, 60), busy(50, device, 13)];
    let disks = [at_work(0, 8.0, 200.0), at_work(0, 30.0, 700.0), at_work(1, 8.0, 300.0)];
    let advice = ask(&stores, &disks);
    assert_eq!(advice.moves, [], "{advice:#?}");
    assert_eq!(advice.refused.len(), 2);
    assert!(advice.refused.iter().all(|it| matches!(it.because, Because::Slow(_))));
}

#[test]
fn nobody_who_is_busy_goes_where_nothing_is_known() {
    let known = line(1.0, 1.0);
    let worker = at_work(0, 8.0, 200.0);
    let unknown = [busy(50, known, 60), datastore(50, NO_TRAFFIC)];
    assert_eq!(refusal(&ask(&unknown, &[worker])), Because::DestinationUnknown);
    let full = [busy(90, known, 10), datastore(50, NO_TRAFFIC)];
    assert_eq!(refusal(&ask(&full, &[worker])), Because::DestinationUnknown);
    let rests = Disk { outstanding: 0.0, iops: 0.0, ..worker };
    assert_eq!(moves(&ask(&full, &[rests])), [(0, 1)]);
    // A flat line ends where nobody has looked.
    let flat = LqFit::Flat { seen: (0.0, 4.0), latency: Nanos::from_millis(1) };
    let flat = [busy(50, known, 60), datastore(50, flat)];
    assert_eq!(refusal(&ask(&flat, &[worker])), Because::DestinationUnknown);
    assert_eq!(moves(&ask(&flat, &[at_work(0, 3.0, 100.0)])), [(0, 1)]);
}

#[test]
fn one_disk_at_a_time_leaves_a_device_of_which_nothing_is_known() {
    let stores = [busy(50, NO_TRAFFIC, 60), datastore(50, line(1.0, 0.1))];
    let advice = ask(&stores, &[at_work(0, 8.0, 200.0), at_work(0, 4.0, 100.0)]);
    assert_eq!(moves(&advice), [(0, 1)], "{advice:#?}");
    let one = &advice.moves[0];
    assert_eq!(
        one.after[0].latency, one.before[0].latency,
        "no slower is all that is sure"
    );
    assert_eq!(advice.refused[0].because, Because::SourceUnknown);
}

#[test]
fn a_device_that_answers_and_has_no_line_is_taken_to_serve_one_at_a_time() {
    let slow = busy(50, line(5.0, 1.0), 40);
    // 2 ms for half a request under way; 4 more make 5.5 of 1.5 parts of that.
    let quick =
        Datastore { mean: Some(Nanos::from_millis(2)), ..busy(50, NO_TRAFFIC, 3) };
    let disks = [at_work(0, 4.0, 100.0), at_work(1, 0.5, 250.0), at_work(0, 16.0, 600.0)];
    let advice = ask(&[slow, quick], &disks);
    assert_eq!(moves(&advice), [(0, 1)], "{advice:#?}");
    let after = advice.moves[0].after[1].latency.expect("known");
    assert!((10_990_000..=11_010_000).contains(&after.0), "{advice:#?}");
    // When load leaves such a device, nothing is promised.
    let source =
        Datastore { mean: Some(Nanos::from_millis(20)), ..busy(50, NO_TRAFFIC, 40) };
    let advice =
        ask(&[source, datastore(50, line(0.5, 0.05))], &[at_work(0, 4.0, 100.0)]);
    let one = &advice.moves[0];
    assert_eq!(one.after[0].latency, one.before[0].latency);
}

#[test]
fn disks_that_move_or_have_moved_stay() {
    let stores = [datastore(90, NO_TRAFFIC), datastore(10, NO_TRAFFIC)];
    let rest = Cooldown::of(&[PastMove { ago: Nanos::from_secs(60), ours: true }]);
    let moved = Pinned::Moved(rest.expect("a minute is no rest"));
    for pinned in [Pinned::Moves, moved, Pinned::NotServed] {
        let disk = Disk { pinned: Some(pinned), ..idle(0, 12) };
        let advice = ask(&stores, &[disk]);
        assert_eq!(refusal(&advice), Because::Pinned(pinned));
        assert_eq!(advice.refused[0].to, None);
    }
}

#[test]
fn where_disks_come_and_go_response_times_are_not_judged() {
    let device = line(1.0, 1.0);
    for at in [0, 1] {
        let mut stores = [busy(50, device, 60), datastore(50, device)];
        stores[at].settling = true;
        let advice = ask(&stores, &[at_work(0, 8.0, 200.0), idle(0, 5)]);
        let because: Vec<Because> = advice.refused.iter().map(|it| it.because).collect();
        assert_eq!((advice.moves.len(), because.len()), (0, 2));
        assert_eq!(because, [Because::Settling, Because::Idle]);
    }
}

#[test]
fn a_device_or_a_datastore_that_is_away_takes_no_disks() {
    let full = datastore(90, NO_TRAFFIC);
    let device = Datastore { takes_disks: false, ..datastore(0, NO_TRAFFIC) };
    assert_eq!(refusal(&ask(&[full, device], &[idle(0, 12)])), Because::Closed);
    let away = Datastore { capacity: 0, free: 0, ..datastore(0, NO_TRAFFIC) };
    assert_eq!(refusal(&ask(&[full, away], &[idle(0, 12)])), Because::Closed);
    let alone = ask(&[full], &[idle(0, 12)]);
    assert_eq!((refusal(&alone), alone.refused[0].to), (Because::Closed, None));
}

#[test]
fn no_more_is_recommended_than_was_asked_for() {
    let stores = [datastore(95, NO_TRAFFIC), datastore(10, NO_TRAFFIC)];
    let disks: Vec<Disk> = (0..40).map(|_| idle(0, 1)).collect();
    let bounds = Bounds { moves: 3, ..Bounds::default() };
    let rules = Vec::new();
    let inventory = Inventory { datastores: stores.into(), disks, rules };
    assert_eq!(advise(&inventory, &bounds).moves.len(), 3);
}

#[test]
fn only_datastores_that_are_asked_about_are_relieved() {
    let stores =
        [datastore(90, NO_TRAFFIC), datastore(95, NO_TRAFFIC), datastore(5, NO_TRAFFIC)];
    let (datastores, rules) = (stores.into(), Vec::new());
    let disks = vec![idle(0, 12), idle(1, 16)];
    let inventory = Inventory { datastores, disks, rules };
    let advice = advise_where(&inventory, &Bounds::default(), |at, _| at == 0);
    assert_eq!((moves(&advice), advice.refused.len()), (vec![(0, 2)], 0), "{advice:#?}");
}

#[test]
fn moves_begin_a_few_at_once_and_none_where_another_must_leave_first() {
    let stores = [datastore(95, NO_TRAFFIC), datastore(30, NO_TRAFFIC)];
    let disks: Vec<Disk> = (0..8).map(|_| idle(0, 4)).collect();
    let advice = ask(&stores, &disks);
    assert_eq!(advice.moves.len(), 4);
    let there = inventory(&stores, &disks);
    let at_once = |advice: &Advice, slots, left: &[usize]| {
        advice.at_once(&there, slots, left).len()
    };
    assert_eq!(at_once(&advice, 2, &[]), 2);
    assert_eq!(at_once(&advice, 2, &[1]), 0, "a disk has to leave it first");
    assert_eq!(at_once(&advice, 0, &[]), 0);
    // What must be together goes together, alone if it has to.
    let together = rule(Wish::Together, Strength::Must, &[0, 1, 2, 3]);
    let advice = with_rules(&stores, &disks[..4], &[together]);
    assert_eq!((at_once(&advice, 2, &[]), at_once(&advice, 2, &[0])), (4, 0));
}

#[test]
fn what_shares_a_room_waits_for_what_leaves_it() {
    let shared = Datastore { shared_room: Some(7), ..datastore(95, NO_TRAFFIC) };
    let stores = [shared, shared, datastore(99, NO_TRAFFIC), datastore(10, NO_TRAFFIC)];
    let disks = [idle(0, 30), idle(2, 12)];
    let advice = ask(&stores, &disks);
    // As it would be if the second one were to have the room that the first one leaves.
    let first = advice.moves.iter().find(|it| it.disk == 0).expect("it should go");
    let first = Recommended { step: 0, ..*first };
    let second = Recommended { disk: 1, from: 2, to: 1, step: 1, ..first };
    let advice = Advice { moves: vec![first, second], ..advice };
    let there = inventory(&stores, &disks);
    assert_eq!(advice.at_once(&there, 4, &[]).len(), 1);
    assert_eq!(advice.at_once(&there, 4, &[0]).len(), 1, "the first goes elsewhere");
    assert_eq!(advice.at_once(&there, 4, &[3]).len(), 0);
}

#[test]
fn what_a_larger_disk_makes_needless_stays() {
    // 15 GiB have to leave. The small one would be chosen first, as it brings more for each
    // byte; with the large one gone it need not go.
    let stores = [datastore(95, NO_TRAFFIC), datastore(30, NO_TRAFFIC)];
    let advice = ask(&stores, &[idle(0, 1), idle(0, 16)]);
    assert_eq!(moves(&advice), [(1, 1)], "{advice:#?}");
    assert_eq!((advice.moves[0].step, advice.refused.len()), (0, 0));
    assert_eq!(advice.moves[0].before[0].taken, 0.95, "as if the other had never moved");
    // Where both are needed, both go.
    let advice = ask(&stores, &[idle(0, 1), idle(0, 14)]);
    assert_eq!(advice.moves.len(), 2, "{advice:#?}");
}

#[test]
fn room_that_two_datastores_share_is_freed_and_taken_once() {
    // Both are the one file system that is too full; 5 GiB have to leave it.
    let shared = Datastore { shared_room: Some(7), ..datastore(85, NO_TRAFFIC) };
    let stores = [shared, shared, datastore(30, NO_TRAFFIC)];
    let advice = ask(&stores, &[idle(0, 5), idle(1, 5)]);
    assert_eq!(advice.moves.len(), 1, "{advice:#?}");
    assert_eq!(advice.refused, [], "both are within the bound then");
    // And the other way round: what goes to the one is gone for the other.
    let shared = Datastore { shared_room: Some(7), ..datastore(70, NO_TRAFFIC) };
    let stores = [datastore(100, NO_TRAFFIC), shared, shared];
    let advice = ask(&stores, &[idle(0, 8), idle(0, 8), idle(0, 8)]);
    assert_eq!(advice.moves.len(), 1, "{advice:#?}");
    let full = |it: &Refused| matches!(it.because, Because::Full(taken) if taken > 0.85);
    assert!(advice.refused.len() == 2 && advice.refused.iter().all(full), "{advice:#?}");
}

#[test]
fn a_quiet_disk_is_not_sent_where_a_busy_one_follows_it() {
    // Found by the property below: the quiet one left a full datastore, then the busy one
    // did, and made the other datastore the slower of the two.
    let stores = [busy(95, line(2.8, 0.54), 66), busy(48, line(6.4, 0.25), 23)];
    let quiet = Disk { outstanding: 0.05, iops: 0.0, ..idle(0, 1) };
    let works = Disk { outstanding: 11.7, iops: 205.0, ..idle(0, 16) };
    let advice = ask(&stores, &[quiet, works]);
    assert_eq!(moves(&advice), [(1, 1)], "{advice:#?}");
}

/// 200 datastores of 20 TiB with 250 disks each, a tenth of them too full, and a tenth too
/// slow.
fn estate() -> Inventory {
    let (mut datastores, mut disks) = (Vec::new(), Vec::new());
    for at in 0..200_usize {
        let device = line(1.0, 0.05);
        let (taken, latency) = match at % 10 {
            0 => (85, 5),
            1 => (50, 40),
            _ => (60 + at as u64 % 15, 5),
        };
        let one = busy(taken, device, latency);
        let (capacity, free) = (one.capacity * 200, one.free * 200);
        datastores.push(Datastore { capacity, free, ..one });
        for disk in 0..250_u64 {
            let works = disk % 5 == 0;
            let outstanding = if works { 0.2 + (disk % 7) as f64 / 10.0 } else { 0.0 };
            let iops = outstanding * 300.0;
            disks.push(Disk { outstanding, iops, ..idle(at, 20 + disk % 60) });
        }
    }
    // On each datastore there are a database and its log that belong together, and a
    // disk that has a copy on the next.
    let rules = (0..200).flat_map(|at| {
        let copy = 250 * ((at + 1) % 200) + 3;
        [
            rule(Wish::Together, Strength::Must, &[250 * at, 250 * at + 1]),
            rule(Wish::Apart, Strength::Must, &[250 * at + 2, copy]),
        ]
    });
    Inventory { datastores, disks, rules: rules.collect() }
}

#[test]
#[ignore = "a measurement"]
fn how_long_advice_for_50_000_disks_takes() {
    let inventory = estate();
    for moves in [10, 100, 1000] {
        let bounds = Bounds { moves, ..Bounds::default() };
        let began = std::time::Instant::now();
        let advice = advise(&inventory, &bounds);
        let took = began.elapsed();
        println!("{} moves of {moves}: {took:?}", advice.moves.len());
        assert!(!advice.moves.is_empty());
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel's view");
    println!(
        "{}",
        status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default()
    );
}
