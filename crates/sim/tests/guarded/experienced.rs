//! A second move beside an application whose first one was guarded begins with what that
//! guard has found out: a short move is not over before it has learned.

use sterna_core::Nanos;
use sterna_core::array::Preset;
use sterna_core::guard::{Guard, GuardAim};
use sterna_sim::guarded::{Does, Fared, Scene};

const AIM: GuardAim = GuardAim { keep: Some(0.97), p99: None, idle_only: false };

const FIRST: u64 = 6 << 30;
const SECOND: u64 = 1 << 30;

/// A move may miss what is kept by so much: it begins by learning.
const SLACK: f64 = 0.005;

/// 200 reads a second of 8 KiB, whose disk has so many bytes.
fn scene(array: Preset, size: u64, seed: u64) -> Scene {
    Scene {
        from: array.model(),
        to: Some(array.model()),
        size,
        outstanding: 1,
        bytes: 8192,
        does: Does::Reads,
        bursts: None,
        every: Some(Nanos::from_millis(5)),
        seed,
    }
}

fn seconds(fared: &Fared) -> f64 {
    fared.took.as_secs_f64()
}

#[test]
fn a_short_second_move_does_not_learn_again_and_keeps_as_much() {
    for array in [Preset::Flash2010, Preset::SataSsd, Preset::OldFc] {
        let first = scene(array, FIRST, 1).guarded(AIM);
        let anew = scene(array, SECOND, 2).guarded(AIM);
        let guard = Guard::new(AIM).like(&first.experience);
        let second = scene(array, SECOND, 2).guarded_by(guard);
        let alone = scene(array, SECOND, 2).alone();
        let kept = second.iops / alone.iops;
        println!(
            "{}: 6 GiB {:.0} s; 1 GiB {:.1} s anew, {:.1} s with experience, kept {kept:.3}",
            array.name(),
            seconds(&first),
            seconds(&anew),
            seconds(&second),
        );
        assert!(kept >= AIM.keep.unwrap_or_default() - SLACK, "{kept:.3}");
        // As many bytes a second as the long one, or nearly.
        let share = seconds(&first) * SECOND as f64 / FIRST as f64;
        assert!(seconds(&second) < 1.6 * share, "{share:.1} s would be its share");
    }
}
