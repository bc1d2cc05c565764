//! Where new disks go.

use sterna_placement::storage::{NewDisk, choose};

use super::*;

#[test]
fn a_new_disk_goes_where_its_nearest_bound_is_farthest() {
    let device = line(1.0, 0.1);
    let datastores = vec![
        datastore(30, NO_TRAFFIC),
        busy(5, device, 14),
        busy(5, device, 16),
        datastore(79, NO_TRAFFIC),
        Datastore { takes_disks: false, ..datastore(0, NO_TRAFFIC) },
    ];
    let inventory = Inventory { datastores, disks: Vec::new(), rules: Vec::new() };
    let bounds = Bounds::default();
    let choice = choose(&inventory, &bounds, NewDisk { size: 10 * GIB });
    assert_eq!(choice.to, Some(0), "{choice:#?}");
    let near = choice.all[1].expect("it would take it");
    assert_eq!(near.nearest, Over::Latency);
    assert!(matches!(choice.all[2], Err(Because::Slow(_))));
    assert!(matches!(choice.all[3], Err(Because::Full(_))));
    assert_eq!(choice.all[4], Err(Because::Closed));
    assert_eq!(choose(&inventory, &bounds, NewDisk { size: 90 * GIB }).to, None);
}

#[test]
fn thin_disks_that_were_promised_their_size_do_not_all_go_to_one_place() {
    let mut inventory = Inventory {
        datastores: vec![datastore(10, NO_TRAFFIC), datastore(20, NO_TRAFFIC)],
        ..Inventory::default()
    };
    for _ in 0..7 {
        let choice = choose(&inventory, &Bounds::default(), NewDisk { size: 10 * GIB });
        let to = choice.to.expect("a place");
        inventory.disks.push(Disk { promised: 10 * GIB, ..idle(to, 0) });
    }
    let on = |at| inventory.disks.iter().filter(|it| it.datastore == at).count();
    assert_eq!((on(0), on(1)), (4, 3));
}

#[test]
fn new_disks_spread_over_datastores_of_one_file_system() {
    let shared = Datastore { shared_room: Some(7), ..datastore(10, NO_TRAFFIC) };
    let datastores = vec![shared, shared];
    let mut inventory = Inventory { datastores, ..Inventory::default() };
    for made in 1..=4 {
        let choice = choose(&inventory, &Bounds::default(), NewDisk { size: 10 * GIB });
        let to = choice.to.expect("a place");
        // What was promised to the one is promised of the other's room, too.
        let chance = choice.all[1 - to].as_ref().expect("a chance");
        assert!((chance.used - (0.1 + 0.1 * f64::from(made)) / 0.8).abs() < 1e-9);
        inventory.disks.push(Disk { promised: 10 * GIB, ..idle(to, 0) });
    }
    let on = |at| inventory.disks.iter().filter(|it| it.datastore == at).count();
    assert_eq!((on(0), on(1)), (2, 2));
}

#[test]
fn a_write_between_the_looks_at_two_datastores_of_one_file_system_does_not_choose() {
    let shared = Datastore { shared_room: Some(7), ..datastore(10, NO_TRAFFIC) };
    let mut inventory =
        Inventory { datastores: vec![shared, shared], ..Inventory::default() };
    let mut last = 0;
    for _ in 0..4 {
        inventory.disks.push(Disk { promised: GIB, ..idle(last, 0) });
        // The one that has the last disk was asked first.
        inventory.datastores[last].free = shared.free;
        inventory.datastores[1 - last].free = shared.free - (1 << 20);
        let choice = choose(&inventory, &Bounds::default(), NewDisk { size: GIB });
        assert_eq!(choice.to, Some(1 - last), "{choice:#?}");
        last = 1 - last;
    }
}
