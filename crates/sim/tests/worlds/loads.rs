//! Clients, and what goes wrong.

use sterna_core::Nanos;
use sterna_sim::{Client, Load, Orders, Plan, Seen, SlowDown, Uncontrolled, World};

use crate::{closed, near, plan, random, sequential};

fn secs(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

#[test]
fn an_open_client_asks_at_its_rate_whatever_the_array_does() {
    let open = Client::new("web", Load::Open { rate: 500.0 }, random(8192, 100));
    let series = World::run(plan("old-fc", 100, vec![open]), &mut Uncontrolled);
    let whole = series.clients[0].whole();
    // 50 000 Poisson arrivals: a standard deviation is 0.45 %.
    near(whole.iops(), 500.0, 0.02);
    // One spindle makes 197 a second: the rest waits.
    let open = Client::new("web", Load::Open { rate: 500.0 }, random(8192, 100));
    let one = plan("old-fc?spindles=1", 20, vec![open]);
    let flooded = World::run(one, &mut Uncontrolled);
    near(flooded.clients[0].whole().iops(), 197.0, 0.03);
    assert!(flooded.clients[0].open > secs(20 * 1000));
}

#[test]
fn a_flood_is_refused_past_a_bound() {
    let open = Client::new("web", Load::Open { rate: 20_000.0 }, random(8192, 100));
    let one = plan("sata-7k", 5, vec![open]);
    let flooded = World::run(one, &mut Uncontrolled);
    assert!(flooded.clients[0].refused > 30_000, "{}", flooded.clients[0].refused);
}

#[test]
fn a_bursty_client_asks_for_two_seconds_and_rests_for_three() {
    let (on, off) = (secs(2), secs(3));
    let load = Load::Bursts { outstanding: 8, on, off };
    let bursty = Client::new("bursty", load, random(8192, 100)).starting(secs(1));
    let series = World::run(plan("old-fc", 20, vec![bursty]), &mut Uncontrolled);
    let course = &series.clients[0];
    let rate = |from: u64, until: u64| course.between(secs(from), secs(until)).iops();
    assert_eq!(rate(0, 1), 0.0);
    for burst in [1, 6, 11, 16] {
        assert!(rate(burst, burst + 2) > 800.0, "{}", rate(burst, burst + 2));
        // What was in flight may still be answered.
        let quiet = Nanos::from_millis(burst * 1000 + 2200);
        assert_eq!(course.between(quiet, secs(burst + 4)).iops(), 0.0);
    }
}

#[test]
fn a_sine_goes_up_and_down() {
    let load = Load::Sine { mean: 400.0, swing: 0.8, period: secs(40) };
    let sine = Client::new("day", load, random(8192, 100));
    let series = World::run(plan("old-fc", 40, vec![sine]), &mut Uncontrolled);
    let course = &series.clients[0];
    near(course.between(secs(9), secs(11)).iops(), 720.0, 0.1);
    near(course.between(secs(29), secs(31)).iops(), 80.0, 0.3);
    near(course.whole().iops(), 400.0, 0.05);
}

#[test]
fn a_backup_reads_as_fast_as_the_link_lets_it() {
    let backup = closed("backup", 16, sequential(256 << 10));
    let series = World::run(plan("new-fc", 10, vec![backup]), &mut Uncontrolled);
    near(series.clients[0].whole().bytes_per_second() / 1048576.0, 380.0, 0.02);
}

#[test]
fn an_array_is_slow_for_a_while_and_then_itself() {
    let client = closed("db", 4, random(8192, 100));
    let slow = SlowDown { array: 0, from: secs(10), until: secs(20), times: 4.0 };
    let plan = Plan { faults: vec![slow], ..plan("old-fc", 30, vec![client]) };
    let series = World::run(plan, &mut Uncontrolled);
    let rate = |from, until| series.clients[0].between(secs(from), secs(until)).iops();
    near(rate(11, 19), rate(0, 9) / 4.0, 0.1);
    near(rate(21, 30), rate(0, 9), 0.05);
}

#[test]
fn noise_is_in_what_the_controller_sees_and_not_in_what_happened() {
    let client = closed("db", 4, random(8192, 100));
    let quiet = plan("old-fc", 10, vec![client]);
    let noisy = Plan { noise: 0.3, ..quiet.clone() };
    let mut seen = Vec::new();
    let mut look = |_: Nanos, it: Seen<'_>| {
        let total = it.clients[0].total();
        seen.push(total.mean(total.response).expect("requests").as_millis_f64());
        Orders::default()
    };
    let noisy = World::run(noisy, &mut look);
    assert_eq!(noisy, World::run(quiet, &mut Uncontrolled));
    let off = |(seen, window): (&f64, &sterna_core::measure::Window)| {
        let total = window.total();
        let mean = total.mean(total.response).expect("requests").as_millis_f64();
        (seen / mean - 1.0).abs()
    };
    let off: Vec<f64> = seen.iter().zip(&noisy.clients[0].windows).map(off).collect();
    assert!(off.iter().all(|off| *off < 0.301), "{off:?}");
    assert!(off.iter().any(|off| *off > 0.2), "{off:?}");
}
