//! Hooks of plans: what runs on a tile's disks is stopped before they move, and started
//! again however that goes.

use serde_json::Value;
use sterna_tests::images::write_image;
use sterna_tests::plans::in_state;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 8 * MIB;

/// A stage with a datastore, `slow`, which takes so many MB/s, and disks on `here`.
fn stage(mbps: u64, disks: &[&str]) -> Stage {
    let stage = Stage::new();
    let slow = stage.scratch.dir("slow");
    stage.datastore("slow", format!("{} --shape mbps={mbps}", slow.display()));
    for name in disks {
        let file = stage.here.join(format!("{name}.raw"));
        write_image(&file, SIZE, SIZE);
        let import = format!("disk import {name} --on here {}", file.display());
        stage.daemon.sterna(&import).ok();
    }
    stage
}

/// A tile of one disk with these hooks, which a shell runs. `$LOG` is what they write to.
fn tile(stage: &Stage, name: &str, stop: &str, start: &str) -> String {
    let log = stage.scratch.path("log");
    let hook = |script: &str| {
        let script = script.replace("$LOG", &log.display().to_string());
        format!("['/bin/sh', '-c', '''{script}''']")
    };
    format!(
        "[[tile]]\nname = '{name}'\ndisks = ['{name}']\nstop = {}\nstart = {}\n",
        hook(stop),
        hook(start)
    )
}

/// A hook that says which it is.
const STOP: &str = "echo stop $STERNA_TILE $STERNA_PLAN >> $LOG";
const START: &str = "echo start $STERNA_TILE $STERNA_PLAN >> $LOG";

/// Makes and applies a plan with these tiles.
fn applied(stage: &Stage, tiles: &str) -> u64 {
    let file = stage.scratch.path("tiles.toml");
    std::fs::write(&file, tiles).expect("write a file");
    let ask = format!("here --to slow --space 100% --tile {}", file.display());
    let (id, plan) = stage.daemon.plan_evacuation(&ask);
    let words = stage.daemon.sterna(&format!("plan show {id}")).ok().stdout;
    assert!(words.contains("untouched") && words.contains("/bin/sh"), "{words}");
    assert!(plan["workloads"].as_array().is_some_and(|all| !all.is_empty()), "{plan:#}");
    assert_eq!(said(stage), [""; 0], "nothing has begun");
    stage.daemon.sterna(&format!("plan apply {id}")).ok();
    id
}

/// What hooks have written.
fn said(stage: &Stage) -> Vec<String> {
    let text = std::fs::read_to_string(stage.scratch.path("log")).unwrap_or_default();
    text.lines().map(Into::into).collect()
}

fn state<'v>(plan: &'v Value, tile: &str) -> &'v Value {
    let all = plan["workloads"].as_array().expect("workloads");
    &all.iter().find(|one| one["tile"] == tile).expect("the tile's")["state"]
}

fn end(stage: &Stage, id: u64) -> Value {
    stage
        .daemon
        .wait_for_plan(id, "its end", seconds(60), |plan| plan["ended"].is_number())
}

/// The tile shop has moved, and its hooks have run once each.
#[track_caller]
fn is_moved_and_back(stage: &Stage, plan: &Value, id: u64) {
    assert_eq!(plan["state"], "completed", "{plan:#}");
    assert_eq!(state(plan, "shop"), "started", "{plan:#}");
    assert_eq!(said(stage), [format!("stop shop {id}"), format!("start shop {id}")]);
}

#[test]
fn each_tile_stands_still_while_it_moves_and_is_back_before_the_next_one_stops() {
    let stage = stage(40, &["shop", "mail", "rest"]);
    let image = format!("{}/$STERNA_TILE.raw", stage.here.display());
    let stop = format!("test -e {image} && {STOP}");
    let start = format!("test ! -e {image} && {START}");
    let tiles =
        tile(&stage, "shop", &stop, &start) + &tile(&stage, "mail", &stop, &start);
    let id = applied(&stage, &tiles);
    let plan = end(&stage, id);
    assert_eq!(plan["state"], "completed", "{plan:#}");
    let expected = ["stop shop", "start shop", "stop mail", "start mail"];
    assert_eq!(said(&stage), expected.map(|it| format!("{it} {id}")));
    for tile in ["shop", "mail"] {
        assert_eq!(state(&plan, tile), "started", "{plan:#}");
    }
    let report = stage.daemon.sterna(&format!("plan report {id}")).ok().stdout;
    assert!(report.contains("STOOD STILL"), "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
}

#[test]
fn what_does_not_stop_does_not_move_and_is_started() {
    let stage = stage(40, &["shop", "mail"]);
    let stop = "echo it is busy >&2; exit 7";
    let tiles = tile(&stage, "shop", stop, START) + &tile(&stage, "mail", STOP, START);
    let id = applied(&stage, &tiles);
    let plan = end(&stage, id);
    assert_eq!(plan["state"], "incomplete", "{plan:#}");
    assert_eq!(said(&stage), [format!("start shop {id}")]);
    let problem = |state: &str| {
        let one = in_state(&plan, state);
        one[0]["problem"].as_str().expect("a reason").to_owned()
    };
    let failed = problem("failed");
    assert!(failed.contains("exit status: 7: it is busy"), "{failed}");
    assert!(problem("skipped").contains("tile shop"), "{plan:#}");
    assert_eq!(stage.daemon.disk("shop")["datastore"], "here");
}

#[test]
fn who_gives_a_plan_up_need_not_wait_for_what_hangs_and_gets_it_started() {
    let stage = stage(40, &["shop"]);
    let id = applied(&stage, &tile(&stage, "shop", "sleep 1000", START));
    stage.daemon.wait_for_plan(id, "it is being stopped", seconds(20), |plan| {
        state(plan, "shop") == "stopping"
    });
    let said_so = stage.daemon.sterna(&format!("plan pause {id}")).ok().stdout;
    assert!(said_so.contains("stopped meanwhile: shop"), "{said_so}");
    stage.daemon.sterna(&format!("plan cancel {id}")).ok();
    let plan = end(&stage, id);
    assert_eq!(
        (&plan["state"], state(&plan, "shop")),
        (&"cancelled".into(), &"started".into())
    );
    assert_eq!(said(&stage), [format!("start shop {id}")]);
}

#[test]
fn a_plan_that_is_given_up_while_disks_move_starts_what_it_has_stopped() {
    let stage = stage(1, &["shop"]);
    let id = applied(&stage, &tile(&stage, "shop", STOP, START));
    stage.daemon.wait_for_plan(id, "it moves", seconds(20), |plan| {
        in_state(plan, "moving").len() == 1
    });
    stage.daemon.sterna(&format!("plan cancel {id}")).ok();
    let plan = end(&stage, id);
    assert_eq!(
        (&plan["state"], state(&plan, "shop")),
        (&"cancelled".into(), &"started".into())
    );
    assert_eq!(said(&stage), [format!("stop shop {id}"), format!("start shop {id}")]);
    assert_eq!(stage.daemon.disk("shop")["datastore"], "here");
}

#[test]
fn a_hook_that_was_cut_off_by_a_kill_is_ended_and_run_once_more() {
    let mut stage = stage(2, &["shop"]);
    // The first one would say so if it came late; the second one finds its mark.
    let stop = format!(
        "if test -e $LOG.mark; then {STOP}; \
         else touch $LOG.mark; sleep 1000; echo late >> $LOG; fi"
    );
    let id = applied(&stage, &tile(&stage, "shop", &stop, START));
    let mark = stage.scratch.path("log.mark");
    until("the stop hook", seconds(20), || mark.exists().then_some(()));
    let note = stage.daemon.state().join(format!("plan-{id}-0-stop.pid"));
    let pid = until("its number", seconds(20), || {
        let text = std::fs::read_to_string(&note).ok()?;
        text.split_whitespace().next().map(str::to_owned)
    });
    stage.daemon.kill();
    // What is left of one that has ended has none.
    let command = std::path::Path::new("/proc").join(pid).join("cmdline");
    let runs = || std::fs::read(&command).is_ok_and(|it| !it.is_empty());
    assert!(runs(), "it has outlived the daemon");
    stage.daemon.restart();
    // And again while its disk moves.
    stage.daemon.wait_for_plan(id, "it moves", seconds(30), |plan| {
        in_state(plan, "moving").len() == 1
    });
    assert!(!runs(), "the first one has been ended");
    stage.daemon.kill();
    stage.daemon.restart();
    let plan = end(&stage, id);
    is_moved_and_back(&stage, &plan, id);
    assert!(!note.exists(), "nothing is left of it");
}

#[test]
fn a_daemon_that_is_stopped_leaves_a_hook_to_the_next_one() {
    let mut stage = stage(40, &["shop"]);
    let stop = format!(
        "if test -e $LOG.mark; then {STOP}; else touch $LOG.mark; sleep 1000; fi"
    );
    let id = applied(&stage, &tile(&stage, "shop", &stop, START));
    let mark = stage.scratch.path("log.mark");
    until("the stop hook", seconds(20), || mark.exists().then_some(()));
    stage.daemon.stop();
    assert!(!stage.daemon.log().contains("panicked"), "{}", stage.daemon.log());
    stage.daemon.restart();
    let plan = end(&stage, id);
    is_moved_and_back(&stage, &plan, id);
}

#[test]
fn what_does_not_start_is_tried_again_and_a_move_that_fails_does_not_keep_it_down() {
    let stage = stage(1, &["shop"]);
    let start =
        format!("if test -e $LOG.mark; then {START}; else touch $LOG.mark; exit 1; fi");
    let id = applied(&stage, &tile(&stage, "shop", STOP, &start));
    let moving = stage.daemon.wait_for_plan(id, "it moves", seconds(20), |plan| {
        in_state(plan, "moving").len() == 1
    });
    let migration = &moving["moves"][0]["migration"];
    stage.daemon.sterna(&format!("migration cancel {migration}")).ok();
    stage.daemon.wait_for_plan(id, "it has not started", seconds(20), |plan| {
        plan["workloads"][0]["problem"].is_string()
    });
    let words = stage.daemon.sterna(&format!("plan show {id}")).ok().stdout;
    assert!(
        words.contains("shop has not started (1 attempt), and is tried again"),
        "{words}"
    );
    let plan = end(&stage, id);
    assert_eq!(
        (&plan["state"], state(&plan, "shop")),
        (&"incomplete".into(), &"started".into())
    );
    assert_eq!(said(&stage), [format!("stop shop {id}"), format!("start shop {id}")]);
}

#[test]
fn hooks_that_could_not_be_run_are_refused_before_anything_begins() {
    let stage = stage(40, &["shop"]);
    let file = stage.scratch.path("tiles.toml");
    let ask =
        format!("plan evacuate here --to slow --space 100% --tile {}", file.display());
    let refused = |stop: &str, why: &str| {
        let tile = format!("[[tile]]\nname = 'shop'\ndisks = ['shop']\nstop = {stop}\n");
        std::fs::write(&file, tile).expect("write a file");
        stage.daemon.sterna(&ask).fails_with(&[why]);
    };
    refused("[]", "stop hook of tile shop names no program");
    refused("['true']", "absolute path");
    refused("['/nosuch/program']", "/nosuch/program");
    refused("'/bin/true'", "line 4");
    assert_eq!(stage.daemon.json("plan list"), Value::from(vec![0; 0]));
    // Nothing of it is run in virtual time.
    let hook = tile(&stage, "shop", STOP, START);
    std::fs::write(&file, hook).expect("write a file");
    let words = stage.daemon.sterna(&format!("{ask} --virtual")).ok().stdout;
    assert!(words.contains("No hook was run"), "{words}");
    assert_eq!(said(&stage), [""; 0]);
    // A program may go while a plan waits to be applied.
    let script = stage.scratch.path("hook");
    std::fs::copy("/bin/true", &script).expect("copy a program");
    let tile = format!(
        "[[tile]]\nname = 'shop'\ndisks = ['shop']\nstart = ['{}']\n",
        script.display()
    );
    std::fs::write(&file, tile).expect("write a file");
    let made = stage.daemon.json(&ask);
    std::fs::remove_file(&script).expect("remove it");
    let line = format!("plan apply {}", made["id"]);
    stage.daemon.sterna(&line).fails_with(&["start hook of tile shop", "cannot be run"]);
}
