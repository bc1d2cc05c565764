//! What the scheduler keeps, for whatever mix of classes, schedulers and clients.

use std::sync::Arc;

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::qos::{
    Class, ClassId, Cost, Goal, Limit, Pool, Rate, SHARES, Scheduler, Terms,
};

use super::world::{Client, World, busy};

const MS: Nanos = Nanos::from_millis(1);

fn limited(goal: Goal) -> Terms {
    let limit = match goal {
        Goal::Bytes(rate) => Limit { bytes: Some(rate), ..Limit::default() },
        Goal::Requests(rate) => Limit { requests: Some(rate), ..Limit::default() },
        Goal::Response(span) => Limit { response: Some(span), ..Limit::default() },
    };
    Terms { limit, ..Terms::default() }
}

fn alone(terms: Terms) -> World {
    World::new(None, MS, 1, &[(1, terms)], &[Client { outstanding: 8, ..busy(1) }])
}

#[test]
fn a_limit_in_requests_holds_for_the_class_as_a_whole() {
    let classes = [(1, limited(Goal::Requests(100)))];
    let other = Client { scheduler: 1, ..busy(1) };
    let mut world = World::new(None, MS, 2, &classes, &[busy(1), other]);
    world.run(Nanos::from_secs(1));
    let rates = world.run(Nanos::from_secs(10));
    let (first, second) = (rates[0].0, rates[1].0);
    assert!((first + second - 100.0).abs() < 1.0, "{rates:?}");
    assert!((first - second).abs() < 2.0, "in turns: {rates:?}");
}

#[test]
fn who_leaves_gives_back_what_it_took_from_a_limit() {
    let (pool, class) = (Arc::new(Pool::default()), Arc::new(Class::default()));
    class.set_terms(Nanos(0), &limited(Goal::Requests(1)));
    let mut scheduler = Scheduler::new(Arc::clone(&pool), 0);
    let flow = scheduler.add_flow(&pool.stake(ClassId(1), &class), SHARES);
    for item in 0..5 {
        let cost = Cost { bytes: 4096 };
        assert!(scheduler.arrive(Nanos(0), flow, cost, item).is_none());
    }
    let mut next = |now: Nanos, gone: &[i32]| {
        let started = scheduler.next(now).map(|(item, _)| item);
        scheduler.take_waiting(flow, |item| gone.contains(item));
        started
    };
    assert_eq!(next(Nanos(0), &[]), Some(0));
    // Each has its turn when the one before it leaves.
    for gone in [1, 2, 3] {
        assert_eq!(next(Nanos(0), &[gone]), None);
    }
    assert_eq!(next(Nanos(0), &[]), None);
    assert_eq!(next(Nanos::from_secs(1), &[]), Some(4));
}

#[test]
fn a_limit_in_bytes_counts_bytes() {
    let mut world = alone(limited(Goal::Bytes(4096 * 50)));
    world.run(Nanos::from_secs(1));
    let rate = world.run(Nanos::from_secs(10))[0].0;
    assert!((rate - 50.0).abs() < 1.0, "{rate}");
}

#[test]
fn a_limit_in_bytes_is_shared_by_bytes() {
    // One asks for 1 MiB sixteen times at once, the other for 4 KiB, one after the other:
    // it has half if it asks for so much, which is a request in 2 ms and one in 1 ms.
    let rate = 4 << 20;
    let classes = [(1, limited(Goal::Bytes(rate)))];
    for scheduler in [0, 1] {
        let large = Client { outstanding: 16, bytes: 1 << 20, ..busy(1) };
        let small = Client { outstanding: 1, scheduler, ..busy(1) };
        let mut world = World::new(None, MS, 2, &classes, &[large, small]);
        world.run(Nanos::from_secs(4));
        let rates = world.run(Nanos::from_secs(60));
        let (large, small) = (rates[0].0 * 1048576.0, rates[1].0 * 4096.0);
        assert!(rates[1].0 > 250.0, "thread {scheduler}: {rates:?}");
        assert!(large > 2.0 * 1048576.0, "it has what the other leaves: {rates:?}");
        let sum = (large + small) / rate as f64;
        assert!((0.97..1.03).contains(&sum), "thread {scheduler}: {sum}, {rates:?}");
    }
}

#[test]
fn a_disk_that_comes_and_goes_leaves_the_others_their_limit_in_bytes() {
    let rate = 4 << 20;
    let classes = [(1, limited(Goal::Bytes(rate)))];
    let large = Client { outstanding: 16, bytes: 1 << 20, ..busy(1) };
    let small = Client { outstanding: 1, bytes: 64 << 10, scheduler: 1, ..busy(1) };
    let mut world = World::new(None, MS, 2, &classes, &[large, small]);
    let mut sum = 0.0;
    for second in 0..60 {
        world.set_outstanding(1, usize::from(second % 3 == 0));
        let rates = world.run(Nanos::from_secs(1));
        sum += rates[0].0 * 1048576.0 + rates[1].0 * 65536.0;
    }
    let part = sum / 60.0 / rate as f64;
    assert!((0.95..1.04).contains(&part), "{part}");
}

#[test]
fn a_response_time_is_held_at_the_mean() {
    let mut world = alone(limited(Goal::Response(Nanos::from_millis(20))));
    world.run(Nanos::from_secs(1));
    let (rate, response) = world.run(Nanos::from_secs(10))[0];
    assert!((response.as_millis_f64() - 20.0).abs() < 0.5, "{response}");
    assert!((rate - 400.0).abs() < 10.0, "8 in flight at 20 ms: {rate}");
}

#[test]
fn a_disk_with_few_requests_holds_up_no_other_of_its_class_for_a_response_time() {
    // 16 in flight at 20 ms are 800 per second, whatever else there is: here a disk that
    // has less than its part of the class, and whose request has always come last.
    let classes = [(1, limited(Goal::Response(Nanos::from_millis(20))))];
    let greedy = Client { outstanding: 16, ..busy(1) };
    let modest = Client { outstanding: 1, ..greedy };
    let mut world = World::new(None, MS, 1, &classes, &[greedy, modest]);
    world.run(Nanos::from_secs(1));
    let rates = world.run(Nanos::from_secs(10));
    assert!((rates[0].0 - 800.0).abs() < 20.0, "{rates:?}");
    assert!((rates[1].0 - 50.0).abs() < 2.0, "{rates:?}");
}

#[test]
fn a_depth_is_never_exceeded_over_all_schedulers() {
    let classes = [(1, Terms { depth: Some(3), ..Terms::default() })];
    let other = Client { scheduler: 1, ..busy(1) };
    let mut world = World::new(None, MS, 2, &classes, &[busy(1), other]);
    let rates = world.run(Nanos::from_secs(10));
    assert!(world.most[0] <= 3 && world.most[1] <= 3, "{:?}", world.most);
    assert!((rates[0].0 + rates[1].0 - 3000.0).abs() < 30.0, "{rates:?}");
}

#[test]
fn the_places_of_a_class_go_round_whoever_gives_them_back() {
    // One disk keeps 16 requests waiting and one a single one: of two places at 1 ms
    // each, it waits half a millisecond for its place.
    let depth = Terms { depth: Some(2), ..Terms::default() };
    let greedy = Client { outstanding: 16, ..busy(1) };
    for (windows, threads) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let modest =
            Client { outstanding: 1, scheduler: windows * threads - 1, ..greedy };
        let windows = vec![None; windows];
        let classes = [(1, depth)];
        let mut world = World::on(&windows, MS, threads, &classes, &[greedy, modest]);
        let rates = world.run(Nanos::from_secs(10));
        let (most, least) = (rates[0].0, rates[1].0);
        assert!((most + least - 2000.0).abs() < 20.0, "{rates:?}");
        assert!((500.0..=1000.0).contains(&least), "{windows:?}, {threads}: {rates:?}");
    }
}

#[test]
fn a_class_on_very_many_datastores_has_its_turns_at_all_of_them() {
    // A disk of a class on each of 80 datastores, of which three want its only place.
    // Whichever they are, and though all others leave, they have a third each.
    const DATASTORES: usize = 80;
    let client = |scheduler| Client { scheduler, outstanding: 0, ..busy(1) };
    let clients: Vec<_> = (0..DATASTORES).map(client).collect();
    let classes = [(1, Terms { depth: Some(1), ..Terms::default() })];
    for [a, b, c] in [[0, 1, 2], [0, 1, 64], [0, 64, 65], [62, 63, 64], [64, 70, 79]] {
        let mut world = World::on(&[None; DATASTORES], MS, 1, &classes, &clients);
        for other in (0..DATASTORES).filter(|other| ![a, b, c].contains(other)) {
            world.leave(other);
        }
        for client in [a, b, c] {
            world.set_outstanding(client, 4);
        }
        let rates = world.run(Nanos::from_secs(3));
        for client in [a, b, c] {
            let rate = rates[client].0;
            assert!((rate - 333.0).abs() < 10.0, "{client} of {a}, {b}, {c}: {rate}");
        }
    }
}

#[test]
fn reservations_that_are_too_much_together_are_kept_in_equal_parts() {
    // 1000 per second, and 800 are reserved on each of two threads: by two classes,
    // or by one with a disk on each.
    let terms = Terms { reservation: Some(Rate::Requests(800)), ..Terms::default() };
    for other in [1, 2] {
        let clients = [busy(1), Client { scheduler: 1, ..busy(other) }];
        let mut world =
            World::new(Some(8), Nanos(8 * MS.0), 2, &[(1, terms), (2, terms)], &clients);
        world.run(Nanos::from_secs(1));
        let rates = world.run(Nanos::from_secs(10));
        let part = rates[0].0 / (rates[0].0 + rates[1].0);
        assert!((0.45..=0.55).contains(&part), "{rates:?}");
    }
}

#[test]
fn a_reservation_that_cannot_be_kept_stops_nobody() {
    // 1000 per second; the other class is on the same thread, or on one of its own.
    let terms = Terms { reservation: Some(Rate::Requests(5000)), ..Terms::default() };
    for scheduler in [0, 1] {
        let clients = [busy(1), Client { scheduler, outstanding: 32, ..busy(2) }];
        let classes = [(1, terms), (2, Terms::default())];
        let mut world = World::new(Some(8), Nanos(8 * MS.0), 2, &classes, &clients);
        world.run(Nanos::from_secs(10));
        let rates = world.run(Nanos::from_secs(60));
        // 32 requests, of which each waits for two seconds and a little.
        assert!(rates[1].0 > 10.0, "thread {scheduler}: {rates:?}");
        assert!(rates[0].0 > 940.0, "thread {scheduler}: {rates:?}");
    }
}

#[test]
fn a_limit_that_is_set_or_lifted_holds_at_once() {
    let mut world = alone(Terms::default());
    assert!((world.run(Nanos::from_secs(1))[0].0 - 8000.0).abs() < 80.0);
    world.set_terms(1, &limited(Goal::Requests(1)));
    let slow = world.run(Nanos::from_secs(10))[0].0;
    assert!(slow < 2.0, "1 per second, and what was at the device: {slow}");
    world.set_terms(1, &Terms::default());
    assert!((world.run(Nanos::from_secs(1))[0].0 - 8000.0).abs() < 80.0);
    world.set_terms(1, &limited(Goal::Requests(1)));
    world.run(Nanos::from_secs(2));
    world.set_terms(1, &limited(Goal::Requests(1000)));
    let rate = world.run(Nanos::from_secs(1))[0].0;
    assert!((rate - 1000.0).abs() < 30.0, "a turn of before does not hold: {rate}");
}

#[test]
fn a_class_at_its_limit_goes_on_at_once_under_a_lower_one() {
    for (high, low) in [
        (Goal::Requests(7000), Goal::Requests(50)),
        (Goal::Bytes(4096 * 7000), Goal::Bytes(4096 * 50)),
    ] {
        let mut world = alone(limited(high));
        world.run(Nanos::from_secs(1));
        world.set_terms(1, &limited(low));
        let rate = world.run(Nanos::from_secs(1))[0].0;
        assert!((rate - 50.0).abs() < 10.0, "50, and what was at the device: {rate}");
    }
}

#[test]
fn the_largest_requests_count_in_shares_with_all_they_weigh() {
    // One that weighs 513 for each 256 that weigh 2.
    let large = Client { outstanding: 4, bytes: 32 << 20, ..busy(1) };
    let small = Client { bytes: 64 << 10, ..busy(2) };
    let classes = [(1, Terms::default()), (2, Terms::default())];
    let mut world = World::new(Some(1), MS, 1, &classes, &[large, small]);
    world.run(Nanos::from_secs(10));
    let rates = world.run(Nanos::from_secs(100));
    let ratio = rates[0].0 * 513.0 / (rates[1].0 * 2.0);
    assert!((0.95..1.05).contains(&ratio), "{rates:?}");
}

#[test]
fn a_class_that_its_reservation_carried_is_not_put_off_afterwards() {
    // 300 per second, of which the first class has 200 by its reservation, though by
    // its shares it would have 3.
    let terms = |shares, reservation| Terms { shares, reservation, ..Terms::default() };
    let classes = [(1, terms(10, Some(Rate::Requests(200)))), (2, terms(1000, None))];
    let service = Nanos(8 * 1_000_000_000 / 300);
    let mut world = World::new(Some(8), service, 1, &classes, &[busy(1), busy(2)]);
    world.run(Nanos::from_secs(100));
    // Equal shares, and no reservation: half each, within a second.
    for class in [1, 2] {
        world.set_terms(class, &terms(1000, None));
    }
    world.run(Nanos::from_secs(1));
    let rates = world.run(Nanos::from_secs(4));
    assert!((rates[0].0 - 150.0).abs() < 15.0, "{rates:?}");
}

#[test]
fn a_reservation_that_is_changed_holds_at_once() {
    // 1000 per second, and next to nothing by shares. What the class had is owed under
    // no other unit, and under a lower rate for no longer.
    let reserved =
        |rate| Terms { reservation: Some(rate), shares: 1, ..Terms::default() };
    let first = reserved(Rate::Bytes(100_000_000));
    let classes = [(1, first), (2, Terms::default())];
    let mut world =
        World::new(Some(8), Nanos(8 * MS.0), 1, &classes, &[busy(1), busy(2)]);
    for (rate, expected) in [
        (Rate::Bytes(4096 * 900), 900.0),
        (Rate::Requests(100), 100.0),
        (Rate::Bytes(4096 * 300), 300.0),
        (Rate::Requests(800), 800.0),
        (Rate::Requests(10), 10.0),
    ] {
        world.set_terms(1, &reserved(rate));
        let got = world.run(Nanos::from_secs(2))[0].0;
        let [least, most] = [expected * 0.9 - 2.0, expected * 1.1 + 10.0];
        assert!((least..most).contains(&got), "{rate:?}: {got}");
    }
}

/// Terms of any kind that leave a class at least some requests.
fn terms() -> impl Strategy<Value = Terms> {
    let rate = prop::option::weighted(0.3, 50u64..2000);
    let reservation = prop::option::weighted(0.3, 10u64..300);
    let depth = prop::option::weighted(0.3, 1u32..16);
    (rate, reservation, depth, 1u32..10_000).prop_map(
        |(rate, reserved, depth, shares)| {
            let limit = Limit { requests: rate, ..Limit::default() };
            let reservation = reserved.map(Rate::Requests);
            Terms { reservation, limit, shares, depth }
        },
    )
}

fn client() -> impl Strategy<Value = Client> {
    (1u32..4, 0usize..3, 1usize..64, 512u64..1 << 18).prop_map(
        |(class, scheduler, outstanding, bytes)| Client {
            scheduler,
            outstanding,
            bytes,
            ..busy(class)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No limit and no depth is exceeded, and nothing is kept free while somebody could
    /// use it.
    #[test]
    fn bounds_hold_and_nothing_is_kept_free(
        window in prop::option::of(1u32..64),
        terms in [terms(), terms(), terms()],
        clients in prop::collection::vec(client(), 1..8),
    ) {
        let classes = [(1, terms[0]), (2, terms[1]), (3, terms[2])];
        let mut world = World::new(window, MS, 3, &classes, &clients);
        let seconds = 4;
        let rates = world.run(Nanos::from_secs(seconds));
        let mut wanted = 0.0;
        for (id, terms) in classes {
            let of = |one: &(usize, &Client)| one.1.class == id;
            let mine: Vec<_> = clients.iter().enumerate().filter(of).collect();
            let rate: f64 = mine.iter().map(|(at, _)| rates[*at].0).sum();
            let outstanding: usize = mine.iter().map(|(_, one)| one.outstanding).sum();
            if let Some(limit) = terms.limit.requests {
                // The burst and a request of each scheduler's turn are spread over all.
                let most = limit as f64 * (1.0 + 0.01 / seconds as f64) + 1.0;
                prop_assert!(rate <= most, "{rate} of {limit}");
            }
            if let Some(depth) = terms.depth {
                let most: usize = mine.iter().map(|(at, _)| world.most[*at]).max().unwrap_or(0);
                prop_assert!(most <= depth as usize);
            }
            let at_once = outstanding.min(terms.depth.map_or(usize::MAX, |d| d as usize));
            let own = at_once as f64 * 1000.0;
            wanted += terms.limit.requests.map_or(own, |limit| own.min(limit as f64));
        }
        let capacity = window.map_or(f64::MAX, |window| f64::from(window) * 1000.0);
        let total: f64 = rates.iter().map(|(rate, _)| rate).sum();
        let least = wanted.min(capacity);
        prop_assert!(total >= least * 0.9 - 20.0, "{total} of {least}");
    }

    /// Whoever gives places back, and on how many datastores and threads: no disk of a
    /// class waits for ever, and each has a part of what the class gets that is like
    /// that of the others, if its datastore serves as much.
    #[test]
    fn nobody_is_starved_by_the_depth_of_a_class(
        windows in prop::collection::vec(prop::option::weighted(0.3, 1u32..4), 1..4),
        threads in 1usize..4,
        depth in 1u32..5,
        limit in prop::option::weighted(0.2, 100u64..1000),
        disks in prop::collection::vec((0usize..12, 1usize..32), 2..8),
        others in prop::collection::vec((0usize..12, 1usize..32), 0..4),
    ) {
        let limit = Limit { requests: limit, ..Limit::default() };
        let terms = Terms { depth: Some(depth), limit, ..Terms::default() };
        let schedulers = windows.len() * threads;
        let client = |class: u32, (scheduler, outstanding): (usize, usize)| Client {
            scheduler: scheduler % schedulers,
            outstanding,
            ..busy(class)
        };
        let mine = disks.iter().map(|disk| client(1, *disk));
        let clients: Vec<_> =
            mine.chain(others.iter().map(|disk| client(2, *disk))).collect();
        let classes = [(1, terms), (2, Terms::default())];
        let mut world = World::on(&windows, MS, threads, &classes, &clients);
        world.run(Nanos::from_secs(1));
        let rates = world.run(Nanos::from_secs(4));
        let mine: Vec<f64> = rates[..disks.len()].iter().map(|(rate, _)| *rate).collect();
        let fair = mine.iter().sum::<f64>() / mine.len() as f64;
        // The other class may take half of what a datastore with a window serves: what is
        // left is for the disks of the class that are there.
        let datastore = |disk: usize| disks[disk].0 % schedulers / threads;
        for (disk, rate) in mine.iter().enumerate() {
            let at = datastore(disk);
            let there = (0..disks.len()).filter(|it| datastore(*it) == at).count();
            let served = windows[at].map_or(f64::MAX, |window| f64::from(window) * 1000.0);
            let fair = fair.min(served / 2.0 / there as f64);
            prop_assert!(*rate > fair * 0.2, "disk {disk} of {mine:?}");
        }
    }
}
