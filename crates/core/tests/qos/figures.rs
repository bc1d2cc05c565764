//! Published figures of schedulers.

use sterna_core::Nanos;
use sterna_core::qos::{Bucket, Limit, Rate, Terms};

use super::world::{Client, World, busy};

/// A device of so many requests per second, with 32 places.
fn device(per_second: u64) -> (Option<u32>, Nanos) {
    (Some(32), Nanos(32 * 1_000_000_000 / per_second))
}

fn shares(shares: u32) -> Terms {
    Terms { shares, ..Terms::default() }
}

fn reserved(weight: u32, iops: u64) -> Terms {
    Terms { reservation: Some(Rate::Requests(iops)), ..shares(weight) }
}

/// What each client gets in ten seconds, after one for the beginning.
fn rates(world: &mut World) -> Vec<f64> {
    world.run(Nanos::from_secs(1));
    world.run(Nanos::from_secs(10)).into_iter().map(|(iops, _)| iops).collect()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    let close = |(found, expected): (&f64, &f64)| (found / expected - 1.0).abs() < 0.02;
    assert!(found.iter().zip(expected).all(close), "{found:?}, expected {expected:?}");
}

/// The running example of mClock: RD, OLTP and DM.
fn mclock(capacity: u64) -> Vec<f64> {
    let limit = Limit { requests: Some(1000), ..Limit::default() };
    let classes = [
        (1, reserved(100, 250)),
        (2, reserved(200, 250)),
        (3, Terms { limit, ..shares(300) }),
    ];
    let (window, service) = device(capacity);
    let clients = [1, 2, 3].map(busy);
    rates(&mut World::new(window, service, 1, &classes, &clients))
}

#[test]
fn the_example_of_mclock_at_875_requests_per_second() {
    assert_close(&mclock(875), &[250.0, 250.0, 375.0]);
}

#[test]
fn the_example_of_mclock_at_1200_requests_per_second() {
    assert_close(&mclock(1200), &[250.0, 380.0, 570.0]);
}

#[test]
fn the_example_of_mclock_when_the_limit_binds() {
    // 3000: shares alone would give DM 1500; its limit leaves 2000 to two, 1 to 2.
    assert_close(&mclock(3000), &[2000.0 / 3.0, 4000.0 / 3.0, 1000.0]);
}

/// Two hosts with two virtual machines each, 8000 requests per second.
fn two_hosts(schedulers: usize) -> World {
    let classes = [(1, shares(3500)), (2, shares(1500))];
    let (window, service) = device(8000);
    let vm = |class: u32, shares: u32| Client {
        shares,
        scheduler: class as usize % schedulers,
        ..busy(class)
    };
    let clients = [vm(1, 1000), vm(1, 2500), vm(2, 500), vm(2, 1000)];
    World::new(window, service, schedulers, &classes, &clients)
}

#[test]
fn shares_hold_on_two_levels() {
    assert_close(&rates(&mut two_hosts(1)), &[1600.0, 4000.0, 800.0, 1600.0]);
}

#[test]
fn shares_hold_over_two_schedulers_as_over_one() {
    assert_close(&rates(&mut two_hosts(2)), &[1600.0, 4000.0, 800.0, 1600.0]);
}

#[test]
fn what_a_member_leaves_goes_first_to_its_own_class() {
    let mut world = two_hosts(2);
    world.set_outstanding(0, 0);
    let rates = rates(&mut world);
    assert_eq!(rates[0], 0.0);
    assert_close(&rates[1..], &[5600.0, 800.0, 1600.0]);
}

#[test]
fn a_bucket_with_a_burst_is_full_when_qemus_is() {
    // 100 per second, and 2000 for 60 s: the bucket holds 120 000. It is filled with
    // 2000 and empties with 100 per second, so it is full after 63.2 s.
    let average = Bucket::with_burst(100, Nanos::from_secs(120_000 / 100));
    let burst = Bucket::new(2000);
    let (mut now, mut count) = (Nanos(0), 0);
    loop {
        let fast = burst.take(now, 1);
        let at = average.take(fast, 1);
        if at > fast.plus(Nanos::from_millis(5)) {
            break;
        }
        now = at;
        count += 1;
    }
    assert!((63.1..63.3).contains(&now.as_secs_f64()), "{now}");
    assert!((126_000..126_700).contains(&count), "{count}");
}
