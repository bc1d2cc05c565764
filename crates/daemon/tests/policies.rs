//! Classes and policies through the API: what a command line never sends, and what a
//! daemon has at most.

mod site;

use site::{Site, refused, to_slow};
use sterna_api::{
    AddDatastore, Aim, ChangeClass, CreateClass, CreateDisk, CreatePolicy, Fallback,
    Goal, Provision, Rate, StartMigration,
};

const MIB: u64 = 1 << 20;

fn class(name: &str, disks: &[&str], reservation: Option<Rate>) -> CreateClass {
    CreateClass {
        name: name.into(),
        disks: disks.iter().map(|disk| (*disk).into()).collect(),
        reservation,
        ..CreateClass::default()
    }
}

fn policy(aim: Aim, schedule: Option<&str>) -> CreatePolicy {
    let schedule = schedule.map(Into::into);
    CreatePolicy { class: "oltp".into(), aim, schedule, until_job: None }
}

fn limit(rate: u64) -> Aim {
    Aim::Limit { goal: Goal::Iops(rate) }
}

async fn with_disk(name: &str) -> Site {
    let site = Site::with_datastores().await;
    let (name, datastore) = (name.into(), Some("fast".into()));
    let disk = CreateDisk { name, size: MIB, datastore, provision: Provision::Thin };
    site.client().create_disk(&disk).await.unwrap();
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_command_line_sends_is_refused_as_well() {
    let site = with_disk("db").await;
    let client = site.client();
    client.create_class(&class("oltp", &["db"], None)).await.unwrap();
    let cruise = |goal, tolerance_percent, fallback| Aim::Cruise {
        goal,
        tolerance_percent,
        floor: None,
        fallback,
    };
    let zero = Fallback::Limit(Goal::BytesPerSecond(0));
    let tiny = Fallback::Limit(Goal::BytesPerSecond(20));
    for (aim, schedule, words) in [
        (limit(0), None, "above zero"),
        (Aim::Limit { goal: Goal::ResponseMs(-1.0) }, None, "above zero"),
        (Aim::Limit { goal: Goal::BytesPerSecond(20) }, None, "did you mean 20M, 20iops"),
        (Aim::Limit { goal: Goal::ResponseMs(1e300) }, None, "the maximum is"),
        (cruise(Goal::Iops(5), 10, tiny), None, "did you mean 20M, 20iops"),
        (cruise(Goal::Iops(5), 60, Fallback::None), None, "1 to 50 %"),
        (cruise(Goal::Iops(5), 0, Fallback::None), None, "1 to 50 %"),
        (cruise(Goal::Iops(5), 10, zero), None, "above zero"),
        (Aim::QueueDepth { depth: 0 }, None, "1 to 65535"),
        (Aim::QueueDepth { depth: 70_000 }, None, "1 to 65535"),
        (limit(5), Some("tonight"), "`tonight`"),
        (limit(5), Some(""), "a schedule says when"),
    ] {
        let message = refused(client.create_policy(&policy(aim, schedule)).await);
        assert!(message.contains(words), "{message}");
    }
    assert!(client.policies().await.unwrap().is_empty());
    for (rate, words) in [
        (Rate::BytesPerSecond(5), "the minimum is"),
        (Rate::BytesPerSecond(999_999 << 40), "no datastore can keep"),
        (Rate::Iops(u64::MAX), "no datastore can keep"),
    ] {
        let message = refused(client.create_class(&class("x", &[], Some(rate))).await);
        assert!(message.contains(words), "{message}");
        let floor = Aim::Cruise {
            goal: Goal::Iops(5),
            tolerance_percent: 10,
            floor: Some(rate),
            fallback: Fallback::None,
        };
        refused(client.create_policy(&policy(floor, None)).await);
    }
    for rate in [0, 5] {
        let slow = StartMigration { rate: Some(rate), ..to_slow("db") };
        refused(client.migrate(&slow).await);
    }
    assert!(client.migrations().await.unwrap().is_empty());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_has_a_bounded_number_of_policies() {
    let site = with_disk("db").await;
    let client = site.client();
    client.create_class(&class("oltp", &["db"], None)).await.unwrap();
    for rate in 101..=132 {
        client.create_policy(&policy(limit(rate), Some("Mon"))).await.unwrap();
    }
    let message = refused(client.create_policy(&policy(limit(133), None)).await);
    assert!(message.contains("32 policies"), "{message}");
    client.remove_policy(7).await.unwrap();
    client.create_policy(&policy(limit(133), None)).await.unwrap();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_takes_its_policies_with_it_only_if_that_was_said() {
    let site = with_disk("db").await;
    let client = site.client();
    client.create_class(&class("oltp", &["db"], None)).await.unwrap();
    client.create_policy(&policy(limit(100), None)).await.unwrap();
    let error = client.delete_class("oltp", false).await.unwrap_err().to_string();
    assert!(error.contains("class oltp has policies: policy 1"), "{error}");
    assert_eq!(client.class("oltp").await.unwrap().policies, [1]);
    assert_eq!(client.disk("db").await.unwrap().class.as_deref(), Some("oltp"));
    client.delete_class("oltp", true).await.unwrap();
    assert!(client.policies().await.unwrap().is_empty());
    client.create_class(&class("oltp", &["db"], None)).await.unwrap();
    client.delete_class("oltp", false).await.unwrap();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_class_that_cannot_be_made_whole_is_not_made() {
    let site = with_disk("db").await;
    let client = site.client();
    client.create_class(&class("oltp", &["db"], None)).await.unwrap();
    let before = client.class("oltp").await.unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for change in [
        ChangeClass {
            shares: Some(5),
            add: names(&["nobody"]),
            ..ChangeClass::default()
        },
        ChangeClass { shares: Some(0), remove: names(&["db"]), ..ChangeClass::default() },
        ChangeClass {
            remove: names(&["db"]),
            reservation: Some(Some(Rate::Iops(0))),
            ..ChangeClass::default()
        },
    ] {
        client.change_class("oltp", &change).await.unwrap_err();
        assert_eq!(client.class("oltp").await.unwrap(), before, "{change:?}");
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_takes_its_reservation_to_a_slower_datastore_is_warned_of() {
    let site = with_disk("db").await;
    let client = site.client();
    let location = site.away();
    std::fs::create_dir(&location).unwrap();
    let location = location.display().to_string();
    let shape = Some("iops=1000".into());
    let slower = AddDatastore { name: "slower".into(), location, shape };
    client.add_datastore(&slower).await.unwrap();
    let oltp = class("oltp", &["db"], Some(Rate::Iops(1500)));
    let made = client.create_class(&oltp).await.unwrap();
    assert!(made.notes[0].contains("unknown yet"), "{made:?}");
    assert!(client.status().await.unwrap().warnings.is_empty());
    let away = StartMigration { to: "slower".into(), ..to_slow("db") };
    let id = client.migrate(&away).await.unwrap().id;
    site.ended(id).await;
    let warnings = client.status().await.unwrap().warnings;
    let [warning] = &warnings[..] else { panic!("one warning expected: {warnings:?}") };
    assert_eq!(warning.about, "datastore slower");
    assert!(
        warning.message.contains("oltp 1500 IO/s; the datastore can do 1000 IO/s"),
        "{warning:?}"
    );
    // Less is too much still, but better than more.
    let rate = |rate| ChangeClass {
        reservation: Some(Some(Rate::Iops(rate))),
        ..ChangeClass::default()
    };
    client.change_class("oltp", &rate(1600)).await.unwrap_err();
    client.change_class("oltp", &rate(1200)).await.unwrap();
    site.stop().await;
}
