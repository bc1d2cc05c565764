//! What holds for any inventory.

use proptest::prelude::*;

use super::*;

prop_compose! {
    pub(super) fn any_device()(kind in 0..6, unloaded in 0.1..8.0, slope in 0.01..2.0) -> LqFit {
        match kind {
            0 => NO_TRAFFIC,
            1 => LqFit::Flat { seen: (0.0, 20.0), latency: Nanos((unloaded * 1e6) as u64) },
            _ => line(unloaded, slope),
        }
    }
}

prop_compose! {
    pub(super) fn any_datastore()(
        taken in 0_u64..=100,
        device in any_device(),
        latency in proptest::option::weighted(0.8, 1_u64..80),
        takes_disks in proptest::bool::weighted(0.9),
        shared_room in proptest::option::weighted(0.2, 0_u64..2),
    ) -> Datastore {
        let latency = latency.map(Nanos::from_millis);
        Datastore { latency, takes_disks, shared_room, ..datastore(taken, device) }
    }
}

prop_compose! {
    pub(super) fn any_disk(datastores: usize)(
        datastore in 0..datastores,
        taken in 0_u64..20,
        works in any::<bool>(),
        outstanding in 0.0..12.0,
        iops in 0.0..3000.0,
    ) -> Disk {
        match works {
            true => Disk { outstanding, iops, ..idle(datastore, taken) },
            false => idle(datastore, taken),
        }
    }
}

/// The datastores that have their room where this one has it.
pub(super) fn sharers(datastores: &[Datastore], at: usize) -> Vec<usize> {
    let room = |at: usize| datastores[at].shared_room;
    let is_one =
        |other: &usize| *other == at || (room(at).is_some() && room(*other) == room(at));
    (0..datastores.len()).filter(is_one).collect()
}

/// What is on a datastore has its room there.
pub(super) fn with_room(mut datastores: Vec<Datastore>, disks: Vec<Disk>) -> Inventory {
    for at in 0..datastores.len() {
        let sharers = sharers(&datastores, at);
        let on_it = disks.iter().filter(|disk| sharers.contains(&disk.datastore));
        let taken: u64 = on_it.map(|disk| disk.taken).sum();
        let first = datastores[sharers[0]];
        let capacity = first.capacity.max(taken);
        let free = first.free.min(capacity - taken);
        datastores[at] = Datastore { capacity, free, ..datastores[at] };
    }
    Inventory { datastores, disks, rules: Vec::new() }
}

pub(super) fn any_inventory() -> impl Strategy<Value = Inventory> {
    let datastores = proptest::collection::vec(any_datastore(), 1..6);
    datastores.prop_flat_map(|datastores| {
        let disks = proptest::collection::vec(any_disk(datastores.len()), 0..24);
        disks.prop_map(move |disks| with_room(datastores.clone(), disks))
    })
}

pub(super) fn over_latency(latency: Option<Nanos>, bounds: &Bounds) -> bool {
    latency.is_some_and(|latency| latency > bounds.latency)
}

/// Makes the moves, and takes it that what was said of them came true.
pub(super) fn make(inventory: &mut Inventory, advice: &Advice) {
    for one in &advice.moves {
        let disk = &mut inventory.disks[one.disk];
        disk.datastore = one.to;
        let (taken, needs) = (disk.taken, disk.needs);
        for at in sharers(&inventory.datastores, one.from) {
            inventory.datastores[at].free += taken;
        }
        for at in sharers(&inventory.datastores, one.to) {
            inventory.datastores[at].free -= needs;
        }
        for (at, side) in [one.from, one.to].into_iter().zip(one.after) {
            let known = side.latency.or(inventory.datastores[at].latency);
            inventory.datastores[at].latency = known;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn moves_push_nobody_over_a_bound_and_gain_by_the_margin(inventory in any_inventory()) {
        let bounds = Bounds::default();
        for one in advise(&inventory, &bounds).moves {
            let [before, after] = [one.before[1], one.after[1]];
            prop_assert!(after.taken <= bounds.space, "{one:?}");
            prop_assert!(
                !over_latency(after.latency, &bounds) || over_latency(before.latency, &bounds),
                "{one:?}"
            );
            match one.why {
                Why::Rule(rule) => prop_assert!(false, "there is no rule {rule}"),
                Why::Over(Over::Space) => {
                    let apart = one.before[0].taken - before.taken;
                    prop_assert!(apart >= bounds.difference, "{one:?}");
                }
                Why::Over(Over::Latency) => {
                    let was = one.before[0].latency.expect("known").0 as f64;
                    let is = after.latency.expect("known").0 as f64;
                    prop_assert!(is <= was * (1.0 - bounds.gain) + 1.0, "{one:?}");
                }
            }
        }
    }

    #[test]
    fn it_comes_to_rest(mut inventory in any_inventory()) {
        let bounds = Bounds::default();
        let mut visited: Vec<Vec<usize>> =
            inventory.disks.iter().map(|disk| vec![disk.datastore]).collect();
        let mut rounds = 0;
        loop {
            let advice = advise(&inventory, &bounds);
            if advice.moves.is_empty() {
                break;
            }
            for one in &advice.moves {
                let went = &mut visited[one.disk];
                // Of a device of which nothing is known it is not said that it has become
                // any quicker; it is seen in time.
                let unknown = one.after[0].latency == one.before[0].latency;
                prop_assert!(
                    unknown || !went.contains(&one.to),
                    "{} comes back: {advice:?}",
                    one.disk
                );
                went.push(one.to);
            }
            make(&mut inventory, &advice);
            rounds += 1;
            // Of a device of which nothing is known one leaves at a time.
            prop_assert!(rounds <= 12 + inventory.disks.len(), "it goes on and on");
        }
    }

    #[test]
    fn every_disk_on_a_datastore_that_stays_too_full_is_explained(inventory in any_inventory()) {
        let bounds = Bounds { moves: usize::MAX, ..Bounds::default() };
        let advice = advise(&inventory, &bounds);
        let mut after = inventory.clone();
        make(&mut after, &advice);
        for (disk, at) in after.disks.iter().enumerate().map(|(disk, it)| (disk, it.datastore)) {
            let store = &after.datastores[at];
            let taken = (store.capacity - store.free) as f64 / store.capacity as f64;
            let said = advice.refused.iter().any(|it| it.disk == disk && it.why == Why::Over(Over::Space));
            prop_assert_eq!(taken > bounds.space + 1e-9, said, "disk {} at {}", disk, taken);
        }
    }
}
