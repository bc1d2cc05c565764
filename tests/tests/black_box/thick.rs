//! A disk whose room was allocated keeps it: over what its guest discards, over a move,
//! and on file systems that write to new places. A quota is no room.

use std::path::{Path, PathBuf};

use sterna_tests::clients::nbdsh;
use sterna_tests::images::allocated;
use sterna_tests::places::TinyFs;
use sterna_tests::programs;
use sterna_tests::vms::{Vm, is_written, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

#[test]
fn what_a_guest_discards_of_a_thick_disk_is_still_its_own() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.ext4", "nbdsh"]) else {
        return;
    };
    let tiny = stage.tiny_fs("tiny", 96 * MIB);
    for provision in ["thick", "thick-zeroed"] {
        let name = format!("d-{provision}");
        let create = format!("disk create {name} --size 16M --on tiny");
        stage.daemon.sterna(&format!("{create} --provision {provision}")).ok();
        let all = "h.pwrite(b'1' * (16 << 20), 0); h.trim(8 << 20, 0); \
                   h.zero(4 << 20, 8 << 20); h.flush(); \
                   assert h.pread(12 << 20, 0) == bytes(12 << 20)";
        nbdsh(&stage.daemon.uri(&name), all);
        assert!(allocated(&stage.daemon.image(&name)) >= 16 * MIB, "{provision}");
    }
    let _others = tiny.fill_up();
    for provision in ["thick", "thick-zeroed"] {
        let uri = stage.daemon.uri(&format!("d-{provision}"));
        nbdsh(&uri, "h.pwrite(b'2' * (16 << 20), 0); h.flush()");
    }
}

#[test]
fn a_disk_whose_creation_was_stopped_or_killed_leaves_nothing_behind() {
    let Some(mut stage) = Stage::given(&["nbdkit"]) else { return };
    // Zeroes are written in pieces of a MiB.
    let _slow = stage.nbd_server("far", 64 * MIB, &["--filter=delay", "wdelay=100ms"]);
    for is_killed in [false, true] {
        let create = "disk create z --size 40M --provision thick-zeroed --on far";
        let mut create = stage.daemon.piped(create);
        until("the disk to be created", seconds(20), || {
            let shown = stage.daemon.sterna("disk show z");
            shown.stderr.contains("disk z is being created").then_some(())
        });
        let again = stage.daemon.sterna("disk create z --size 1M --on here");
        again.fails_with(&["disk z is being created"]);
        match is_killed {
            true => stage.daemon.kill(),
            false => stage.daemon.stop(),
        }
        assert!(!create.wait().expect("whoever creates").success());
        let log = stage.daemon.log();
        assert!(!log.contains("has not answered in time"), "{:?}", log.lines().last());
        stage.daemon.restart();
        let found = stage.daemon.sterna("disk recover --dry-run").ok().stdout;
        assert!(!found.contains("Would be recovered"), "{found}");
        let create = "disk create y --size 40M --on far";
        until("the image to be removed", seconds(20), || {
            (stage.daemon.sterna(create).stderr.is_empty()).then_some(())
        });
        stage.daemon.sterna("disk remove y").ok();
    }
}

#[test]
fn a_thick_disk_on_a_full_xfs_takes_zeroes_of_parts_of_blocks_and_is_served_again() {
    let Some(mut stage) = Stage::given_root(&["losetup", "mkfs.xfs", "nbdsh"]) else {
        return;
    };
    let (file, mount) = (stage.scratch.path("xfs.img"), stage.scratch.path("xfs"));
    let place = TinyFs::xfs(&file, &mount, 400 * MIB);
    stage.datastore("xfs", place.dir().display());
    stage.daemon.sterna("disk create a --size 16M --on xfs --provision thick").ok();
    let uri = stage.daemon.uri("a");
    nbdsh(&uri, "h.pwrite(b'1' * (16 << 20), 0); h.flush()");
    let _others = place.fill_up();
    // The file system gives back what is zeroed, and takes it anew, where there is no room.
    nbdsh(&uri, "for at in range(512, 8 << 20, 8192): h.zero(4608, at)\nh.flush()");
    nbdsh(&uri, "assert h.pread(4608, 8704) == bytes(4608)");
    nbdsh(&uri, "h.pwrite(b'2' * (16 << 20), 0); h.flush()");
    assert!(allocated(&stage.daemon.image("a")) >= 16 * MIB);
    // Not even a file can be made there.
    stage.daemon.stop();
    stage.daemon.restart();
    assert_eq!(stage.daemon.disk("a")["served"], true, "{:#}", stage.daemon.disk("a"));
    stage.daemon.sterna("migrate a --to there").ok();
    stage.daemon.stop();
}

#[test]
fn an_image_that_was_allocated_in_full_is_so_after_a_move() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    let path = stage.here.join("p.raw");
    let file = std::fs::File::create(&path).expect("make an image");
    let all = rustix::fs::FallocateFlags::empty();
    if rustix::fs::fallocate(&file, all, 0, 16 * MIB).is_err() {
        return programs::skip("this file system allocates nothing");
    }
    drop(file);
    let import = format!("disk import p --on here {}", path.display());
    let said = stage.daemon.sterna(&import).ok().stdout;
    assert!(said.contains("thick"), "{said}");
    assert_eq!(stage.daemon.disk("p")["provision"], "thick");
    let id = stage.daemon.migrate("p --to there --rate 8M");
    // What is discarded while it moves is discarded on neither side.
    nbdsh(&stage.daemon.uri("p"), "h.pwrite(b'1' * (4 << 20), 0); h.trim(4 << 20, 0)");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    assert!(allocated(&stage.daemon.image("p")) >= 16 * MIB);
    // One that is not is as thin as it was.
    stage.disk_with_data("thin", 16 * MIB, MIB);
    assert_eq!(stage.daemon.disk("thin")["provision"], "thin");
}

#[test]
fn an_image_that_was_allocated_in_full_is_so_after_qemu_has_moved_it() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64"]) else { return };
    let moved = |name: &str, image: &Path| {
        let vm = Vm::start(&stage.scratch, name, image, "raw", &[]);
        let socket = vm.socket().display();
        stage.daemon.sterna(&format!("vm add {name} --qmp {socket}")).ok();
        stage.daemon.sterna(&format!("vm move {name} vda --to there")).ok();
        let new = &stage.daemon.json(&format!("vm show {name}"))["disks"][0]["image"];
        let new = PathBuf::from(new.as_str().expect("a path"));
        assert_eq!(new.parent(), Some(stage.there.as_path()));
        is_written(&new);
        allocated(&new)
    };
    let [thick, thin] = ["thick", "thin"].map(|name| {
        let image = stage.here.join(format!("{name}.raw"));
        write_guest(&image, 64 * MIB, 4 * MIB);
        image
    });
    let file = std::fs::OpenOptions::new().write(true).open(&thick).expect("open it");
    let all = rustix::fs::FallocateFlags::empty();
    if rustix::fs::fallocate(&file, all, 0, 64 * MIB).is_err() {
        return programs::skip("this file system allocates nothing");
    }
    assert!(moved("fat", &thick) >= 64 * MIB);
    assert!(moved("lean", &thin) < 16 * MIB);
}

/// A btrfs, mounted.
struct Btrfs(PathBuf);

impl Btrfs {
    fn new(stage: &Stage, name: &str, size: u64) -> Btrfs {
        let (file, mount) =
            (stage.scratch.path(&format!("{name}.img")), stage.scratch.path(name));
        std::fs::File::create(&file).and_then(|it| it.set_len(size)).expect("a file");
        let path = |path: &Path| path.to_str().expect("a plain path").to_owned();
        programs::run("mkfs.btrfs", ["-q", "-f", "-m", "single", &path(&file)]);
        std::fs::create_dir_all(&mount).expect("make the mount point");
        programs::run("mount", ["-o", "loop", &path(&file), &path(&mount)]);
        Btrfs(mount)
    }
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        let _ = programs::attempt("umount", ["--lazy".as_ref(), self.0.as_os_str()]);
    }
}

#[test]
fn a_thick_disk_on_btrfs_is_overwritten_in_place() {
    let Some(stage) = Stage::given_root(&["mkfs.btrfs", "nbdsh"]) else { return };
    let btrfs = Btrfs::new(&stage, "cow", 300 * MIB);
    stage.datastore("cow", btrfs.0.display());
    stage.disk("t", 96 * MIB);
    let id = stage.daemon.migrate("t --to cow --provision thick");
    stage.daemon.completed(id);
    let twice = "h.pwrite(b'1' * (32 << 20), 0)\n\
                 h.pwrite(b'1' * (32 << 20), 32 << 20)\n\
                 h.pwrite(b'1' * (32 << 20), 64 << 20)\n\
                 h.flush()";
    nbdsh(&stage.daemon.uri("t"), twice);
    let zeroes = std::fs::File::create(btrfs.0.join("others")).expect("a file");
    let chunk = vec![7; 1 << 20];
    while std::io::Write::write_all(&mut &zeroes, &chunk).is_ok() {}
    programs::run("sync", ["-f".as_ref(), btrfs.0.as_os_str()]);
    nbdsh(&stage.daemon.uri("t"), twice);
}

#[test]
fn a_quota_is_no_room() {
    let Some(stage) = Stage::given_root(&["mkfs.btrfs", "btrfs"]) else { return };
    let btrfs = Btrfs::new(&stage, "quotas", 400 * MIB);
    let volume = btrfs.0.join("s");
    let (all, volume) =
        (btrfs.0.to_str().expect("plain"), volume.to_str().expect("plain"));
    programs::run("btrfs", ["subvolume", "create", volume]);
    if !programs::attempt("btrfs", ["quota", "enable", all]).0 {
        return programs::skip("this kernel has no quotas of btrfs");
    }
    programs::run("btrfs", ["qgroup", "limit", "8M", volume]);
    stage.datastore("limited", volume);
    let create = "disk create t --size 16M --on limited --provision thick";
    stage.daemon.sterna(create).fails_with(&["quota"]);
    let refused = stage.daemon.sterna(&format!("{create} --json"));
    assert!(refused.stderr.contains("\"no_space\""), "{}", refused.stderr);
}
