//! VMs that exist already: QEMU serves their disks, and Sterna has it move
//! them.

mod disturbed;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use sterna_tests::between::{Between, Stop};
use sterna_tests::vms::{Vm, is_written, number_on, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

/// What the commands promise: something that is wrong is said within this.
pub(crate) const REPORTED: Duration = seconds(5);

/// A stage with a busy VM `web`, whose raw disk of 64 MiB is on `here`.
fn stage() -> Option<(Stage, Vm, PathBuf)> {
    let stage = Stage::given(&["qemu-system-x86_64"])?;
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 32 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &[]);
    add(&stage, "web", &vm);
    until("the guest to write", seconds(60), || (number_on(&image) > 0).then_some(()));
    Some((stage, vm, image))
}

/// A stage with a VM `web` as of [`stage`], but with somebody between it and Sterna.
fn stage_between() -> Option<(Stage, Vm, Between, PathBuf)> {
    let stage = Stage::given(&["qemu-system-x86_64"])?;
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 32 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &[]);
    let between = Between::start(&stage.scratch, "web", vm.socket());
    stage.daemon.sterna(&format!("vm add web --qmp {}", between.socket().display())).ok();
    Some((stage, vm, between, image))
}

#[track_caller]
fn add(stage: &Stage, name: &str, vm: &Vm) {
    let socket = vm.socket().display();
    stage.daemon.sterna(&format!("vm add {name} --qmp {socket}")).ok();
}

/// Starts a move that goes on by itself; gives its number. While others have libvirt start VMs,
/// it may be late with an answer: the move is refused then, and begins once libvirt has time.
#[track_caller]
pub(crate) fn moving(stage: &Stage, line: &str) -> u64 {
    let line = format!("vm move {line} --detach --json");
    let answer = until("libvirt to answer", seconds(30), || {
        let answer = stage.daemon.sterna(&line);
        (!answer.stderr.contains("libvirt does not answer")).then_some(answer)
    });
    answer.ok().json()["id"].as_u64().expect("a number")
}

pub(crate) fn disk(stage: &Stage) -> Value {
    stage.daemon.json("vm show web")["disks"][0].clone()
}

pub(crate) fn image(stage: &Stage) -> PathBuf {
    disk(stage)["image"].as_str().expect("a path").into()
}

/// Moves the VM's disk from its `old` image, as soon as nothing is in the way.
#[track_caller]
fn moves_when_it_can(stage: &Stage, old: &Path) {
    until("the next move to find nothing in its way", seconds(30), || {
        let answer = stage.daemon.sterna("vm move web vda --to there");
        (answer.code == 0).then_some(())
    });
    assert_ne!(image(stage), old);
}

/// Nothing of a move is left on the datastore `there`.
#[track_caller]
pub(crate) fn nothing_is_left(stage: &Stage) {
    assert_eq!(stage.files_there(), Vec::<String>::new());
}

#[test]
fn a_vm_is_added_listed_shown_and_forgotten() {
    let Some((stage, vm, _image)) = stage() else { return };
    let daemon = &stage.daemon;
    let shown = daemon.json("vm show web");
    assert_eq!(
        (&shown["state"], &shown["qmp"]),
        (&"running".into(), &vm.socket().display().to_string().into())
    );
    let disk = disk(&stage);
    assert_eq!((&disk["device"], &disk["format"]), (&"vda".into(), &"raw".into()));
    assert_eq!((&disk["size"], &disk["datastore"]), (&(64 * MIB).into(), &"here".into()));
    assert!(disk["now"]["iops"].as_f64() > Some(0.0), "{disk:#}");
    assert!(disk["now"]["latency_us"].as_f64() > Some(0.0), "{disk:#}");
    let words = daemon.sterna("vm list").ok().stdout;
    assert!(words.contains("web") && words.contains("vda"), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    let socket = vm.socket().display();
    daemon.sterna(&format!("vm add other --qmp {socket}")).fails_with(&["web already"]);
    // Where a disk's name is wanted, a VM's leads to its disks.
    daemon.sterna("migrate web --to there").fails_with(&["sterna vm move web"]);
    daemon.sterna("vm remove web").ok();
    daemon.sterna("vm show web").fails_with(&["there is no VM web"]);
}

#[test]
fn a_vm_is_not_added_again_by_another_monitor() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let daemon = &stage.daemon;
    let more = stage.scratch.socket("more.qmp");
    let monitor = format!("unix:{},server=on,wait=off", more.display());
    let start = |name: &str, more: &[&str]| {
        let image = stage.here.join(format!("{name}.raw"));
        write_guest(&image, 8 * MIB, MIB);
        Vm::start(&stage.scratch, name, &image, "raw", more)
    };
    // None has a UUID, by which they could be told apart.
    let web = start("web", &["-qmp", &monitor]);
    let mail = start("mail", &[]);
    add(&stage, "web", &web);
    let again = daemon.sterna(&format!("vm add again --qmp {}", more.display()));
    again.fails_with(&["belongs to VM web already", "web.qmp", "sterna vm remove web"]);
    add(&stage, "mail", &mail);
    let names = |list: &Value| -> Vec<String> {
        let all = list.as_array().expect("VMs").iter();
        all.map(|vm| vm["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&daemon.json("vm list")), ["mail", "web"]);
    daemon.sterna("vm remove web").ok();
    daemon.sterna(&format!("vm add again --qmp {}", more.display())).ok();
    // Who stands between two VMs and Sterna is neither of them.
    daemon.sterna("vm remove again").ok();
    daemon.sterna("vm remove mail").ok();
    for (name, vm) in [("web", &web), ("mail", &mail)] {
        let between = Between::start(&stage.scratch, name, vm.socket());
        daemon
            .sterna(&format!("vm add {name} --qmp {}", between.socket().display()))
            .ok();
    }
}

/// A datastore that has only disks of VMs says so, and its files are nobody's to remove.
#[track_caller]
pub(crate) fn holds_webs_disk(stage: &Stage) {
    let daemon = &stage.daemon;
    let list = daemon.json("datastore list");
    let here =
        list.as_array().expect("datastores").iter().find(|it| it["name"] == "here");
    assert_eq!(here.expect("it is there")["vm_disks"][0], "web/vda", "{list:#}");
    let shown = daemon.sterna("datastore show here").ok().stdout;
    assert!(shown.contains("0 disks of Sterna, 1 disk of VMs: web/vda"), "{shown}");
    let way = "sterna vm move web vda --to";
    daemon.sterna("plan evacuate here").fails_with(&["web/vda", way]);
    daemon.sterna("datastore remove here").fails_with(&["web/vda", way]);
    let files = daemon.json("datastore images here");
    assert_eq!(files["images"][0]["is"], "vm", "{files:#}");
    let kept = daemon.sterna("datastore remove-image here web.raw");
    let kept = kept.fails_with(&["the image of disk vda of VM web"]);
    assert!(!kept.stderr.contains("`rm "), "{}", kept.stderr);
}

#[test]
fn a_datastore_with_a_disk_of_a_vm_is_not_empty() {
    let Some((stage, vm, _image)) = stage() else { return };
    holds_webs_disk(&stage);
    // Its files stay when it ends.
    drop(vm);
    until("Sterna to see that QEMU has ended", seconds(30), || {
        (stage.daemon.json("vm show web")["state"] == "unreachable").then_some(())
    });
    holds_webs_disk(&stage);
    stage.daemon.sterna("vm remove web").ok();
    stage.daemon.sterna("datastore remove here").ok();
}

#[test]
fn a_plan_names_the_disks_of_vms_that_it_leaves() {
    let Some((stage, _vm, _image)) = stage() else { return };
    stage.daemon.sterna("disk create a --size 8M --on here").ok();
    let plan = stage.daemon.json("plan evacuate here --space 100%");
    assert_eq!(plan["moves"][0]["disk"], "a", "{plan:#}");
    assert_eq!(plan["refused"][0]["disk"], "web/vda", "{plan:#}");
    let reason = plan["refused"][0]["reason"].to_string();
    assert!(reason.contains("sterna vm move web vda --to"), "{reason}");
}

#[test]
fn a_file_of_a_vm_is_not_removed_by_another_path() {
    let Some((stage, _vm, image)) = stage() else { return };
    std::fs::hard_link(&image, stage.here.join("link.raw")).expect("a link");
    let kept = stage.daemon.sterna("datastore remove-image here link.raw");
    let kept = kept.fails_with(&["VM web uses it"]);
    assert!(!kept.stderr.contains("`rm "), "{}", kept.stderr);
}

#[test]
fn a_shell_completes_the_names_of_vms_and_of_their_disks_without_asking_them() {
    let Some((stage, vm, _image)) = stage() else { return };
    // It would keep whoever asks it waiting for longer than a shell waits.
    vm.hang();
    for (line, name) in [
        ("vm show w", "web"),
        ("vm move w", "web"),
        ("vm move web v", "vda"),
        ("drs explain w", "web"),
        ("advise w", "web"),
    ] {
        let offered = stage.daemon.sterna(&format!("completion bash -- {line}"));
        assert_eq!(offered.ok().stdout.trim(), name, "{line}");
    }
    vm.go_on();
}

#[test]
fn a_disk_moves_while_its_guest_writes() {
    let Some((stage, vm, old)) = stage() else { return };
    let answer = stage.daemon.sterna("vm move web vda --to there --rate 40M").ok();
    assert!(answer.stdout.contains("moved from here to there"), "{}", answer.stdout);
    let new = image(&stage);
    assert_eq!(
        (disk(&stage)["datastore"].as_str(), new.parent()),
        (Some("there"), Some(stage.there.as_path()))
    );
    is_written(&new);
    assert!(number_on(&new) > number_on(&old), "the old image is left as it was");
    let moved = &stage.daemon.json("migration list")[0];
    assert_eq!(
        (&moved["disk"], &moved["state"]),
        (&"web/vda".into(), &"completed".into())
    );
    assert!(moved["application"]["during"]["iops"].as_f64() > Some(0.0), "{moved:#}");
    // And back: nothing of the first move is in the way.
    stage.daemon.sterna("vm move web vda --to here").ok();
    let back = image(&stage);
    assert_eq!(back.parent(), Some(stage.here.as_path()));
    is_written(&back);
    drop(vm);
    let (ok, text) = programs::attempt(
        "cmp",
        ["-n", "1048576", &back.display().to_string(), &old.display().to_string()],
    );
    assert!(ok, "what was not written since is the same: {text}");
}

#[test]
fn a_qcow2_disk_stays_one() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64", "qemu-img"]) else { return };
    let raw = stage.scratch.path("raw");
    write_guest(&raw, 64 * MIB, 8 * MIB);
    let old = stage.here.join("web.qcow2");
    let [from, to] = [&raw, &old].map(|path| path.display().to_string());
    programs::run("qemu-img", ["convert", "-O", "qcow2", &from, &to]);
    let vm = Vm::start(&stage.scratch, "web", &old, "qcow2", &["-S"]);
    add(&stage, "web", &vm);
    stage.daemon.sterna("vm move web vda --to there").ok();
    let disk = disk(&stage);
    assert_eq!((&disk["format"], &disk["size"]), (&"qcow2".into(), &(64 * MIB).into()));
    let new = image(&stage).display().to_string();
    drop(vm);
    let text = programs::run("qemu-img", ["compare", &from, &new]);
    assert!(text.contains("identical"), "{text}");
}

#[test]
fn a_move_is_guarded_paused_and_cancelled() {
    let Some((stage, _vm, old)) = stage() else { return };
    let id = moving(&stage, "web vda --to there --keep 97% --rate 2M");
    let learns = |now: &Value| now["guard"]["state"].is_string();
    let now = until("the guard to be at work", seconds(20), || {
        Some(stage.daemon.migration(id)).filter(learns)
    });
    assert_eq!(now["guard"]["asked"]["keep"], 0.97);
    stage.daemon.pause(id);
    stage.daemon.resume(id);
    stage.daemon.wait_for(id, "copying", seconds(10));
    stage.daemon.cancel(id);
    assert_eq!(image(&stage), old);
    nothing_is_left(&stage);
    is_written(&old);
    // A cancelled move leaves nothing behind in QEMU either.
    stage.daemon.sterna("vm move web vda --to there").ok();
}

#[test]
fn a_copy_for_idle_moments_waits_beside_a_busy_guest() {
    let Some((stage, _vm, _old)) = stage() else { return };
    let id = moving(&stage, "web vda --to there --idle-only");
    stage.daemon.wait_for(id, "copying", seconds(20));
    let first = until("the copy to stand", seconds(20), || {
        let guard = stage.daemon.migration(id)["guard"].clone();
        (guard["allowance"] == 0).then(|| stage.daemon.migration(id))
    });
    let before = first["progress"]["copied"].as_u64().unwrap_or(0);
    std::thread::sleep(seconds(1));
    let copied = stage.daemon.migration(id)["progress"]["copied"].as_u64().unwrap_or(0);
    assert!(copied - before < 8 * MIB, "{} bytes beside a busy guest", copied - before);
    stage.daemon.sterna(&format!("migration set {id} --no-guard")).ok();
    stage.daemon.completed(id);
}

/// A move that has just begun and takes its time.
pub(crate) fn slow_move(stage: &Stage) -> u64 {
    let id = moving(stage, "web vda --to there --rate 1M");
    stage.daemon.wait_for(id, "copying", seconds(20));
    id
}

#[test]
fn a_policy_ends_with_the_move_of_a_vms_disk() {
    let Some((stage, _vm, _old)) = stage() else { return };
    let id = slow_move(&stage);
    let limit = format!("policy limit migration 2M --until-job {id}");
    stage.daemon.sterna(&limit).ok();
    assert_eq!(stage.daemon.json("policy list")[0]["until_job"], id);
    stage.daemon.cancel(id);
    until("the policy to end", seconds(10), || {
        (stage.daemon.json("policy list") == Value::Array(Vec::new())).then_some(())
    });
    stage.daemon.sterna(&limit).fails_with(&["has ended"]);
}

#[test]
fn a_disk_whose_device_has_no_id_is_not_moved() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let (one, other) = (stage.here.join("web.raw"), stage.here.join("other.raw"));
    write_guest(&one, 64 * MIB, 32 * MIB);
    write_guest(&other, 64 * MIB, 32 * MIB);
    let file = format!("driver=file,node-name=file1,filename={}", other.display());
    let more = ["-blockdev", &file, "-blockdev", "driver=raw,node-name=disk1,file=file1"];
    let device = ["-device", "virtio-blk-pci,drive=disk1"];
    let more = [&more[..], &device[..]].concat();
    let vm = Vm::start(&stage.scratch, "web", &one, "raw", &more);
    add(&stage, "web", &vm);
    stage.daemon.sterna("vm move web disk1 --to there").fails_with(&["no id", "id="]);
    nothing_is_left(&stage);
}

#[test]
fn a_scsi_disk_goes_by_the_id_of_its_device() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let (one, other) = (stage.here.join("web.raw"), stage.here.join("other.raw"));
    write_guest(&one, 64 * MIB, 32 * MIB);
    write_guest(&other, MIB, MIB);
    let file = format!("driver=file,node-name=file1,filename={}", other.display());
    let more = ["-blockdev", &file, "-blockdev", "driver=raw,node-name=disk1,file=file1"];
    let device = ["-device", "virtio-scsi-pci", "-device", "scsi-hd,drive=disk1,id=sda"];
    let more = [&more[..], &device[..]].concat();
    let vm = Vm::start(&stage.scratch, "web", &one, "raw", &more);
    add(&stage, "web", &vm);
    stage.daemon.sterna("vm move web sda --to there").ok();
    let id = stage.daemon.json("migration list")[0]["id"].as_u64().expect("a number");
    assert_eq!(stage.files_there(), [format!("web-sda-{id}.raw")]);
}

#[test]
fn what_goes_with_qemu_is_not_moved() {
    let Some((stage, _vm, old)) = stage() else { return };
    let spare = stage.here.join("spare.raw");
    std::fs::copy(&old, &spare).expect("copy an image");
    let drive = format!("file={},format=raw,if=none,id=d1,snapshot=on", spare.display());
    let more = ["-drive", &drive, "-device", "virtio-blk-pci,drive=d1,id=vdb"];
    let other = stage.here.join("other.raw");
    std::fs::copy(&old, &other).expect("copy an image");
    let vm = Vm::start(&stage.scratch, "other", &other, "raw", &more);
    add(&stage, "other", &vm);
    stage
        .daemon
        .sterna("vm move other vdb --to there")
        .fails_with(&["disk vdb", "snapshot=on"]);
    // Nor is that advised; of its other disk it is.
    let said = stage.daemon.json("advise other");
    let advice = said["advice"].as_array().expect("advice");
    let hint = |disk: &str| {
        let about = format!("disk {disk} of other");
        let found = advice.iter().find(|one| one["about"] == about.as_str());
        found.expect("it is there")["hint"].as_str().expect("a hint")
    };
    let (temporary, plain) = (hint("vdb"), hint("vda"));
    assert!(
        temporary.contains("snapshot=on") && !temporary.contains("vm adopt"),
        "{said}"
    );
    assert!(plain.contains("vm adopt other vda"), "{said}");
}

#[test]
fn what_cannot_be_moved_is_refused_with_the_reason() {
    let Some((stage, _vm, _old)) = stage() else { return };
    let daemon = &stage.daemon;
    daemon.sterna("vm move web vdz --to there").fails_with(&["no disk vdz", "vda"]);
    daemon.sterna("vm move web vda --to nowhere").fails_with(&["no datastore nowhere"]);
    daemon.sterna("vm move web vda --to here").fails_with(&["on datastore here already"]);
    daemon.sterna("vm move other vda --to there").fails_with(&["there is no VM other"]);
    daemon
        .sterna("vm add x --qmp /nonexistent/socket")
        .fails_with(&["/nonexistent/socket"]);
    let id = slow_move(&stage);
    daemon.sterna("vm move web vda --to there").fails_with(&["being moved"]);
    daemon.sterna("vm remove web").fails_with(&["is moved by migration"]);
    daemon.sterna("datastore remove there").fails_with(&["used by migration", "web"]);
    stage.daemon.cancel(id);
}
