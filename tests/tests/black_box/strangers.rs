//! Others' QEMUs, sockets and files where Sterna's are expected: none of them is ended,
//! removed, or taken for what was there before.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use sterna_tests::between::{Between, Stop};
use sterna_tests::transfer::{REPORTED, Setting};
use sterna_tests::vms::{Vm, ask, is_written, number_on, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

/// What a VM would do within it, it does not do.
const NEVER: std::time::Duration = seconds(3);

/// A stage with a busy VM `web` of which a disk is on its way, and a monitor of the
/// VM's for people; the move's number, and the image.
fn moving() -> Option<(Stage, Vm, PathBuf, u64, PathBuf)> {
    let stage = Stage::given(&["qemu-system-x86_64"])?;
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 32 * MIB);
    let people = stage.scratch.socket("people.qmp");
    let more = ["-qmp", &format!("unix:{},server=on,wait=off", people.display())];
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &more);
    let socket = vm.socket().display();
    stage.daemon.sterna(&format!("vm add web --qmp {socket}")).ok();
    until("the guest to write", seconds(60), || (number_on(&image) > 0).then_some(()));
    let line = "vm move web vda --to there --rate 1M --detach";
    let id = stage.daemon.json(line)["id"].as_u64().expect("a number");
    until("it to be copied", seconds(20), || {
        let shown = stage.daemon.json(&format!("migration show {id}"));
        (shown["progress"]["copied"].as_u64() > Some(0)).then_some(())
    });
    Some((stage, vm, people, id, image))
}

/// Whether QEMU still has a job.
fn copies(people: &Path) -> bool {
    let jobs = ask(people, &json!({ "execute": "query-jobs" }));
    !jobs.as_array().expect("a list").is_empty()
}

fn warnings(stage: &Stage) -> String {
    stage.daemon.json("status")["warnings"].to_string()
}

#[test]
fn a_qemu_that_lost_its_socket_to_one_that_was_started_by_mistake_has_not_ended() {
    let Some((mut stage, mut vm, people, id, image)) = moving() else { return };
    let socket = vm.socket().to_owned();
    let node = format!("driver=file,node-name=low,filename={}", image.display());
    let started = programs::command("qemu-system-x86_64")
        .args(["-machine", "q35", "-accel", "tcg", "-nodefaults", "-display", "none"])
        .arg("-qmp")
        .arg(format!("unix:{},server=on,wait=off", socket.display()))
        .args(["-blockdev", &node, "-device", "virtio-blk-pci,drive=low"])
        .status();
    assert!(!started.expect("start QEMU").success(), "the image is locked");
    stage.daemon.kill();
    stage.daemon.restart();
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(20));
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("a process still listens there"), "{why}");
    assert!(copies(&people) && !stage.files_there().is_empty(), "QEMU copies to it");
    let untidy = "may still have a part of its copy";
    assert!(warnings(&stage).contains(untidy), "{}", warnings(&stage));
    is_written(&image);
    vm.kill();
    until("nothing of it to be left at the VM", seconds(20), || {
        (!warnings(&stage).contains(untidy)).then_some(())
    });
}

#[test]
fn a_vm_that_was_removed_keeps_what_it_has_when_it_answers_again() {
    let Some((stage, vm, people, id, image)) = moving() else { return };
    vm.hang();
    stage.daemon.wait_for(id, "cancelled", REPORTED);
    stage.daemon.sterna("vm remove web").ok();
    vm.go_on();
    is_written(&image);
    let began = Instant::now();
    while began.elapsed() < NEVER {
        assert!(copies(&people), "somebody has given it up");
        assert!(!stage.files_there().is_empty(), "somebody has removed its file");
    }
    // And its monitor is free.
    let socket = vm.socket().display();
    stage.daemon.sterna(&format!("vm add web --qmp {socket}")).ok();
}

/// The socket over which a guest would come to a QEMU.
fn stream_of(socket: &Path) -> PathBuf {
    PathBuf::from(format!("{}.in", socket.display()))
}

#[test]
fn what_lies_where_a_guest_would_come_is_nobodys_to_remove() {
    let Some((mut setting, _)) = Setting::new(false) else { return };
    let old = setting.source.socket().to_owned();
    let there = setting.waiting("web-b");
    let other = Between::start(&setting.stage.scratch, "web-b", there.socket());
    let stream = stream_of(other.socket());
    fs::write(&stream, "precious").expect("a file");
    let line = format!("drs apply web --qmp {}", other.socket().display());
    let refused = setting.stage.daemon.sterna(&line);
    refused.fails_with(&["web-b.between.in is there already", "QEMU would remove it"]);
    assert_eq!(fs::read(&stream).expect("it is there"), b"precious");
    fs::remove_file(&stream).expect("remove a file");
    // A QEMU that was told nothing has made no socket.
    other.stop_at("\"stop\"", Stop::Before);
    let id = setting.begin(other.socket(), "--detach");
    other.reached();
    setting.stage.daemon.kill();
    let _somebodys = UnixListener::bind(&stream).expect("a socket");
    setting.stage.daemon.restart();
    setting.reaches(id, "cancelled", seconds(20));
    assert!(stream.exists(), "it is somebody else's");
    setting.runs_on("a", &old);
    setting.watched.went_on();
}

#[track_caller]
fn execute(vm: &Vm, command: &str, arguments: &Value) -> Value {
    let command = json!({ "execute": command, "arguments": arguments });
    ask(vm.socket(), &command)
}

#[test]
fn a_qemu_of_somebodys_that_has_a_guest_which_was_sent_to_it_is_left_alone() {
    let Some((mut setting, _)) = Setting::new(false) else { return };
    let old = setting.source.socket().to_owned();
    let mut there = setting.waiting("web-b");
    let id = setting.slowly(there.socket());
    setting.stage.daemon.kill();
    there.kill();
    let _ = fs::remove_file(there.socket());
    // Somebody sends a guest of his own to one that he has started there.
    let scratch = &setting.stage.scratch;
    let image = scratch.path("other.raw");
    write_guest(&image, 2 * MIB, MIB);
    let guest = Vm::start(scratch, "other", &image, "raw", &[]);
    let more = ["-incoming", "defer", "-S"];
    let mut somebodys = Vm::start(scratch, "web-b", &image, "raw", &more);
    let uri = format!("unix:{}", scratch.socket("somebodys").display());
    execute(&somebodys, "migrate-incoming", &json!({ "uri": uri }));
    execute(&guest, "migrate", &json!({ "uri": uri }));
    until("it to come", seconds(30), || {
        let said = execute(&guest, "query-migrate", &json!({}));
        (said["status"] == "completed").then_some(())
    });
    let status = execute(&somebodys, "query-status", &json!({}));
    assert_eq!(status["status"], "paused", "{status:#}");
    setting.stage.daemon.restart();
    setting.reaches(id, "cancelled", seconds(20));
    assert!(!somebodys.has_ended(), "it is nobody's to end");
    let status = execute(&somebodys, "query-status", &json!({}));
    assert_eq!(status["status"], "paused", "{status:#}");
    setting.runs_on("a", &old);
    setting.watched.went_on();
}
