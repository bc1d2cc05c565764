//! The commands do what they say, in words and in JSON.

use serde_json::Value;

use sterna_tests::images::{allocated, write_image};
use sterna_tests::programs::sterna;
use sterna_tests::wait::seconds;
use sterna_tests::{Answer, MIB, Stage};

#[test]
fn datastores_are_added_listed_shown_and_removed() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    let list = daemon.json("datastore list");
    let names: Vec<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|datastore| datastore["name"].as_str())
        .collect();
    assert_eq!(names, ["here", "there"]);
    let shown = daemon.json("datastore show here");
    assert_eq!(shown["kind"], "directory");
    assert_eq!(shown["location"], stage.here.display().to_string());
    assert!(shown["capacity"].as_u64() > Some(0), "{shown:#}");
    let words = daemon.sterna("datastore list").ok().stdout;
    assert!(words.contains("here") && words.contains("there"), "{words}");
    daemon.sterna("datastore show here").ok();
    daemon.sterna("datastore remove there").ok();
    daemon.sterna("datastore show there").fails_with(&["there"]);
}

#[test]
fn a_shaped_datastore_remembers_its_shape() {
    let stage = Stage::new();
    let dir = stage.scratch.dir("slow");
    let shape = "mbps=300,iops=5000,latency=1ms";
    stage.datastore("slow", format!("{} --shape {shape}", dir.display()));
    let shape = stage.daemon.json("datastore show slow")["shape"].to_string();
    for part in ["mbps=300", "iops=5000", "latency=1ms"] {
        assert!(shape.contains(part), "{shape}");
    }
}

#[test]
fn disks_are_created_listed_shown_and_removed() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    let made = daemon.json("disk create a --size 64M --on here");
    assert_eq!((&made["name"], made["size"].as_u64()), (&"a".into(), Some(64 * MIB)));
    let shown = daemon.disk("a");
    assert_eq!(
        (shown["datastore"].as_str(), shown["served"].as_bool()),
        (Some("here"), Some(true))
    );
    assert_eq!(daemon.json("disk list").as_array().map(Vec::len), Some(1));
    let words = daemon.sterna("disk list").ok().stdout;
    assert!(words.contains('a') && words.contains("here"), "{words}");
    daemon.sterna("disk show a").ok();
    let uri = daemon.sterna("disk uri a").ok().stdout;
    assert_eq!(uri.lines().next(), Some(daemon.uri("a").as_str()));
    let image = daemon.image("a");
    assert!(image.exists());
    daemon.sterna("disk remove a").ok();
    assert!(!image.exists(), "the image should be gone");
    daemon.sterna("disk show a").fails_with(&["a"]);
}

#[test]
fn disks_are_provisioned_as_asked() {
    let stage = Stage::new();
    for (provision, least, most) in [
        ("thin", 0, MIB),
        ("thick", 16 * MIB, 17 * MIB),
        ("thick-zeroed", 16 * MIB, 17 * MIB),
    ] {
        let line = format!(
            "disk create {provision} --size 16M --on here --provision {provision}"
        );
        stage.daemon.sterna(&line).ok();
        let taken = allocated(&stage.daemon.image(provision));
        assert!((least..=most).contains(&taken), "{provision} takes {taken}");
        let shown = stage.daemon.disk(provision);
        assert_eq!(shown["provision"], provision);
    }
}

#[test]
fn a_raw_file_is_adopted_in_place() {
    let stage = Stage::new();
    let file = stage.here.join("old.raw");
    write_image(&file, 16 * MIB, MIB);
    let before = std::fs::read(&file).expect("read the image");
    let line = format!("disk import old --on here {}", file.display());
    stage.daemon.sterna(&line).ok();
    assert_eq!(stage.daemon.image("old"), file);
    assert_eq!(stage.daemon.disk("old")["size"], 16 * MIB);
    assert!(std::fs::read(&file).expect("read the image") == before);
}

#[test]
fn a_migration_waits_and_reports_unless_detached() {
    let stage = Stage::new();
    stage.disk_with_data("a", 64 * MIB, 32 * MIB);
    let done = stage.daemon.json("migrate a --to there");
    assert_eq!(done["state"], "completed", "{done:#}");
    assert!(done["report"]["switch_over_ms"].is_number(), "{done:#}");
    assert_eq!(stage.daemon.disk("a")["datastore"], "there");
    let words = stage.daemon.sterna("migrate a --to here").ok();
    let said = format!("{}{}", words.stdout, words.stderr);
    assert!(said.contains("ms"), "it should tell the switch-over:\n{said}");
}

#[test]
fn a_move_goes_by_the_name_of_its_disk() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    daemon.sterna("migration pause a").fails_with(&["a is not being moved"]);
    let id = daemon.migrate("a --to there --rate 10M");
    daemon.sterna("migration set a --rate 20M").ok();
    assert_eq!(daemon.migration(id)["rate"], 20 * MIB);
    daemon.sterna("migration pause a").ok();
    daemon.wait_for(id, "paused", seconds(10));
    daemon.sterna("migration resume a").ok();
    daemon.sterna("migration cancel a").ok();
    daemon.wait_for(id, "cancelled", seconds(10));
    // What is over can still be looked at, and nothing else.
    assert_eq!(daemon.json("migration show a")["id"], id);
    daemon.sterna("migration cancel a").fails_with(&["a is not being moved"]);
}

#[test]
fn migrations_are_listed_shown_paused_resumed_set_and_cancelled() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    stage.disk_with_data("a", 128 * MIB, 128 * MIB);
    let id = daemon.migrate("a --to there --rate 10M");
    assert_eq!(daemon.json("migration list").as_array().map(Vec::len), Some(1));
    daemon.sterna("migration list").ok();
    daemon.sterna(&format!("migration show {id}")).ok();
    let paused = daemon.pause(id);
    assert!(paused["reason"].is_string(), "{paused:#}");
    daemon.resume(id);
    daemon.wait_for(id, "copying", seconds(10));
    daemon.sterna(&format!("migration set {id} --rate 5M")).ok();
    assert_eq!(daemon.migration(id)["rate"], 5 * MIB);
    daemon.cancel(id);
    assert_eq!(daemon.disk("a")["datastore"], "here");
    let left = stage.files_there();
    assert!(left.is_empty(), "a cancelled move should leave nothing: {left:?}");
    // And the disk can be moved again, watched to its end.
    let id = daemon.migrate("a --to there");
    daemon.sterna(&format!("migration watch {id}")).ok();
    assert_eq!(daemon.migration(id)["state"], "completed");
}

#[test]
fn the_rate_is_kept() {
    let stage = Stage::new();
    stage.disk_with_data("a", 64 * MIB, 64 * MIB);
    let began = std::time::Instant::now();
    stage.daemon.sterna("migrate a --to there --rate 20M").ok();
    let took = began.elapsed().as_secs_f64();
    // 64 MiB at 20 MiB/s are 3.2 s; a bucket may give the first moments for
    // nothing.
    assert!(took > 2.5, "64 MiB at 20 MiB/s took only {took:.1} s");
}

#[test]
fn status_fits_on_a_page_and_counts() {
    let stage = Stage::new();
    stage.disk("a", MIB);
    let status = stage.daemon.json("status");
    assert_eq!(status["counts"]["datastores"], 2);
    assert_eq!(status["counts"]["disks_served"], 1);
    assert_eq!(status["pid"].as_u64(), Some(u64::from(stage.daemon.pid())));
    let io = status["io"]["engine"].as_str();
    assert!(matches!(io, Some("io_uring" | "threads")), "{status:#}");
    let words = stage.daemon.sterna("status").ok().stdout;
    assert!(words.lines().count() <= 24, "{words}");
}

#[test]
fn everything_is_still_there_after_a_restart() {
    let mut stage = Stage::new();
    stage.disk("a", 8 * MIB);
    let before = stage.daemon.disk("a");
    stage.daemon.stop();
    stage.daemon.restart();
    let after = stage.daemon.disk("a");
    for field in ["id", "name", "size", "datastore", "image", "generation", "served"] {
        assert_eq!(before[field], after[field], "{field}");
    }
}

#[test]
fn what_commands_print_as_json_is_the_apis_answer() {
    let stage = Stage::new();
    stage.disk_with_data("db", MIB, MIB);
    let id = stage.daemon.migrate("db --to there");
    stage.daemon.completed(id);
    let names = |value: &Value| match value {
        Value::Array(all) => all.iter().flat_map(names_of).collect(),
        one => names_of(one),
    };
    let id = id.to_string();
    for words in [
        vec!["status"],
        vec!["disk", "list"],
        vec!["disk", "show", "db"],
        vec!["datastore", "list"],
        vec!["datastore", "show", "there"],
        vec!["migration", "list"],
        vec!["migration", "show", &id],
    ] {
        let line = words.join(" ");
        let said = stage.daemon.sterna(&format!("{line} --json")).ok().json();
        let asked = stage.daemon.json_if_any(&line).expect("the API's answer");
        assert_eq!(names(&said), names(&asked), "{line}");
        // What has ended changes no more.
        if words[0] == "migration" {
            assert_eq!(said, asked, "{line}");
        }
    }
}

/// The names of an object's fields.
fn names_of(value: &Value) -> Vec<String> {
    value.as_object().map(|it| it.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn without_a_daemon_the_client_says_how_to_start_one() {
    let output = std::process::Command::new(sterna())
        .args(["status", "--socket", "/nowhere/sterna.sock"])
        .output()
        .expect("start sterna");
    Answer::new("sterna status".into(), &output)
        .fails_with(&["/nowhere/sterna.sock", "sterna serve"]);
}

#[test]
fn the_environment_does_not_show_in_what_is_said_of_the_command_line() {
    let run = |line: &str| {
        let output = std::process::Command::new(sterna())
            .args(line.split_whitespace())
            .env("STERNA_SOCKET", "/nowhere/sterna.sock")
            .output()
            .expect("start sterna");
        Answer::new(format!("sterna {line}"), &output).is_usage_error().stderr
    };
    let help = run("disk");
    assert!(help.contains("\n  create "), "commands should be indented:\n{help}");
    let usage = run("migrate a");
    assert!(!usage.contains("--socket"), "{usage}");
    let error: serde_json::Value =
        serde_json::from_str(&run("migrate a --json")).expect("JSON");
    assert_eq!(error["code"], "invalid", "{error:#}");
}

#[test]
fn what_is_wrong_with_a_value_is_said_of_the_value() {
    let said = |line: &str| {
        let output = std::process::Command::new(sterna())
            .args(line.split_whitespace())
            .output()
            .expect("start sterna");
        Answer::new(format!("sterna {line}"), &output).is_usage_error().stderr
    };
    let tolerance = said("policy cruise c 2M --tolerance -1%");
    assert!(tolerance.contains("write 1% to 50%"), "{tolerance}");
    for line in ["class create c --shares -5", "class set c --shares -5"] {
        let shares = said(line);
        assert!(shares.contains("--shares <NUMBER>"), "{shares}");
        assert!(!shares.contains("unexpected"), "{shares}");
    }
    // One of the two is enough, and the usage does not ask for both.
    let neither = said("class set c");
    assert!(neither.contains("--shares <NUMBER>|--reservation <RATE>"), "{neither}");
    assert!(neither.contains("[--shares <NUMBER>] [--reservation <RATE>]"), "{neither}");
}

#[test]
fn a_shell_completes_the_names_of_what_there_is() {
    let Some(stage) = Stage::given(&["bash"]) else { return };
    let daemon = &stage.daemon;
    stage.disk_with_data("db", 16 * MIB, 16 * MIB);
    stage.disk("log", MIB);
    daemon.sterna("class create oltp db").ok();
    let limit = daemon.json("policy limit oltp 20M")["id"].to_string();
    let id = daemon.migrate("db --to there --rate 100K").to_string();
    for (line, names) in [
        ("disk show ", &["db", "log"][..]),
        ("disk show d", &["db"]),
        ("migrate log --to ", &["here", "there"]),
        ("migrate log --to = th", &["there"]),
        ("class add ol", &["oltp"]),
        ("policy remove ", &[&limit]),
        ("migration cancel ", &[&id, "db"]),
        // What names nothing is what clap completes.
        ("disk crea", &["create"]),
    ] {
        assert_eq!(daemon.tab(line), names, "{line}");
    }
    daemon.sterna(&format!("migration cancel {id}")).ok();
    assert_eq!(daemon.sterna("completion bash -- disk show x").ok().stdout, "");
    let json = daemon.sterna("--json completion zsh -- disk show d").ok().json();
    assert_eq!(json, serde_json::json!(["db"]));
}

#[test]
fn predict_says_which_options_of_migrate_it_has_not() {
    let stage = Stage::new();
    for option in ["--finish-by 06:00", "--window 22:00-06:00"] {
        let said = stage.daemon.sterna(&format!("predict db --to there {option}"));
        let said = said.is_usage_error();
        assert!(said.stderr.contains("predict has no --"), "{}", said.stderr);
    }
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let stage = Stage::new();
    let answer = stage.daemon.sterna("disk show nope --json").fails_with(&["nope"]);
    let text =
        if answer.stdout.trim().is_empty() { answer.stderr } else { answer.stdout };
    let error: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(error["code"], "not_found", "{error:#}");
}

#[test]
fn a_daemon_that_does_not_answer_is_named_on_stderr_while_a_command_waits() {
    let scratch = sterna_tests::Scratch::new();
    let socket = scratch.path("api.sock");
    // Connections wait in its queue, as with a daemon that was stopped.
    let _silent = std::os::unix::net::UnixListener::bind(&socket).expect("bind");
    let path = socket.display();
    let expected =
        format!("the daemon at {path} has not answered for 5 s; still waiting");
    for more in [None, Some("--json")] {
        let said = scratch.path("stderr");
        let mut client = std::process::Command::new(sterna())
            .args(["--socket".as_ref(), socket.as_os_str()])
            .arg("status")
            .args(more)
            .stderr(std::fs::File::create(&said).expect("create a file"))
            .spawn()
            .expect("start sterna");
        sterna_tests::until("what the command says", seconds(30), || {
            let said = std::fs::read_to_string(&said).ok()?.replace('\n', " ");
            said.contains(&expected).then_some(())
        });
        client.kill().and_then(|()| client.wait()).expect("kill it");
    }
}
