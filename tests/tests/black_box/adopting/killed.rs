//! The daemon dies while it adopts a disk: the next one goes on, or nothing is left.

use sterna_tests::between::{Between, Stop};
use sterna_tests::vms::{is_written, number_on, same_but_the_number};
use sterna_tests::wait::seconds;
use sterna_tests::{programs, until};

use super::{add, disk, disks, slow_adoption, stage, stage_without};

#[test]
fn a_daemon_that_is_killed_goes_on_with_the_adoption() {
    let Some((mut stage, vm, old)) = stage() else { return };
    let id = slow_adoption(&stage);
    stage.daemon.kill();
    is_written(&old);
    stage.daemon.restart();
    stage.daemon.wait_for(id, "copying", seconds(20));
    let (ok, text) = programs::attempt(
        "qemu-io",
        ["-f", "raw", "-c", "write 0 512", &stage.daemon.uri("web-vda")],
    );
    assert!(!ok, "a second client must be turned away: {text}");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let ours = stage.daemon.image("web-vda");
    is_written(&ours);
    // The disk's own crash is one like any other's.
    stage.daemon.kill();
    stage.daemon.restart();
    is_written(&ours);
    drop(vm);
    same_but_the_number(&old, &ours);
}

/// Kills the daemon at the moment in which it tells QEMU to switch over.
fn die_at_the_switch_over(when: Stop) {
    let Some((mut stage, vm, old)) = stage_without() else { return };
    let between = Between::start(&stage.scratch, "web", vm.socket());
    add(&stage, between.socket());
    between.stop_at("job-complete", when);
    let started = stage.daemon.json("vm adopt web vda --on there --detach");
    let id = started["id"].as_u64().expect("a number");
    between.reached();
    let ours = stage.there.join("web-vda.raw");
    if when == Stop::After {
        // The mirror writes to the old image first.
        until("QEMU to have switched over", seconds(20), || {
            (number_on(&ours) > number_on(&old)).then_some(())
        });
    }
    stage.daemon.kill();
    stage.daemon.restart();
    let ended = stage.daemon.completed(id);
    assert_eq!(disk(&stage)["disk"], "web-vda", "{ended:#}");
    is_written(&ours);
    assert!(number_on(&ours) > number_on(&old));
    drop(vm);
    same_but_the_number(&old, &ours);
}

#[test]
fn a_daemon_that_dies_before_it_tells_qemu_to_switch_over_tells_it_again() {
    die_at_the_switch_over(Stop::Before);
}

#[test]
fn a_daemon_that_dies_while_qemu_switches_over_asks_where_the_disk_is() {
    die_at_the_switch_over(Stop::After);
}

#[test]
fn a_daemon_that_is_killed_while_it_makes_the_disk_goes_on_or_leaves_nothing() {
    let Some((mut stage, _vm, old)) = stage() else { return };
    for _ in 0..3 {
        let image = stage.there.join("web-vda.raw");
        let line = "vm adopt web vda --on there --rate 1M --detach";
        let mut asked = stage.daemon.piped(line);
        let begun = std::time::Instant::now();
        // In the very moment in which it has its name.
        while !image.exists() {
            assert!(begun.elapsed() < seconds(20), "no image is made");
            std::hint::spin_loop();
        }
        stage.daemon.kill();
        let _ = asked.wait();
        stage.daemon.restart();
        let all = stage.daemon.json("migration list");
        let last = all.as_array().and_then(|all| all.last()).expect("a move");
        let id = last["id"].as_u64().expect("a number");
        let now = until("the adoption to go on or to end", seconds(20), || {
            let now = stage.daemon.migration(id);
            ["copying", "cancelled"]
                .iter()
                .any(|state| now["state"] == *state)
                .then_some(now)
        });
        assert!(!now["reason"].to_string().contains("exists already"), "{now:#}");
        if now["state"] == "copying" {
            stage.daemon.sterna(&format!("migration cancel {id}")).ok();
        }
        let begun = std::time::Instant::now();
        while !(disks(&stage).is_empty() && stage.files_there().is_empty()) {
            let (now, files) = (stage.daemon.migration(id), stage.files_there());
            assert!(
                begun.elapsed() < seconds(30),
                "{now:#}\n{files:?}\n{}",
                stage.daemon.log()
            );
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    is_written(&old);
}
