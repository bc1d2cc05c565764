//! What somebody sees who looks for the cause of trouble: what is usual, whom something has
//! helped, who shares a room, and what is not known yet.

use serde_json::{Value, json};
use sterna_tests::http::{self, Reply};
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Stage, until};

fn ask(stage: &Stage, method: &str, path: &str, body: &str) -> Reply {
    http::ask(stage.daemon.api_socket(), method, path, body)
}

/// What events tell.
fn told(stage: &Stage) -> String {
    let all = stage.daemon.json("activity --limit 200");
    let texts = all.as_array().expect("entries").iter().map(|it| it["text"].to_string());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_usual_for_a_disk_is_kept_over_a_restart() {
    let mut stage = Stage::new();
    stage.disk("a", 64 * MIB);
    let usual = |stage: &Stage| ask(stage, "GET", "/v1/disks/a/usual", "").json();
    let nothing = usual(&stage);
    assert_eq!((&nothing["since"], &nothing["times"]), (&Value::Null, &json!([])));
    let checker = stage.checker("a", &CheckerOptions::gentle(200));
    let known = until("some load to be learned", seconds(60), || {
        let known = usual(&stage);
        let learned = known["times"][0]["learned_s"].as_f64()?;
        (learned >= 5.0 && known["since"].is_u64()).then_some(known)
    });
    assert_eq!(known["needed_s"], 300.0);
    assert_eq!(
        known["times"][0]["response_us"],
        Value::Null,
        "it is too little: {known}"
    );
    checker.finish_and_verify();
    stage.daemon.stop();
    stage.daemon.restart();
    let after = usual(&stage);
    let since = |it: &Value| it["since"].as_u64().expect("a moment");
    assert!(since(&after).abs_diff(since(&known)) <= 1, "{known} {after}");
    assert!(after["times"][0]["learned_s"].as_f64() >= Some(4.9), "{after}");
}

#[test]
fn whom_a_deed_has_helped_is_an_event() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    stage.daemon.sterna("class create gold a").ok();
    // No storage answers in a microsecond.
    stage.daemon.sterna("policy cruise gold 1us --tolerance 50%").ok();
    let checker = stage.checker("a", &CheckerOptions::gentle(200));
    let hurt = || stage.daemon.json("status")["hurt"][0].clone();
    until("the disk to be hurt", seconds(60), || (hurt()["disk"] == "a").then_some(()));
    stage.daemon.sterna("policy remove 1").ok();
    let tried = until("what was tried to be told", seconds(30), || {
        hurt()["tried"].as_str().map(str::to_owned)
    });
    // Requests may take less already, and the disk counts as hurt for some steps more. What
    // the host does beside makes them longer at times.
    let says =
        ["it has not helped yet", "it helps: requests take", "it has become worse"];
    assert!(says.iter().any(|says| tried.contains(says)), "{tried}");
    assert!(tried.ends_with("ago policy 1 of class gold was removed"), "{tried}");
    until("the disk to have recovered", seconds(90), || {
        told(&stage).contains("it has helped: requests take").then_some(())
    });
    checker.finish_and_verify();
}

#[test]
fn a_disk_that_its_own_limit_slows_is_told_apart_from_those_that_are_hurt() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    stage.daemon.sterna("class create bulk a").ok();
    stage.daemon.sterna("policy limit bulk 20iops").ok();
    let checker = stage.checker("a", &CheckerOptions::gentle(200));
    let slowed = until("the disk to be slowed on purpose", seconds(60), || {
        let slowed = stage.daemon.json("status")["slowed"][0].clone();
        (slowed["disk"] == "a").then_some(slowed)
    });
    let why = slowed["why"].as_str().expect("a cause");
    assert!(why.ends_with("policy 1 limits class bulk to 20 IO/s"), "{why}");
    assert!(slowed["response_us"].as_f64() > Some(500.0), "{slowed:#}");
    assert_eq!(stage.daemon.json("status")["hurt"], json!([]));
    let words = stage.daemon.sterna("status").ok().stdout;
    assert!(words.contains("slowed disk") && words.contains("on purpose"), "{words}");
    let words = stage.daemon.sterna("disk show a").ok().stdout;
    assert!(words.contains("to 20 IO/s, by policy 1"), "{words}");
    stage.daemon.sterna("policy remove 1").ok();
    until("the disk to be slowed no more", seconds(60), || {
        (stage.daemon.json("status")["slowed"] == json!([])).then_some(())
    });
    checker.finish_and_verify();
}

#[test]
fn datastores_on_one_file_system_are_named_together() {
    let stage = Stage::new();
    let found = ask(&stage, "GET", "/v1/storage-drs", "").json();
    let mates = |at: usize| found["datastores"][at]["shares_room_with"].clone();
    assert_eq!([mates(0), mates(1)], [json!(["there"]), json!(["here"])]);
}

#[test]
fn what_cannot_be_predicted_yet_is_no_failure_if_it_is_asked_so() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let body = r#"{"disk": "a", "to": "there"}"#;
    assert_eq!(ask(&stage, "POST", "/v1/predictions", body).status, 503);
    let why = ask(&stage, "POST", "/v1/predictions?or_why=true", body);
    assert_eq!(why.status, 202, "{why:?}");
    assert!(
        why.json()["message"].as_str().is_some_and(|it| it.contains("no prediction"))
    );
    let wrong = r#"{"disk": "no", "to": "there"}"#;
    assert_eq!(ask(&stage, "POST", "/v1/predictions?or_why=true", wrong).status, 404);
}

#[test]
fn events_say_whether_maintenance_begins_or_ends_and_sizes_in_units() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    stage.daemon.sterna("datastore maintenance there").ok();
    stage.daemon.sterna("datastore maintenance there --off").ok();
    let told = told(&stage);
    for text in ["set maintenance: on", "set maintenance: off", "size 64.0 MiB"] {
        assert!(told.contains(text), "no {text} in {told}");
    }
    assert!(!told.contains("67108864"), "{told}");
}

#[test]
fn a_chart_can_have_windows_of_one_length_and_a_quarter_has_hours() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    let checker = stage.checker("a", &CheckerOptions::gentle(200));
    until("some seconds of the disk", seconds(60), || {
        let path = "/v1/timelines?of=disk:a&even=true";
        let columns = ask(&stage, "GET", path, "").json()["columns"].clone();
        let [starts, ends] = ["start_ms", "end_ms"]
            .map(|name| columns[name].as_array().expect("it").clone());
        let long = |(start, end): (&Value, &Value)| {
            end.as_u64() > start.as_u64().map(|it| it + 1100)
        };
        assert!(!starts.iter().zip(&ends).any(long), "{columns}");
        (starts.len() >= 3).then_some(())
    });
    let hours = ask(&stage, "GET", "/v1/disks/a/hours", "");
    assert_eq!((hours.status, &hours.json()["columns"]["p99_us"]), (200, &json!([])));
    assert_eq!(ask(&stage, "GET", "/v1/disks/a/hours?from=20&to=10", "").status, 400);
    assert_eq!(ask(&stage, "GET", "/v1/disks/no/hours", "").status, 404);
    checker.finish_and_verify();
}
