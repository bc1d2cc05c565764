//! What Storage DRS keeps.

use sterna_api::{
    Automation, Balanced, BalancedOutcome, BalancedScene, DatastoreLoad, OverBound,
    RuleStrength, RuleWish, StorageDrsSettings,
};

use super::*;

#[test]
fn settings_are_the_usual_ones_until_they_are_changed() {
    let (dir, store) = fresh();
    assert_eq!(store.storage_drs().unwrap(), StorageDrsSettings::default());
    let automation = Automation::Full;
    let settings = StorageDrsSettings { automation, space: 0.7, ..Default::default() };
    store.set_storage_drs(&StorageDrsSettings::default()).unwrap();
    store.set_storage_drs(&settings).unwrap();
    drop(store);
    assert_eq!(open(&dir).storage_drs().unwrap(), settings);
}

#[test]
fn a_disk_that_goes_leaves_its_rules() {
    let (_dir, store) = fresh();
    store.add_datastore(datastore("fast")).unwrap();
    let disks = ["a", "b"].map(|name| disk(name, "fast"));
    disks.iter().for_each(|disk| store.add_disk(disk.clone()).unwrap());
    let rule = StorageRuleRecord {
        name: "pair".into(),
        wish: RuleWish::Apart,
        strength: RuleStrength::Should,
        disks: disks.iter().map(|disk| disk.id).collect(),
        created: 9,
    };
    store.add_storage_rule(rule.clone()).unwrap();
    assert_eq!(store.storage_rules().unwrap(), std::slice::from_ref(&rule));
    assert!(store.add_storage_rule(rule.clone()).is_err(), "its name is taken");
    store.remove_disk(disks[0].id).unwrap();
    let left = StorageRuleRecord { disks: vec![disks[1].id], ..rule };
    assert_eq!(store.storage_rules().unwrap(), [left]);
    store.remove_storage_rule("pair").unwrap();
    assert_eq!(store.storage_rules().unwrap(), []);
}

#[test]
fn what_came_of_a_move_is_kept_with_it() {
    let (_dir, store) = fresh();
    store.add_datastore(datastore("fast")).unwrap();
    let one = disk("db", "fast");
    store.add_disk(one.clone()).unwrap();
    let id = store.add_migration(migration(&one, "slow")).unwrap();
    let load = DatastoreLoad { taken: Some(0.5), p95_us: None };
    let mut balanced = Balanced {
        over: Some(OverBound::Latency),
        rule: None,
        space: 0.8,
        latency_us: 15_000,
        window_s: 3600.0,
        predicted: [load; 2],
        before: BalancedScene::default(),
        after: None,
        outcome: BalancedOutcome::Waiting,
        note: None,
    };
    store.set_balanced(id, &balanced).unwrap();
    balanced.after = Some(BalancedScene::default());
    balanced.outcome = BalancedOutcome::Paid;
    store.set_balanced(id, &balanced).unwrap();
    let kept = store.balanced_moves().unwrap();
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), [(id, balanced.clone())]);
    assert!(store.set_balanced(id + 1, &balanced).is_err(), "there is no such migration");
}
