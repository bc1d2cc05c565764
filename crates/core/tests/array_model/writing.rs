//! Writes.

use sterna_core::Nanos;
use sterna_core::array::{Kind, Request};

use crate::drive::{array, closed, random, sequential};

const K: u64 = 1024;

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    let ratio = found / expected;
    assert!((ratio - 1.0).abs() <= tolerance, "{found} is not {expected}");
}

#[test]
fn writes_take_a_millisecond_until_the_cache_is_full_and_then_what_destaging_takes() {
    // 64 MiB take 8192 writes of 8 KiB; the spindle destages some 197 a second.
    let mut one = array("old-fc?spindles=1&write-cache=64M");
    let early = closed(&mut one, Kind::Write, 4, 1, random(8 * K));
    assert!(early.mean_ms() < 1.2, "{}", early.mean_ms());
    let mut one = array("old-fc?spindles=1&write-cache=1M");
    let late = closed(&mut one, Kind::Write, 4, 120, random(8 * K));
    near(late.iops(), 1000.0 / 5.078, 0.05);
    assert!(late.mean_ms() > 15.0, "{}", late.mean_ms());
}

#[test]
fn a_small_write_costs_what_its_raid_level_costs() {
    // Eight spindles each; a spindle makes 197 operations of 8 KiB a second.
    let rate = |raid: &str| {
        let model = format!("old-fc?raid={raid}&write-cache=4M");
        closed(&mut array(&model), Kind::Write, 64, 120, random(8 * K)).iops()
    };
    let plain = rate("0:8");
    near(plain, 8.0 * 1000.0 / 5.078, 0.1);
    near(plain / rate("10:4+4"), 2.0, 0.1);
    near(plain / rate("5:7+1"), 4.0, 0.1);
    near(plain / rate("6:6+2"), 6.0, 0.1);
}

#[test]
fn full_stripes_cost_their_parity_and_no_reads() {
    let rate = |raid: &str| {
        let model = format!("old-fc?raid={raid}&write-cache=64M&link=1T");
        closed(&mut array(&model), Kind::Write, 64, 30, sequential(256 * K))
            .mib_per_second()
    };
    // 100 MiB/s from each data member.
    near(rate("0:8"), 800.0, 0.1);
    near(rate("5:4+1"), 400.0, 0.1);
    near(rate("6:6+2"), 600.0, 0.1);
    near(rate("10:4+4"), 400.0, 0.1);
}

#[test]
fn coalescing_turns_random_writes_into_full_stripes() {
    let rate = |coalesce: &str| {
        let model = format!("sas-10k?write-cache=16M&coalesce={coalesce}");
        closed(&mut array(&model), Kind::Write, 64, 30, random(8 * K)).iops()
    };
    let (with, without) = (rate("yes"), rate("no"));
    assert!(with > 10.0 * without, "{with} against {without}");
}

#[test]
fn writes_without_a_cache_take_what_the_device_takes() {
    let flash = "sata-ssd?spindles=1&link=1T&overhead=0s";
    let found = closed(&mut array(flash), Kind::Write, 1, 10, random(64 * K));
    // 0.2 ms, and 64 KiB at 240 MiB/s.
    near(found.mean_ms(), 0.2 + 0.2604, 0.02);
}

#[test]
fn what_is_in_the_write_cache_is_read_from_there() {
    let mut one = array("old-fc?spindles=1&link=1T&overhead=0s&ack=1ms");
    let request = |id, kind| Request { id, lun: 3, kind, offset: 8 * K, bytes: 8 * K };
    one.submit(Nanos(0), request(1, Kind::Write));
    let mut answers = Vec::new();
    one.advance(Nanos::from_millis(5), &mut answers);
    one.submit(Nanos::from_millis(5), request(2, Kind::Read));
    one.advance(Nanos::from_millis(6), &mut answers);
    let answered: Vec<u64> = answers.iter().map(|answer| answer.id).collect();
    assert_eq!(answered, [1, 2]);
}

#[test]
fn an_array_that_is_left_alone_destages_everything_and_rests() {
    for model in ["old-fc", "e4-fc", "sas-10k?coalesce=yes", "sata-ssd"] {
        let mut array = array(model);
        closed(&mut array, Kind::Write, 16, 2, random(8 * K));
        let mut answers = Vec::new();
        while let Some(next) = array.next_event() {
            array.advance(next, &mut answers);
        }
        assert_eq!((array.dirty(), array.in_flight()), (0, 0), "{model}");
    }
}
