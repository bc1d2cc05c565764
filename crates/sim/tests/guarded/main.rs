//! A guarded move beside an application that reads all the time: it keeps its part, and
//! where its requests do not queue, no static speed that leaves it as much is faster. One that pauses leaves its pauses.

use sterna_core::Nanos;
use sterna_core::array::Preset;
use sterna_core::guard::Aim;
use sterna_sim::guarded::{Fared, Scene};

/// What is asked for.
const KEEP: f64 = 0.97;

/// So much of the IO/s a move of a few minutes may miss it by: it begins by learning.
const SLACK: f64 = 0.003;

/// The static speeds, bytes per second.
const SPEEDS: [u64; 5] = [2_000_000, 4_000_000, 8_000_000, 16_000_000, 64_000_000];

/// On a stripe whose spindles all have queues it is this part as fast: its chunks are a
/// MiB, one after the other, and not ten at once.
const LOADED: f64 = 0.4;

/// A burst, and the pause after it.
const BURSTS: (Nanos, Nanos) = (Nanos::from_secs(2), Nanos::from_secs(3));

/// A bursty application has gaps that no static speed can use, so it is to be faster by
/// so much.
const FASTER: f64 = 1.25;

fn scene(array: Preset, outstanding: u32) -> Scene {
    Scene { array, size: 512 << 20, outstanding, bytes: 64 << 10, bursts: None, seed: 7 }
}

/// How long a static speed takes that keeps so much: on the line through its points
/// (kept, seconds), which are from the slowest to the fastest. Beyond the slowest
/// one, what is lost is in proportion to the speed.
fn on_line(points: &[(f64, f64)], kept: f64) -> f64 {
    let (most, slowest) = points[0];
    if kept >= most {
        return slowest * (1.0 - most) / (1.0 - kept).max(0.001);
    }
    let pair = points.windows(2).find(|pair| kept >= pair[1].0);
    pair.map_or(0.0, |pair| {
        let ((high, slow), (low, fast)) = (pair[0], pair[1]);
        fast + (slow - fast) * (kept - low) / (high - low)
    })
}

fn compare(scene: Scene, faster: f64) {
    let Scene { array, outstanding, .. } = scene;
    let alone = scene.alone().iops;
    let kept = |fared: &Fared| (fared.iops / alone).min(1.0);
    let point = |speed: &u64| {
        let fared = scene.at_speed(*speed);
        (kept(&fared), fared.took.as_secs_f64())
    };
    let line: Vec<(f64, f64)> = SPEEDS.iter().map(point).collect();
    let ours = scene.guarded(Aim { keep: Some(KEEP), ..Aim::default() });
    let took = ours.took.as_secs_f64();
    let theirs = on_line(&line, kept(&ours));
    let name = array.name();
    println!(
        "{name}, {outstanding} outstanding: kept {:.3} in {took:.0} s, p99 {:.1} ms; \
         a static speed takes {theirs:.0} s: {line:.3?}",
        kept(&ours),
        ours.p99.as_secs_f64() * 1e3,
    );
    assert!(kept(&ours) >= KEEP - SLACK, "{name}, {outstanding}: {:.3}", kept(&ours));
    assert!(took * faster <= theirs, "{name}, {outstanding}: {took:.0} s, {theirs:.0} s");
}

#[test]
fn beside_few_requests_no_static_speed_is_faster() {
    compare(scene(Preset::OldFc, 2), 1.0);
    compare(scene(Preset::E4Fc, 2), 1.0);
}

#[test]
fn on_flash_no_static_speed_is_faster() {
    compare(scene(Preset::Flash2010, 2), 1.0);
    compare(scene(Preset::Flash2010, 16), 1.0);
}

#[test]
fn on_a_loaded_stripe_a_static_speed_is_faster_by_a_known_factor() {
    // A mirror that goes in runs of 10 MiB moves each head once for more than a MiB.
    compare(scene(Preset::NewFc, 2), 0.9);
    compare(scene(Preset::E4Fc, 16), 0.9);
    compare(scene(Preset::NewFc, 16), LOADED);
    compare(scene(Preset::OldFc, 16), LOADED);
}

#[test]
fn beside_bursts_no_static_speed_is_nearly_as_fast() {
    for array in [Preset::OldFc, Preset::NewFc, Preset::E4Fc, Preset::Flash2010] {
        for outstanding in [2, 16] {
            // It is over in a few bursts, so it has to be larger.
            let size = 4 << 30;
            let bursty =
                Scene { size, bursts: Some(BURSTS), ..scene(array, outstanding) };
            compare(bursty, FASTER);
        }
    }
}
