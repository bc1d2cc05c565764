//! A guard begins with what an earlier one has found out.

use sterna_core::Nanos;
use sterna_core::guard::{
    Experience, Guard, GuardAim, GuardStatus, LatencyExperience, TrialExperience,
};
use sterna_core::mirror::CopyMode;

use crate::plant::{Course, Device, Load, Setup, share};
use crate::random::Random;
use crate::run::{Record, any_length, cases, keep_97, run, run_guard};

/// Of a hundred random cases so many may miss by chance, as without an experience.
const BY_CHANCE: f64 = 2.0;

/// The seconds of a short move.
const SHORT: usize = 10;

/// What an earlier guard found out, with a marginal cost that is so many times as high.
fn wrong_by(known: Experience, factor: f64) -> Experience {
    let trials = known.trials.map(|it| TrialExperience {
        marginal_cost: it.marginal_cost * factor,
        slowing: it.slowing * factor,
        rate: it.rate / factor,
        ..it
    });
    Experience { trials, ..known }
}

/// A first move, and another one with what is made of its experience.
fn two_moves(
    setup: Setup,
    seed: u64,
    seconds: usize,
    made: impl Fn(Experience) -> Experience,
) -> Option<Record> {
    let first = run(setup, keep_97(), 60, seed);
    first.experience.trials?;
    let guard = Guard::new(keep_97()).like(&made(first.experience));
    Some(run_guard(guard, setup, seconds, seed + 1000))
}

/// The part of what its budget buys that a guard copies in a short move beside guests that
/// are limited by their IO/s, and the part of their requests that these keep.
fn short_moves(made: impl Fn(Experience) -> Experience) -> (f64, f64) {
    let (mut copied, mut kept, mut count) = (0.0, 0.0, 0.0);
    for seed in 0..60 {
        let setup = Setup { wander: 0.01, ..any_length(&mut Random::new(seed)) };
        if !matches!(setup.load, Load::Closed { .. }) {
            continue;
        }
        let Some(record) = two_moves(setup, seed, SHORT, &made) else { continue };
        if record.truth.iter().map(|it| it.done).sum::<f64>() > SHORT as f64 * 1000.0 {
            copied += record.copied() / record.ideal;
            kept += record.kept(0..SHORT);
            count += 1.0;
        }
    }
    assert!(count > 10.0, "{count} cases");
    (copied / count, kept / count)
}

#[test]
fn a_short_move_copies_twice_as_much_with_experience() {
    let (without, kept_without) = short_moves(|_| Experience::default());
    let (with, kept) = short_moves(|known| known);
    println!("of what the budget buys: {without:.2} without, {with:.2} with experience");
    println!("kept: {kept_without:.4} without, {kept:.4} with experience");
    assert!(with > 2.0 * without, "{with:.2}, {without:.2} without");
    assert!(kept > 0.97, "kept {kept:.4}");
}

#[test]
fn whatever_an_experience_says_a_guest_keeps_its_part() {
    for factor in [0.1, 1.0, 10.0] {
        let name = format!("a marginal cost {factor} times as high");
        cases(&name, 100, BY_CHANCE, |random, seed| {
            let setup = any_length(random);
            let made = |known| wrong_by(known, factor);
            let Some(record) = two_moves(setup, seed, 60, made) else { return Ok(()) };
            let kept = record.kept(0..60);
            if kept < 0.97 { Err(format!("kept {kept:.4}")) } else { Ok(()) }
        });
    }
}

#[test]
fn a_wrong_experience_is_forgotten_within_a_minute() {
    for factor in [0.1, 10.0] {
        let (mut sum, mut right) = (0.0, 0.0);
        for seed in 0..40 {
            let setup = Setup { wander: 0.01, ..any_length(&mut Random::new(seed)) };
            let copied = |made: f64| {
                let record = two_moves(setup, seed, 120, |known| wrong_by(known, made))?;
                Some(record.truth[600..].iter().map(|it| it.copied).sum::<f64>())
            };
            if let (Some(with), Some(without)) = (copied(factor), copied(1.0)) {
                sum += with.max(1.0).ln() - without.max(1.0).ln();
                right += 1.0;
            }
        }
        let ratio = (sum / right).exp();
        println!(
            "a marginal cost {factor} times as high: {ratio:.2} of the copy in the 2nd minute"
        );
        assert!((0.8..1.25).contains(&ratio), "{factor}: {ratio:.2}");
    }
}

#[test]
fn a_bound_is_held_from_the_first_second_below_the_rate_that_held_it() {
    let (mut with, mut without, mut count) = (0.0, 0.0, 0.0);
    cases("p99 with experience", 60, BY_CHANCE, |random, seed| {
        let setup = any_length(random);
        let own = share(setup.device, setup.load, 0.0).1;
        let p99 = Nanos((own * 5.0 * random.between(2.0, 10.0) * 1e9) as u64);
        let aim = GuardAim { p99: Some(p99), ..GuardAim::default() };
        let known = run(setup, aim, 60, seed).experience;
        if known.latency.is_none() {
            return Ok(());
        }
        let guard = Guard::new(aim).like(&known);
        let record = run_guard(guard, setup, SHORT, seed + 1000);
        let anew = run(setup, aim, SHORT, seed + 1000);
        let above = |record: &Record| {
            let seconds = record.responses.iter();
            let slow = seconds.filter(|it| it.quantile(0.99).is_some_and(|it| it > p99));
            slow.count()
        };
        // A second may be above the bound by itself.
        let (above, usual) = (above(&record), above(&anew));
        if above > usual + 1 {
            return Err(format!("{above} seconds above {p99:?}, {usual} without"));
        }
        Ok(())
    });
    for seed in 0..60 {
        let setup = any_length(&mut Random::new(seed));
        let own = share(setup.device, setup.load, 0.0).1;
        let aim = GuardAim {
            p99: Some(Nanos((own * 25.0 * 1e9) as u64)),
            ..GuardAim::default()
        };
        let known = run(setup, aim, 60, seed).experience;
        let guard = Guard::new(aim).like(&known);
        let copied = |record: Record| record.copied().max(1.0).ln();
        with += copied(run_guard(guard, setup, SHORT, seed + 1000));
        without += copied(run(setup, aim, SHORT, seed + 1000));
        count += 1.0;
    }
    let ratio: f64 = ((with - without) / count).exp();
    println!(
        "under a bound a short move copies {ratio:.1} times as much with experience"
    );
    assert!(ratio > 1.3, "{ratio:.2}");
}

#[test]
fn an_experience_is_learning_until_the_guard_has_compared_for_itself() {
    let setup = any_length(&mut Random::new(1));
    let record = two_moves(setup, 1, 1, |known| known).expect("an experience");
    assert_eq!(record.statuses[0], GuardStatus::Learning);
}

#[test]
fn who_has_given_up_or_seen_too_little_has_no_experience() {
    let setup = any_length(&mut Random::new(1));
    assert!(run(setup, keep_97(), 1, 1).experience.is_none());
    // Even the least costs too much.
    let device = Device { own: 0.01, peak: 100.0, weight: 6.0, each: 0.0 };
    let load = Load::Closed { depth: 16.0, pause: 0.1 };
    let setup = Setup { device, load, course: Course::Steady, wander: 0.0 };
    let record = run(setup, keep_97(), 35, 1);
    assert!(matches!(record.statuses[34], GuardStatus::Unreachable(_)));
    assert!(record.experience.is_none(), "{:?}", record.experience);
}

#[test]
fn what_was_held_under_a_bound_is_no_beginning_under_a_lower_one() {
    let setup = any_length(&mut Random::new(4));
    let own = share(setup.device, setup.load, 0.0).1;
    let aim = |times: f64| {
        let p99 = Some(Nanos((own * times * 1e9) as u64));
        GuardAim { p99, ..GuardAim::default() }
    };
    let known = run(setup, aim(30.0), 60, 4).experience;
    assert!(known.latency.is_some());
    let like = |times| Guard::new(aim(times)).like(&known).is_experienced();
    assert_eq!([like(29.0), like(30.0), like(60.0)], [false, true, true]);
    // Both loops must know something.
    let both = GuardAim { keep: Some(0.97), ..aim(30.0) };
    assert!(!Guard::new(both).like(&known).is_experienced());
}

#[test]
fn what_cannot_be_is_no_experience() {
    let turned = TrialExperience {
        mode: CopyMode::ShortChunks,
        rate: 10e6,
        marginal_cost: 1e-9,
        slowing: 1e-9,
        noise: 0.02,
        iops: 1000.0,
    };
    let sound =
        |trials| Experience { trials: Some(trials), latency: None }.sound().trials;
    assert_eq!(sound(turned), Some(turned));
    for broken in [
        TrialExperience { rate: 0.0, ..turned },
        TrialExperience { rate: f64::NAN, ..turned },
        TrialExperience { rate: 1e30, ..turned },
        TrialExperience { marginal_cost: -1.0, ..turned },
        TrialExperience { marginal_cost: f64::INFINITY, ..turned },
        TrialExperience { slowing: f64::NAN, ..turned },
        TrialExperience { noise: 2.0, ..turned },
        TrialExperience { iops: -1.0, ..turned },
    ] {
        assert_eq!(sound(broken), None, "{broken:?}");
    }
    let held = |rate, bound| {
        let latency = Some(LatencyExperience { rate, bound: Nanos(bound) });
        Experience { trials: None, latency }.sound()
    };
    assert!(!held(1e6, 1).is_none());
    assert!(held(f64::NAN, 1).is_none() && held(1.0, 1).is_none());
    assert!(held(1e6, 0).is_none());
    // A guard that is given it all the same is as one without.
    let broken = Experience {
        trials: Some(TrialExperience { rate: 0.0, ..turned }),
        latency: None,
    };
    let setup = any_length(&mut Random::new(2));
    let guard = Guard::new(keep_97()).like(&broken);
    let (with, without) = (run_guard(guard, setup, 5, 2), run(setup, keep_97(), 5, 2));
    assert_eq!(with.copied(), without.copied());
}

#[test]
fn a_copier_without_that_mode_begins_anew() {
    let setup = any_length(&mut Random::new(3));
    let known = run(setup, keep_97(), 60, 3).experience;
    assert!(known.trials.is_some_and(|it| it.mode != CopyMode::Even));
    let aim = GuardAim { keep: Some(0.97), ..GuardAim::default() };
    let guard = Guard::of_another_copier(aim);
    let with = run_guard(guard, setup, 5, 3);
    let like = run_guard(Guard::of_another_copier(aim).like(&known), setup, 5, 3);
    assert_eq!(with.copied(), like.copied());
}
