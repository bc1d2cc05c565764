//! The daemon through its API, with a real engine on files.

mod site;

use site::{Site, to_slow};
use sterna_api::{
    AddDatastore, ClientError, CreateDisk, ErrorCode, ImageFate, ImportDisk, Migration,
    MigrationState, Provision, ResumeMigration, StartMigration,
};

const MIB: u64 = 1 << 20;

fn code<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> ErrorCode {
    match answer {
        Err(ClientError::Refused(body)) => {
            assert!(!body.message.is_empty());
            body.code
        }
        other => panic!("refusal expected: {other:?}"),
    }
}

fn disk(name: &str, size: u64) -> CreateDisk {
    let (name, datastore) = (name.to_owned(), Some("fast".to_owned()));
    CreateDisk { name, size, datastore, provision: Provision::Thin }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_comes_to_be_is_seen_and_goes() {
    let site = Site::with_datastores().await;
    let made = site.client().create_disk(&disk("db", MIB)).await.unwrap();
    assert!(made.chosen.is_none());
    let made = made.disk;
    assert!(made.served && made.generation == 1 && made.uris.len() == 1);
    assert!(site.fast("db.raw").exists() && site.fast("db.raw.sterna").exists());
    assert_eq!(site.client().disks().await.unwrap().len(), 1);
    assert_eq!(site.client().datastore("fast").await.unwrap().disks, 1);
    let status = site.client().status().await.unwrap();
    assert_eq!((status.counts.disks, status.counts.disks_served), (1, 1));
    site.client().remove_disk("db", ImageFate::Auto).await.unwrap();
    assert!(!site.fast("db.raw").exists() && !site.fast("db.raw.sterna").exists());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_and_changes_nothing() {
    let site = Site::with_datastores().await;
    let client = site.client();
    client.create_disk(&disk("db", MIB)).await.unwrap();
    let create = async |name, size| code(client.create_disk(&disk(name, size)).await);
    assert_eq!(create("zero", 0).await, ErrorCode::Invalid);
    assert_eq!(create("odd", 1000).await, ErrorCode::Invalid);
    assert_eq!(create("no/name", MIB).await, ErrorCode::Invalid);
    assert_eq!(create("db", MIB).await, ErrorCode::Exists);
    let nowhere = CreateDisk { datastore: Some("nowhere".into()), ..disk("x", MIB) };
    assert_eq!(code(client.create_disk(&nowhere).await), ErrorCode::NotFound);
    let too_large = CreateDisk { provision: Provision::Thick, ..disk("x", 1 << 50) };
    assert_eq!(code(client.create_disk(&too_large).await), ErrorCode::NoSpace);
    assert_eq!(code(client.disk("nobody").await), ErrorCode::NotFound);
    assert_eq!(
        code(client.remove_disk("nobody", ImageFate::Auto).await),
        ErrorCode::NotFound
    );
    assert_eq!(code(client.remove_datastore("fast").await), ErrorCode::InUse);
    let mut here = to_slow("db");
    here.to = "fast".into();
    assert_eq!(code(client.migrate(&here).await), ErrorCode::Invalid);
    assert_eq!(code(client.migrate(&to_slow("nobody")).await), ErrorCode::NotFound);
    assert_eq!(code(client.pause(7).await), ErrorCode::NotFound);
    assert_eq!(client.disks().await.unwrap().len(), 1);
    assert!(client.migrations().await.unwrap().is_empty());
    assert_eq!(site.files("fast"), ["db.raw", "db.raw.sterna"]);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn datastores_that_are_not_what_they_say_are_refused() {
    let site = Site::with_datastores().await;
    let add = async |name: &str, location: &str, shape: Option<&str>| {
        let (name, location) = (name.to_owned(), location.to_owned());
        let request = AddDatastore { name, location, shape: shape.map(Into::into) };
        code(site.client().add_datastore(&request).await)
    };
    let here = site.fast("").display().to_string();
    assert_eq!(add("new", "relative/path", None).await, ErrorCode::Invalid);
    assert_eq!(add("-new", "/tmp", None).await, ErrorCode::Invalid);
    assert_eq!(add("new", "/tmp", Some("colour=red")).await, ErrorCode::Invalid);
    assert_eq!(add("new", &here, None).await, ErrorCode::InUse);
    assert_eq!(add("fast", "/tmp", None).await, ErrorCode::Exists);
    add("new", "/nonexistent/directory", None).await;
    assert_eq!(site.client().datastores().await.unwrap().len(), 2);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_imported_once_and_can_be_given_back() {
    let site = Site::with_datastores().await;
    site.image("old.raw", MIB);
    let import = |name: &str| ImportDisk {
        name: name.into(),
        datastore: "fast".into(),
        file: "old.raw".into(),
    };
    let first = site.client().import_disk(&import("one")).await.unwrap();
    assert_eq!(first.size, MIB);
    assert_eq!(code(site.client().import_disk(&import("two")).await), ErrorCode::InUse);
    site.client().remove_disk("one", ImageFate::Keep).await.unwrap();
    let again = site.client().import_disk(&import("two")).await.unwrap();
    assert_eq!((again.id, again.generation), (first.id, 2));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_file_outlives_its_disk_unless_told_otherwise() {
    let site = Site::with_datastores().await;
    let remove = async |name: &str, image| {
        site.client().remove_disk(name, image).await.unwrap().image_kept
    };
    let bytes = site.imported("mine", MIB).await;
    assert!(site.client().disk("mine").await.unwrap().imported);
    assert!(remove("mine", ImageFate::Auto).await);
    assert!(std::fs::read(site.fast("mine.raw")).unwrap() == bytes);
    site.imported("gone", MIB).await;
    assert!(!remove("gone", ImageFate::Delete).await);
    assert!(!site.fast("gone.raw").exists());
    // A migration makes another image, which is Sterna's.
    site.imported("moved", MIB).await;
    let id = site.client().migrate(&to_slow("moved")).await.unwrap().id;
    assert_eq!(site.ended(id).await.state, MigrationState::Completed);
    assert!(!remove("moved", ImageFate::Auto).await);
    assert!(site.files("slow").is_empty());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_moves_every_byte_and_removes_the_source() {
    let site = Site::with_datastores().await;
    let bytes = site.imported("db", 8 * MIB).await;
    let request = StartMigration { verify: true, ..to_slow("db") };
    let id = site.client().migrate(&request).await.unwrap().id;
    let end = site.ended(id).await;
    assert_eq!(end.state, MigrationState::Completed, "{end:?}");
    let report = end.report.unwrap();
    assert!(report.switch_over_ms.is_some() && report.verified == Some(8 * MIB));
    let moved = site.client().disk("db").await.unwrap();
    assert_eq!((moved.datastore.as_str(), moved.generation), ("slow", 2));
    assert!(std::fs::read(site.slow("db.raw")).unwrap() == bytes);
    assert!(site.files("fast").is_empty());
    assert_eq!(code(site.client().cancel(id).await), ErrorCode::Invalid);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_migration_leaves_the_disk_as_it_was() {
    let site = Site::with_datastores().await;
    let bytes = site.imported("db", 8 * MIB).await;
    let id = site.slow_migration("db").await;
    assert_eq!(code(site.client().migrate(&to_slow("db")).await), ErrorCode::InUse);
    assert_eq!(
        code(site.client().remove_disk("db", ImageFate::Auto).await),
        ErrorCode::InUse
    );
    assert_eq!(code(site.client().remove_datastore("slow").await), ErrorCode::InUse);
    site.client().cancel(id).await.unwrap();
    assert_eq!(site.ended(id).await.state, MigrationState::Cancelled);
    let disk = site.client().disk("db").await.unwrap();
    assert_eq!((disk.datastore.as_str(), disk.generation), ("fast", 1));
    assert!(std::fs::read(site.fast("db.raw")).unwrap() == bytes);
    assert!(site.files("slow").is_empty());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_and_a_migration_outlive_the_daemon() {
    let mut site = Site::with_datastores().await;
    let bytes = site.imported("db", 8 * MIB).await;
    let id = site.slow_migration("db").await;
    let paused = site.client().pause(id).await.unwrap();
    assert_eq!(paused.state, MigrationState::Paused);
    site.restart().await;
    let still: Migration = site.client().migration(id).await.unwrap();
    assert_eq!(still.state, MigrationState::Paused);
    assert_eq!(still.hint, None, "somebody asked for it: nothing is to be done");
    site.client().resume(id, ResumeMigration::default()).await.unwrap();
    site.under_way(id).await;
    site.restart().await;
    site.client().set_rate(id, None).await.unwrap();
    let end = site.ended(id).await;
    assert_eq!(end.state, MigrationState::Completed);
    let report = end.report.unwrap();
    // A chunk that ends while the daemon stops may not be counted; it is copied.
    let counted = report.copied + MIB;
    assert!(counted >= 8 * MIB, "before and after the restart: {report:?}");
    assert!(report.average_rate > 0.0 && report.compared.is_none());
    assert!(std::fs::read(site.slow("db.raw")).unwrap() == bytes);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_is_used_again() {
    let site = Site::with_datastores().await;
    let bytes = site.imported("db", 8 * MIB).await;
    let away = StartMigration { keep_source: true, ..to_slow("db") };
    let id = site.client().migrate(&away).await.unwrap().id;
    assert_eq!(site.ended(id).await.state, MigrationState::Completed);
    let back = StartMigration { to: "fast".into(), ..to_slow("db") };
    let id = site.client().migrate(&back).await.unwrap().id;
    let end = site.ended(id).await;
    assert_eq!(end.state, MigrationState::Completed, "{end:?}");
    let report = end.report.unwrap();
    assert_eq!((report.copied, report.average_rate), (0, 0.0), "nothing differed");
    assert_eq!(report.compared, Some(8 * MIB));
    let disk = site.client().disk("db").await.unwrap();
    assert!(disk.imported, "it is the operator's own file again");
    assert!(std::fs::read(site.fast("db.raw")).unwrap() == bytes);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_map_waits_for_the_operator_and_then_compares() {
    let mut site = Site::with_datastores().await;
    let bytes = site.imported("db", 8 * MIB).await;
    let id = site.slow_migration("db").await;
    site.down().await;
    std::fs::write(site.state(&format!("maps/{id}.map")), b"garbage").unwrap();
    site.up().await;
    let paused = site.client().migration(id).await.unwrap();
    assert_eq!(paused.state, MigrationState::Paused);
    assert!(paused.hint.unwrap().contains(&format!("resume {id}")));
    site.client().set_rate(id, None).await.unwrap();
    site.client().resume(id, ResumeMigration::default()).await.unwrap();
    assert_eq!(site.ended(id).await.state, MigrationState::Completed);
    assert!(std::fs::read(site.slow("db.raw")).unwrap() == bytes);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_sidecar_keeps_its_disk_from_being_served() {
    let mut site = Site::with_datastores().await;
    site.client().create_disk(&disk("db", MIB)).await.unwrap();
    site.client().create_disk(&disk("other", MIB)).await.unwrap();
    site.down().await;
    std::fs::write(site.fast("db.raw.sterna"), b"garbage").unwrap();
    site.up().await;
    let broken = site.client().disk("db").await.unwrap();
    assert!(broken.uris.is_empty());
    assert!(!broken.served && broken.problem.unwrap().contains("damaged"));
    assert!(site.client().disk("other").await.unwrap().served);
    let status = site.client().status().await.unwrap();
    assert_eq!(status.warnings[0].about, "disk db");
    assert_eq!(code(site.client().migrate(&to_slow("db")).await), ErrorCode::Unavailable);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_says_that_there_was_no_image_any_more() {
    let mut site = Site::with_datastores().await;
    let client = site.client();
    client.create_disk(&disk("db", MIB)).await.unwrap();
    site.down().await;
    std::fs::remove_file(site.fast("db.raw")).unwrap();
    std::fs::remove_file(site.fast("db.raw.sterna")).unwrap();
    site.up().await;
    let gone = client.remove_disk("db", ImageFate::Keep).await.unwrap();
    assert_eq!((gone.image_kept, gone.image_missing), (false, true));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_has_become_another_disks_is_not_removed_with_the_old_one() {
    let mut site = Site::with_datastores().await;
    let client = site.client();
    client.create_disk(&disk("db", MIB)).await.unwrap();
    client.create_disk(&disk("other", MIB)).await.unwrap();
    site.down().await;
    // As a state finds it that was restored from before the place was used again.
    std::fs::copy(site.fast("other.raw.sterna"), site.fast("db.raw.sterna")).unwrap();
    let sidecar = std::fs::read(site.fast("db.raw.sterna")).unwrap();
    site.up().await;
    assert!(!client.disk("db").await.unwrap().served);
    let gone = client.remove_disk("db", ImageFate::Delete).await.unwrap();
    assert!(gone.image_kept && site.fast("db.raw").exists());
    assert!(std::fs::read(site.fast("db.raw.sterna")).unwrap() == sidecar);
    site.stop().await;
}
