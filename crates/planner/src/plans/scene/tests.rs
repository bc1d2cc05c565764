//! From a site to what a plan is made from, without an engine or a state.

use sterna_placement::waves::{Assignment, assign};

use super::*;
use crate::plans::StillPlanned;
use crate::site::build::GIB;

const NOW: u64 = 1_800_000_000;

fn leaving(datastore: &str, to: &[&str]) -> PlanEvacuation {
    let asked = serde_json::json!({ "datastore": datastore, "to": to });
    serde_json::from_value(asked).expect("a request")
}

/// An old array with two disks, and two datastores with 20 and 90 GiB of room.
fn site() -> Site {
    Site::made(NOW, &[("narrow", 80 * GIB), ("old", 70 * GIB), ("wide", 10 * GIB)])
        .with_disk("db", "old", 60 * GIB)
        .with_disk("log", "old", 10 * GIB)
        .with_disk("other", "wide", 10 * GIB)
}

fn planned(site: &mut Site, disk: &str, needs: u64) -> StillPlanned {
    let disk = site.disk(disk).record.id;
    let (empties, to) = ("wide".into(), "narrow".into());
    StillPlanned { plan: 7, disk, migration: None, empties, to, needs }
}

fn scene(site: &Site, to: &[&str]) -> PlanScene {
    PlanScene::of(site, &leaving("old", to), &Grouped::default()).expect("a scene")
}

#[test]
fn only_the_disks_of_the_datastore_leave_and_to_where_there_is_room() {
    let scene = scene(&site(), &[]);
    let leaving: Vec<&str> = scene.disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(leaving, ["db", "log"]);
    let Assignment { assigned, refused } = assign(&scene.inventory, 0.95);
    assert!(refused.is_empty(), "{refused:?}");
    let to = |disk: usize| {
        let one = assigned.iter().find(|one| one.disk == disk).expect("assigned");
        scene.names[one.to].as_str()
    };
    assert_eq!(to(0), "wide");
}

#[test]
fn what_is_in_maintenance_is_no_destination_and_neither_is_the_datastore_itself() {
    let mut site = site();
    site.datastore("wide").is_in_maintenance = true;
    let takes = |scene: &PlanScene| -> Vec<Takes> {
        scene.inventory.datastores.iter().map(|one| one.takes).collect()
    };
    let nothing = Takes::Nothing;
    assert_eq!(takes(&scene(&site, &[])), [Takes::Any, nothing, nothing]);
    site.datastore("narrow").space = None;
    assert_eq!(takes(&scene(&site, &[])), [nothing, nothing, nothing]);
}

#[test]
fn a_device_takes_one_disk_and_only_if_it_is_named() {
    let mut site = site();
    site.datastore("narrow").is_shared = false;
    assert_eq!(scene(&site, &[]).inventory.datastores[0].takes, Takes::Nothing);
    assert_eq!(scene(&site, &["narrow"]).inventory.datastores[0].takes, Takes::One);
    let site = site.with_move("other", ["wide", "narrow"], None);
    assert_eq!(scene(&site, &["narrow"]).inventory.datastores[0].takes, Takes::Nothing);
}

#[test]
fn what_moves_or_is_planned_or_not_served_stays_and_the_reason_is_given() {
    let mut site = site().with_move("db", ["old", "wide"], None);
    let log = planned(&mut site, "log", 10 * GIB);
    site.planned.push(log);
    let both = scene(&site, &[]);
    assert!(
        both.pinned[&0].contains("already moving, by migration 1"),
        "{:?}",
        both.pinned
    );
    assert!(
        both.pinned[&1].contains("plan 7 moves the disk already"),
        "{:?}",
        both.pinned
    );
    let free = |at: usize| both.inventory.datastores[at].free;
    assert_eq!([free(0), free(2)], [10 * GIB, 30 * GIB], "what comes counts as there");
    (site.moves, site.planned) = Default::default();
    site.disk("db").problem = Some("its image is gone".into());
    assert!(scene(&site, &[]).pinned[&0].contains("its image is gone"));
}

#[test]
fn a_move_that_a_plan_is_making_counts_once() {
    let mut site = site().with_move("other", ["wide", "narrow"], None);
    let mut one = planned(&mut site, "other", 10 * GIB);
    one.migration = Some(site.moves[0].id);
    site.planned.push(one);
    assert_eq!(scene(&site, &[]).inventory.datastores[0].free, 10 * GIB);
}

#[test]
fn a_datastore_that_is_not_there_is_not_found() {
    let unknown = leaving("elsewhere", &[]);
    let Err(error) = PlanScene::of(&site(), &unknown, &Grouped::default()) else {
        panic!("a scene of what is not there")
    };
    assert_eq!(error.code, ErrorCode::NotFound);
}
