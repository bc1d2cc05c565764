//! What swap devices do, and how long a wake takes.

use sterna_core::Nanos;
use sterna_core::memory::{
    Heat, OutGranule, PRIORITY_TOP, Stream, TierSpeed, predict, priorities,
};

const MIB: f64 = 1_048_576.0;

/// A disk of 7,200 turns a minute, as it was measured: 13.2 ms for a granule somewhere, and
/// 80 MB/s in order.
const DISK: TierSpeed =
    TierSpeed { access: Nanos::from_micros(13_200), sequential: 80e6 };
const FLASH: TierSpeed = TierSpeed { access: Nanos::from_micros(400), sequential: 250e6 };

/// So many granules, each behind the one before it, or each somewhere.
fn stream(device: u8, hot: u32, all: u32, in_order: bool) -> Stream {
    let step = if in_order { 16 } else { 1_000 };
    let one = |granule: u32| {
        let heat = if granule < hot { Heat::Hot } else { Heat::Cold };
        let slot = u64::from(granule) * step;
        (heat, OutGranule { granule, device, slot, pages: 16 })
    };
    Stream { device, granules: (0..all).map(one).collect() }
}

#[test]
fn order_decides_how_long_a_wake_takes_from_a_disk() {
    let of = |stream| predict(&[stream], |_| Some(DISK)).expect("it is known");
    // 128 MiB in one run is what the disk reads in order; somewhere, each is a seek.
    let (together, apart) =
        (of(stream(0, 600, 2048, true)), of(stream(0, 600, 2048, false)));
    assert!((1.6..1.8).contains(&together.all), "{together:?}");
    assert!((0.48..0.55).contains(&together.hot), "{together:?}");
    assert!((26.5..27.5).contains(&apart.all), "{apart:?}");
}

#[test]
fn devices_read_at_the_same_time() {
    let streams = [stream(0, 10, 1600, true), stream(1, 400, 400, true)];
    let speed = |device| Some(if device == 0 { FLASH } else { DISK });
    let both = predict(&streams, speed).expect("both are known");
    let disk = predict(&streams[1..], speed).expect("it is known");
    assert!((both.hot - disk.hot).abs() < 1e-9);
    assert!((both.all - 1600.0 * MIB / 16.0 / 250e6).abs() < 0.01, "{both:?}");
}

#[test]
fn if_nothing_is_known_to_be_hot_all_may_be() {
    let time = predict(&[stream(0, 0, 160, true)], |_| Some(FLASH)).expect("it is known");
    assert!(time.hot > 0.0 && (time.hot - time.all).abs() < 1e-9);
}

#[test]
fn nothing_is_predicted_of_a_device_that_nobody_has_measured() {
    assert_eq!(predict(&[stream(3, 1, 1, true)], |_| None), None);
    let nothing = predict(&[], |_| None).expect("nothing takes no time");
    assert!(nothing.all.abs() < 1e-9);
}

#[test]
fn the_fastest_tier_is_filled_first_and_equal_ones_together() {
    let close = TierSpeed { access: Nanos::from_micros(500), ..FLASH };
    let found = priorities(&[DISK, FLASH, close]);
    assert_eq!(found, [PRIORITY_TOP - 1, PRIORITY_TOP, PRIORITY_TOP]);
    assert_eq!(priorities(&[]), [0_i16; 0]);
}
