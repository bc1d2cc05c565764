//! The images of a datastore, and the removal of old copies: what may go goes, and whatever
//! speaks against it keeps a file, with the reason.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use sterna_tests::clients::writes_and_reads;
use sterna_tests::libvirt::{self, Domain};
use sterna_tests::programs;
use sterna_tests::servers::Bindfs;
use sterna_tests::vms::{Vm, is_written, number_on, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

/// A stage with a VM `web` whose disk has moved from `here` to `there`: the old image, and
/// the new one.
struct Moved {
    stage: Stage,
    vm: Vm,
    old: PathBuf,
    new: PathBuf,
}

/// A stage with a VM `web` that has a disk on `here`.
fn with_vm() -> Option<(Stage, Vm, PathBuf)> {
    let stage = Stage::given(&["qemu-system-x86_64"])?;
    let old = stage.here.join("web.raw");
    write_guest(&old, 64 * MIB, 4 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &old, "raw", &[]);
    add(&stage, "web", &vm);
    until("the guest to write", seconds(60), || (number_on(&old) > 0).then_some(()));
    Some((stage, vm, old))
}

fn moved() -> Option<Moved> {
    let (stage, vm, old) = with_vm()?;
    stage.daemon.sterna("vm move web vda --to there").ok();
    let new = image_of(&stage, "web");
    Some(Moved { stage, vm, old, new })
}

#[track_caller]
fn add(stage: &Stage, name: &str, vm: &Vm) {
    let socket = vm.socket().display();
    stage.daemon.sterna(&format!("vm add {name} --qmp {socket}")).ok();
}

fn image_of(stage: &Stage, vm: &str) -> PathBuf {
    let shown = stage.daemon.json(&format!("vm show {vm}"));
    shown["disks"][0]["image"].as_str().expect("a path").into()
}

/// What the list of a datastore says of a file.
#[track_caller]
fn listed(stage: &Stage, datastore: &str, file: &str) -> Value {
    let all = stage.daemon.json(&format!("datastore images {datastore}"));
    let images = all["images"].as_array().expect("images").iter();
    let found = images.into_iter().find(|one| one["image"] == file);
    found.cloned().unwrap_or_else(|| panic!("{file} is not in {all:#}"))
}

/// The old image `web.raw` is not removed, for this reason.
#[track_caller]
fn stays(stage: &Stage, old: &Path, why: &[&str]) {
    stage.daemon.sterna("datastore remove-image here web.raw").fails_with(why);
    assert!(old.symlink_metadata().is_ok(), "it is there");
}

#[track_caller]
fn goes(stage: &Stage, old: &Path) {
    stage.daemon.sterna("datastore remove-image here web.raw").ok();
    assert!(old.symlink_metadata().is_err(), "it is gone");
}

#[test]
fn the_image_that_a_vm_has_left_is_listed_and_removed() {
    let Some((stage, _vm, old)) = with_vm() else { return };
    fs::write(stage.here.join("notes.txt"), "a user's").expect("write a file");
    assert_eq!(listed(&stage, "here", "web.raw")["is"], "vm");
    let told = stage.daemon.sterna("vm move web vda --to there").ok().stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("`sterna datastore remove-image here web.raw`"), "{told}");
    let new = image_of(&stage, "web");
    let is = listed(&stage, "here", "web.raw");
    assert_eq!(
        (&is["is"], &is["vm"], &is["device"]),
        (&"old_copy".into(), &"web".into(), &"vda".into())
    );
    assert_eq!(is["size"], 64 * MIB);
    assert_eq!(listed(&stage, "here", "notes.txt")["is"], "unknown");
    let file = new.file_name().and_then(|name| name.to_str()).expect("a name");
    assert_eq!(listed(&stage, "there", file)["is"], "vm");
    let words = stage.daemon.sterna("datastore images here").ok().stdout;
    assert!(words.contains("old copy of web/vda (migration 1)"), "{words}");
    assert!(words.contains("sterna datastore remove-image here IMAGE"), "{words}");
    assert!(words.lines().all(|line| line.chars().count() <= 80), "{words}");
    let names = stage.daemon.tab("datastore remove-image here ");
    assert_eq!(names, ["web.raw"]);
    let used = stage.daemon.sterna(&format!("datastore remove-image there {file}"));
    used.fails_with(&["the image of disk vda of VM web"]);
    let unknown = stage.daemon.sterna("datastore remove-image here notes.txt");
    unknown.fails_with(&["no record", "by hand", "rm "]);
    goes(&stage, &old);
    let again = stage.daemon.sterna("datastore remove-image here web.raw");
    again.fails_with(&["there is no image"]);
    assert!(stage.here.join("notes.txt").exists());
    is_written(&new);
    assert!(stage.daemon.sterna("status").ok().stdout.contains("VMs"));
    assert_eq!(stage.daemon.json("status")["counts"]["vms"], 1);
}

#[test]
fn each_move_leaves_an_old_copy_and_the_image_in_use_stays() {
    let Some(Moved { stage, vm: _vm, old, new }) = moved() else { return };
    stage.daemon.sterna("vm move web vda --to here").ok();
    let back = image_of(&stage, "web");
    let name = |path: &Path| {
        path.file_name().expect("a name").to_str().expect("text").to_owned()
    };
    assert_eq!(listed(&stage, "here", "web.raw")["is"], "old_copy");
    assert_eq!(listed(&stage, "here", &name(&back))["is"], "vm");
    let used =
        stage.daemon.sterna(&format!("datastore remove-image here {}", name(&back)));
    used.fails_with(&["VM web"]);
    stage.daemon.sterna(&format!("datastore remove-image there {}", name(&new))).ok();
    goes(&stage, &old);
    is_written(&back);
}

#[test]
fn the_images_of_a_move_under_way_stay() {
    let Some((stage, _vm, old)) = with_vm() else { return };
    let started = stage.daemon.json("vm move web vda --to there --rate 1M --detach");
    let id = started["id"].as_u64().expect("a number");
    stage.daemon.wait_for(id, "copying", seconds(20));
    stays(&stage, &old, &["migration 1 uses", "migration watch 1"]);
    let copy = format!("web-vda-{id}.raw");
    assert_eq!(listed(&stage, "there", &copy)["is"], "migration");
    stage
        .daemon
        .sterna(&format!("datastore remove-image there {copy}"))
        .fails_with(&["migration 1 uses"]);
    stage.daemon.cancel(id);
    // It is the VM's image as before.
    stays(&stage, &old, &["the image of disk vda of VM web"]);
    is_written(&old);
}

#[test]
fn a_file_that_was_changed_linked_or_replaced_stays() {
    let Some(Moved { stage, vm: _vm, old, .. }) = moved() else { return };
    let aside = stage.scratch.path("aside.raw");
    // The same file system, so it is the same file when it is back.
    fs::rename(&old, &aside).expect("put it aside");
    stage.daemon.sterna("datastore remove-image here web.raw").fails_with(&["no image"]);
    fs::copy(&aside, &old).expect("put a copy there");
    stays(&stage, &old, &["another file", "rm "]);
    fs::remove_file(&old).expect("remove the copy");
    symlink(&aside, &old).expect("put a link there");
    stays(&stage, &old, &["not a regular file"]);
    fs::remove_file(&old).expect("remove the link");
    assert!(aside.exists());
    fs::rename(&aside, &old).expect("put it back");
    let second = stage.here.join("second.raw");
    fs::hard_link(&old, &second).expect("link it");
    stays(&stage, &old, &["hard link"]);
    assert_eq!(listed(&stage, "here", "second.raw")["is"], "unknown");
    fs::remove_file(&second).expect("unlink it");
    let mut file = OpenOptions::new().write(true).open(&old).expect("open it");
    file.write_all(b"newer").expect("write to it");
    drop(file);
    stays(&stage, &old, &["changed after migration 1", "rm "]);
}

#[test]
fn a_file_that_a_program_has_open_stays_until_it_is_closed() {
    let Some(Moved { stage, vm: _vm, old, .. }) = moved() else { return };
    let reader = File::open(&old).expect("open it");
    stays(&stage, &old, &["has the file open", "lsof"]);
    drop(reader);
    // A VM that Sterna does not know, started by hand with the old image.
    let more = ["-S"];
    let stranger = Vm::start(&stage.scratch, "stranger", &old, "raw", &more);
    stays(&stage, &old, &["has the file open"]);
    drop(stranger);
    goes(&stage, &old);
}

#[test]
fn an_image_on_which_that_of_a_vm_is_based_stays() {
    let Some(Moved { stage, vm: _vm, old, .. }) = moved() else { return };
    if !programs::have(&["qemu-img"]) {
        return;
    }
    let top = stage.scratch.path("top.qcow2");
    let [base, file] = [&old, &top].map(|path| path.display().to_string());
    programs::run(
        "qemu-img",
        ["create", "-q", "-f", "qcow2", "-F", "raw", "-b", &base, &file],
    );
    let other = Vm::start(&stage.scratch, "other", &top, "qcow2", &["-S"]);
    add(&stage, "other", &other);
    stays(&stage, &old, &["VM other uses it"]);
    other.hang();
    stays(&stage, &old, &["cannot find out whether it is in use", "VM other"]);
    other.go_on();
    drop(other);
    goes(&stage, &old);
}

#[test]
fn a_vm_that_cannot_be_asked_keeps_its_old_image() {
    let Some(Moved { stage, mut vm, old, new }) = moved() else { return };
    vm.hang();
    stays(&stage, &old, &["VM web cannot be asked"]);
    vm.go_on();
    vm.kill();
    stays(&stage, &old, &["VM web is off", "start the VM"]);
    drop(vm);
    // Somebody starts it as ever, with the old image, which has old data.
    let _ = fs::remove_file(stage.scratch.path("web.qmp"));
    let wrong = Vm::start(&stage.scratch, "web", &old, "raw", &["-S"]);
    until("Sterna to see it", seconds(30), || {
        let answer = stage.daemon.sterna("datastore remove-image here web.raw");
        assert_ne!(answer.code, 0);
        let text = answer.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        text.contains("the image of disk vda of VM web").then_some(())
    });
    drop(wrong);
    let right = Vm::start(&stage.scratch, "web", &new, "raw", &[]);
    is_written(&new);
    stage.daemon.sterna("vm remove web").ok();
    stays(&stage, &old, &["not known any more", "rm "]);
    // One that is added later is another, whatever its name is.
    std::thread::sleep(seconds(1));
    add(&stage, "web", &right);
    stays(&stage, &old, &["not known any more"]);
}

#[test]
fn what_an_older_sterna_has_not_recorded_is_listed_and_stays() {
    let Some(Moved { mut stage, vm: _vm, old, .. }) = moved() else { return };
    if !programs::have(&["sqlite3"]) {
        return;
    }
    stage.daemon.stop();
    let state = stage.daemon.state().join("state.db").display().to_string();
    programs::run("sqlite3", [&state, "UPDATE vm_moves SET source_file = NULL"]);
    stage.daemon.restart();
    assert_eq!(listed(&stage, "here", "web.raw")["is"], "old_copy");
    stays(&stage, &old, &["not recorded", "rm "]);
}

#[test]
fn nothing_is_removed_where_another_file_system_is() {
    let Some(Moved { stage, vm: _vm, old, .. }) = moved() else { return };
    let mark = stage.here.join(".sterna-datastore");
    let away = stage.scratch.path("mark");
    fs::rename(&mark, &away).expect("take the mark away");
    stays(&stage, &old, &["another file system"]);
    stage.daemon.sterna("datastore images here").fails_with(&["another file system"]);
    fs::rename(&away, &mark).expect("put it back");
    until("the datastore to be back", seconds(20), || {
        let answer = stage.daemon.sterna("datastore remove-image here web.raw");
        (answer.code == 0).then_some(())
    });
    assert!(!old.exists());
}

#[test]
fn an_adopted_disk_leaves_an_old_copy_too() {
    let Some((stage, _vm, old)) = with_vm() else { return };
    stage.daemon.sterna("vm adopt web vda --on there").ok();
    assert_eq!(listed(&stage, "here", "web.raw")["is"], "old_copy");
    assert_eq!(listed(&stage, "there", "web-vda.raw")["disk"], "web-vda");
    stage
        .daemon
        .sterna("datastore remove-image there web-vda.raw")
        .fails_with(&["the image of disk web-vda"]);
    goes(&stage, &old);
    is_written(&stage.there.join("web-vda.raw"));
}

#[test]
fn the_image_that_a_disk_has_left_goes_with_its_sidecar() {
    let stage = Stage::new();
    let uri = stage.disk_with_data("web", 8 * MIB, 4 * MIB);
    let old = stage.here.join("web.raw");
    stays(&stage, &old, &["the image of disk web", "sterna disk remove web"]);
    let told = stage.daemon.sterna("migrate web --to there --keep-source").ok().stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("`sterna datastore remove-image here web.raw`"), "{told}");
    let is = listed(&stage, "here", "web.raw");
    assert_eq!((&is["is"], &is["disk"]), (&"old_copy".into(), &"web".into()));
    goes(&stage, &old);
    assert!(!stage.here.join("web.raw.sterna").exists());
    writes_and_reads(&uri);
    // Nothing of it is in the way of the disk when it comes back.
    stage.daemon.sterna("migrate web --to here --keep-source").ok();
    stays(&stage, &old, &["the image of disk web"]);
    writes_and_reads(&uri);
}

#[test]
fn an_old_image_of_a_disk_stays_if_anything_speaks_against_it() {
    let stage = Stage::new();
    stage.disk_with_data("web", 8 * MIB, 4 * MIB);
    stage.daemon.sterna("migrate web --to there --keep-source").ok();
    let old = stage.here.join("web.raw");
    let sidecar = stage.here.join("web.raw.sterna");
    let away = stage.scratch.path("sidecar");
    fs::rename(&sidecar, &away).expect("take the sidecar away");
    stays(&stage, &old, &["its sidecar"]);
    fs::write(&sidecar, "no sidecar").expect("write another");
    stays(&stage, &old, &["its sidecar"]);
    fs::rename(&away, &sidecar).expect("put it back");
    // A copy has another number than its sidecar knows.
    let aside = stage.scratch.path("aside.raw");
    fs::rename(&old, &aside).expect("put it aside");
    fs::copy(&aside, &old).expect("put a copy there");
    stays(&stage, &old, &["another file"]);
    fs::rename(&aside, &old).expect("put it back");
    let second = stage.here.join("second.raw");
    fs::hard_link(&old, &second).expect("link it");
    stays(&stage, &old, &["hard link"]);
    fs::remove_file(&second).expect("unlink it");
    let reader = File::open(&old).expect("open it");
    stays(&stage, &old, &["has the file open"]);
    drop(reader);
    // Whoever has removed the disk may want its old data.
    stage.daemon.sterna("disk remove web --delete-image").ok();
    stays(&stage, &old, &["disk web, which left it", "rm "]);
    stage.daemon.sterna(&format!("disk import again --on here {}", old.display()));
    stage
        .daemon
        .sterna("datastore remove-image here web.raw.sterna")
        .fails_with(&["web.raw"]);
    assert!(old.exists() && sidecar.exists());
}

#[test]
fn an_old_image_that_was_written_after_the_move_stays() {
    let stage = Stage::new();
    stage.disk_with_data("web", 8 * MIB, 4 * MIB);
    stage.daemon.sterna("migrate web --to there --keep-source").ok();
    let old = stage.here.join("web.raw");
    // Ends of moves are known to the second.
    std::thread::sleep(seconds(2));
    let mut file = OpenOptions::new().write(true).open(&old).expect("open it");
    file.write_all(b"newer").expect("write to it");
    drop(file);
    stays(&stage, &old, &["changed after migration 1"]);
}

#[test]
fn a_datastore_that_is_one_image_has_no_list() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let _server = stage.nbd_server("remote", 16 * MIB, &[]);
    let list = stage.daemon.sterna("datastore images remote");
    list.fails_with(&["not a directory", "datastore show remote"]);
    stage.daemon.sterna("datastore images nowhere").fails_with(&["no datastore nowhere"]);
    let said = stage.daemon.sterna("datastore images there").ok().stdout;
    assert!(said.contains("There are no images"), "{said}");
    for name in ["../web.raw", ".sterna-datastore", "/etc/passwd"] {
        let answer = stage.daemon.sterna(&format!("datastore remove-image here {name}"));
        assert_eq!(answer.code, 1, "{}", answer.stderr);
    }
}

/// A server that lets nobody in for a moment, just when the disk has left it.
#[test]
fn an_export_that_was_away_when_its_disk_had_left_it_is_free_later() {
    let Some(mut stage) = Stage::given(&["nbdkit"]) else { return };
    let server = stage.nbd_server("remote", 16 * MIB, &[]);
    stage.daemon.sterna("disk create web --size 8M --on remote").ok();
    writes_and_reads(&stage.daemon.uri("web"));
    let away = stage.scratch.path("away");
    let leaves = |stage: &Stage| {
        let id = stage.daemon.migrate("web --to here --rate 1M");
        stage.daemon.wait_for_bytes(id, MIB);
        // What is connected stays so.
        fs::rename(server.socket(), &away).expect("take the name of the socket away");
        stage.daemon.hurry(id);
        let note = stage.daemon.completed(id)["reason"].to_string();
        assert!(note.contains("the old image stays at"), "{note}");
        fs::rename(&away, server.socket()).expect("give it its name back");
        id
    };
    let id = leaves(&stage);
    until("the place to be free", seconds(40), || {
        let note = stage.daemon.migration(id)["reason"].to_string();
        note.contains("was put away later").then_some(())
    });
    stage.daemon.sterna("disk create log --size 8M --on remote").ok();
    stage.daemon.sterna("disk remove log").ok();
    // The next daemon knows of it, too; and the disk comes back.
    stage.daemon.sterna("migrate web --to remote").ok();
    leaves(&stage);
    stage.daemon.kill();
    stage.daemon.restart();
    until("the disk to come back", seconds(40), || {
        (stage.daemon.sterna("migrate web --to remote").code == 0).then_some(())
    });
    writes_and_reads(&stage.daemon.uri("web"));
}

/// What is to be done next is done, and frees the export.
#[test]
fn of_an_export_no_image_is_removed_and_each_refusal_says_what_to_do() {
    let Some(stage) = Stage::given(&["nbdkit"]) else { return };
    let daemon = &stage.daemon;
    let refused = |parts: &[&str]| {
        let whole = "datastore remote is not a directory: as a whole it is";
        let answer = daemon.sterna("datastore remove-image remote web.raw");
        answer.fails_with(&[&[whole], parts].concat())
    };
    // Exactly, so that the sidecar is elsewhere; and with room for it.
    for size in [8 * MIB, 16 * MIB] {
        let server = stage.nbd_server("remote", size, &[]);
        refused(&["no image of Sterna", "is free for a disk"]);
        daemon.sterna("disk create web --size 8M --on remote").ok();
        refused(&["the image of disk web", "sterna migrate web --to DATASTORE"]);
        daemon.sterna("migrate web --to here --keep-source").ok();
        let location = server.location();
        refused(&["the old copy of disk web", &format!("--on remote {location}")]);
        daemon.sterna("disk create log --size 8M --on remote").fails_with(&["remote"]);
        daemon.sterna(&format!("disk import old --on remote {location}")).ok();
        daemon.sterna("disk remove old --delete-image").ok();
        refused(&["no image of Sterna"]);
        daemon.sterna("disk create log --size 8M --on remote").ok();
        for line in ["disk remove log", "disk remove web", "datastore remove remote"] {
            daemon.sterna(line).ok();
        }
    }
}

#[test]
fn a_datastore_that_hangs_holds_nobody_and_loses_nothing() {
    let Some(stage) = Stage::given_root(&["bindfs"]) else { return };
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("hung", fuse.dir().display());
    stage.daemon.sterna("disk create web --size 8M --on hung").ok();
    stage.daemon.sterna("migrate web --to here --keep-source").ok();
    assert_eq!(listed(&stage, "hung", "web.raw")["is"], "old_copy");
    // FUSE does not say when a file was made: the number alone proves nothing.
    let remove = || stage.daemon.sterna("datastore remove-image hung web.raw");
    remove().fails_with(&["Sterna keeps", "web.raw", "rm "]);
    fuse.hang();
    let began = Instant::now();
    stage.daemon.sterna("datastore images hung").fails_with(&["does not answer"]);
    remove().fails_with(&["does not answer"]);
    assert!(began.elapsed() < seconds(10), "{:?}", began.elapsed());
    assert_eq!(listed(&stage, "here", "web.raw")["is"], "disk");
    fuse.go_on();
    assert!(fuse.dir().join("web.raw").exists());
}

#[test]
fn libvirt_says_of_a_vm_that_is_off_with_which_image_it_starts() {
    if !libvirt::have() {
        return;
    }
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let old = stage.here.join("web.raw");
    write_guest(&old, 64 * MIB, 4 * MIB);
    let domain = Domain::start(&stage.scratch, &old, "raw");
    let line = format!("vm add web --libvirt {} {}", libvirt::URI, domain.name());
    stage.daemon.sterna(&line).ok();
    stage.daemon.sterna("vm move web vda --to there").ok();
    let new = image_of(&stage, "web");
    assert_eq!(listed(&stage, "here", "web.raw")["is"], "old_copy");
    domain.destroy();
    goes(&stage, &old);
    domain.start_again();
    stage.daemon.sterna("vm move web vda --to here").ok();
    let file = new.file_name().and_then(|name| name.to_str()).expect("a name");
    stage.daemon.sterna(&format!("datastore remove-image there {file}")).ok();
    is_written(&image_of(&stage, "web"));
}
