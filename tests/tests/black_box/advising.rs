//! Advice, and what datastores are measured to do.

use serde_json::Value;
use sterna_tests::clients::Fio;
use sterna_tests::stage::files_in;
use sterna_tests::wait::{seconds, until};
use sterna_tests::{MIB, Stage};

fn kinds(said: &Value, about: &str) -> Vec<String> {
    let all = said["advice"].as_array().expect("advice").iter();
    let its = all.filter(|one| one["about"] == about);
    its.map(|one| one["kind"].as_str().expect("a kind").to_owned()).collect()
}

fn natures(said: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let disks = said["disks"].as_array().expect("disks").iter();
    disks.map(|one| (text(&one["disk"]), text(&one["nature"]))).collect()
}

#[test]
fn of_what_nobody_uses_nothing_is_advised() {
    let stage = Stage::new();
    stage.disk("db", 8 * MIB);
    let said = stage.daemon.json("advise db");
    assert_eq!(natures(&said), [("db".into(), "idle".into())]);
    let words = stage.daemon.sterna("advise db").ok();
    assert!(words.stdout.contains("Nothing to advise."), "{}", words.stdout);
    // Of the other datastore's disks nothing is said.
    assert_eq!(stage.daemon.json("advise there")["disks"], Value::from(vec![0; 0]));
    let wrong = stage.daemon.sterna("advise nobody");
    wrong.fails_with(&["no disk, no datastore and no VM nobody", "sterna disk list"]);
    stage.daemon.sterna("advise --window 2h").is_usage_error();
}

#[test]
fn a_stream_beside_random_reads_is_known_and_advised_about() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    let daemon = &stage.daemon;
    stage.datastore(
        "array",
        format!("array://old-fc?path={}", stage.scratch.dir("array").display()),
    );
    for disk in ["backup", "db"] {
        daemon.sterna(&format!("disk create {disk} --size 256M --on array")).ok();
    }
    let at_work = |disk: &str, settings: &str| {
        let settings = format!("{settings}\nsize=256M\ntime_based\nruntime=10");
        Fio::start(&daemon.uri(disk), &settings)
    };
    let backup = at_work("backup", "rw=read\nbs=256k\niodepth=8");
    let db = at_work("db", "rw=randread\nbs=8k\niodepth=2");
    let known = [("backup", "stream"), ("db", "random")];
    let known = known.map(|(disk, nature)| (disk.to_owned(), nature.to_owned()));
    let wanted = [
        ("disk backup", "ungoverned"),
        ("disk backup", "broken"),
        ("disk db", "move_when_quiet"),
    ];
    until("both are known for what they are", seconds(10), || {
        let said = daemon.json("advise --window 3s");
        let all = wanted
            .iter()
            .all(|(about, kind)| kinds(&said, about).iter().any(|found| found == kind));
        (natures(&said) == known && all).then_some(())
    });
    // Something that holds it is enough.
    daemon.sterna("class create nightly backup").ok();
    daemon.sterna("policy limit nightly 20M").ok();
    let said = daemon.json("advise backup --window 3s");
    let kinds = kinds(&said, "disk backup");
    assert!(!kinds.iter().any(|kind| kind == "ungoverned"), "{said:#}");
    for fio in [backup, db] {
        fio.finish();
    }
}

#[test]
fn a_probe_finds_what_a_datastore_can_do_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    let slow = stage.scratch.dir("slow");
    stage.datastore("slow", format!("{} --shape iops=1000", slow.display()));
    let probed = daemon.json("datastore probe slow --size 16M");
    let steps = probed["steps"].as_array().expect("steps");
    assert!(steps.len() >= 4, "{probed:#}");
    assert_eq!(
        (&probed["end"], &probed["device"]["known"]),
        (&"peak".into(), &"line".into())
    );
    let peak = probed["device"]["peak_iops"].as_f64().expect("a peak");
    assert!((700.0..1400.0).contains(&peak), "{probed:#}");
    let known = daemon.json("top --by datastore --batch --count 1");
    let rows = known["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "slow").expect("it is there");
    // The probe's last second may have been added to it.
    assert_eq!(row["device"]["known"], "line", "{known:#}");
    let peak = row["device"]["peak_iops"].as_f64().expect("a peak");
    assert!((700.0..1400.0).contains(&peak), "{known:#}");
    assert_eq!(daemon.json("disk list"), Value::from(vec![0; 0]));
    let left = files_in(&slow);
    assert!(left.is_empty(), "{left:?}");
    // What a killed one leaves is said, and how to remove it.
    daemon.sterna("disk create probe-of-slow --size 16M --on slow").ok();
    let refused = daemon.sterna("datastore probe slow --size 16M");
    refused.fails_with(&["probe-of-slow", "--delete-image"]);
    daemon.sterna("datastore probe nowhere").fails_with(&["no datastore nowhere"]);
}
