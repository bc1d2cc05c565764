//! Plans: many disks leave a datastore, over kills, destinations that fail, and people
//! who change their mind; and what is reported of it is what has happened.

mod disturbed;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sterna_tests::images::write_image;
use sterna_tests::plans::in_state;
use sterna_tests::programs::run;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// The size of most disks.
const SIZE: u64 = 8 * MIB;

/// Disks on `here`, and what is in each.
fn disks(stage: &Stage, names: &[String]) -> BTreeMap<String, Vec<u8>> {
    let fill = |name: &String| {
        let file = stage.here.join(format!("{name}.raw"));
        write_image(&file, SIZE, SIZE);
        // No two are the same.
        let image = std::fs::File::options().write(true).open(&file);
        image.and_then(|image| image.write_all_at(name.as_bytes(), 0)).expect("write");
        let import = format!("disk import {name} --on here {}", file.display());
        stage.daemon.sterna(&import).ok();
        (name.clone(), bytes(&file))
    };
    names.iter().map(fill).collect()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("d{at:02}")).collect()
}

fn bytes(image: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(image).expect("read an image");
    bytes.truncate(SIZE as usize);
    bytes
}

/// Each disk is where the plan says that it is, and has in it what it had.
#[track_caller]
fn is_truthful(stage: &Stage, plan: &Value, were: &BTreeMap<String, Vec<u8>>) {
    for one in plan["moves"].as_array().expect("moves") {
        let name = one["disk"].as_str().expect("a name");
        let at = stage.daemon.disk(name)["datastore"].clone();
        let moved = one["state"] == "moved";
        let said = if moved { &one["to"] } else { &one["from"] };
        assert_eq!(&at, said, "{one:#}");
        assert!(moved || !one["problem"].is_null(), "it should say why: {one:#}");
        let is_as_it_was = bytes(&stage.daemon.image(name)) == were[name];
        assert!(is_as_it_was, "{name} has changed: {one:#}");
    }
}

/// Whether a plan says of a datastore that it is left alone.
fn is_left_alone(plan: &Value, datastore: &str) -> bool {
    let all = plan["datastores"].as_array().expect("datastores");
    let one = all.iter().find(|one| one["datastore"] == datastore);
    one.is_some_and(|one| one["problem"].is_string())
}

/// A stage with another datastore, `slow`, which takes so many MB/s.
fn slow_stage(mbps: u64) -> Stage {
    let stage = Stage::new();
    let slow = stage.scratch.dir("slow");
    stage.datastore("slow", format!("{} --shape mbps={mbps}", slow.display()));
    stage
}

/// Has `here` give so many MB/s: some of many disks are still to move whenever something
/// happens.
fn slow_source(stage: &Stage, mbps: u64) {
    stage.daemon.sterna("datastore remove here").ok();
    stage.datastore("here", format!("{} --shape mbps={mbps}", stage.here.display()));
}

#[test]
fn a_datastore_is_emptied_though_the_daemon_is_killed() {
    let mut stage = slow_stage(40);
    let were = disks(&stage, &numbered(10));
    let (id, plan) =
        stage.daemon.plan_evacuation("here --to there --to slow --space 100%");
    assert_eq!(plan["state"], "planned", "{plan:#}");
    assert_eq!(in_state(&plan, "waiting").len(), 10, "{plan:#}");
    assert_eq!(plan["refused"], Value::from(vec![0; 0]), "{plan:#}");
    // Nothing was ever copied, so nobody knows how long it takes.
    assert_eq!((&plan["estimate"]["unknown"], &plan["ends"]), (&10.into(), &Value::Null));
    assert_eq!(stage.daemon.json("migration list"), Value::from(vec![0; 0]));
    stage.daemon.sterna(&format!("plan apply {id}")).ok();
    stage.daemon.wait_for_plan(id, "some have moved", seconds(60), |plan| {
        in_state(plan, "moved").len() >= 3
    });
    stage.daemon.kill();
    stage.daemon.restart();
    let plan = stage
        .daemon
        .wait_for_plan(id, "its end", seconds(60), |plan| plan["state"] == "completed");
    is_truthful(&stage, &plan, &were);
    assert_eq!(in_state(&plan, "moved").len(), 10, "{plan:#}");
    let daemon = &stage.daemon;
    assert_eq!(daemon.json("datastore show here")["disks"], 0);
    let report = daemon.sterna(&format!("plan report {id}")).ok().stdout;
    assert!(report.contains("10 of 10 disks"), "{report}");
    daemon.sterna(&format!("plan apply {id}")).fails_with(&["begins only once"]);
    daemon.sterna(&format!("plan cancel {id}")).fails_with(&["has ended: completed"]);
    daemon.sterna("plan evacuate here").fails_with(&["holds no disks", "maintenance"]);
}

#[test]
fn what_was_learned_says_how_long_a_plan_takes_and_whether_that_is_in_time() {
    let stage = slow_stage(20);
    let daemon = &stage.daemon;
    disks(&stage, &numbered(4));
    daemon.sterna("migrate d00 --to slow").ok();
    daemon.sterna("migrate d00 --to here").ok();
    let ask = "here --to slow --space 100%";
    let told = daemon.json(&format!("plan evacuate {ask} --by 8h --virtual"));
    assert_eq!((&told["id"], &told["deadline"]["state"]), (&0.into(), &"met".into()));
    assert_eq!(daemon.json("plan list"), Value::from(vec![0; 0]), "it is not kept");
    let estimate = &told["estimate"];
    let number = |key: &str| estimate[key].as_f64().expect("a number");
    assert!(number("least_s") < number("likely_s"), "{told:#}");
    assert!(number("likely_s") < number("most_s"), "{told:#}");
    assert!(number("bound_s") <= number("likely_s") * 1.001, "{told:#}");
    // 32 MiB at 20 MB/s.
    assert!((1.0..6.0).contains(&number("likely_s")), "{told:#}");
    let late = daemon.json(&format!("plan evacuate {ask} --by 1s"));
    // One move was seen, so how long four take is a guess.
    let state = late["deadline"]["state"].as_str();
    assert!(matches!(state, Some("missed" | "unlikely")), "{late:#}");
    let words = daemon.sterna(&format!("plan evacuate {ask} --virtual")).ok().stdout;
    assert!(words.contains("In virtual time it ends after"), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    waits_for_its_window(&stage, ask);
    let (id, _) = daemon.plan_evacuation(&format!("{ask} --keep 90% --by 8h"));
    daemon.sterna(&format!("plan apply {id}")).ok();
    // What stands still has no end.
    let paused = daemon.json(&format!("plan pause {id}"));
    assert_eq!(
        (&paused["state"], &paused["ends"], &paused["deadline"]["state"]),
        (&"paused".into(), &Value::Null, &"unknown".into()),
        "{paused:#}"
    );
    let going = daemon.json(&format!("plan resume {id}"));
    assert!(going["ends"].is_number(), "{going:#}");
    let plan = daemon
        .wait_for_plan(id, "its end", seconds(60), |plan| plan["state"] == "completed");
    let took = plan["moves"][0]["took_s"].as_f64().expect("a time");
    assert!(took > 0.0, "{plan:#}");
    let migration = plan["moves"][0]["migration"].as_u64().expect("a migration");
    assert_eq!(daemon.migration(migration)["guard"]["asked"]["keep"], 0.9);
    let report = daemon.sterna(&format!("plan report {id}")).ok().stdout;
    assert!(report.contains('%') && report.contains("4 of 4 disks"), "{report}");
}

/// A plan whose window is closed for hours says when that opens, and ends after it.
#[track_caller]
fn waits_for_its_window(stage: &Stage, ask: &str) {
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs();
    // By the daemon's clock, whatever zone that is in: of two windows one is closed.
    let hour = (now / 3600 + 3) % 24;
    let windows =
        [hour, (hour + 12) % 24].map(|hour| format!("{hour:02}:00-{hour:02}:30"));
    let asks =
        windows.map(|it| format!("plan evacuate {ask} --window {it} --by 1s --virtual"));
    let told = asks.map(|ask| (stage.daemon.json(&ask), ask));
    let (told, ask) =
        told.iter().find(|(it, _)| it["opens"].is_u64()).expect("a closed one");
    let opens = told["opens"].as_u64().expect("a moment");
    assert!(opens > now && told["ends"].as_u64() > Some(opens), "{told:#}");
    assert_eq!(told["deadline"]["state"], "missed", "{told:#}");
    let words = stage.daemon.sterna(ask).ok().stdout;
    assert!(words.contains("window opens") && !words.contains("ends after"), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
}

#[test]
fn a_plan_stands_still_goes_on_and_is_given_up_as_people_want() {
    let mut stage = slow_stage(1);
    let were = disks(&stage, &numbered(5));
    let (id, _) = stage.daemon.plan_evacuation("here --to slow --space 100%");
    stage.daemon.sterna(&format!("plan pause {id}")).fails_with(&["has not begun"]);
    stage.daemon.sterna(&format!("plan apply {id}")).ok();
    let moving = |plan: &Value| in_state(plan, "moving").len() == 2;
    let plan = stage.daemon.wait_for_plan(id, "two move", seconds(20), moving);
    let ids: Vec<u64> = in_state(&plan, "moving")
        .iter()
        .map(|one| one["migration"].as_u64().expect("a migration"))
        .collect();
    let (other, _) = stage.daemon.plan_evacuation("here --to there --space 100%");
    stage.daemon.sterna(&format!("plan apply {other}")).fails_with(&["moves nothing"]);
    // One that has not begun can go; one that is under way cannot.
    assert_eq!(stage.daemon.json(&format!("plan remove {other}"))["state"], "planned");
    let gone = format!("there is no plan {other}");
    stage.daemon.sterna(&format!("plan show {other}")).fails_with(&[&gone]);
    let remove = format!("plan rm {id}");
    let refused = ["is running", "sterna plan cancel"];
    stage.daemon.sterna(&remove).fails_with(&refused);
    stage.daemon.sterna("datastore remove slow").fails_with(&["used by"]);
    stage.daemon.sterna(&format!("plan pause {id}")).ok();
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(stage.daemon.plan(id)["state"], "paused");
    stage.daemon.sterna(&remove).fails_with(&["is paused", "sterna plan resume"]);
    for one in &ids {
        stage.daemon.wait_for(*one, "paused", seconds(20));
    }
    stage.daemon.sterna(&format!("plan resume {id}")).ok();
    for one in &ids {
        stage.daemon.wait_for(*one, "copying", seconds(20));
    }
    stage.daemon.sterna(&format!("plan cancel {id}")).ok();
    // It is being cancelled, or over by now.
    let resumed = stage.daemon.sterna(&format!("plan resume {id}"));
    let refused = resumed.fails_with(&[&format!("plan {id}")]).stderr;
    let is_told = ["is being cancelled", "has ended: cancelled"]
        .iter()
        .any(|told| refused.contains(&format!("plan {id} {told}")));
    assert!(is_told, "{refused}");
    let plan = stage
        .daemon
        .wait_for_plan(id, "its end", seconds(20), |plan| plan["state"] == "cancelled");
    assert_eq!(in_state(&plan, "cancelled").len(), 5, "{plan:#}");
    let removed = stage.daemon.sterna(&remove).ok().stdout;
    assert!(removed.contains("which was cancelled, is removed"), "{removed}");
    assert_eq!(stage.daemon.json("plan list"), Value::from(vec![0; 0]));
    stage.daemon.sterna(&remove).fails_with(&[&format!("there is no plan {id}")]);
    assert!(stage.daemon.json("migration list")[0].is_object(), "they are kept");
    for name in were.keys() {
        assert_eq!(stage.daemon.disk(name)["datastore"], "here");
    }
}

#[test]
fn a_datastore_in_maintenance_takes_nothing_new() {
    let mut stage = Stage::new();
    disks(&stage, &numbered(1));
    let words = stage.daemon.sterna("datastore maintenance there").ok().stdout;
    assert!(words.contains("no new disks or moves"), "{words}");
    let words = stage.daemon.sterna("datastore maintenance here").ok().stdout;
    assert!(words.contains("sterna plan evacuate here"), "{words}");
    stage.daemon.kill();
    stage.daemon.restart();
    let daemon = &stage.daemon;
    assert_eq!(daemon.json("datastore show there")["maintenance"], true);
    let list = daemon.sterna("datastore list").ok().stdout;
    assert!(list.contains("maintenance"), "{list}");
    let refused = &["there is in maintenance", "--off"];
    daemon.sterna("disk create new --size 1M --on there").fails_with(refused);
    daemon.sterna("migrate d00 --to there").fails_with(refused);
    daemon.sterna("plan evacuate here --to there").fails_with(refused);
    daemon.sterna("plan evacuate here").fails_with(&["no datastore can take the disks"]);
    let closed = "there: it is in maintenance";
    daemon.sterna("disk create new --size 1M").fails_with(&[closed]);
    let words = daemon.sterna("storage-drs recommend").ok().stdout;
    assert!(words.contains("in maintenance"), "{words}");
    daemon.sterna("datastore maintenance there --off").ok();
    daemon.sterna("migrate d00 --to there").ok();
    daemon.sterna("datastore maintenance nosuch").fails_with(&["no datastore nosuch"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    disks(&stage, &numbered(1));
    daemon.sterna("plan evacuate nosuch").fails_with(&["no datastore nosuch"]);
    daemon.sterna("plan evacuate here --to nosuch").fails_with(&["no datastore nosuch"]);
    daemon.sterna("plan evacuate here --to here").fails_with(&["that the plan empties"]);
    daemon.sterna("plan evacuate here --by soon").is_usage_error();
    for action in ["show", "apply", "pause", "resume", "cancel", "report"] {
        let nosuch = &["there is no plan 7", "sterna plan list"];
        daemon.sterna(&format!("plan {action} 7")).fails_with(nosuch);
        daemon.sterna(&format!("plan {action} here")).is_usage_error();
    }
    let empty = daemon.sterna("plan list").ok().stdout;
    assert!(empty.contains("sterna plan evacuate"), "{empty}");
    // No room is a reason, and said of each disk.
    let full = daemon.json("plan evacuate here --space 0.1%");
    let reason = full["refused"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("there would be too full"), "{reason}");
    let id = full["id"].as_u64().expect("a number");
    daemon.sterna(&format!("plan apply {id}")).fails_with(&["moves nothing"]);
    assert_eq!(daemon.tab("plan show "), [id.to_string()]);
    assert_eq!(daemon.tab("plan evacuate he"), ["here"]);
}

#[test]
fn tiles_move_one_after_another_and_what_waits_for_a_failed_one_is_skipped() {
    let stage = slow_stage(8);
    let daemon = &stage.daemon;
    let were = disks(&stage, &numbered(4));
    let file = stage.scratch.path("tiles.toml");
    let tile = |name: &str, disk: &str| {
        format!("[[tile]]\nname = \"{name}\"\ndisks = [\"{disk}\"]\n")
    };
    let tiles = tile("log", "d02") + &tile("db", "d01") + &tile("web", "d00");
    std::fs::write(&file, &tiles).expect("write a file");
    let ask = format!("here --to slow --space 100% --tile {}", file.display());
    let (id, plan) = daemon.plan_evacuation(&ask);
    let waves: Vec<(&Value, &Value, &Value)> = plan["moves"]
        .as_array()
        .expect("moves")
        .iter()
        .map(|one| (&one["disk"], &one["tile"], &one["wave"]))
        .collect();
    let expected = [
        ("d02", Value::from("log"), 1),
        ("d01", "db".into(), 2),
        ("d00", "web".into(), 3),
        ("d03", Value::Null, 4),
    ];
    let expected = expected.map(|(disk, tile, wave)| (disk.into(), tile, wave.into()));
    let expected: Vec<(&Value, &Value, &Value)> = expected
        .iter()
        .map(|(disk, tile, wave): &(Value, Value, Value)| (disk, tile, wave))
        .collect();
    assert_eq!(waves, expected, "{plan:#}");
    daemon.sterna(&format!("plan apply {id}")).ok();
    let second = |plan: &Value| {
        let mut moving = in_state(plan, "moving").into_iter();
        moving.find(|one| one["disk"] == "d01").and_then(|one| one["migration"].as_u64())
    };
    let plan = daemon
        .wait_for_plan(id, "the second tile", seconds(30), |plan| second(plan).is_some());
    assert_eq!(in_state(&plan, "moved").len(), 1, "{plan:#}");
    let migration = second(&plan).expect("a migration");
    daemon.sterna(&format!("migration cancel {migration}")).ok();
    let plan = daemon
        .wait_for_plan(id, "its end", seconds(30), |plan| plan["state"] == "incomplete");
    is_truthful(&stage, &plan, &were);
    assert_eq!((in_state(&plan, "moved").len(), in_state(&plan, "failed").len()), (1, 1));
    let skipped = in_state(&plan, "skipped");
    let problem = skipped[0]["problem"].as_str().expect("a reason");
    assert!(problem.contains("tile db"), "{problem}");
    for (text, wrong) in [
        ("[[tile]]\nname = \n".to_owned(), "line 2"),
        (tile("db", "nosuch"), "not on the datastore"),
        (tile("db", "d01") + &tile("db", "d00"), "two tiles have the name db"),
    ] {
        std::fs::write(&file, text).expect("write a file");
        daemon.sterna(&format!("plan evacuate {ask}")).fails_with(&[wrong]);
    }
    daemon.sterna("plan evacuate here --tile /nosuch").fails_with(&["/nosuch"]);
}

#[test]
fn a_disk_that_has_grown_since_it_was_planned_for_does_not_fill_its_destination() {
    let programs = ["losetup", "mkfs.ext4", "qemu-io"];
    let Some(stage) = Stage::given_root(&programs) else { return };
    let _tiny = stage.tiny_fs("tiny", 64 * MIB);
    let daemon = &stage.daemon;
    daemon.sterna("disk create grows --size 64M --on here").ok();
    let (id, plan) = daemon.plan_evacuation("here --to tiny --space 80%");
    assert_eq!(in_state(&plan, "waiting").len(), 1, "it is empty: {plan:#}");
    let shown = daemon.sterna(&format!("plan show {id}")).ok().stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("may grow to 64.0 MiB"), "{shown}");
    let uri = daemon.uri("grows");
    run("qemu-io", ["-f", "raw", "-c", "write -P 7 0 56M", &uri]);
    daemon.sterna(&format!("plan apply {id}")).ok();
    let plan = daemon.wait_for_plan(id, "it is over", seconds(60), |plan| {
        plan["state"] == "incomplete"
    });
    let problem = plan["moves"][0]["problem"].as_str().expect("a reason");
    assert!(problem.contains("has grown to 56.0 MiB"), "{problem}");
    assert_eq!(daemon.disk("grows")["datastore"], "here");
}

#[test]
fn two_plans_that_share_a_destination_leave_each_other_room() {
    let stage = slow_stage(8);
    let were = disks(&stage, &numbered(8));
    for name in ["d04", "d05", "d06", "d07"] {
        stage.daemon.sterna(&format!("migrate {name} --to there")).ok();
    }
    let plans = ["here", "there"].map(|from| {
        let ask = format!("{from} --to slow --space 100%");
        stage.daemon.plan_evacuation(&ask).0
    });
    for id in plans {
        stage.daemon.sterna(&format!("plan apply {id}")).ok();
    }
    // Of what was never copied to, two at a time: and one of each plan whatever others do.
    let mut most = 0;
    until("both plans to end", seconds(60), || {
        let all = stage.daemon.json("migration list");
        let all = all.as_array().expect("migrations");
        let copying = all.iter().filter(|one| one["state"] == "copying").count();
        assert!(copying <= 3, "{all:#?}");
        most = most.max(copying);
        let plans = plans.map(|id| stage.daemon.plan(id));
        plans.iter().all(|plan| plan["ended"].is_number()).then_some(())
    });
    assert!(most >= 2, "they run beside each other");
    for id in plans {
        let plan = stage.daemon.plan(id);
        assert_eq!(plan["state"], "completed", "{plan:#}");
        is_truthful(&stage, &plan, &were);
    }
}

#[test]
fn a_tile_that_could_not_move_together_any_more_is_not_begun() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    disks(&stage, &numbered(3));
    let file = stage.scratch.path("tiles.toml");
    let tile = "[[tile]]\nname = \"db\"\ndisks = [\"d00\", \"d01\"]\ntogether = true\n";
    std::fs::write(&file, tile).expect("write a file");
    let ask = format!("here --to there --space 100% --tile {}", file.display());
    let (id, _) = daemon.plan_evacuation(&ask);
    daemon.sterna("migrate d01 --to there").ok();
    let refused = daemon.sterna(&format!("plan apply {id}"));
    refused.fails_with(&["tile db is to move together", "d01 has moved", "evacuate"]);
    assert_eq!(daemon.disk("d00")["datastore"], "here");
}
