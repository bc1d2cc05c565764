//! A monitor whose socket has lost its name: its QEMU has not ended.

mod common;

use std::process::{Command, Stdio};

use common::Machine;
use sterna_qemu::qmp::{Monitor, QueryStatus};
use sterna_qemu::{QemuError, Reach, VmHandle};

const MIB: u64 = 1 << 20;

#[track_caller]
fn is_there(error: &QemuError) {
    assert!(error.is_silent() && !error.is_gone(), "{error}");
    assert!(error.to_string().contains("but a process still listens there"), "{error}");
}

/// Somebody starts a QEMU with the same monitor, which ends as the image is locked.
fn start_another(machine: &Machine) {
    let node =
        format!("driver=file,node-name=low,filename={}", machine.path("a.raw").display());
    let ended = Command::new("qemu-system-x86_64")
        .args([
            "-machine",
            "q35",
            "-accel",
            "tcg",
            "-display",
            "none",
            "-nodefaults",
            "-qmp",
        ])
        .arg(format!("unix:{},server=on,wait=off", machine.socket().display()))
        .args(["-blockdev", &node, "-device", "virtio-blk-pci,drive=low"])
        .stdin(Stdio::null())
        .status();
    assert!(!ended.expect("start QEMU").success(), "the image is locked");
}

#[tokio::test]
async fn a_qemu_whose_name_another_one_has_taken_has_not_ended() {
    let Some(mut machine) = Machine::start(MIB) else { return };
    let socket = machine.socket();
    let monitor = machine.monitor().await;
    start_another(&machine);
    monitor.call(&QueryStatus {}).await.expect("it is there");
    is_there(&Monitor::connect(&socket).await.expect_err("it is not found").into());
    // This one leaves a name that leads to nobody; others take that with them.
    let _ = std::fs::remove_file(&socket);
    is_there(&Monitor::connect(&socket).await.expect_err("it is not found").into());
    // By whatever name it has bound its socket.
    let listener = monitor.listener().expect("it can be seen");
    let way = machine.path("nowhere").join("qmp.sock");
    let again = VmHandle::reach_again(&Reach::Qmp(way.clone()), Some(listener)).await;
    is_there(&again.expect_err("it is not found"));
    machine.child().kill().unwrap();
    machine.child().wait().unwrap();
    for (socket, last) in [(socket, None), (way, Some(listener))] {
        let again = VmHandle::reach_again(&Reach::Qmp(socket), last).await;
        let error = again.expect_err("it has ended");
        assert!(error.is_gone() && !error.is_silent(), "{error}");
    }
}

#[tokio::test]
async fn a_process_is_qemus_only_if_it_runs_its_processors() {
    let Some(machine) = Machine::start(MIB) else { return };
    drop(machine.monitor().await);
    let reached =
        VmHandle::reach(&Reach::Qmp(machine.socket())).await.expect("it is there");
    let direct = reached.direct().expect("a socket leads to QEMU itself");
    let process = direct.process().await.expect("it answers").expect("it is QEMU");
    assert_eq!(Some(process), direct.monitor().listener());
    assert!(process.is_there());
    drop((reached, machine));
    assert!(!process.is_there());
}
