//! What an operator has to know of VMs is in the status: which hang, which were
//! started with an image that they had left, and which would not survive a restart.

use sterna_tests::vms::{Vm, number_on, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// VMs are looked at every 10 s; one that hangs takes four each time, and two looks.
const TOLD: std::time::Duration = seconds(60);

fn stage() -> Option<(Stage, Vm, std::path::PathBuf)> {
    let stage = Stage::given(&["qemu-system-x86_64"])?;
    let image = stage.here.join("web.raw");
    write_guest(&image, 16 * MIB, 8 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &[]);
    stage.daemon.sterna(&format!("vm add web --qmp {}", vm.socket().display())).ok();
    until("the guest to write", seconds(60), || (number_on(&image) > 0).then_some(()));
    Some((stage, vm, image))
}

fn warnings(stage: &Stage) -> String {
    stage.daemon.json("status")["warnings"].to_string()
}

#[test]
fn a_vm_that_was_started_with_the_image_that_it_had_left_is_told_of() {
    let Some((stage, mut vm, old)) = stage() else { return };
    let answer = stage.daemon.sterna("vm move web vda --to there").ok();
    let words = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("from now on start web with"), "{words}");
    assert_eq!(warnings(&stage), "[]");
    vm.kill();
    std::fs::remove_file(vm.socket()).expect("remove a socket");
    let vm = Vm::start(&stage.scratch, "web", &old, "raw", &[]);
    // Nobody looks at it but the daemon.
    let warned = until("a warning", TOLD, || {
        let warned = warnings(&stage);
        (warned != "[]").then_some(warned)
    });
    assert!(warned.contains("migration 1 moved the disk"), "{warned}");
    // Nothing goes on from there as if it were the latest.
    let left = ["vm web: the VM uses ", "migration 1 moved the disk", "stop web"];
    stage.daemon.sterna("vm move web vda --to there").fails_with(&left);
    stage.daemon.sterna("vm adopt web vda --on there").fails_with(&left);
    stage.daemon.sterna("vm remove web").ok();
    stage.daemon.sterna(&format!("vm add web --qmp {}", vm.socket().display())).ok();
    assert_eq!(warnings(&stage), "[]");
}

#[test]
fn a_vm_that_hangs_is_told_of_until_it_is_back() {
    let Some((stage, vm, _image)) = stage() else { return };
    vm.hang();
    let told = |wanted: bool| {
        until("the status to say so", TOLD, || {
            (warnings(&stage).contains("vm web") == wanted).then_some(())
        });
    };
    told(true);
    vm.go_on();
    told(false);
}

#[test]
fn a_move_that_cannot_be_given_up_any_more_is_not_said_to_be() {
    let Some((stage, _vm, _image)) = stage() else { return };
    for _ in 0..4 {
        let on = stage.daemon.json("vm show web")["disks"][0]["datastore"].clone();
        let to = if on == "here" { "there" } else { "here" };
        let started =
            stage.daemon.json(&format!("vm move web vda --to {to} --rate 16M --detach"));
        let id = started["id"].as_u64().expect("a number");
        until("the copy to be near its end", seconds(20), || {
            let now = stage.daemon.migration(id);
            let of = |what: &str| now["progress"][what].as_u64().unwrap_or(0);
            let near = of("total") > 0 && of("synced") * 10 >= of("total") * 9;
            (near || now["ended"].is_u64()).then_some(())
        });
        let cancel = stage.daemon.sterna(&format!("migration cancel {id}"));
        let ended = until("its end", seconds(20), || {
            let now = stage.daemon.migration(id);
            now["ended"].is_u64().then_some(now)
        });
        if cancel.code == 0 && cancel.stdout.contains("stays on") {
            assert_eq!(ended["state"], "cancelled", "{}", cancel.stdout);
        }
    }
}

#[test]
fn a_guest_that_would_not_survive_a_restart_of_the_daemon_is_told_of() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    stage.disk("db", 16 * MIB);
    let server = stage.daemon.nbd_socket();
    let told = || warnings(&stage).contains("does not reconnect");
    {
        let _waits = Vm::start_on_export(&stage.scratch, "web", server, "db", &[]);
        assert!(!told(), "{}", warnings(&stage));
    }
    {
        let _gives_up =
            Vm::start_without_reconnecting(&stage.scratch, "old", server, "db");
        let warned = warnings(&stage);
        assert!(told() && warned.contains("disk db"), "{warned}");
        assert!(warned.contains("sterna disk qemu-args db"), "{warned}");
    }
    until("nothing to be told any more", TOLD, || (!told()).then_some(()));
}
