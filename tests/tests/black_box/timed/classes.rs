//! Classes and policies: made, seen, refused, kept over restarts, and in force.

use std::time::Instant;

use serde_json::{Value, json};
use sterna_tests::clients::{Fio, nbdsh};
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, Daemon, MIB, Stage, until};

/// A stage with the disks `db`, `log` and `web`, of which the first two are in the
/// class `oltp`.
fn stage() -> Stage {
    let stage = Stage::new();
    for disk in ["db", "log", "web"] {
        stage.disk(disk, MIB);
    }
    stage.daemon.sterna("class create oltp db log --shares 2000").ok();
    stage
}

fn class(daemon: &Daemon, name: &str) -> Value {
    daemon.json(&format!("class show {name}"))
}

/// Makes a policy; gives its number.
#[track_caller]
fn policy(daemon: &Daemon, line: &str) -> u64 {
    daemon.json(&format!("policy {line}"))["id"].as_u64().expect("a number")
}

/// Everything that the state has of classes and policies, as far as it does not tell
/// the time.
fn all(daemon: &Daemon) -> [Value; 2] {
    let mut policies = daemon.json("policy list");
    for policy in policies.as_array_mut().expect("a list") {
        // How a cruise fares depends on when it was last looked at.
        for of_the_moment in ["since", "until", "cruise"] {
            policy[of_the_moment] = Value::Null;
        }
    }
    [daemon.json("class list"), policies]
}

#[test]
fn classes_are_created_listed_changed_and_deleted() {
    let stage = stage();
    let daemon = &stage.daemon;
    let oltp = class(daemon, "oltp");
    assert_eq!((&oltp["disks"], &oltp["shares"]), (&json!(["db", "log"]), &json!(2000)));
    daemon.sterna("class add oltp web").ok();
    daemon.sterna("class remove-disk oltp db log").ok();
    daemon.sterna("class set oltp --shares 500 --reservation 20M").ok();
    let oltp = class(daemon, "oltp");
    assert_eq!((&oltp["disks"], &oltp["shares"]), (&json!(["web"]), &json!(500)));
    assert_eq!(oltp["reservation"]["bytes_per_second"], 20 * MIB);
    let note = oltp["notes"][0].as_str().expect("a note");
    assert!(
        note.contains("here") && note.contains("only of a datastore with a shape"),
        "{note}"
    );
    daemon.sterna("class set oltp --reservation none").ok();
    assert_eq!(class(daemon, "oltp")["reservation"], Value::Null);
    assert_eq!(daemon.disk("web")["class"], "oltp");
    let words = daemon.sterna("class list").ok().stdout;
    assert!(words.contains("oltp") && words.contains("migration"), "{words}");
    daemon.sterna("class delete oltp").ok();
    daemon.sterna("class show oltp").fails_with(&["oltp", "sterna class list"]);
    assert_eq!(daemon.disk("web")["class"], Value::Null);
}

#[test]
fn a_disk_is_in_one_class_and_leaves_it_when_it_is_removed() {
    let stage = stage();
    let daemon = &stage.daemon;
    daemon.sterna("class create web web db").fails_with(&["db", "oltp already"]);
    daemon.sterna("class show web").fails_with(&["web"]);
    daemon.sterna("class remove-disk oltp web").fails_with(&["web is not in class oltp"]);
    daemon.sterna("disk remove db").ok();
    assert_eq!(class(daemon, "oltp")["disks"], json!(["log"]));
    stage.disk("db", MIB);
    assert_eq!(daemon.disk("db")["class"], Value::Null);
}

#[test]
fn the_class_of_the_copies_can_be_limited_but_not_be_deleted_or_filled() {
    let stage = stage();
    let daemon = &stage.daemon;
    daemon.sterna("class set migration --shares 100").ok();
    policy(daemon, "limit migration 20M");
    let words = daemon.sterna("status").ok().stdout;
    // The built-in class is nobody's.
    assert!(words.contains("classes      1, 1 policy"), "{words}");
    let copies = class(daemon, "migration");
    assert_eq!(copies["in_force"]["bytes_per_second"], 20 * MIB);
    assert!(copies["notes"][0].as_str().is_some_and(|it| it.contains("at half of")));
    assert_eq!(copies["in_force"]["shares"], 100);
    daemon.sterna("class delete migration").fails_with(&["built in"]);
    daemon.sterna("class add migration db").fails_with(&["no disks"]);
    daemon.sterna("class create migration").fails_with(&["migration already"]);
}

#[test]
fn all_limits_hold_and_it_is_said_which_one_binds() {
    let stage = stage();
    let daemon = &stage.daemon;
    let loose = policy(daemon, "limit oltp 5M");
    let tight = policy(daemon, "limit oltp 2M");
    policy(daemon, "limit oltp 100iops");
    policy(daemon, "queue-depth oltp 8");
    let cruise = policy(daemon, "cruise oltp 30ms --tolerance 10% --floor 50iops");
    let now = &class(daemon, "oltp")["in_force"];
    assert_eq!((&now["bytes_per_second"], &now["iops"]), (&json!(2 * MIB), &json!(100)));
    assert_eq!(
        (&now["queue_depth"], &now["reservation"]["iops"]),
        (&json!(8), &json!(50))
    );
    let shown = daemon.json(&format!("policy show {loose}"));
    assert_eq!(
        (&shown["standing"], &shown["looser_than"]),
        (&json!("looser"), &json!(tight))
    );
    let shown = daemon.json(&format!("policy show {cruise}"));
    // Without a request it has nothing to do, whether it has looked by now or not.
    let phase = shown["cruise"]["phase"].as_str().expect("a phase");
    assert!(["not_started", "holding"].contains(&phase), "{phase}");
    let said = daemon.sterna("policy explain oltp").ok().stdout;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "limit 2.00 MiB/s (policy 2), since",
        "limit 5.00 MiB/s (policy 1): policy 2 is tighter",
        "50 IO/s: the floor of policy 5",
        "only by a command",
    ] {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
    daemon.sterna(&format!("policy remove {tight}")).ok();
    assert_eq!(class(daemon, "oltp")["in_force"]["bytes_per_second"], 5 * MIB);
}

#[test]
fn contradictions_are_refused_with_the_arithmetic_and_change_nothing() {
    let stage = stage();
    let daemon = &stage.daemon;
    daemon.sterna("class set oltp --reservation 500iops").ok();
    policy(daemon, "limit oltp 20ms");
    policy(daemon, "cruise oltp 800iops --tolerance 10% --schedule Mon");
    let before = all(daemon);
    for (line, words) in [
        ("policy limit oltp 300iops", &["300 IO/s", "below", "500 IO/s"][..]),
        ("policy queue-depth oltp 8", &["8 requests at once", "20.0 ms", "400 IO/s"]),
        (
            "policy limit oltp 700iops --schedule Mon,08:00-10:00",
            &["800 IO/s - 10%", "720 IO/s", "700 IO/s", "Mon 08:00"],
        ),
        (
            "policy cruise oltp 5ms --tolerance 10% --schedule Tue",
            &["5.0 ms + 10%", "5.5 ms", "20.0 ms"],
        ),
        (
            "policy cruise oltp 900iops --tolerance 5% --schedule Sun,22:00-06:00",
            &["policy 2 and the new policy", "Mon 00:00"],
        ),
        (
            "policy cruise oltp 9M --tolerance 5% --floor 10M --schedule Tue",
            &["10.0 MiB/s is above the target of 9.00 MiB/s"],
        ),
        (
            "policy cruise oltp 30ms --tolerance 5% --floor 1M --schedule Tue",
            &["500 IO/s", "1.00 MiB/s"],
        ),
        ("class set oltp --shares 0", &["1 to 100000 shares"]),
        (
            "policy cruise migration 9M --tolerance 5%",
            &["a target for copies would slow applications"],
        ),
    ] {
        daemon.sterna(line).fails_with(words);
    }
    assert_eq!(all(daemon), before);
    policy(daemon, "limit oltp 600iops --schedule Tue");
    let words = ["600 IO/s", "below", "650 IO/s", "Tue 00:00"];
    daemon.sterna("class set oltp --reservation 650iops").fails_with(&words);
}

#[test]
fn more_than_a_datastore_does_is_not_promised() {
    let stage = Stage::new();
    let slow = stage.scratch.dir("slow");
    stage.datastore("slow", format!("{} --shape iops=1000", slow.display()));
    for disk in ["a", "b"] {
        let line = format!("disk create {disk} --size 1M --on slow");
        stage.daemon.sterna(&line).ok();
    }
    let daemon = &stage.daemon;
    daemon.sterna("class create first a --reservation 600iops").ok();
    let sum = ["slow", "first 600 IO/s", "second 500 IO/s", "1100 IO/s", "1000 IO/s"];
    daemon.sterna("class create second b --reservation 500iops").fails_with(&sum);
    daemon.sterna("class create second --reservation 500iops").ok();
    daemon.sterna("class add second b").fails_with(&sum);
    daemon.sterna("class set second --reservation 400iops").ok();
    daemon.sterna("class add second b").ok();
    let floor = "cruise second 900iops --tolerance 10% --floor 500iops --schedule Sat";
    daemon.sterna(&format!("policy {floor}")).fails_with(&sum);
    assert_eq!(class(daemon, "second")["notes"], json!([]));
}

#[test]
fn wrong_names_get_a_hint_and_wrong_jobs_too() {
    let stage = stage();
    for (line, words) in [
        ("class show nope", ["nope", "sterna class list"]),
        ("class delete nope", ["nope", "sterna class list"]),
        ("class add nope db", ["nope", "sterna class list"]),
        ("class add oltp nope", ["nope", "sterna disk list"]),
        ("class create x nope", ["nope", "sterna disk list"]),
        ("class create a/b", ["a/b", "letters"]),
        ("class create oltp", ["oltp already", "sterna class show oltp"]),
        ("policy limit nope 2M", ["nope", "sterna class list"]),
        ("policy explain nope", ["nope", "sterna class list"]),
        ("policy show 77", ["77", "sterna policy list"]),
        ("policy remove 77", ["77", "sterna policy list"]),
        ("policy limit oltp 2M --until-job 77", ["77", "sterna migration list"]),
    ] {
        stage.daemon.sterna(line).fails_with(&words);
    }
    let id = stage.daemon.migrate("web --to there");
    stage.daemon.completed(id);
    let line = format!("policy limit oltp 2M --until-job {id}");
    stage.daemon.sterna(&line).fails_with(&["has ended"]);
}

#[test]
fn a_killed_daemon_has_everything_in_force_again() {
    let mut stage = stage();
    stage.daemon.sterna("class set oltp --reservation 20iops").ok();
    stage.daemon.sterna("class create web web").ok();
    policy(&stage.daemon, "limit oltp 40iops");
    policy(&stage.daemon, "limit oltp 1234567 --schedule Sat,Sun");
    let cruise = "cruise web 15M --tolerance 10% --floor 1M --fallback limit=2M";
    policy(&stage.daemon, cruise);
    policy(&stage.daemon, "queue-depth migration 2");
    let before = all(&stage.daemon);
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(all(&stage.daemon), before);
    let checker = stage.checker("db", &CheckerOptions::hard(8));
    assert_held(&stage.daemon, "db", 40.0);
    checker.finish();
}

#[test]
fn a_limit_holds_a_client_and_lets_it_go_when_it_is_removed() {
    let stage = stage();
    let checker = stage.checker("db", &CheckerOptions::hard(8));
    let id = policy(&stage.daemon, "limit oltp 50iops");
    assert_held(&stage.daemon, "db", 50.0);
    stage.daemon.sterna("class remove-disk oltp db").ok();
    assert_free(&stage.daemon, "db", 50.0);
    stage.daemon.sterna("class add oltp db").ok();
    assert_held(&stage.daemon, "db", 50.0);
    stage.daemon.sterna(&format!("policy remove {id}")).ok();
    assert_free(&stage.daemon, "db", 50.0);
    checker.finish();
}

/// Three clients at once, each with 32 requests under way for some seconds: what the
/// slowest of them waited for, in seconds, as a line for each.
const CLIENTS: &str = "\
import nbd, time
worst = {}
clients = []
def client(size):
    c = nbd.NBD()
    c.connect_uri(h.get_uri())
    clients.append(c)
    def ask():
        began = time.monotonic()
        def done(error):
            took = time.monotonic() - began
            worst[c] = max(worst.get(c, 0), took)
            if time.monotonic() < end: waiting.append(ask)
            return 1
        c.aio_pread(nbd.Buffer(size), 0, completion=done)
    waiting.extend([ask] * 32)
waiting = []
end = time.monotonic() + 4
for size in [65536, 65536, 262144]: client(size)
late = end + 20
while time.monotonic() < late:
    while waiting: waiting.pop()()
    busy = [c for c in clients if c.aio_in_flight()]
    if not busy: break
    for c in busy: c.poll(1)
print(*[worst.get(c, 99) for c in clients])
";

#[test]
fn connections_of_a_disk_have_equal_parts_of_its_limit() {
    let stage = stage();
    policy(&stage.daemon, "limit oltp 100iops");
    let said = nbdsh(&stage.daemon.uri("db"), CLIENTS);
    let waits: Vec<f64> =
        said.split_whitespace().map(|it| it.parse().expect("seconds")).collect();
    // 96 wait, so each is due after a second.
    assert!(waits.len() == 3 && waits.iter().all(|wait| *wait < 3.0), "{waits:?}");
}

#[test]
fn flushes_wait_for_no_limit_and_are_seen() {
    let stage = stage();
    policy(&stage.daemon, "limit oltp 4iops");
    let script = "\
import time
end = time.monotonic() + 4
while time.monotonic() < end: h.flush()
";
    let uri = stage.daemon.uri("db");
    std::thread::scope(|scope| {
        let flushing = scope.spawn(|| nbdsh(&uri, script));
        until("the flushes to be seen", seconds(4), || {
            let top = stage.daemon.json("top --count 1 --interval 1s");
            let rows = top["rows"].as_array().expect("rows");
            let db = rows.iter().find(|row| row["name"] == "db").expect("a row of db");
            let rate = |value: &Value| value.as_f64().expect("a rate");
            let flushes = rate(&db["load"]["flushes"]);
            (flushes > 10.0 && rate(&db["load"]["write"]["iops"]) == 0.0).then_some(())
        });
        flushing.join().expect("it flushes");
    });
}

/// Requests that the disk has carried out so far.
fn requests(daemon: &Daemon, disk: &str) -> u64 {
    let activity = &daemon.disk(disk)["activity"];
    let count = |what: &str| activity[what].as_u64().expect("a count");
    count("reads") + count("writes")
}

/// Requests per second, over the time that `count` of them take.
fn pace(daemon: &Daemon, disk: &str, count: u64) -> f64 {
    let (from, since) = (requests(daemon, disk), Instant::now());
    let done = until("requests to be carried out", seconds(60), || {
        Some(requests(daemon, disk) - from).filter(|done| *done >= count)
    });
    done as f64 / since.elapsed().as_secs_f64()
}

#[track_caller]
fn assert_held(daemon: &Daemon, disk: &str, limit: f64) {
    // What was started before the limit has been counted by then.
    pace(daemon, disk, 10);
    let pace = pace(daemon, disk, 100);
    assert!(pace < limit * 1.2, "{pace} IO/s where {limit} IO/s are the limit");
}

#[track_caller]
fn assert_free(daemon: &Daemon, disk: &str, limit: f64) {
    let pace = pace(daemon, disk, 1000);
    assert!(pace > limit * 2.0, "{pace} IO/s where nothing holds it any more");
}

#[test]
fn a_policy_ends_with_its_job() {
    let stage = Stage::new();
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    stage.daemon.sterna("class create oltp db").ok();
    let id = stage.daemon.migrate("db --to there --rate 100K");
    let limit = policy(&stage.daemon, &format!("limit oltp 2M --until-job {id}"));
    let kept = policy(&stage.daemon, "limit oltp 3M");
    let said = stage.daemon.sterna("policy explain oltp").ok().stdout;
    assert!(said.contains(&format!("when migration {id} ends")), "{said}");
    stage.daemon.cancel(id);
    let left = until("the policy to end", seconds(20), || {
        let left = stage.daemon.json("policy list");
        (left.as_array().map(Vec::len) == Some(1)).then_some(left)
    });
    assert_eq!(left[0]["id"], kept);
    let oltp = class(&stage.daemon, "oltp");
    assert_eq!(oltp["in_force"]["bytes_per_second"], 3 * MIB);
    let line = format!("policy ended with its job policy={limit} migration={id}");
    assert!(stage.daemon.log().contains(&line), "the log does not say so");
}

#[test]
fn a_policy_whose_job_ended_while_the_daemon_was_down_is_gone_at_the_start() {
    let mut stage = Stage::new();
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    let id = stage.daemon.migrate("db --to there --rate 100K");
    policy(&stage.daemon, &format!("limit migration 2M --until-job {id}"));
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    stage.daemon.kill();
    stage.daemon.restart();
    until("the policy to end", seconds(20), || {
        (stage.daemon.json("policy list") == json!([])).then_some(())
    });
    assert_eq!(
        class(&stage.daemon, "migration")["in_force"]["bytes_per_second"],
        Value::Null
    );
}

/// A clock, some seconds from what the daemon's shows.
fn clock(daemon: &Daemon, ahead: u32) -> String {
    let shown = daemon.json("policy explain oltp")["local_time"].clone();
    let shown = shown.as_str().and_then(|text| text.split(' ').nth(1)).expect("a time");
    let parts: Vec<u32> = shown.split(':').map(|part| part.parse().unwrap()).collect();
    let seconds = parts.iter().fold(0, |sum, part| sum * 60 + part);
    let seconds = if parts.len() == 2 { seconds * 60 } else { seconds };
    let then = (seconds + ahead) % 86400;
    format!("{:02}:{:02}:{:02}", then / 3600, then / 60 % 60, then % 60)
}

#[test]
fn a_schedule_switches_at_its_second() {
    let stage = stage();
    let daemon = &stage.daemon;
    let (from, to) = (clock(daemon, 3), clock(daemon, 5));
    let made = daemon.json(&format!("policy limit oltp 2M --schedule {from}-{to}"));
    assert_eq!(made["standing"], "closed");
    let opens = made["until"].as_u64().expect("it opens");
    let id = made["id"].as_u64().expect("a number");
    let limit = || class(daemon, "oltp")["in_force"]["bytes_per_second"].clone();
    assert_eq!(limit(), Value::Null);
    let said = daemon.json("policy explain oltp");
    assert_eq!(
        (&said["next_change"], &said["then"]["bytes_per_second"]),
        (&json!(opens), &json!(2 * MIB))
    );
    for (word, second) in [("policy in force", opens), ("policy not in force", opens + 2)]
    {
        let line = until("the schedule to switch", seconds(30), || {
            let log = daemon.log();
            let word = format!("{word} policy={id} ");
            log.lines().find(|line| line.contains(&word)).map(str::to_owned)
        });
        // The log is in UTC: 2026-11-21T13:19:15.000423Z.
        let clock = second % 86400;
        let clock =
            format!("{:02}:{:02}:{:02}.", clock / 3600, clock / 60 % 60, clock % 60);
        assert!(line.contains(&clock), "at {clock} of another second: {line}");
    }
    assert_eq!(limit(), Value::Null);
}

#[test]
fn shares_that_no_class_has_are_refused_without_asking_for_its_policies() {
    let stage = stage();
    for line in ["class create x --shares 0", "class set oltp --shares 100001"] {
        let answer = stage.daemon.sterna(line);
        let answer = answer.fails_with(&["1 to 100000 shares", "without --shares"]);
        assert!(!answer.stderr.contains("explain"), "{answer:?}");
    }
}

#[test]
fn a_disk_says_for_whom_it_is_held_back() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    let place = stage.scratch.dir("old");
    stage.datastore("old", format!("array://old-fc?path={}", place.display()));
    for disk in ["db", "bak"] {
        stage.daemon.sterna(&format!("disk create {disk} --size 64M --on old")).ok();
        let fill = "rw=write\nbs=1m\nsize=64m";
        Fio::start(&stage.daemon.uri(disk), fill).finish();
    }
    stage.daemon.sterna("class create oltp db").ok();
    let busy = "rw=randread\nbs=8k\niodepth=16\ntime_based=1\nruntime=12\nsize=100%";
    let both = ["db", "bak"].map(|disk| Fio::start(&stage.daemon.uri(disk), busy));
    // More than half of what the array does, and more than all of it.
    let id = policy(&stage.daemon, "cruise oltp 100000iops --tolerance 10%");
    let held = until("the disk in no class to be held", seconds(10), || {
        let held = stage.daemon.disk("bak")["held"].clone();
        held.is_object().then_some(held)
    });
    assert_eq!((&held["policy"], &held["class"]), (&json!(id), &json!("oltp")));
    let words = stage.daemon.sterna("disk show bak").ok().stdout;
    let line = format!("for policy {id} of class oltp");
    assert!(words.contains("held ") && words.contains(&line), "{words}");
    stage.daemon.sterna(&format!("policy remove {id}")).ok();
    until("it to be let go", seconds(10), || {
        stage.daemon.disk("bak")["held"].is_null().then_some(())
    });
    both.into_iter().for_each(|fio| drop(fio.finish()));
}

#[test]
fn tables_fit_a_terminal_whatever_the_names() {
    let stage = Stage::new();
    let name = "a-class-with-a-name-as-long-as-a-name-of-a-class-can-possibly-be";
    let name = &name[..63];
    stage.daemon.sterna(&format!("class create {name} --reservation 100iops")).ok();
    let schedule = "Mon,Wed,Fri-Sat,22:00-06:00";
    policy(&stage.daemon, &format!("limit {name} 12M --schedule {schedule}"));
    policy(&stage.daemon, &format!("limit {name} 20ms"));
    policy(&stage.daemon, &format!("limit {name} 123456iops"));
    policy(&stage.daemon, &format!("queue-depth {name} 65535"));
    policy(&stage.daemon, &format!("cruise {name} 11M --tolerance 10%"));
    for line in ["class list", "policy list"] {
        let words = stage.daemon.sterna(line).ok().stdout;
        assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    }
}
