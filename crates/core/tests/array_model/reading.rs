//! Reads.

use sterna_core::Nanos;
use sterna_core::array::Kind;

use crate::drive::{array, closed, random, sequential};

const K: u64 = 1024;

/// One 15K disk with nothing around it.
const ONE: &str = "old-fc?spindles=1&link=1T&overhead=0s&cache=0";

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    let ratio = found / expected;
    assert!((ratio - 1.0).abs() <= tolerance, "{found} is not {expected}");
}

#[test]
fn random_reads_of_one_spindle_take_the_mean_of_the_service_time() {
    // 3 ms of seek, 2 ms of rotation, 8 KiB / 100 MiB/s = 0.078 ms.
    let found = closed(&mut array(ONE), Kind::Read, 1, 60, random(8 * K));
    near(found.mean_ms(), 5.078, 0.02);
    near(found.iops(), 1000.0 / 5.078, 0.02);
    let sata = "sata-7k?link=1T&overhead=0s";
    let found = closed(&mut array(sata), Kind::Read, 1, 120, random(4 * K));
    near(found.iops(), 1000.0 / (7.7 + 4.1665 + 0.049), 0.02);
    let flash = "flash-2010?link=1T&overhead=0s";
    let found = closed(&mut array(flash), Kind::Read, 1, 10, random(4 * K));
    near(found.iops(), 1000.0 / (0.2 + 0.0163), 0.02);
}

#[test]
fn flash_does_as_many_random_reads_as_its_channels_and_its_media_allow() {
    // 64 KiB are the media's limit, 512 bytes that of ten channels.
    for bytes in [64 * K, 4 * K, K / 2] {
        let mut flash = array("flash-2010?link=1T&overhead=0s");
        let peak = flash.model().random_read_peak(bytes);
        let found = closed(&mut flash, Kind::Read, 32, 5, random(bytes));
        // One that gets at its bytes sooner than another before it waits for that.
        near(found.iops(), peak, 0.15);
    }
}

#[test]
fn a_spindle_is_never_idle_while_something_waits() {
    let mut one = array(ONE);
    closed(&mut one, Kind::Read, 4, 60, random(8 * K));
    near(one.busy().as_secs_f64(), 60.0, 0.001);
}

#[test]
fn a_stream_alone_runs_at_the_rate_of_the_media() {
    let found = closed(&mut array(ONE), Kind::Read, 2, 20, sequential(64 * K));
    near(found.mib_per_second(), 100.0, 0.01);
    // One at a time the disk has gone past the next element by then, unless the
    // array fetches ahead.
    let prefetch = "old-fc?spindles=1&prefetch=4";
    let found = closed(&mut array(prefetch), Kind::Read, 1, 20, sequential(8 * K));
    assert!(found.mean_ms() < 0.4, "{}", found.mean_ms());
    // Two streams that are fetched ahead of share it.
    let mut half = sequential(64 * K);
    let two = move |id| {
        let (offset, bytes) = half(id / 2);
        (offset + (id % 2) * (100 << 30), bytes)
    };
    let far = "old-fc?spindles=1&prefetch=32&ageing=100ms";
    let found = closed(&mut array(far), Kind::Read, 2, 20, two);
    assert!(found.mib_per_second() > 60.0, "{}", found.mib_per_second());
}

#[test]
fn a_stream_over_a_stripe_uses_all_its_spindles() {
    let found = closed(
        &mut array("new-fc?spindles=6&link=1T"),
        Kind::Read,
        64,
        10,
        sequential(256 * K),
    );
    near(found.mib_per_second(), 600.0, 0.02);
    // RAID-5 turns its parity by: 4 of 5.
    let raid5 = "new-fc?raid=5:4+1&link=1T";
    let found = closed(&mut array(raid5), Kind::Read, 64, 10, sequential(256 * K));
    near(found.mib_per_second(), 400.0, 0.03);
}

#[test]
fn the_link_is_the_limit_where_the_spindles_are_not() {
    let found = closed(&mut array("new-fc"), Kind::Read, 64, 10, sequential(256 * K));
    near(found.mib_per_second(), 380.0, 0.01);
}

#[test]
fn latency_is_linear_in_outstanding_requests_with_a_slope_of_one_by_the_peak() {
    let model = "old-fc?spindles=8";
    let at = |outstanding| {
        closed(&mut array(model), Kind::Read, outstanding, 60, random(16 * K))
    };
    let points: Vec<(f64, f64)> = [8, 16, 32, 64, 128]
        .into_iter()
        .map(|outstanding| (outstanding as f64, at(outstanding).mean_ms()))
        .collect();
    let (slope, worst) = line(&points);
    let peak = array(model).model().random_read_peak(16 * K);
    near(slope, 1000.0 / peak, 0.05);
    assert!(worst < 0.1, "a point is {worst} of its height off the line: {points:?}");
}

/// The slope of the line with the least squares, and how far the worst point is off
/// it, as a part of its height.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let (mut over, mut under) = (0.0, 0.0);
    for point in points {
        over += (point.0 - x) * (point.1 - y);
        under += (point.0 - x).powi(2);
    }
    let slope = over / under;
    let off = |p: &(f64, f64)| ((y + slope * (p.0 - x)) / p.1 - 1.0).abs();
    (slope, points.iter().map(off).fold(0.0, f64::max))
}

#[test]
fn random_reads_that_hit_need_no_spindle() {
    let rate = |hits: u64| {
        let model = format!("old-fc?spindles=4&hits={hits}");
        closed(&mut array(&model), Kind::Read, 32, 60, random(8 * K)).iops()
    };
    near(rate(12) / rate(0), 1.0 / 0.88, 0.02);
}

#[test]
fn an_array_can_be_slowed_down_and_recovers() {
    let mut one = array(ONE);
    one.slow_down(Nanos(0), 3.0);
    let slow = closed(&mut one, Kind::Read, 1, 30, random(8 * K));
    near(slow.mean_ms(), 3.0 * 5.078, 0.03);
    let mut one = array(ONE);
    one.slow_down(Nanos(0), 3.0);
    one.slow_down(Nanos(0), 1.0);
    let normal = closed(&mut one, Kind::Read, 1, 30, random(8 * K));
    near(normal.mean_ms(), 5.078, 0.03);
}
