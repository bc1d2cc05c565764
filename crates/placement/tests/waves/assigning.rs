//! Which disk goes where, and why some go nowhere.

use sterna_core::Nanos;
use sterna_core::measure::{Line, LqFit};
use sterna_placement::waves::{
    Assignment, Because, Datastore, Disk, Group, Inventory, Pinned, Takes, Why, assign,
};

use super::random::Random;
use super::setups::GIB;

/// The usual bound.
const BOUND: f64 = 0.8;

fn line(unloaded: f64, slope: f64) -> LqFit {
    LqFit::Line(Line {
        unloaded: Nanos((unloaded * 1e6) as u64),
        slope: slope * 1e6,
        slope_error: 0.0,
        points: 60,
        seen: (1.0, 64.0),
    })
}

/// A datastore of 100 GiB of which so many are taken.
fn datastore(taken: u64) -> Datastore {
    Datastore {
        capacity: 100 * GIB,
        free: (100 - taken) * GIB,
        shared_room: None,
        takes: Takes::Any,
        outstanding: 0.0,
        device: LqFit::TooFew { points: 0 },
    }
}

fn source() -> Datastore {
    Datastore { takes: Takes::Nothing, ..datastore(90) }
}

/// A disk of so many GiB on the first datastore.
fn disk(gib: u64) -> Disk {
    Disk {
        from: 0,
        size: gib * GIB,
        needs: gib * GIB,
        outstanding: 0.0,
        group: None,
        pinned: None,
    }
}

fn ask(datastores: Vec<Datastore>, disks: Vec<Disk>, groups: Vec<Group>) -> Assignment {
    assign(&Inventory { datastores, disks, groups }, BOUND)
}

/// Where the disks go, by disk.
fn places(assignment: &Assignment) -> Vec<(usize, usize)> {
    assignment.assigned.iter().map(|one| (one.disk, one.to)).collect()
}

fn only_refusal(assignment: &Assignment) -> Because {
    assert_eq!(
        (assignment.assigned.len(), assignment.refused.len()),
        (0, 1),
        "{assignment:?}"
    );
    assignment.refused[0].because
}

#[test]
fn room_that_two_datastores_share_is_there_once() {
    // 30 GiB below the bound, for both together.
    let shared = Datastore { shared_room: Some(7), ..datastore(50) };
    let stores = vec![source(), shared, shared];
    let told = ask(stores, vec![disk(20), disk(10), disk(5)], vec![]);
    assert_eq!(told.assigned.len(), 2, "{told:?}");
    let because = told.refused[0].because;
    assert_eq!((told.refused[0].disk, told.refused.len()), (2, 1));
    assert!(
        matches!(because, Because::Full { taken, .. } if taken > 0.84),
        "{because:?}"
    );
}

#[test]
fn of_datastores_with_the_same_room_none_is_the_emptiest() {
    let shared = Datastore { shared_room: Some(7), ..datastore(50) };
    let told = ask(vec![source(), shared, shared], vec![disk(20)], vec![]);
    assert_eq!(told.assigned[0].why, Why::SameRoom(0.7));
    let other = Datastore { shared_room: Some(8), ..datastore(50) };
    let told = ask(vec![source(), shared, other], vec![disk(20)], vec![]);
    assert_eq!(told.assigned[0].why, Why::Emptiest(0.7));
}

#[test]
fn idle_disks_spread_by_room() {
    let stores = vec![source(), datastore(10), datastore(30)];
    let told = ask(stores, vec![disk(10), disk(10), disk(10), disk(10)], vec![]);
    let at = |to| places(&told).iter().filter(|(_, it)| *it == to).count();
    assert_eq!((at(1), at(2)), (3, 1), "{told:?}");
    assert_eq!(told.assigned[0].why, Why::Emptiest(0.2));
}

#[test]
fn busy_disks_go_where_they_are_answered_quickest() {
    let slow = Datastore { device: line(5.0, 1.0), ..datastore(0) };
    let fast = Datastore { device: line(0.5, 0.1), ..datastore(50) };
    let busy = Disk { outstanding: 4.0, ..disk(5) };
    let told = ask(vec![source(), slow, fast], vec![busy], vec![]);
    assert_eq!(places(&told), [(0, 2)]);
    assert_eq!(told.assigned[0].why, Why::Quickest(Nanos::from_micros(900)));
    // What one of them does with a load is not known: then room decides.
    let told = ask(vec![source(), slow, datastore(50)], vec![busy], vec![]);
    assert_eq!(places(&told), [(0, 1)]);
}

#[test]
fn no_datastore_is_filled_past_its_bound() {
    let told = ask(vec![source(), datastore(70)], vec![disk(20)], vec![]);
    assert_eq!(only_refusal(&told), Because::Full { to: 1, taken: 0.9 });
    // Of two that fit only by themselves, the larger one goes.
    let told = ask(vec![source(), datastore(70)], vec![disk(6), disk(8)], vec![]);
    assert_eq!(places(&told), [(1, 1)]);
    assert_eq!(told.refused[0].disk, 0);
}

#[test]
fn what_is_one_disks_gets_the_largest_that_fits() {
    let device = Datastore { takes: Takes::One, capacity: 10 * GIB, ..datastore(0) };
    let disks = vec![disk(4), disk(12), disk(9), disk(8)];
    let told = ask(vec![source(), device, datastore(0)], disks, vec![]);
    assert_eq!(places(&told), [(0, 2), (1, 2), (2, 1), (3, 2)]);
    assert_eq!(told.assigned[2].why, Why::Alone);
    let told = ask(vec![source(), device], vec![disk(12)], vec![]);
    assert_eq!(only_refusal(&told), Because::TooLarge);
}

#[test]
fn a_group_that_stays_together_goes_to_one_datastore_or_nowhere() {
    let group = |together| vec![Group { after: vec![], together, ..Group::default() }];
    let grouped = Disk { group: Some(0), ..disk(30) };
    let stores = || vec![source(), datastore(10), datastore(39)];
    let told = ask(stores(), vec![grouped, grouped], group(true));
    assert_eq!(places(&told), [(0, 1), (1, 1)]);
    let told = ask(stores(), vec![grouped, grouped], group(false));
    assert_eq!(places(&told), [(0, 1), (1, 2)]);
    let told = ask(stores(), vec![grouped, grouped, grouped], group(true));
    assert!(told.assigned.is_empty(), "{told:?}");
    assert!(told.refused.iter().all(|one| one.because == Because::Apart), "{told:?}");
}

#[test]
fn what_cannot_move_is_told_why() {
    let pinned = Disk { pinned: Some(Pinned::Moves), ..disk(1) };
    let told = ask(vec![source(), datastore(0)], vec![pinned], vec![]);
    assert_eq!(only_refusal(&told), Because::Pinned(Pinned::Moves));
    let told = ask(vec![source(), source()], vec![disk(1)], vec![]);
    assert_eq!(only_refusal(&told), Because::NoDestination);
}

#[test]
fn a_group_of_which_one_disk_stays_stays_together() {
    let group = |together| vec![Group { after: vec![], together, ..Group::default() }];
    let moves = Disk { group: Some(0), ..disk(1) };
    let stays = Disk { pinned: Some(Pinned::NotServed), ..moves };
    let stores = || vec![source(), datastore(0)];
    let told = ask(stores(), vec![moves, stays, disk(1)], group(true));
    assert_eq!(places(&told), [(2, 1)], "{told:?}");
    let because: Vec<Because> = told.refused.iter().map(|one| one.because).collect();
    assert_eq!(because, [Because::Beside(1), Because::Pinned(Pinned::NotServed)]);
    // Of one that need not be together each goes by itself.
    let told = ask(stores(), vec![moves, stays, disk(1)], group(false));
    assert_eq!(places(&told), [(0, 1), (2, 1)], "{told:?}");
}

fn any_inventory(random: &mut Random) -> Inventory {
    let takes = [Takes::Nothing, Takes::One, Takes::Any, Takes::Any];
    let devices = [LqFit::TooFew { points: 3 }, line(1.0, 0.5), line(0.2, 0.1)];
    let datastores: Vec<Datastore> = (0..2 + random.below(4))
        .map(|_| Datastore {
            takes: takes[random.below(4) as usize],
            outstanding: random.below(8) as f64,
            device: devices[random.below(3) as usize],
            ..datastore(random.below(100))
        })
        .collect();
    let groups: Vec<Group> = (0..random.below(3))
        .map(|_| Group { together: random.one_in(2), ..Group::default() })
        .collect();
    let disks = (0..random.below(20)).map(|_| Disk {
        from: random.below(datastores.len() as u64) as usize,
        outstanding: if random.one_in(2) { random.below(5) as f64 } else { 0.0 },
        group: (!groups.is_empty() && random.one_in(2))
            .then(|| random.below(groups.len() as u64) as usize),
        pinned: random.one_in(8).then_some(Pinned::NotServed),
        ..disk(1 + random.below(30))
    });
    let disks = disks.collect();
    Inventory { datastores, disks, groups }
}

#[test]
fn each_disk_is_assigned_or_refused_and_no_bound_is_broken() {
    for seed in 0..3000 {
        let inventory = any_inventory(&mut Random::new(seed));
        let told = assign(&inventory, BOUND);
        let assigned = told.assigned.iter().map(|one| one.disk);
        let mut all: Vec<usize> =
            assigned.chain(told.refused.iter().map(|one| one.disk)).collect();
        all.sort_unstable();
        let each: Vec<usize> = (0..inventory.disks.len()).collect();
        assert_eq!(all, each, "seed {seed}: {told:?}");
        for (to, one) in inventory.datastores.iter().enumerate() {
            let there: Vec<&Disk> = told
                .assigned
                .iter()
                .filter(|it| it.to == to)
                .map(|it| &inventory.disks[it.disk])
                .collect();
            let more: u64 = there.iter().map(|disk| disk.needs).sum();
            let taken = (one.capacity - one.free + more) as f64 / one.capacity as f64;
            let kept = match one.takes {
                Takes::Nothing => there.is_empty(),
                Takes::One => there.len() <= 1,
                Takes::Any => there.is_empty() || taken <= BOUND + 1e-9,
            };
            assert!(kept, "seed {seed}: datastore {to} at {taken}: {told:?}");
            assert!(there.iter().all(|disk| disk.from != to), "seed {seed}");
        }
    }
}
