//! VMs, and moves of their disks.

use rusqlite::params;
use sterna_core::qos::policy::PolicyId;

use super::service::{class, cruise};
use super::*;

fn vm(name: &str) -> VmRecord {
    VmRecord {
        name: name.into(),
        reach: Reach::Qmp(format!("/run/{name}.qmp").into()),
        added: 7,
    }
}

fn a_move(device: &str) -> VmMoveRecord {
    VmMoveRecord {
        id: 0,
        kind: VmMoveKind::Move,
        vm: "web".into(),
        device: device.into(),
        size: 10 << 30,
        format: "qcow2".into(),
        from: "fast".into(),
        source: "/mnt/fast/web.qcow2".into(),
        source_file: None,
        to: "slow".into(),
        destination: String::new(),
        destination_file: None,
        rate: Some(1 << 20),
        guard: sterna_api::Guard { keep: Some(0.97), ..Default::default() },
        step: Step::Created,
        paused: false,
        cancel: false,
        started: 9,
        ended: None,
        note: None,
        application: Application::default(),
        report: None,
        unclear: false,
    }
}

fn add(store: &Store, device: &str) -> Result<u64, StoreError> {
    store.add_vm_move(a_move(device), |id| format!("/mnt/slow/web-{id}.qcow2"))
}

#[test]
fn machines_are_kept_as_they_are_reached() {
    let (dir, store) = fresh();
    let managed = Reach::Libvirt { uri: "qemu:///system".into(), domain: "db-1".into() };
    let other = VmRecord { reach: managed, ..vm("db") };
    store.add_vm(vm("web")).unwrap();
    store.add_vm(other.clone()).unwrap();
    assert!(store.add_vm(VmRecord { name: "again".into(), ..vm("web") }).is_err());
    drop(store);
    let store = open(&dir);
    assert_eq!(store.vms().unwrap(), [other, vm("web")]);
    store.remove_vm("db").unwrap();
    assert_eq!(store.vms().unwrap(), [vm("web")]);
}

#[test]
fn where_one_move_goes_no_other_goes_until_that_is_put_away() {
    let (_dir, store, _) = moving();
    let add = |device| store.add_vm_move(a_move(device), |_| "/mnt/x.raw".into());
    let one = add("vda").unwrap();
    let taken = |result: Result<u64, StoreError>| {
        assert!(matches!(result, Err(StoreError::Taken { id, .. }) if id == one));
    };
    taken(add("vdb"));
    assert_eq!(store.vm_moves().unwrap().len(), 1, "nothing of it is kept");
    let leaves = Leaves { untidy: true, ..Leaves::default() };
    let ending =
        Ending { at: 11, note: None, application: Application::default(), report: None };
    store.vm_move_ends(one, Step::Cancelled, ending, leaves).unwrap();
    taken(add("vdb"));
    store.vm_move_is_tidy(one, None).unwrap();
    add("vdb").unwrap();
}

#[test]
fn a_number_means_one_move_of_whatever_kind() {
    let (_dir, store, migration) = moving();
    let first = add(&store, "vda").unwrap();
    let second = add(&store, "vdb").unwrap();
    assert_eq!((first, second), (migration + 1, migration + 2));
    let fast = disk("other", "fast");
    store.add_disk(fast.clone()).unwrap();
    let next = store.add_migration(super::migration(&fast, "slow")).unwrap();
    assert_eq!(next, second + 1);
    let known = store.vm_move(second).unwrap().unwrap();
    assert_eq!(known.destination, format!("/mnt/slow/web-{second}.qcow2"));
    assert_eq!(store.vm_move(migration).unwrap(), None);
}

#[test]
fn a_disk_of_a_machine_has_one_move_at_a_time() {
    let (_dir, store) = fresh();
    let id = add(&store, "vda").unwrap();
    assert!(add(&store, "vda").is_err());
    store.vm_move_advances(id, Step::Copying).unwrap();
    assert!(store.vm_move_advances(id, Step::Committed).is_err(), "not so quickly");
    let ending = Ending {
        at: 11,
        note: Some("the machine has ended".into()),
        application: Application::default(),
        report: Some(Report::default()),
    };
    let leaves = Leaves { untidy: true, unclear: true, ..Leaves::default() };
    store.vm_move_ends(id, Step::Cancelled, ending, leaves).unwrap();
    let ended = store.vm_move(id).unwrap().unwrap();
    assert_eq!((ended.step, ended.ended), (Step::Cancelled, Some(11)));
    add(&store, "vda").unwrap();
    assert_eq!(store.untidy_vm_moves().unwrap(), [ended], "its machine does not answer");
    store.vm_move_is_tidy(id, None).unwrap();
    assert_eq!(store.untidy_vm_moves().unwrap(), []);
}

#[test]
fn a_step_of_a_move_whose_answer_got_lost_is_recorded_once_more() {
    let (_dir, store) = fresh();
    let id = add(&store, "vda").unwrap();
    for step in [Step::Copying, Step::Switching, Step::Copying] {
        (0..2).for_each(|_| store.vm_move_advances(id, step).unwrap());
    }
    store.vm_move_advances(id, Step::Switching).unwrap();
    (0..2).for_each(|_| store.vm_move_advances(id, Step::Committed).unwrap());
    assert!(store.vm_move_advances(id, Step::Copying).is_err(), "there is no way back");
}

#[test]
fn of_a_machine_that_was_removed_nothing_is_put_away_in_another_by_its_name() {
    let (_dir, store) = fresh();
    let id = add(&store, "vda").unwrap();
    let ending =
        Ending { at: 11, note: None, application: Application::default(), report: None };
    let leaves = Leaves { untidy: true, unclear: true, ..Leaves::default() };
    store.vm_move_ends(id, Step::Cancelled, ending, leaves).unwrap();
    store.remove_vm(&store.vm_move(id).unwrap().unwrap().vm).unwrap();
    assert_eq!(store.untidy_vm_moves().unwrap(), []);
}

#[test]
fn a_move_that_is_to_be_given_up_is_not_switched_over() {
    let (_dir, store) = fresh();
    let id = add(&store, "vda").unwrap();
    store.vm_move_advances(id, Step::Copying).unwrap();
    store.vm_move_cancel(id).unwrap();
    assert!(!store.vm_move_switches(id).unwrap());
    assert_eq!(store.vm_move(id).unwrap().unwrap().step, Step::Copying);
    let other = add(&store, "vdb").unwrap();
    store.vm_move_advances(other, Step::Copying).unwrap();
    assert!(store.vm_move_switches(other).unwrap());
    store.vm_move_cancel(other).unwrap();
    assert!(store.vm_move_switches(other).unwrap(), "it has been told");
}

#[test]
fn where_the_last_writes_are_is_unclear_until_somebody_has_decided() {
    let (_dir, store) = fresh();
    let id = add(&store, "vda").unwrap();
    assert_eq!(store.last_vm_moves().unwrap(), [], "it has not ended");
    let ending =
        Ending { at: 11, note: None, application: Application::default(), report: None };
    let leaves = Leaves { unclear: true, ..Leaves::default() };
    store.vm_move_ends(id, Step::Cancelled, ending, leaves).unwrap();
    let [last] = &store.last_vm_moves().unwrap()[..] else { panic!("one") };
    assert!(last.unclear);
    let later = add(&store, "vda").unwrap();
    let ending =
        Ending { at: 12, note: None, application: Application::default(), report: None };
    store.vm_move_ends(later, Step::Cancelled, ending, Leaves::default()).unwrap();
    assert_eq!(store.last_vm_moves().unwrap()[0].id, id, "that has led nowhere");
    store.vm_move_is_clear(id).unwrap();
    assert!(!store.vm_move(id).unwrap().unwrap().unclear);
    assert_eq!(store.last_vm_moves().unwrap(), [], "cancelled");
}

#[test]
fn a_move_that_was_given_up_is_unclear_if_its_machine_has_the_destination() {
    let (_dir, store) = fresh();
    let id = add(&store, "vda").unwrap();
    let ending =
        Ending { at: 11, note: None, application: Application::default(), report: None };
    let leaves = Leaves { untidy: true, ..Leaves::default() };
    store.vm_move_ends(id, Step::Cancelled, ending, leaves).unwrap();
    assert_eq!(store.last_vm_moves().unwrap(), [], "it has led nowhere");
    store.vm_move_is_unclear(id, "QEMU runs with it".into()).unwrap();
    let [last] = &store.last_vm_moves().unwrap()[..] else { panic!("one") };
    assert_eq!((last.unclear, last.note.as_deref()), (true, Some("QEMU runs with it")));
    assert_eq!(store.untidy_vm_moves().unwrap(), []);
}

#[test]
fn an_image_that_was_left_long_ago_is_still_left() {
    let (_dir, store) = fresh();
    let mut ids = Vec::new();
    for at in 11..13 {
        let id = add(&store, "vda").unwrap();
        store.vm_move_advances(id, Step::Copying).unwrap();
        assert!(store.vm_move_switches(id).unwrap());
        store.vm_move_advances(id, Step::Committed).unwrap();
        let ending =
            Ending { at, note: None, application: Application::default(), report: None };
        store.vm_move_ends(id, Step::Completed, ending, Leaves::default()).unwrap();
        ids.push(store.vm_move(id).unwrap().unwrap());
    }
    let [first, second] = &ids[..] else { panic!("two") };
    let left = |image: &str| {
        let found = store.left_by_vm_move(&first.vm, "vda", image).unwrap();
        found.map(|one| one.id)
    };
    assert_eq!(left(&first.source), Some(second.id), "the later one has left it, too");
    assert_eq!(left(&second.destination), None);
    assert_eq!(left("/elsewhere"), None);
    assert_eq!(store.left_by_vm_move(&first.vm, "vdb", &first.source).unwrap(), None);
}

#[test]
fn wishes_are_kept() {
    let (_dir, store) = fresh();
    let id = add(&store, "vda").unwrap();
    store.vm_move_rate(id, None).unwrap();
    store.vm_move_pause(id, true).unwrap();
    store.vm_move_cancel(id).unwrap();
    store.vm_move_guard(id, &sterna_api::Guard::default()).unwrap();
    let now = store.vm_move(id).unwrap().unwrap();
    assert_eq!((now.rate, now.paused, now.cancel), (None, true, true));
    assert!(now.guard.is_none());
}

#[test]
fn a_policy_ends_with_a_move_as_with_a_migration() {
    let (dir, store, migration) = moving();
    let a_move = add(&store, "vda").unwrap();
    let class = store.add_class(class("oltp"), vec![]).unwrap();
    for job in [migration, a_move] {
        store.add_policy(cruise(class, Some(job))).unwrap();
    }
    assert!(store.add_policy(cruise(class, Some(a_move + 1))).is_err(), "there is none");
    drop(store);
    let kept = open(&dir).policies().unwrap();
    let jobs: Vec<_> = kept.iter().map(|policy| policy.until_job).collect();
    assert_eq!(jobs, [Some(migration), Some(a_move)]);
}

#[test]
fn policies_of_before_they_ended_with_moves_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let old = Connection::open(dir.path().join("state.db")).unwrap();
    for step in &schema::STEPS[..5] {
        old.execute_batch(step).unwrap();
    }
    old.execute_batch("PRAGMA application_id = 0x5354524E; PRAGMA user_version = 5")
        .unwrap();
    let aim = r#"{"kind": "queue-depth", "depth": 2}"#;
    let sql = "INSERT INTO policies (class, aim, created) VALUES (0, ?, 1)";
    old.execute(sql, params![aim]).unwrap();
    drop(old);
    let kept = open(&dir).policies().unwrap();
    assert_eq!((kept.len(), kept[0].id, kept[0].until_job), (1, PolicyId(1), None));
}

#[test]
fn the_file_that_a_disk_leaves_is_kept_as_it_was_at_the_end() {
    let (dir, store, _) = moving();
    let before = KnownFile { number: 7, made: 8, size: 512, modified: 9 };
    let after = KnownFile { modified: u64::MAX, ..before };
    let record = VmMoveRecord { source_file: Some(before), ..a_move("vda") };
    let id = store.add_vm_move(record, |_| "/mnt/slow/web.qcow2".into()).unwrap();
    assert_eq!(store.vm_move(id).unwrap().unwrap().source_file, Some(before));
    for step in [Step::Copying, Step::Switching, Step::Committed] {
        store.vm_move_advances(id, step).unwrap();
    }
    let ending =
        Ending { at: 11, note: None, application: Application::default(), report: None };
    let leaves = Leaves { source_file: Some(after), ..Leaves::default() };
    store.vm_move_ends(id, Step::Completed, ending, leaves).unwrap();
    drop(store);
    assert_eq!(open(&dir).vm_move(id).unwrap().unwrap().source_file, Some(after));
}

#[test]
fn a_move_of_before_files_were_recorded_knows_none() {
    let dir = tempfile::tempdir().unwrap();
    let old = Connection::open(dir.path().join("state.db")).unwrap();
    for step in &schema::STEPS[..19] {
        old.execute_batch(step).unwrap();
    }
    let guard = serde_json::to_string(&sterna_api::Guard::default()).unwrap();
    let application = serde_json::to_string(&sterna_api::Application::default()).unwrap();
    old.execute_batch(&format!(
        "PRAGMA application_id = 0x5354524E; PRAGMA user_version = 19;
         INSERT INTO vm_moves (id, vm, device, size, format, from_place, from_image,
         to_datastore, to_image, guard, step, paused, cancel, started, ended, application)
         VALUES (3, 'web', 'vda', 512, 'raw', 'fast', '/mnt/fast/web.raw', 'slow',
         '/mnt/slow/web-vda-3.raw', '{guard}', 'completed', 0, 0, 9, 11, '{application}')",
    ))
    .unwrap();
    drop(old);
    let kept = open(&dir).vm_move(3).unwrap().unwrap();
    assert_eq!((kept.step, kept.source_file), (Step::Completed, None));
    assert_eq!(kept.destination_file, None);
}

#[test]
fn the_file_that_was_made_for_a_copy_is_kept_over_a_restart() {
    let (dir, store, _) = moving();
    let id = add(&store, "vda").unwrap();
    let file = |store: &Store| store.vm_move(id).unwrap().unwrap().destination_file;
    assert_eq!(file(&store), None);
    let made = MadeFile { number: 7, made: u64::MAX };
    store.vm_move_made(id, made).unwrap();
    store.vm_move_advances(id, Step::Copying).unwrap();
    drop(store);
    assert_eq!(file(&open(&dir)), Some(made));
}
