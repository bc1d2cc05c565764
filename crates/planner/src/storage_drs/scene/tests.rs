//! From a site to what should move, without an engine or a state.

use sterna_api::{RuleStrength, RuleWish};
use sterna_core::measure::Summary;
use sterna_placement::storage::{Advice, Because, advise};

use super::*;
use crate::site::build::GIB;

const NOW: u64 = 1_800_000_000;
/// What is looked at: moves that ended in it leave a datastore settling.
const WINDOW: Nanos = Nanos::from_secs(3600);

fn bounds() -> Bounds {
    Bounds { space: 0.8, latency: Nanos::from_millis(15), ..Bounds::default() }
}

/// What is advised, in names.
fn advised(site: Site, rules: &[StorageRuleRecord]) -> (StorageDrsScene, Advice) {
    let scene = StorageDrsScene::of(site, WINDOW, rules);
    let advice = advise(&scene.inventory, &bounds());
    (scene, advice)
}

fn moves((scene, advice): &(StorageDrsScene, Advice)) -> Vec<(String, String)> {
    let names = |one: &Recommended| {
        (scene.disks[one.disk].name.clone(), scene.names[one.to].clone())
    };
    advice.moves.iter().map(names).collect()
}

/// A datastore that is too full by one disk, and one with room.
fn too_full() -> Site {
    Site::made(NOW, &[("full", 90 * GIB), ("roomy", 10 * GIB)])
        .with_disk("db", "full", 30 * GIB)
        .with_disk("log", "full", 60 * GIB)
}

#[test]
fn a_datastore_that_is_too_full_loses_a_disk() {
    let advised = advised(too_full(), &[]);
    assert_eq!(moves(&advised), [("db".into(), "roomy".into())]);
    let over: Vec<_> = advised.0.over(&bounds());
    assert_eq!(over, [("full".into(), Over::Space)]);
}

#[test]
fn a_datastore_without_load_is_over_no_bound_of_response_times() {
    let mut site = Site::made(NOW, &[("slow", 10 * GIB), ("fast", 10 * GIB)])
        .with_disk("db", "slow", GIB)
        .with_disk("log", "fast", GIB);
    for name in ["slow", "fast"] {
        let p95 = Some(Nanos::from_millis(20));
        site.datastore(name).did = Summary { p95, ..Summary::default() };
    }
    site.disk("db").work.outstanding = 2.0;
    let scene = StorageDrsScene::of(site, WINDOW, &[]);
    let over = [("slow".into(), Over::Latency)];
    assert_eq!(scene.over(&bounds()), over, "at the other there were only copies");
    let judged = scene.judged(&bounds(), |_| None);
    let over = judged.iter().map(|one| one.over.len()).collect::<Vec<_>>();
    assert_eq!(over, [1, 0]);
}

#[test]
fn nothing_goes_to_what_is_in_maintenance_or_does_not_answer() {
    let mut site = too_full();
    site.datastore("roomy").is_in_maintenance = true;
    let (scene, advice) = advised(site, &[]);
    assert!(advice.moves.is_empty());
    assert_eq!(scene.closed, [None, Some("it is in maintenance")]);
    let mut site = too_full();
    site.datastore("roomy").space = None;
    assert!(advised(site, &[]).1.moves.is_empty());
}

#[test]
fn a_disk_that_moves_counts_where_it_goes_and_its_datastores_settle() {
    let site = too_full().with_move("db", ["full", "roomy"], None);
    let (scene, advice) = advised(site, &[]);
    assert!(advice.moves.is_empty(), "{:?}", advice.moves);
    let free = |at: usize| scene.inventory.datastores[at].free;
    assert_eq!([free(0), free(1)], [40 * GIB, 60 * GIB]);
    assert_eq!(scene.left, [0]);
    assert!(scene.inventory.datastores.iter().all(|one| one.settling));
}

#[test]
fn a_disk_that_has_moved_rests_unless_it_is_woken() {
    let site = too_full().with_move("db", ["roomy", "full"], Some(NOW - 7200));
    let mut scene = StorageDrsScene::of(site, WINDOW, &[]);
    assert!(matches!(scene.inventory.disks[0].pinned, Some(Pinned::Moved(_))));
    assert!(!scene.inventory.datastores[0].settling, "it has ended before the window");
    scene.wake();
    assert_eq!(scene.inventory.disks[0].pinned, None);
}

#[test]
fn a_move_that_was_cancelled_is_no_reason_to_rest() {
    let mut site = too_full().with_move("db", ["full", "roomy"], Some(NOW - 7200));
    site.moves[0].has_moved = false;
    let advised = advised(site, &[]);
    assert_eq!(moves(&advised), [("db".into(), "roomy".into())]);
}

#[test]
fn a_disk_that_moves_is_said_to_be_where_it_is_and_where_it_goes() {
    // Where it goes there will be too little room.
    let site = Site::made(NOW, &[("full", 90 * GIB), ("roomy", 30 * GIB)])
        .with_disk("db", "full", 30 * GIB)
        .with_disk("log", "full", 60 * GIB)
        .with_move("log", ["full", "roomy"], None);
    let (scene, advice) = advised(site, &[]);
    let log = |one: &&Refused| scene.disks[one.disk].name == "log";
    let stays = scene.staying(advice.refused.iter().find(log).unwrap());
    assert_eq!((stays.datastore.as_str(), stays.to.as_deref()), ("full", Some("roomy")));
    assert_eq!(stays.reason, "the disk is already moving to roomy");
}

#[test]
fn what_a_policy_has_requests_wait_for_does_not_make_a_datastore_slow() {
    let mut site = too_full();
    let waits = Summary {
        span: WINDOW,
        queue: Some(Nanos::from_millis(150)),
        service: Some(Nanos::from_millis(6)),
        p95: Some(Nanos::from_millis(182)),
        ..Summary::default()
    };
    site.datastore("full").did = waits;
    let (scene, _) = advised(site, &[]);
    let over: Vec<_> = scene.over(&bounds());
    assert_eq!(over, [("full".into(), Over::Space)]);
}

#[test]
fn what_a_plan_has_still_to_move_is_left_to_the_plan() {
    let mut site = too_full();
    let disk = site.disk("db").record.id;
    site.planned.push(StillPlanned {
        plan: 3,
        disk,
        migration: None,
        empties: "full".into(),
        to: "roomy".into(),
        needs: 30 * GIB,
    });
    let (scene, advice) = advised(site, &[]);
    assert!(!advice.moves.iter().any(|one| scene.disks[one.disk].name == "db"));
    assert_eq!(scene.closed[0], Some("a plan empties it"));
    assert_eq!(scene.inventory.datastores[1].free, 60 * GIB);
}

/// All disks of a site must be on datastores of their own.
fn all_apart(site: &Site) -> StorageRuleRecord {
    StorageRuleRecord {
        name: "ha".into(),
        wish: RuleWish::Apart,
        strength: RuleStrength::Must,
        disks: site.disks.iter().map(|disk| disk.record.id).collect(),
        created: 0,
    }
}

#[test]
fn a_rule_that_must_hold_moves_a_disk_and_is_named() {
    let site = Site::made(NOW, &[("one", 20 * GIB), ("two", 0)])
        .with_disk("db", "one", 10 * GIB)
        .with_disk("replica", "one", 10 * GIB);
    let rule = all_apart(&site);
    let (scene, advice) = advised(site, &[rule]);
    assert_eq!(scene.broken(), ["ha"]);
    let [one] = &advice.moves[..] else { panic!("one move: {:?}", advice.moves) };
    assert_eq!(scene.why(one.why).1.as_deref(), Some("ha"));
}

#[test]
fn a_disk_that_is_not_served_stays_and_says_so() {
    let mut site = too_full();
    for name in ["db", "log"] {
        site.disk(name).problem = Some("its image is locked".into());
    }
    let (_, advice) = advised(site, &[]);
    assert!(advice.moves.is_empty());
    let not_served = |one: &Refused| one.because == Because::Pinned(Pinned::NotServed);
    assert!(advice.refused.iter().all(not_served), "{:?}", advice.refused);
}

#[test]
fn a_device_or_an_export_with_its_one_image_is_not_too_full() {
    let mut site = too_full();
    site.datastore("full").is_shared = false;
    let (scene, advice) = advised(site, &[]);
    assert!(scene.over(&bounds()).is_empty() && advice.moves.is_empty());
}

#[test]
fn nothing_leaves_what_does_not_answer() {
    let mut site = too_full();
    site.datastore("full").space = None;
    let rule = all_apart(&site);
    let (scene, advice) = advised(site, &[rule]);
    assert!(advice.moves.is_empty(), "{:?}", advice.moves);
    assert!(scene.inventory.disks.iter().all(|disk| disk.pinned == Some(Pinned::Away)));
}
