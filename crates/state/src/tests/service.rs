//! Classes and policies in the store.

use sterna_core::qos::policy::{Aim, Cruise, Fallback, PolicyId, Tolerance};
use sterna_core::qos::{ClassId, Goal, Rate};

use super::super::*;
use super::{datastore, disk, fresh, moving, open};

pub(super) fn class(name: &str) -> ClassRecord {
    ClassRecord {
        id: ClassId(0),
        name: name.into(),
        shares: 1500,
        reservation: Some(Rate::Bytes(20 << 20)),
        created: 5,
    }
}

pub(super) fn cruise(class: ClassId, until_job: Option<u64>) -> PolicyRecord {
    PolicyRecord {
        id: PolicyId::NEW,
        class,
        aim: Aim::Cruise(Cruise {
            target: "5ms".parse().unwrap(),
            tolerance: Tolerance::new(10).unwrap(),
            floor: Some(Rate::Requests(300)),
            fallback: Fallback::Limit(Goal::Bytes(1 << 20)),
        }),
        schedule: Some("Mon-Fri 22:00-06:00".parse().unwrap()),
        until_job,
        created: 6,
    }
}

#[test]
fn classes_and_policies_come_back_as_they_were_kept() {
    let (dir, store, job) = moving();
    let db = disk("db", "fast").id;
    let id = store.add_class(class("oltp"), vec![db]).unwrap();
    let one = store.add_policy(cruise(id, Some(job))).unwrap();
    drop(store);
    let store = open(&dir);
    let kept = store.classes().unwrap();
    assert_eq!(kept[1], ClassRecord { id, ..class("oltp") });
    assert_eq!(store.members().unwrap(), [(db, id)]);
    let kept = store.policies().unwrap();
    assert_eq!(kept, [PolicyRecord { id: one, ..cruise(id, Some(job)) }]);
}

#[test]
fn the_class_of_the_copies_is_there_from_the_beginning() {
    let (_dir, store) = fresh();
    let all = store.classes().unwrap();
    assert_eq!((all[0].id, all[0].name.as_str()), (ClassId::MIGRATION, "migration"));
    assert_eq!(store.add_class(class("oltp"), vec![]).unwrap(), ClassId(1));
}

#[test]
fn a_disk_is_in_one_class_and_leaves_it_when_it_goes() {
    let (_dir, store) = fresh();
    store.add_datastore(datastore("fast")).unwrap();
    let db = disk("db", "fast");
    store.add_disk(db.clone()).unwrap();
    let id = store.add_class(class("oltp"), vec![db.id]).unwrap();
    assert!(store.add_class(class("web"), vec![db.id]).is_err());
    assert_eq!(store.classes().unwrap().len(), 2, "half a class was made");
    store.remove_disk(db.id).unwrap();
    assert_eq!(store.members().unwrap(), []);
    assert!(store.classes().unwrap().iter().any(|class| class.id == id));
}

#[test]
fn a_change_of_a_class_is_made_whole_or_not_at_all() {
    let (_dir, store) = fresh();
    store.add_datastore(datastore("fast")).unwrap();
    let (a, b) = (disk("a", "fast"), disk("b", "fast"));
    store.add_disk(a.clone()).unwrap();
    store.add_disk(b.clone()).unwrap();
    let id = store.add_class(class("oltp"), vec![a.id]).unwrap();
    store.add_class(class("web"), vec![b.id]).unwrap();
    let change =
        ClassChange { shares: 1, reservation: None, add: vec![b.id], remove: vec![a.id] };
    assert!(store.change_class(id, change.clone()).is_err(), "b is in web");
    assert_eq!(store.classes().unwrap()[1].shares, 1500);
    assert_eq!(store.members().unwrap().len(), 2);
    store.change_class(id, ClassChange { add: vec![], ..change }).unwrap();
    let kept = &store.classes().unwrap()[1];
    assert_eq!((kept.shares, kept.reservation), (1, None));
    assert_eq!(store.members().unwrap().len(), 1);
}

#[test]
fn the_policies_of_a_class_go_with_it() {
    let (_dir, store, _job) = moving();
    let id = store.add_class(class("oltp"), vec![]).unwrap();
    let first = store.add_policy(cruise(id, None)).unwrap();
    store.add_policy(cruise(id, None)).unwrap();
    store.remove_policy(first).unwrap();
    assert_eq!(store.policies().unwrap().len(), 1);
    store.remove_class(id).unwrap();
    assert_eq!(store.policies().unwrap(), []);
    // No number is given twice: somebody may have noted it.
    let id = store.add_class(class("oltp"), vec![]).unwrap();
    assert_eq!(id, ClassId(2));
    assert_eq!(store.add_policy(cruise(id, None)).unwrap(), PolicyId(3));
}

#[test]
fn a_state_from_before_classes_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let old = Connection::open(&path).unwrap();
    for step in &schema::STEPS[..2] {
        old.execute_batch(step).unwrap();
    }
    old.execute_batch(
        "PRAGMA application_id = 0x5354524E; PRAGMA user_version = 2;
         INSERT INTO datastores (name, location, added) VALUES ('fast', '/mnt/fast', 1);",
    )
    .unwrap();
    drop(old);
    let store = open(&dir);
    assert_eq!(store.datastores::<String>().unwrap().len(), 1);
    assert_eq!(store.classes().unwrap().len(), 1);
}

#[test]
fn hours_of_promises_add_up_come_back_and_go_after_ninety_days() {
    const HOUR: u64 = 3600;
    let (dir, store) = fresh();
    let gold = store.add_class(class("gold"), vec![]).unwrap();
    let kept = |class, policy: Option<u64>, hour: u64, kept_s, missed_s| KeptHour {
        class,
        policy: policy.map(PolicyId),
        hour: hour * HOUR,
        kept_s,
        missed_s,
        quiet_s: 60.0,
    };
    let now = 90 * 24 * HOUR;
    let one = kept(gold, None, 5, 200.0, 40.0);
    let other = kept(gold, Some(7), 6, 300.0, 0.0);
    store.add_kept(now, vec![one, other, kept(ClassId(99), None, 5, 1.0, 1.0)]).unwrap();
    store.add_kept(now, vec![one]).unwrap();
    drop(store);
    let store = open(&dir);
    let twice = KeptHour { quiet_s: 120.0, ..kept(gold, None, 5, 400.0, 80.0) };
    assert_eq!(store.kept_hours(gold, 0, now).unwrap(), [twice, other]);
    assert_eq!(store.kept_hours(gold, 6 * HOUR, now).unwrap(), [other]);
    assert_eq!(store.kept_hours(ClassId(99), 0, now).unwrap(), [], "it has gone");
    store.add_kept(now + 6 * HOUR, vec![]).unwrap();
    assert_eq!(store.kept_hours(gold, 0, now).unwrap(), [other], "90 days are over");
    store.remove_class(gold).unwrap();
    assert_eq!(store.kept_hours(gold, 0, now).unwrap(), []);
}
