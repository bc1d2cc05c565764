//! A disk that QEMU serves becomes a disk of Sterna's while its guest runs, and a file
//! again.

mod killed;
mod of_libvirt;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sterna_tests::between::{Between, Stop};
use sterna_tests::vms::{
    Vm, ask, is_written, number_on, same_but_the_number, write_guest,
};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, images, programs, until};

/// What the commands promise: something that is wrong is said within this.
const REPORTED: Duration = seconds(5);

/// A stage with a busy VM `web`, whose raw disk of 64 MiB is on no datastore.
fn stage() -> Option<(Stage, Vm, PathBuf)> {
    let (stage, vm, image) = stage_without()?;
    add(&stage, vm.socket());
    Some((stage, vm, image))
}

/// The same, and Sterna does not know the VM.
fn stage_without() -> Option<(Stage, Vm, PathBuf)> {
    let stage = Stage::given(&["qemu-system-x86_64", "qemu-img", "qemu-io"])?;
    let image = stage.scratch.path("web.raw");
    write_guest(&image, 64 * MIB, 32 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &[]);
    until("the guest to write", seconds(60), || (number_on(&image) > 0).then_some(()));
    Some((stage, vm, image))
}

#[track_caller]
fn add(stage: &Stage, socket: &Path) {
    stage.daemon.sterna(&format!("vm add web --qmp {}", socket.display())).ok();
}

/// The VM's disk, as the daemon says.
fn disk(stage: &Stage) -> Value {
    stage.daemon.json("vm show web")["disks"][0].clone()
}

fn image(stage: &Stage) -> PathBuf {
    disk(stage)["image"].as_str().expect("an image").into()
}

/// The names of Sterna's disks.
fn disks(stage: &Stage) -> Vec<String> {
    let all = stage.daemon.json("disk list");
    let name = |disk: &Value| disk["name"].as_str().expect("a name").to_owned();
    all.as_array().expect("a list").iter().map(name).collect()
}

/// Nothing of a disk is left on the datastore `there`.
#[track_caller]
fn nothing_is_left(stage: &Stage) {
    assert_eq!(disks(stage), Vec::<String>::new());
    assert_eq!(stage.files_there(), Vec::<String>::new());
}

/// An adoption that has begun and takes its time.
#[track_caller]
fn slow_adoption(stage: &Stage) -> u64 {
    let line = "vm adopt web vda --on there --rate 1M --detach";
    let id = stage.daemon.json(line)["id"].as_u64().expect("a number");
    stage.daemon.wait_for(id, "copying", seconds(20));
    id
}

#[test]
fn a_disk_is_adopted_moved_and_released_while_its_guest_writes() {
    let Some((mut stage, vm, old)) = stage() else { return };
    let said = stage.daemon.json("advise web");
    assert_eq!(
        (&said["disks"], &said["advice"][0]["kind"]),
        (&json!([]), &"unserved".into())
    );
    let answer = stage.daemon.sterna("vm adopt web vda --on there --rate 40M").ok();
    let said = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("kept: {}", old.display())), "{said}");
    assert!(said.contains("now Sterna disk web-vda"), "{said}");
    let shown = disk(&stage);
    assert_eq!(
        (&shown["disk"], &shown["datastore"]),
        (&"web-vda".into(), &"there".into())
    );
    let words = stage.daemon.sterna("vm show web").ok().stdout;
    assert!(words.contains("Sterna, as disk web-vda"), "{words}");
    assert_eq!(disks(&stage), ["web-vda"]);
    let said = stage.daemon.json("advise web");
    assert_eq!(said["disks"][0]["disk"], "web-vda", "{said:#}");
    let ours = stage.daemon.image("web-vda");
    is_written(&ours);
    let left_at = number_on(&old);
    assert!(number_on(&ours) > left_at);
    // It is a disk like any other: it moves, also while the daemon is away for a moment.
    stage.daemon.sterna("migrate web-vda --to here").ok();
    // What QEMU wrote while it was adopted is not what the application did before.
    let moved = stage.daemon.json("migration show web-vda");
    let window = moved["application"]["before"]["window_s"].as_f64().unwrap_or(0.0);
    assert!(window < 1.5, "{moved:#}");
    let ours = stage.daemon.image("web-vda");
    assert_eq!(ours.parent(), Some(stage.here.as_path()));
    is_written(&ours);
    stage.daemon.stop();
    stage.daemon.restart();
    is_written(&ours);
    // And back to QEMU.
    let file = stage.scratch.path("back.raw");
    let answer =
        stage.daemon.sterna(&format!("vm release web vda --to {}", file.display())).ok();
    let said = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("kept: disk web-vda"), "{said}");
    assert_eq!(
        (image(&stage), disk(&stage)["disk"].clone()),
        (file.clone(), Value::Null)
    );
    is_written(&file);
    assert_eq!(number_on(&old), left_at, "the old image is left as it was");
    stage.daemon.sterna("disk remove web-vda").ok();
    drop(vm);
    same_but_the_number(&old, &file);
}

#[test]
fn a_vm_that_rests_keeps_its_disk_though_it_has_not_connected_again() {
    let Some(mut stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let old = stage.scratch.path("web.raw");
    write_guest(&old, 16 * MIB, 8 * MIB);
    let mut vm = Vm::start(&stage.scratch, "web", &old, "raw", &["-S"]);
    add(&stage, vm.socket());
    stage.daemon.sterna("vm adopt web vda --on there").ok();
    stage.daemon.kill();
    stage.daemon.restart();
    let clients = &stage.daemon.json("disk show web-vda")["activity"]["connections"];
    assert_eq!(clients, 0, "QEMU connects again when its guest asks for something");
    let refuse = |stage: &Stage| {
        let refused = stage.daemon.sterna("disk remove web-vda");
        refused
            .fails_with(&["web uses disk web-vda", "remove the disk from the VM first"]);
    };
    refuse(&stage);
    // Nor is it lost if the VM does not answer: it said so a moment ago.
    stage.daemon.sterna("vm show web").ok();
    vm.hang();
    refuse(&stage);
    vm.go_on();
    vm.kill();
    stage.daemon.sterna("disk remove web-vda").ok();
}

#[test]
fn a_qcow2_disk_is_adopted_and_released_as_one() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64", "qemu-img"]) else { return };
    let raw = stage.scratch.path("raw");
    write_guest(&raw, 64 * MIB, 8 * MIB);
    let (old, back) = (stage.scratch.path("web.qcow2"), stage.scratch.path("back.qcow2"));
    let [raw, from, to] = [&raw, &old, &back].map(|path| path.display().to_string());
    programs::run("qemu-img", ["convert", "-O", "qcow2", &raw, &from]);
    let vm = Vm::start(&stage.scratch, "web", &old, "qcow2", &["-S"]);
    add(&stage, vm.socket());
    let line = "vm adopt web vda --on there --name db --keep 90%";
    stage.daemon.sterna(line).ok();
    let ours = stage.daemon.image("db");
    assert!(images::allocated(&ours) < 16 * MIB, "thin stays thin");
    images::identical(&raw, &stage.daemon.uri("db"));
    stage.daemon.sterna(&format!("vm release web vda --to {to}")).ok();
    let shown = disk(&stage);
    assert_eq!((&shown["format"], &shown["size"]), (&"qcow2".into(), &(64 * MIB).into()));
    drop(vm);
    let text = programs::run("qemu-img", ["compare", &from, &to]);
    assert!(text.contains("identical"), "{text}");
}

#[test]
fn a_disk_that_is_being_adopted_is_for_nobody_else_and_goes_with_a_cancel() {
    let Some((stage, _vm, old)) = stage() else { return };
    let id = slow_adoption(&stage);
    let daemon = &stage.daemon;
    assert_eq!(daemon.disk("web-vda")["migration"], id);
    let becomes = ["is being adopted as disk vda of web"];
    daemon.sterna("migrate web-vda --to here").fails_with(&becomes);
    daemon.sterna("disk remove web-vda").fails_with(&becomes);
    let socket = stage.scratch.socket("v.sock");
    let attach = format!("disk attach web-vda --vhost-user {}", socket.display());
    daemon.sterna(&attach).fails_with(&becomes);
    let write = ["-f", "raw", "-c", "write 0 512", &daemon.uri("web-vda")];
    let (ok, text) = programs::attempt("qemu-io", write);
    assert!(!ok, "a second client must be turned away: {text}");
    daemon.cancel(id);
    assert_eq!(image(&stage), old);
    nothing_is_left(&stage);
    is_written(&old);
    // Nothing of it is in the way, and afterwards the disk is for all again.
    stage.daemon.sterna("vm adopt web vda --on there").ok();
    programs::run("qemu-io", ["-r", "-f", "raw", "-c", "read 0 512", write[4]]);
}

/// What the sidecar of the disk says of its role: 1 active, 2 partial, 3 retired. Of its
/// two slots of 4096 bytes the one counts that was written later.
fn role(stage: &Stage) -> u8 {
    let sidecar = std::fs::read(stage.there.join("web-vda.raw.sterna"));
    let sidecar = sidecar.expect("read a sidecar");
    let sequence =
        |slot: &&[u8]| u64::from_le_bytes(*slot[288..].first_chunk().expect("8"));
    sidecar.chunks(4096).max_by_key(sequence).expect("a slot")[48]
}

#[test]
fn a_copy_whose_switch_over_was_called_off_is_partial_again_and_goes_in_the_end() {
    let Some((stage, vm, old)) = stage_without() else { return };
    let between = Between::start(&stage.scratch, "web", vm.socket());
    add(&stage, between.socket());
    between.stop_at("job-complete", Stop::Lost);
    let started = stage.daemon.json("vm adopt web vda --on there --detach");
    let id = started["id"].as_u64().expect("a number");
    between.reached();
    assert_eq!(role(&stage), 1, "QEMU may make it the truth");
    // Somebody is in the way of its removal.
    let disk = stage.daemon.disk("web-vda")["id"].as_str().expect("an id").to_owned();
    let mut reader = programs::command("qemu-io")
        .args(["-r", "-f", "raw", &stage.daemon.uri(&disk)])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("start qemu-io");
    until("somebody to be there", seconds(10), || {
        let activity = stage.daemon.disk("web-vda")["activity"].clone();
        (activity["connections"].as_u64() >= Some(2)).then_some(())
    });
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(20));
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("in use by 1 client"), "{why}");
    assert_eq!(role(&stage), 2, "it holds a part of a copy");
    reader.kill().and_then(|()| reader.wait()).expect("end qemu-io");
    until("the disk and its image to be removed", seconds(30), || {
        (disks(&stage).is_empty() && stage.files_there().is_empty()).then_some(())
    });
    assert_eq!(image(&stage), old);
    is_written(&old);
}

#[test]
fn what_is_not_the_copy_any_more_is_not_switched_over_to() {
    let Some((stage, _vm, old)) = stage() else { return };
    let id = slow_adoption(&stage);
    // Somebody has put another image in its place.
    stage.disk("other", 64 * MIB);
    let other = stage.here.join("other.raw.sterna");
    let sidecar = stage.there.join("web-vda.raw.sterna");
    std::fs::copy(other, sidecar).expect("copy a sidecar");
    stage.daemon.hurry(id);
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(30));
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("was replaced"), "{why}");
    assert_eq!(image(&stage), old);
    is_written(&old);
}

#[test]
fn a_vm_that_dies_or_hangs_ends_its_adoption() {
    let Some((stage, mut vm, old)) = stage() else { return };
    let id = slow_adoption(&stage);
    vm.hang();
    let ended = stage.daemon.wait_for(id, "cancelled", REPORTED);
    let why = ended["reason"].as_str().expect("why");
    assert!(
        why.contains("not answer") && why.contains("Sterna then removes disk web-vda"),
        "{why}"
    );
    let refused = stage.daemon.sterna("disk remove web-vda");
    refused.fails_with(&["may still be used by web", "once web answers"]);
    vm.go_on();
    // A disk is no longer listed before its image has gone.
    until("the disk and its image to be removed", seconds(30), || {
        (disks(&stage).is_empty() && stage.files_there().is_empty()).then_some(())
    });
    nothing_is_left(&stage);
    is_written(&old);
    until("the note to promise nothing any more", seconds(10), || {
        let ended = stage.daemon.migration(id);
        let why = ended["reason"].as_str().expect("why");
        (why.contains("not answer") && !why.contains("Sterna")).then_some(())
    });
    let id = slow_adoption(&stage);
    vm.kill();
    stage.daemon.wait_for(id, "cancelled", seconds(10));
    nothing_is_left(&stage);
    assert!(old.exists());
}

#[test]
fn the_note_of_an_adoption_whose_vm_ends_unseen_says_that_the_disk_is_kept() {
    let Some((stage, mut vm, old)) = stage() else { return };
    let id = slow_adoption(&stage);
    vm.hang();
    stage.daemon.wait_for(id, "cancelled", REPORTED);
    vm.kill();
    let why = until("the note to say so", seconds(30), || {
        let ended = stage.daemon.migration(id);
        let why = ended["reason"].as_str().expect("why").to_owned();
        why.contains("Sterna kept disk web-vda").then_some(why)
    });
    assert!(why.contains("not answer") && !why.contains("Sterna then"), "{why}");
    assert!(old.exists());
    stage.daemon.sterna("disk remove web-vda").ok();
    nothing_is_left(&stage);
}

#[test]
fn what_a_vm_that_hangs_has_of_an_adoption_is_given_up_by_the_next_daemon() {
    let Some((mut stage, vm, old)) = stage() else { return };
    let id = slow_adoption(&stage);
    vm.hang();
    stage.daemon.wait_for(id, "cancelled", REPORTED);
    stage.daemon.kill();
    stage.daemon.restart();
    let shown = &stage.daemon.json("disk list")[0];
    assert_eq!(shown["served"], true, "QEMU waits for it: {shown:#}");
    vm.go_on();
    until("the disk and its image to be removed", seconds(30), || {
        (disks(&stage).is_empty() && stage.files_there().is_empty()).then_some(())
    });
    is_written(&old);
    let again = stage.daemon.json("vm adopt web vda --on there");
    assert_eq!(again["state"], "completed", "{again:#}");
}

#[test]
fn a_vm_that_was_switched_over_while_it_was_silent_keeps_its_disk() {
    let Some(mut stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let old = stage.scratch.path("web.raw");
    write_guest(&old, 64 * MIB, 32 * MIB);
    let theirs = stage.scratch.socket("theirs.qmp");
    let more = format!("unix:{},server=on,wait=off", theirs.display());
    let vm = Vm::start(&stage.scratch, "web", &old, "raw", &["-qmp", &more]);
    let between = Between::start(&stage.scratch, "web", vm.socket());
    add(&stage, between.socket());
    let id = slow_adoption(&stage);
    between.stop_at("query-jobs", Stop::Cut);
    stage.daemon.wait_for(id, "cancelled", seconds(30));
    // Somebody with a monitor of his own goes on with QEMU's job.
    let tell = |command: &str, of: &str, more: &Value| {
        let mut arguments = more.clone();
        arguments[of] = job(&theirs)["id"].clone();
        ask(&theirs, &json!({ "execute": command, "arguments": arguments }));
    };
    tell("block-job-set-speed", "device", &json!({ "speed": 0 }));
    let becomes = |status: &str| {
        until("QEMU's job to be there", seconds(60), || {
            (job(&theirs)["status"] == status).then_some(())
        });
    };
    becomes("ready");
    tell("job-complete", "id", &json!({}));
    becomes("concluded");
    between.let_in();
    until("it to be known", seconds(30), || {
        let reason = stage.daemon.migration(id)["reason"].clone();
        let reason = reason.as_str()?.to_owned();
        reason.contains("QEMU runs with the copy").then_some(())
    });
    assert_eq!(role(&stage), 1, "the guest runs with it");
    stage.daemon.kill();
    stage.daemon.restart();
    let shown = &stage.daemon.json("disk list")[0];
    assert_eq!(shown["served"], true, "{shown:#}");
    is_written(&stage.there.join("web-vda.raw"));
}

/// QEMU's job.
fn job(monitor: &Path) -> Value {
    ask(monitor, &json!({ "execute": "query-jobs" }))[0].clone()
}

#[test]
fn a_copy_of_which_nobody_has_seen_the_end_is_for_nobody() {
    let Some((mut stage, mut vm, old)) = stage() else { return };
    let id = slow_adoption(&stage);
    stage.daemon.kill();
    vm.kill();
    stage.daemon.restart();
    stage.daemon.wait_for(id, "cancelled", seconds(20));
    let problem = until("nobody to have it", seconds(20), || {
        stage.daemon.json("disk list")[0]["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains("may be an incomplete copy"), "{problem}");
    let socket = stage.scratch.socket("vda").display().to_string();
    for line in [
        "migrate web-vda --to here",
        &format!("disk attach web-vda --vhost-user {socket}"),
    ] {
        stage.daemon.sterna(line).fails_with(&["web-vda", "not served"]);
    }
    stage.daemon.sterna("disk remove web-vda").ok();
    nothing_is_left(&stage);
    assert!(old.exists());
}

#[test]
fn what_cannot_be_adopted_or_released_is_refused_with_the_reason() {
    let Some((stage, _vm, _old)) = stage() else { return };
    let daemon = &stage.daemon;
    let refused = |line: &str, words: &[&str]| {
        daemon.sterna(line).fails_with(words);
    };
    refused("vm adopt other vda --on there", &["there is no VM other"]);
    refused("vm adopt web vdz --on there", &["no disk vdz", "vda"]);
    refused("vm adopt web vda --on nowhere", &["no datastore nowhere"]);
    refused("vm adopt web vda --on there --name a/b", &["cannot be the name"]);
    let file = stage.scratch.path("new.raw").display().to_string();
    refused(&format!("vm release web vda --to {file}"), &["is not a Sterna disk"]);
    if programs::root() && programs::have(&["losetup", "mkfs.ext4"]) {
        let _tiny = stage.tiny_fs("tiny", 16 * MIB);
        refused("vm adopt web vda --on tiny", &["tiny", "are missing"]);
        let _device = stage.block_device("device", 48 * MIB);
        refused("vm adopt web vda --on device", &["device", "are missing"]);
    }
    stage.disk("taken", MIB);
    refused("vm adopt web vda --on there --name taken", &["a disk taken already"]);
    daemon.sterna("vm adopt web vda --on there").ok();
    refused("vm adopt web vda --on here", &["is Sterna disk web-vda"]);
    refused("vm move web vda --to here", &["is Sterna disk", "sterna migrate"]);
    refused("vm release web vda --to /nonexistent/a.raw", &["no directory"]);
    refused("vm release web vda --to /tmp/a.vmdk", &[".qcow2"]);
    std::fs::write(&file, "mine").expect("write a file");
    refused(&format!("vm release web vda --to {file}"), &["exists already"]);
    assert_eq!(std::fs::read(&file).expect("read a file"), b"mine");
}

#[test]
fn a_release_that_is_cancelled_leaves_the_disk_with_sterna() {
    let Some((stage, _vm, _old)) = stage() else { return };
    stage.daemon.sterna("vm adopt web vda --on there").ok();
    let file = stage.scratch.path("back.raw");
    let line = format!("vm release web vda --to {} --rate 1M --detach", file.display());
    let id = stage.daemon.json(&line)["id"].as_u64().expect("a number");
    stage.daemon.wait_for(id, "copying", seconds(20));
    stage.daemon.sterna("migrate web-vda --to here").fails_with(&["is being released"]);
    stage.daemon.cancel(id);
    assert_eq!(disk(&stage)["disk"], "web-vda");
    assert!(!file.exists());
    is_written(&stage.daemon.image("web-vda"));
    stage.daemon.sterna("migrate web-vda --to here").ok();
}
