//! DRS with real VMs: what they use is seen, what should move is said and why, and
//! what was moved stays.

use std::path::PathBuf;

use serde_json::Value;
use sterna_tests::images::write_image;
use sterna_tests::vms::Vm;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// A stage with so many idle VMs `vm0`, `vm1`, …, each of which holds all of its
/// 64 MiB, and hosts `a` and `b` of four processors and 256 MiB. It is looked each second.
fn stage(vms: usize) -> Option<(Stage, Vec<Vm>)> {
    let stage = Stage::given(&["qemu-system-x86_64"])?;
    let started = (0..vms).map(|at| vm(&stage, &format!("vm{at}"))).collect();
    for host in ["a", "b"] {
        stage.daemon.sterna(&format!("host add {host} --cpu 4 --memory 256M")).ok();
    }
    stage.daemon.sterna("drs set --round 1s --hold 2 --cooldown 600s").ok();
    Some((stage, started))
}

fn vm(stage: &Stage, name: &str) -> Vm {
    started(stage, name, &["-mem-prealloc"])
}

fn started(stage: &Stage, name: &str, more: &[&str]) -> Vm {
    let image: PathBuf = stage.scratch.path(&format!("{name}.raw"));
    write_image(&image, MIB, 0);
    let vm = Vm::start(&stage.scratch, name, &image, "raw", more);
    let socket = vm.socket().display();
    stage.daemon.sterna(&format!("vm add {name} --qmp {socket}")).ok();
    vm
}

#[track_caller]
fn assign(stage: &Stage, host: &str, vms: &[&str]) {
    for vm in vms {
        stage.daemon.sterna(&format!("host assign {host} {vm}")).ok();
    }
}

/// Waits until it is known what each VM asks for.
#[track_caller]
fn all_seen(stage: &Stage) -> Value {
    until("all VMs to be seen", seconds(30), || {
        let told = stage.daemon.json("drs status");
        let vms = told["vms"].as_array().expect("VMs");
        let seen = !vms.is_empty() && vms.iter().all(|vm| vm["score"].is_number());
        seen.then_some(told)
    })
}

/// What is recommended, once it has been so for long enough.
#[track_caller]
fn held(stage: &Stage) -> Value {
    until("a move to be recommended", seconds(30), || {
        let told = stage.daemon.json("drs recommend");
        (told["moves"][0]["held"] == true).then_some(told)
    })
}

#[track_caller]
fn fits(text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn hosts_pools_and_rules_are_made_shown_and_forgotten() {
    let Some((stage, _vms)) = stage(2) else { return };
    let daemon = &stage.daemon;
    daemon.sterna("host add a --cpu 1 --memory 1G").fails_with(&["a host a already"]);
    daemon.sterna("host assign c vm0").fails_with(&["there is no host c"]);
    daemon.sterna("host assign a web").fails_with(&["there is no VM web"]);
    assign(&stage, "a", &["vm0"]);
    daemon.sterna("host remove a").fails_with(&["vm vm0 is on host a"]);
    // Eight processors in all.
    daemon.sterna("drs pool create gold --cpu-reservation 4 --shares 2000").ok();
    let refused = daemon.sterna("drs pool create more --cpu-reservation 5");
    refused.fails_with(&["reserve 9 processors", "all hosts have 8"]);
    let inner = daemon.sterna("drs pool create inner --parent gold --cpu-reservation 5");
    inner.fails_with(&["in pool gold"]);
    daemon.sterna("drs pool create inner --parent gold --memory-limit 32M").ok();
    daemon.sterna("drs pool add inner vm0").ok();
    daemon.sterna("drs pool remove-vm gold vm0").fails_with(&["vm0 is not in pool gold"]);
    daemon.sterna("drs pool delete gold").fails_with(&["pool inner is in pool gold"]);
    all_seen(&stage);
    let pool = daemon.json("drs pool show inner");
    assert_eq!(pool["vms"], Value::from(vec!["vm0"]), "{pool:#}");
    // It holds 64 MiB, and is held to the half.
    assert_eq!(pool["entitled"]["memory"], (32 * MIB) as f64, "{pool:#}");
    let told = daemon.json("drs status");
    assert_eq!(told["vms"][0]["score"].as_f64(), Some(50.0), "{told:#}");
    daemon.sterna("drs rule anti-affinity far vm0 vm1 --must").ok();
    // What only should hold is refused as well if it never can.
    daemon.sterna("drs rule affinity near vm0 vm1 --should").fails_with(&["vm0 and vm1"]);
    let both = daemon.sterna("drs rule affinity always vm0 vm1 --must");
    both.fails_with(&[
        "other rules keep vm0 and vm1 together, and rule far would keep them apart",
    ]);
    daemon.sterna("drs rule host pin vm0 --on a --must").ok();
    daemon.sterna("host remove b").fails_with(&["2 VMs apart", "1 hosts for them"]);
    let nowhere = daemon.sterna("drs rule host off vm0 --not-on a --must");
    nowhere.fails_with(&["no host would be allowed for vm0"]);
    for list in
        ["host list", "drs pool list", "drs rule list", "drs status", "drs recommend"]
    {
        fits(&daemon.sterna(list).ok().stdout);
    }
    // The old spelling works, and says the new one.
    let old = daemon.sterna("pool list");
    assert_eq!(old.stdout, daemon.sterna("drs pool list").ok().stdout);
    assert!(old.stderr.contains("is now `sterna drs pool`"), "{}", old.stderr);
    // What a VM was in goes with it.
    daemon.sterna("vm remove vm1").ok();
    let rules = daemon.json("drs rule list");
    assert_eq!(rules[0]["vms"], Value::from(vec!["vm0"]), "{rules:#}");
    for rule in ["far", "pin"] {
        daemon.sterna(&format!("drs rule remove {rule}")).ok();
    }
    daemon.sterna("drs pool delete inner").ok();
    daemon.sterna("drs pool delete gold").ok();
    daemon.sterna("host unassign vm0").ok();
    daemon.sterna("host remove a").ok();
    assert_eq!(daemon.json("host list").as_array().map(Vec::len), Some(1));
}

#[test]
fn a_rule_that_must_hold_is_put_right_and_then_all_rests() {
    let Some((mut stage, _vms)) = stage(2) else { return };
    assign(&stage, "a", &["vm0", "vm1"]);
    all_seen(&stage);
    let added = stage.daemon.sterna("drs rule anti-affinity far vm0 vm1 --must").ok();
    assert!(added.stdout.contains("The rule is violated now"), "{}", added.stdout);
    let told = stage.daemon.json("drs recommend");
    let one = &told["moves"][0];
    // It waits for no round.
    assert_eq!((&one["priority"], &one["held"]), (&1.into(), &true.into()), "{told:#}");
    assert_eq!((&one["from"], &one["to"]), (&"a".into(), &"b".into()), "{told:#}");
    let words = stage.daemon.sterna("drs recommend").ok().stdout;
    assert!(words.contains("rule far must hold, but is violated; priority 1"), "{words}");
    fits(&words);
    let vm = one["vm"].as_str().expect("a VM").to_owned();
    assert!(words.contains(&format!("sterna host assign b {vm}")), "{words}");
    let placed = stage.daemon.json(&format!("host assign b {vm}"));
    assert_eq!(placed["recommended"], true, "{placed:#}");
    assert_eq!(placed["host"], "b");
    let told = stage.daemon.json("drs recommend");
    assert_eq!(told["moves"], Value::from(vec![0; 0]), "{told:#}");
    // A daemon that is killed knows of the move: the VM stays.
    stage.daemon.kill();
    stage.daemon.restart();
    all_seen(&stage);
    let words = stage.daemon.sterna(&format!("drs explain {vm}")).ok().stdout;
    assert!(words.contains("was migrated recently"), "{words}");
    fits(&words);
}

#[test]
fn a_vm_that_stands_still_is_not_recommended_and_says_so() {
    let Some((stage, _vms)) = stage(0) else { return };
    let names = ["still0", "still1"];
    let _still = names.map(|name| started(&stage, name, &["-S", "-mem-prealloc"]));
    assign(&stage, "a", &names);
    all_seen(&stage);
    stage.daemon.sterna("drs rule anti-affinity far still0 still1 --must").ok();
    let told = stage.daemon.json("drs recommend");
    assert_eq!(told["moves"], Value::from(vec![0; 0]), "{told:#}");
    let words = stage.daemon.sterna("drs explain still0").ok().stdout;
    assert!(words.contains("still0 does not run"), "{words}");
}

#[test]
fn loads_are_evened_out_and_each_refusal_has_a_reason() {
    let Some((stage, mut vms)) = stage(3) else { return };
    let daemon = &stage.daemon;
    assign(&stage, "a", &["vm0", "vm1", "vm2"]);
    let told = all_seen(&stage);
    // Three of 64 MiB on one host of 256 MiB.
    let load = &told["hosts"][0]["load"];
    assert_eq!(load["memory"].as_f64(), Some(0.75), "{told:#}");
    let told = held(&stage);
    let one = &told["moves"][0];
    assert_eq!((&one["goal"], &one["priority"]), (&"even".into(), &3.into()), "{told:#}");
    let worth = &one["worth"];
    assert!(worth["benefit"].as_f64() > worth["cost"].as_f64(), "{told:#}");
    assert_eq!(told["moves"].as_array().map(Vec::len), Some(1), "{told:#}");
    // Held together they stay, and that is said.
    daemon.sterna("drs rule affinity near vm0 vm1 vm2 --must").ok();
    let told = daemon.json("drs recommend");
    assert_eq!(told["moves"], Value::from(vec![0; 0]), "{told:#}");
    let reason = told["staying"][0]["reason"].as_str().expect("a reason");
    assert_eq!(reason, "at b rule near would be violated");
    daemon.sterna("drs rule remove near").ok();
    // One that somebody moves by himself is left alone.
    assign(&stage, "b", &["vm2"]);
    assign(&stage, "a", &["vm2"]);
    let words = daemon.sterna("drs explain vm2").ok().stdout;
    assert!(words.contains("assigned to another host"), "{words}");
    fits(&words);
    // One that is gone stays, and counts with what was seen.
    vms[1].kill();
    let reason = until("the end of vm1 to be noticed", seconds(30), || {
        let told = daemon.json("drs explain vm1");
        told["vm"]["stays"].as_str().map(str::to_owned)
    });
    assert!(reason.contains("QMP socket") || reason.contains("cannot"), "{reason}");
    let told = daemon.json("drs status");
    assert_eq!(told["hosts"][0]["load"]["memory"].as_f64(), Some(0.75), "{told:#}");
    let told = held(&stage);
    assert_eq!(told["moves"][0]["vm"], "vm0", "{told:#}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let stage = Stage::new();
    let daemon = &stage.daemon;
    for wrong in [
        "drs set --threshold 0",
        "drs set --hold 61",
        "host add a --cpu -1 --memory 1G",
        "drs rule affinity near vm0",
        "drs pool set gold",
    ] {
        daemon.sterna(wrong).is_usage_error();
    }
    daemon.sterna("host add a --cpu 0 --memory 1G").fails_with(&["at least 1 processor"]);
    daemon.sterna("host add a --cpu 2 --memory 4").fails_with(&["did you mean 4G?"]);
    daemon.sterna("drs set --round 2h").fails_with(&["7200", "1 to 3600"]);
    daemon.sterna("drs set --round 1h --cooldown 1.5h").ok();
    let set = daemon.json("drs set --hold 2");
    assert_eq!((&set["round_s"], &set["cooldown_s"]), (&3600.into(), &5400.into()));
    daemon
        .sterna("drs pool create p --cpu-reservation 1")
        .fails_with(&["all hosts have 0"]);
    daemon.sterna("drs pool create p --parent q").fails_with(&["there is no pool q"]);
    daemon.sterna("drs pool create p --shares 0").fails_with(&["0 shares"]);
    daemon
        .sterna("drs pool create p --cpu-limit 1 --cpu-reservation 2")
        .fails_with(&["limit"]);
    daemon.sterna("drs rule affinity near x y").fails_with(&["there is no VM x"]);
    daemon.sterna("drs rule remove near").fails_with(&["there is no rule near"]);
    daemon.sterna("drs explain x").fails_with(&["there is no VM x"]);
    let words = daemon.sterna("drs status").ok().stdout;
    assert!(words.contains("sterna host add"), "{words}");
    // Without hosts there is no balance to speak of.
    let words = daemon.sterna("drs recommend").ok().stdout;
    assert!(words.contains("No hosts yet") && !words.contains("deviation"), "{words}");
}
