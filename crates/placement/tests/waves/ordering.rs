//! In which order, how many at once, how long it takes, and how far that is from the best.

use sterna_core::Nanos;
use sterna_placement::waves::{
    Group, LEAST, MOST, Move, PlanRun, Rehearsal, Setup, bound, depths, order, rehearse,
};

use super::random::Random;
use super::setups::{any, in_group, lasting, setup};

fn run(setup: &Setup) -> Rehearsal {
    rehearse(&PlanRun::new(setup.clone()), &[])
}

/// The same plan with its moves in this order.
fn in_order(setup: &Setup, order: &[usize]) -> Setup {
    let moves = order.iter().map(|at| setup.moves[*at]).collect();
    Setup { moves, ..setup.clone() }
}

fn planned(setup: &Setup) -> Setup {
    in_order(setup, &order(&setup.moves, &setup.groups))
}

fn seconds(span: Nanos) -> f64 {
    span.as_secs_f64()
}

#[test]
fn moves_that_use_up_a_datastore_share_it_and_gain_nothing() {
    // Each copies as fast as the source can.
    let one = setup(vec![lasting(60, 1); 4], &[Some(100.0), Some(100.0)]);
    let told = run(&one);
    assert_eq!(seconds(told.ends), 240.0);
    let at_first = told.moves.iter().flatten().filter(|it| it.begins == Nanos(0)).count();
    assert_eq!(at_first, LEAST);
    assert_eq!(seconds(bound(&one)), 240.0);
}

#[test]
fn moves_go_side_by_side_as_long_as_that_helps() {
    // The source can serve four such copies, each destination two.
    let moves = [1, 2].map(|to| vec![lasting(60, to); 4]).concat();
    let one = setup(moves, &[Some(400.0), Some(200.0), Some(200.0)]);
    let told = run(&one);
    assert_eq!(seconds(told.ends), 120.0);
    assert_eq!(seconds(bound(&one)), 120.0);
    let waves: Vec<u32> = told.moves.iter().flatten().map(|it| it.wave).collect();
    assert_eq!(waves, [1, 1, 2, 2, 1, 1, 2, 2]);
}

#[test]
fn no_datastore_has_more_moves_than_are_good_for_it() {
    let quick = setup(vec![lasting(60, 1); 20], &[Some(1e9), Some(1e9)]);
    let began = |told: &Rehearsal| {
        told.moves.iter().flatten().filter(|it| it.begins == Nanos(0)).count()
    };
    assert_eq!(began(&run(&quick)), MOST);
    let unknown = setup(vec![lasting(60, 1); 20], &[None, None]);
    assert_eq!(began(&run(&unknown)), LEAST);
    let few = Setup { at_once: Some(3), ..quick };
    assert_eq!(began(&run(&few)), 3);
    assert_eq!(seconds(bound(&few)), 400.0);
}

#[test]
fn the_longest_go_first_and_groups_before_those_that_wait_for_them() {
    let moves = vec![in_group(1, 90, 1), in_group(0, 10, 1), in_group(0, 20, 1)];
    let groups = vec![
        Group { after: vec![], ..Group::default() },
        Group { after: vec![0], ..Group::default() },
    ];
    assert_eq!(order(&moves, &groups), [2, 1, 0]);
    let one = Setup { groups, ..setup(moves, &[Some(1e9), Some(1e9)]) };
    let told = run(&planned(&one));
    let began: Vec<f64> =
        told.moves.iter().flatten().map(|it| seconds(it.begins)).collect();
    assert_eq!(began, [0.0, 0.0, 20.0]);
    assert_eq!(told.moves[2].map(|it| it.wave), Some(2));
    assert_eq!((seconds(told.ends), seconds(bound(&one))), (110.0, 110.0));
}

#[test]
fn groups_that_wait_for_each_other_are_found() {
    let after = |groups: &[&[usize]]| -> Vec<Group> {
        let group =
            |after: &&[usize]| Group { after: after.to_vec(), ..Group::default() };
        groups.iter().map(group).collect()
    };
    assert_eq!(depths(&after(&[&[], &[0], &[0, 1]])), Some(vec![0, 1, 2]));
    assert_eq!(depths(&after(&[&[1], &[0]])), None);
    assert_eq!(depths(&after(&[&[0]])), None);
}

#[test]
fn no_order_of_the_moves_is_quicker_than_the_bound() {
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let one = any(&mut random, 20);
        let told = run(&one);
        let (ends, least) = (seconds(told.ends), seconds(bound(&one)));
        assert!(ends >= least * (1.0 - 1e-6), "seed {seed}: {ends} before {least}");
        assert!(told.moves.iter().all(Option::is_some), "seed {seed}: {told:?}");
    }
}

/// All orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in orders(count - 1) {
        for at in 0..count {
            let mut one = shorter.clone();
            one.insert(at, count - 1);
            all.push(one);
        }
    }
    all
}

/// Six moves of any length, two or three at once.
fn six(random: &mut Random) -> Setup {
    let at_once = Some(2 + random.below(2) as usize);
    let moves =
        (0..6).map(|_| lasting(1 + random.below(99), 1 + random.below(2) as usize));
    Setup { at_once, ..setup(moves.collect(), &[Some(1e9), Some(1e9), Some(1e9)]) }
}

#[test]
fn the_longest_first_is_near_the_best_of_all_orders() {
    let all = orders(6);
    let (mut gaps, mut best_ones) = (Vec::new(), 0);
    for seed in 0..60 {
        let one = six(&mut Random::new(seed));
        let ends = |order: &Vec<usize>| seconds(run(&in_order(&one, order)).ends);
        let best = all.iter().map(ends).fold(f64::INFINITY, f64::min);
        let least = seconds(bound(&one));
        assert!(least <= best * (1.0 + 1e-6), "seed {seed}: {best} before {least}");
        let gap = seconds(run(&planned(&one)).ends) / best - 1.0;
        // Graham's bound for two and for three at once.
        assert!(gap <= 4.0 / 3.0 - 1.0 + 1e-6, "seed {seed}: {gap}");
        best_ones += usize::from(gap < 1e-6);
        gaps.push(gap);
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    println!("{best_ones} of {} are the best, {:.1}% above", gaps.len(), mean * 100.0);
    assert!(mean < 0.05, "{mean}");
}

#[test]
fn the_gap_to_the_bound_is_the_gap_to_the_best_where_there_is_a_perfect_order() {
    let moves = [3, 3, 2, 2, 2].map(|seconds| lasting(seconds, 1)).into();
    let one = Setup { at_once: Some(2), ..setup(moves, &[Some(1e9), Some(1e9)]) };
    assert_eq!((seconds(run(&one).ends), seconds(bound(&one))), (7.0, 6.0));
    let best = in_order(&one, &[0, 2, 3, 1, 4]);
    assert_eq!(seconds(run(&best).ends), 6.0);
}

/// So many moves: all from one datastore, or from any, and each copies as much as the
/// others, or as it likes; in so many tiles, one after another.
fn many(disks: u64, datastores: u64, sources: u64, rates: u64, tiles: usize) -> Setup {
    let (mut random, mut other) = (Random::new(250), Random::new(251));
    let mut any = |at: u64| {
        let time = 30 + random.below(600);
        let (from, to) = (other.below(sources), 1 + random.below(datastores - 1));
        let rate = 20.0 + other.below(rates) as f64;
        let to = if to == from { 0 } else { to };
        let group = (tiles > 0).then(|| at as usize % tiles.max(1));
        Move { from: from as usize, rate, group, ..lasting(time, to as usize) }
    };
    let moves = (0..disks).map(&mut any).collect();
    let after = |at: usize| at.checked_sub(1).into_iter().collect();
    let group = |at| Group { after: after(at), ..Group::default() };
    let groups = (0..tiles).map(group).collect();
    let all = vec![Some(400.0); datastores as usize];
    Setup { groups, ..setup(moves, &all) }
}

#[test]
#[ignore = "a measurement"]
fn how_long_a_plan_for_many_disks_takes() {
    for (what, one) in [
        ("5,000 of one datastore to 8", many(5_000, 9, 1, 1, 0)),
        ("50,000 of one datastore to 199", many(50_000, 200, 1, 1, 0)),
        ("the same, each with its own speed", many(50_000, 200, 1, 1_000, 0)),
        ("the same, in 250 tiles", many(50_000, 200, 1, 1, 250)),
        ("50,000 between 200", many(50_000, 200, 200, 1, 0)),
        ("the same, each with its own speed", many(50_000, 200, 200, 1_000, 0)),
    ] {
        let began = std::time::Instant::now();
        let one = planned(&one);
        let told = run(&one);
        let (ends, least) = (seconds(told.ends), seconds(bound(&one)));
        println!(
            "{what}: {:?}; {ends:.0} s, {:.1}% above {least:.0} s",
            began.elapsed(),
            (ends / least - 1.0) * 100.0
        );
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel's view");
    println!(
        "{}",
        status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default()
    );
}
