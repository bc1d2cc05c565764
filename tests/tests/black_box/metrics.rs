//! Metrics: what Prometheus reads is what it takes, counters only grow, also over a move,
//! and what alerts and the dashboard speak of is there.

pub(crate) mod contrib;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use sterna_tests::metrics::Scrape;
use sterna_tests::servers::Bindfs;
use sterna_tests::wait::seconds;
use sterna_tests::{Checker, CheckerOptions, MIB, Stage, programs, until};

const SIZE: u64 = 64 * MIB;

/// Reads, writes, flushes, trims and zeroes.
fn load() -> CheckerOptions {
    let options = CheckerOptions::gentle(800).with("--trims", 4).with("--zeroes", 4);
    options.flag("--blank").flag("--fill")
}

/// A stage with disk `a` under load, in a class with a target.
fn promised() -> (Stage, Checker) {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    stage.disk("b", MIB);
    for line in ["class create oltp a", "policy cruise oltp 100iops --tolerance 10"] {
        stage.daemon.sterna(line).ok();
    }
    let mut checker = stage.checker("a", &load());
    checker.wait_for_intervals(5);
    (stage, checker)
}

#[track_caller]
fn takes(text: &str) {
    let mut promtool = programs::command("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start promtool");
    let mut input = promtool.stdin.take().expect("its input");
    input.write_all(text.as_bytes()).expect("tell promtool");
    drop(input);
    let output = promtool.wait_with_output().expect("wait for promtool");
    let said = programs::both(&output);
    assert!(output.status.success() && said.trim().is_empty(), "{said}\n{text}");
}

#[test]
fn prometheus_takes_them_and_finds_what_alerts_and_dashboard_speak_of() {
    let (stage, checker) = promised();
    let mut seen = BTreeSet::new();
    let mut wanted = contrib::spoken_of();
    // It needs root, and is looked at with memory.
    assert!(wanted.remove("sterna_swap_tier_in_use"));
    let id = stage.daemon.migrate("a --to there --rate 2M --keep 10%");
    let lacking = || {
        let scrape = Scrape::of(&stage.daemon);
        seen.append(&mut scrape.names());
        let lacking: Vec<_> = wanted.difference(&seen).cloned().collect();
        lacking.is_empty().then_some(scrape)
    };
    let scrape = until("all that is spoken of to be there", seconds(60), lacking);
    assert_eq!(scrape.content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(scrape.value("sterna_migrations{state=\"completed\"}"), 0.0);
    assert_eq!(scrape.value("sterna_datastore_online{datastore=\"here\"}"), 1.0);
    if programs::have(&["promtool"]) {
        takes(&scrape.text);
    }
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    checker.finish_and_verify();
}

#[test]
fn counters_never_shrink_over_moves_and_count_each_request_once() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let mut checker = stage.checker("a", &load());
    checker.wait_for_intervals(5);
    let mut before = Scrape::of(&stage.daemon);
    for to in ["there", "here"] {
        let id = stage.daemon.migrate(&format!("a --to {to}"));
        until("the move to end", seconds(60), || {
            let now = Scrape::of(&stage.daemon);
            now.has_not_shrunk_since(&before);
            before = now;
            (stage.daemon.migration(id)["state"] == "completed").then_some(())
        });
    }
    checker.finish_and_verify();
    let after = until("the last sample", seconds(10), || {
        let now = Scrape::of(&stage.daemon);
        now.has_not_shrunk_since(&before);
        let stats = stage.daemon.json("disk stats a");
        let agree = [("read", &stats["read"]["operations"]), ("zero", &stats["zeroes"])];
        let agree = agree.into_iter().chain([
            ("write", &stats["write"]["operations"]),
            ("flush", &stats["flushes"]),
        ]);
        let series = |op| format!("sterna_disk_requests_total{{disk=\"a\",op=\"{op}\"}}");
        let mut agree = agree.map(|(op, it)| it.as_f64() == now.get(&series(op)));
        agree.all(|it| it).then_some(now)
    });
    assert!(after.value("sterna_disk_requests_total{disk=\"a\",op=\"zero\"}") > 0.0);
    assert_eq!(after.value("sterna_switchover_hold_seconds_count"), 2.0);
    assert_eq!(after.value("sterna_migrations{state=\"completed\"}"), 2.0);
    for pair in ["from=\"here\",to=\"there\"", "from=\"there\",to=\"here\""] {
        let copied = after.value(&format!("sterna_migration_bytes_total{{{pair}}}"));
        assert!(copied > MIB as f64, "{pair}: {copied}");
    }
}

#[test]
fn a_restarted_daemon_counts_from_nought() {
    let mut stage = Stage::new();
    stage.disk("a", SIZE);
    let mut checker = stage.checker("a", &load());
    checker.wait_for_intervals(5);
    checker.finish_and_verify();
    let series = "sterna_disk_requests_total{disk=\"a\",op=\"write\"}";
    assert!(Scrape::of(&stage.daemon).value(series) > 0.0);
    stage.daemon.stop();
    stage.daemon.restart();
    assert_eq!(Scrape::of(&stage.daemon).value(series), 0.0);
}

#[test]
fn time_that_a_move_stands_still_is_counted_by_its_reason() {
    let stage = Stage::new();
    stage.disk_with_data("a", SIZE, SIZE);
    let id = stage.daemon.migrate("a --to there --rate 2M");
    stage.daemon.pause(id);
    let stood = |reason: &str| {
        let series =
            format!("sterna_migration_paused_seconds_total{{reason=\"{reason}\"}}");
        Scrape::of(&stage.daemon).value(&series)
    };
    until("a second to pass", seconds(20), || (stood("operator") >= 1.0).then_some(()));
    let paused = Scrape::of(&stage.daemon).value("sterna_migrations{state=\"paused\"}");
    assert_eq!((paused, stood("other"), stood("schedule")), (1.0, 0.0, 0.0));
    stage.daemon.cancel(id);
}

#[test]
fn they_are_there_while_a_datastore_hangs() {
    let Some(stage) = Stage::given_root(&["bindfs"]) else { return };
    let hangs = Bindfs::new(&stage.scratch, "hung");
    stage.datastore("hung", hangs.dir().display());
    stage.disk("a", MIB);
    hangs.hang();
    let asked = std::time::Instant::now();
    let scrape = Scrape::of(&stage.daemon);
    let took = asked.elapsed();
    assert!(took < seconds(3), "it took {took:?}");
    assert_eq!(scrape.value("sterna_datastore_online{datastore=\"hung\"}"), 0.0);
    assert_eq!(scrape.get("sterna_datastore_free_bytes{datastore=\"hung\"}"), None);
    assert_eq!(scrape.value("sterna_datastore_online{datastore=\"here\"}"), 1.0);
    assert_eq!(scrape.value("sterna_disk_in_flight{disk=\"a\"}"), 0.0);
    hangs.go_on();
}

#[test]
fn they_are_there_while_the_state_hangs_with_the_names_that_were_known() {
    if !programs::have(&["fsfreeze"]) {
        return;
    }
    let Some((stage, state)) = Stage::given_tiny_state(64 * MIB) else { return };
    stage.disk("a", MIB);
    let disk = "sterna_disk_in_flight{disk=\"a\"}";
    assert_eq!(Scrape::of(&stage.daemon).get(disk), Some(0.0));
    let frozen = state.freeze();
    // It hangs for good once somebody has something to record.
    let class = stage.daemon.piped("class create oltp a");
    let asked = std::time::Instant::now();
    let scrape = until("the state to be silent", seconds(20), || {
        let scrape = Scrape::of(&stage.daemon);
        (asked.elapsed() > seconds(2)).then_some(scrape)
    });
    let again = std::time::Instant::now();
    assert_eq!(Scrape::of(&stage.daemon).get(disk), Some(0.0));
    assert!(again.elapsed() < seconds(3), "it took {:?}", again.elapsed());
    assert_eq!(scrape.get(disk), Some(0.0));
    drop(frozen);
    class.wait_with_output().expect("the command ends");
}

#[test]
fn requests_of_the_api_are_counted_by_path_and_not_by_what_strangers_guess() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let ask = |path| sterna_tests::http::ask(stage.daemon.api_socket(), "GET", path, "");
    for path in ["/v1/disks/a", "/v1/disks/nosuch", "/v1/guess", "/v1/another"] {
        ask(path);
    }
    let scrape = Scrape::of(&stage.daemon);
    let count = |route: &str, code: u16| {
        let labels = format!("route=\"{route}\",code=\"{code}\"");
        scrape.value(&format!("sterna_api_requests_total{{{labels}}}"))
    };
    assert!(count("/v1/disks/{name}", 200) >= 1.0);
    assert_eq!(count("/v1/disks/{name}", 404), 1.0);
    assert_eq!(count("none", 404), 2.0);
    assert!(!scrape.text.contains("guess"));
}

#[test]
fn the_manual_has_each_metric() {
    let (stage, checker) = promised();
    let names = Scrape::of(&stage.daemon).names();
    checker.finish_and_verify();
    let lacking = contrib::not_explained(&names);
    assert!(lacking.is_empty(), "{lacking:?}");
}
