//! The store as its callers see it, and as an older or newer file finds it.

mod plans;
mod registry;
mod service;
mod storage_drs;
mod vms;

use std::time::Duration;

use sterna_api::{Application, Figures, Provision, Report};
use sterna_core::fingerprint::Fingerprint;
use sterna_core::guard::{Experience, LatencyExperience, TrialExperience};
use sterna_core::mirror::CopyMode;
use sterna_core::{Mark, Nanos};
use tempfile::TempDir;

use super::*;
use crate::examples::{disk, migration};

fn open(dir: &TempDir) -> Store {
    Store::open(&dir.path().join("state.db")).unwrap()
}

fn fresh() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    (dir, store)
}

fn datastore(name: &str) -> DatastoreRecord<String> {
    DatastoreRecord {
        name: name.into(),
        location: format!("/mnt/{name}"),
        shape: Some("mbps=300,iops=5000,latency=1ms".parse().unwrap()),
        added: 7,
        maintenance: Some(9),
        mark: Some(Mark(11)),
    }
}

/// A store with two datastores, one disk, and a migration of it.
fn moving() -> (TempDir, Store, u64) {
    let (dir, store) = fresh();
    store.add_datastore(datastore("fast")).unwrap();
    store.add_datastore(datastore("slow")).unwrap();
    let db = disk("db", "fast");
    store.add_disk(db.clone()).unwrap();
    let id = store.add_migration(migration(&db, "slow")).unwrap();
    (dir, store, id)
}

#[test]
fn records_come_back_as_they_were_kept_and_outlive_the_process() {
    let (dir, store, id) = moving();
    drop(store);
    let store = open(&dir);
    assert_eq!(store.datastores().unwrap()[0], datastore("fast"));
    assert_eq!(store.datastores::<String>().unwrap().len(), 2);
    assert_eq!(store.disk("db").unwrap().unwrap(), disk("db", "fast"));
    let expected = MigrationRecord { id, ..migration(&disk("db", "fast"), "slow") };
    assert_eq!(store.migration(id).unwrap().unwrap(), expected);
    assert_eq!(store.migrations().unwrap(), [expected]);
}

#[test]
fn a_location_that_means_nothing_is_an_error_of_the_database() {
    let (_dir, store, _id) = moving();
    let error = store.datastores::<u64>().unwrap_err().with_cause();
    assert!(error.contains("cannot list the datastores"), "{error}");
    assert!(error.contains("invalid digit"), "{error}");
}

#[test]
fn what_a_guard_has_found_out_comes_back_as_it_was() {
    let (dir, store, id) = moving();
    let trials = Some(TrialExperience {
        mode: CopyMode::Burst,
        rate: 1e7,
        marginal_cost: 2.5e-9,
        slowing: 1e-9,
        noise: 0.02,
        iops: 812.5,
    });
    let latency = Some(LatencyExperience { rate: 3e6, bound: Nanos::from_millis(5) });
    for known in [Experience { trials, latency }, Experience { trials, latency: None }] {
        store.set_experience(id, &known.into()).unwrap();
        let record = open(&dir).migration(id).unwrap().unwrap();
        assert_eq!(record.experience.map(Experience::from), Some(known));
    }
}

#[test]
fn a_datastore_with_a_disk_cannot_be_forgotten() {
    let (_dir, store, _id) = moving();
    assert!(store.remove_datastore("fast").is_err());
    store.remove_datastore("slow").unwrap();
}

#[test]
fn a_disk_has_one_migration_at_a_time() {
    let (_dir, store, id) = moving();
    let second = migration(&disk("db", "fast"), "slow");
    assert!(store.add_migration(second.clone()).is_err());
    let ending =
        Ending { at: 1, note: None, application: Application::default(), report: None };
    store.migration_ends(id, Step::Cancelled, &ending).unwrap();
    assert!(store.add_migration(second).unwrap() > id);
}

#[test]
fn the_wishes_of_the_operator_are_kept() {
    let (_dir, store, id) = moving();
    let pause = Pause {
        reason: "full".into(),
        hint: Some("free".into()),
        compare: true,
        unreachable: false,
        blame: Blame::Full,
    };
    store.set_pause(id, Some(&pause)).unwrap();
    store.set_rate(id, None).unwrap();
    store.set_cancel(id).unwrap();
    let counted = Counted { copied: 77, copying_ms: 8, compares: true };
    let application = Application::default();
    store.set_figures(vec![Figured { id, application, counted }]).unwrap();
    assert_eq!(store.migration(id).unwrap().unwrap().counted, counted);
    let one = store.migration(id).unwrap().unwrap();
    assert_eq!(one.pause, Some(pause));
    assert_eq!((one.rate, one.cancel), (None, true));
    store.set_pause(id, None).unwrap();
    assert_eq!(store.migration(id).unwrap().unwrap().pause, None);
}

#[test]
fn the_commit_moves_the_disk_and_the_migration_at_once() {
    let (_dir, store, id) = moving();
    store.migration_begins(id, "db.raw", true).unwrap();
    store.migration_switches(id).unwrap();
    store.commit_migration(id).unwrap();
    let moved = store.disk("db").unwrap().unwrap();
    assert_eq!((moved.datastore.as_str(), moved.image.as_str()), ("slow", "db.raw"));
    assert_eq!((moved.generation, moved.provision), (2, Provision::Thin));
    assert!(!moved.imported, "Sterna made the new image");
    assert_eq!(store.migration(id).unwrap().unwrap().step, Step::Committed);
}

#[test]
fn a_commit_that_is_out_of_order_is_refused() {
    let (_dir, store, id) = moving();
    store.migration_begins(id, "db.raw", true).unwrap();
    assert!(matches!(store.commit_migration(id), Err(StoreError::Step { .. })));
    assert_eq!(store.disk("db").unwrap().unwrap().datastore, "fast");
}

/// A migration that is about to be committed.
fn switching() -> (TempDir, Store, u64) {
    let (dir, store, id) = moving();
    store.migration_begins(id, "db.raw", true).unwrap();
    store.migration_switches(id).unwrap();
    (dir, store, id)
}

#[test]
fn a_step_waits_for_somebody_elses_lock() {
    let (dir, store, id) = switching();
    let somebody = Connection::open(dir.path().join("state.db")).unwrap();
    somebody.execute_batch("BEGIN IMMEDIATE; UPDATE disks SET size = size").unwrap();
    let (say, answer) = mpsc::channel();
    let waiting = store.clone();
    thread::spawn(move || say.send(waiting.migration_switches(id)));
    let early = answer.recv_timeout(Duration::from_millis(100));
    assert!(early.is_err(), "it does not wait: {early:?}");
    somebody.execute_batch("COMMIT").unwrap();
    answer.recv().unwrap().unwrap();
    assert_eq!(store.switch_overs(id).unwrap(), 2);
}

#[test]
fn an_undone_switch_over_raises_both_generations() {
    let (_dir, store, id) = moving();
    store.migration_begins(id, "db.raw", true).unwrap();
    store.migration_switches(id).unwrap();
    store.migration_switches(id).unwrap();
    store.migration_unsealed(id, 3, 4).unwrap();
    let one = store.migration(id).unwrap().unwrap();
    assert_eq!((one.source_generation, one.destination_generation), (3, 4));
    assert_eq!(one.step, Step::Copying);
    assert_eq!(store.disk("db").unwrap().unwrap().generation, 3);
}

#[test]
fn the_end_leaves_its_figures() {
    let (_dir, store, id) = moving();
    store.migration_begins(id, "db.raw", true).unwrap();
    store.migration_switches(id).unwrap();
    store.commit_migration(id).unwrap();
    let before = Figures { window_s: 5.0, iops: 9.5, ..Figures::default() };
    let application = Application { before: Some(before), ..Application::default() };
    let report = Report { duration_s: 3.5, copied: 77, ..Report::default() };
    let note = Some("the source could not be removed".to_owned());
    let ending = Ending { at: 12, note: note.clone(), application, report: Some(report) };
    store.migration_ends(id, Step::Completed, &ending).unwrap();
    let one = store.migration(id).unwrap().unwrap();
    assert_eq!((one.step, one.ended, one.note), (Step::Completed, Some(12), note));
    assert_eq!((one.application, one.report), (application, Some(report)));
}

#[test]
fn steps_go_only_where_they_lead() {
    for from in Step::ALL {
        assert_eq!(from.to_string().parse::<Step>().unwrap(), from);
        assert!(!from.ended() || Step::ALL.iter().all(|&to| !from.leads_to(to)));
    }
    // Past the commit there is no way back.
    assert!(!Step::Committed.leads_to(Step::Copying));
    assert!(!Step::Committed.leads_to(Step::Cancelled));
    // A sealed destination must be fenced before anything else.
    assert!(!Step::Switching.leads_to(Step::Cancelled));
    assert!(!Step::Copying.leads_to(Step::Committed));
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let (dir, store) = fresh();
    drop(store);
    let path = dir.path().join("state.db");
    let newer = schema::VERSION + 1;
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", newer).unwrap();
    drop(connection);
    let refused = Store::open(&path).err().unwrap();
    assert!(matches!(refused, StoreError::Newer { found } if found == newer));
}

#[test]
fn nothing_changes_in_a_database_that_no_next_daemon_would_find() {
    let (dir, store) = fresh();
    let (there, away) = (dir.path().join("state.db"), dir.path().join("away"));
    store.add_datastore(datastore("a")).unwrap();
    for replaced in [false, true] {
        std::fs::rename(&there, &away).unwrap();
        if replaced {
            std::fs::copy(&away, &there).unwrap();
        }
        assert!(matches!(store.is_gone(), Some(StoreError::Gone)));
        let changed = store.add_datastore(datastore("b"));
        assert!(matches!(changed, Err(StoreError::Gone)), "{changed:?}");
        assert_eq!(store.datastores::<String>().unwrap().len(), 1, "reading goes on");
        std::fs::rename(&away, &there).unwrap();
        assert!(store.is_gone().is_none());
    }
    store.add_datastore(datastore("b")).unwrap();
}

#[test]
fn somebody_elses_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(connection);
    assert!(matches!(Store::open(&path), Err(StoreError::Foreign(_))));
    let text = dir.path().join("text");
    std::fs::write(
        &text,
        "not a database, but long enough to look like one. ".repeat(40),
    )
    .unwrap();
    assert!(matches!(Store::open(&text), Err(StoreError::Foreign(_))));
}

#[test]
fn commits_are_durable_before_they_return() {
    let (_dir, store) = fresh();
    let (mode, synchronous) = store
        .run(|connection| {
            let mode: String = connection
                .pragma_query_value(None, "journal_mode", |row| row.get(0))
                .unwrap();
            let synchronous: i64 = connection
                .pragma_query_value(None, "synchronous", |row| row.get(0))
                .unwrap();
            (mode, synchronous)
        })
        .unwrap();
    assert_eq!((mode.as_str(), synchronous), ("wal", 2));
}

#[test]
fn fingerprints_of_places_without_disk_or_copy_are_forgotten() {
    let (_dir, store, id) = moving();
    let (db, web) = (disk("db", "fast"), disk("web", "fast"));
    store.add_disk(web.clone()).unwrap();
    let of = |disk: &DiskRecord, datastore: &str| FingerprintRecord {
        disk: disk.id,
        datastore: datastore.into(),
        fingerprint: Fingerprint { written: 7, ..Fingerprint::default() },
    };
    // A disk, its copy, and places where they were once.
    let places = [("fast", &db), ("slow", &db), ("old", &db), ("slow", &web)];
    let all = places.map(|(datastore, disk)| of(disk, datastore));
    store.set_fingerprints(all.to_vec()).unwrap();
    assert_eq!(store.fingerprints_of_others(db.id, 9).unwrap(), [of(&web, "slow")]);
    assert_eq!(store.fingerprints_of_others(web.id, 2).unwrap().len(), 2);
    store.forget_old_fingerprints().unwrap();
    let left = |store: &Store| {
        let has = |(datastore, disk): &(&str, &DiskRecord)| {
            store.fingerprint(disk.id, datastore).unwrap().is_some()
        };
        places.iter().map(has).collect::<Vec<_>>()
    };
    assert_eq!(left(&store), [true, true, false, false]);
    store.migration_never_began(id).unwrap();
    store.forget_old_fingerprints().unwrap();
    assert_eq!(left(&store), [true, false, false, false]);
}

#[test]
fn the_place_that_a_disk_has_left_is_known_until_its_move_has_ended() {
    let (_dir, store, id) = switching();
    let one = FingerprintRecord {
        disk: disk("db", "fast").id,
        datastore: "fast".into(),
        fingerprint: Fingerprint::default(),
    };
    store.set_fingerprints(vec![one.clone()]).unwrap();
    store.commit_migration(id).unwrap();
    store.forget_old_fingerprints().unwrap();
    assert!(store.fingerprint(one.disk, "fast").unwrap().is_some());
}
