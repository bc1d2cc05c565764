//! What VMs are promised of their host's memory, and what it takes of them.

use sterna_tests::vms::tell;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, until};

use super::{DATA, Scene};

/// A guest that has done nothing for a minute is idle; rounds take some seconds more.
const IDLE: std::time::Duration = seconds(120);

#[test]
fn terms_that_make_no_sense_are_refused_and_change_nothing() {
    let Some(scene) = Scene::set() else { return };
    let daemon = &scene.stage.daemon;
    daemon.sterna("memory set db --reservation 64M --limit 128M --shares 2000").ok();
    let refused = [
        ("db --reservation 4G --limit 0", "too much for a reservation"),
        ("db --balloon-max 4G", "too much for a balloon"),
        ("db --limit 1M", "below the reservation"),
        ("db --shares 0", "out of range for shares"),
        ("db --wake-within 5h", "out of range for the time of a wake"),
        ("nobody --shares 1", "nobody"),
    ];
    for (words, why) in refused {
        daemon.sterna(&format!("memory set {words}")).fails_with(&[why]);
    }
    daemon.sterna("memory auto full --reserve 900T").fails_with(&["to keep available"]);
    let terms = &scene.memory()["terms"];
    assert_eq!(terms["reservation"], 64 * MIB, "{terms}");
    assert_eq!((&terms["limit"], &terms["shares"]), (&(128 * MIB).into(), &2000.into()));
    assert_eq!(daemon.json("memory auto")["automation"], "manual");
    daemon.sterna("memory set db --limit 0").ok();
    assert!(scene.memory()["terms"]["limit"].is_null());
}

#[test]
fn what_a_vm_would_have_to_give_is_explained() {
    let Some(scene) = Scene::set() else { return };
    let daemon = &scene.stage.daemon;
    let said = daemon.sterna("memory explain db").ok().stdout;
    for words in ["balloon     none", "gives nothing", "costs a wake", "to be kept"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let explained = daemon.json("memory explain db");
    assert_eq!((&explained["state"], &explained["lacks"]), (&"high".into(), &0.into()));
    assert_eq!(explained["means"].as_array().map(Vec::len), Some(4), "{explained}");
    daemon.sterna("memory explain nobody").fails_with(&["nobody"]);
}

#[test]
fn no_more_goes_out_than_comes_back_in_the_promised_time() {
    let Some(scene) = Scene::set() else { return };
    let daemon = &scene.stage.daemon;
    let rate = daemon.json("swap list")[0]["bytes_per_s"].as_f64().expect("a rate");
    // What comes back in so many milliseconds is a part of the data.
    let within = (DATA as f64 / 3.0 / rate * 1e3).ceil().max(2.0);
    daemon.sterna(&format!("memory set db --wake-within {within}ms")).ok();
    daemon.sterna("memory sleep db --all").ok();
    let (out, most) = (scene.out() as f64, rate * within / 1e3);
    assert!(out > 0.0 && out <= most, "{out} bytes are out, and {most} may be");
    // Nor if it is told to again, whether or not a little of it may still go.
    for _ in 0..3 {
        let _ = daemon.sterna("memory sleep db --all");
        assert!(scene.out() as f64 <= most, "{} bytes are out", scene.out());
    }
    daemon.sterna("memory set db --wake-within 0s").ok();
    daemon.sterna("memory sleep db --all").ok();
    assert!(scene.out() >= DATA);
    scene.memory_is_whole();
}

#[test]
fn an_idle_vm_above_its_limit_goes_to_sleep_by_itself_if_sterna_may() {
    let Some(scene) = Scene::set() else { return };
    let daemon = &scene.stage.daemon;
    // The guest writes to its disk again and again; one that stands still does nothing.
    tell(scene.vm.socket(), "stop");
    daemon.sterna("memory set db --reservation 32M --limit 64M").ok();
    daemon.sterna("memory auto full").ok();
    until("the idle VM to go to sleep", IDLE, || {
        (scene.memory()["state"] == "asleep").then_some(())
    });
    let explained = daemon.json("memory explain db");
    assert!(
        explained["entitled"].as_u64().is_some_and(|it| it >= 32 * MIB),
        "{explained}"
    );
    assert!(scene.out() >= DATA / 2, "{}", scene.memory());
    daemon.sterna("memory auto manual").ok();
    tell(scene.vm.socket(), "cont");
    scene.memory_is_whole();
}
