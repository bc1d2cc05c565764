//! A source whose storage takes no writes any more: the kernel, or a device with a cache, drops
//! what it could not write, and tells the next flush. Each client is to hear of it, also
//! after a move.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use rustix::fs::FallocateFlags;
use sterna_tests::clients::{Clients, nbdsh};
use sterna_tests::places::{Loop, TinyFs};
use sterna_tests::programs::run;
use sterna_tests::{MIB, Stage};

const SIZE: u64 = 16 * MIB;

/// A memory of a fixed size, mounted.
struct Memory(PathBuf);

impl Memory {
    #[track_caller]
    fn new(stage: &Stage, size: u64) -> Memory {
        let dir = stage.scratch.path("memory");
        fs::create_dir(&dir).expect("make a mount point");
        let at = dir.to_str().expect("a plain path");
        run("mount", ["-t", "tmpfs", "-o", &format!("size={size}"), "memory", at]);
        Memory(dir)
    }

    /// Takes all that is free.
    fn fill_up(&self) {
        let mut file = File::create(self.0.join("ballast")).expect("create ballast");
        while file.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        run("umount", ["--lazy".as_ref(), self.0.as_os_str()]);
    }
}

/// Two clients of a disk `d` on this datastore. The memory below is full when the first writes
/// so many bytes.
#[track_caller]
fn clients_on(stage: &Stage, datastore: &str, memory: &Memory, bytes: u64) -> Clients {
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on {datastore}")).ok();
    // Takes what the file system has used before, and its device has.
    let uri = stage.daemon.uri("d");
    nbdsh(&uri, "h.pwrite(b'-' * (4 << 20), 0); h.flush()");
    memory.fill_up();
    let writes =
        format!("a, b = connect(), connect(); a.pwrite(b'x' * {bytes}, 8 << 20)");
    let flush = "flushes(a); flushes(b); flushes(connect())";
    Clients::start(&stage.scratch, &uri, &writes, flush)
}

/// Parts of blocks on XFS go through the page cache.
#[test]
fn what_the_source_has_dropped_each_client_is_told_after_the_move() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.xfs", "/usr/bin/python3"])
    else {
        return;
    };
    let memory = Memory::new(&stage, 160 * MIB);
    let full = TinyFs::xfs(&memory.0.join("xfs"), &stage.scratch.path("full"), 320 * MIB);
    stage.datastore("full", full.dir().display());
    let clients = clients_on(&stage, "full", &memory, 512);
    let id = stage.daemon.migrate("d --to there");
    stage.daemon.completed(id);
    assert_eq!(clients.go_on(), ["EIO", "ok", "EIO", "ok", "ok", "ok"]);
    let told = stage.daemon.warnings("disk d").pop().unwrap_or_default();
    assert!(told.contains("a flush of its image failed"), "{told}");
}

/// A loop device whose file is cached by the file system below.
#[test]
fn what_a_device_has_dropped_each_client_is_told() {
    let needs = ["losetup", "mkfs.xfs", "/usr/bin/python3"];
    for moves in [false, true] {
        let Some(stage) = Stage::given_root(&needs) else { return };
        let memory = Memory::new(&stage, 160 * MIB);
        let file = memory.0.join("xfs");
        let below = TinyFs::xfs(&file, &stage.scratch.path("below"), 320 * MIB);
        let file = below.dir().join("device.img");
        let allocated = File::create(&file).expect("create the device's file");
        rustix::fs::fallocate(&allocated, FallocateFlags::empty(), 0, 4 * SIZE)
            .expect("allocate the device's file");
        let device = Loop::over(&file);
        stage.datastore("device", device.device().display());
        let clients = clients_on(&stage, "device", &memory, MIB);
        if moves {
            let id = stage.daemon.migrate("d --to there");
            stage.daemon.completed(id);
        }
        let told = ["EIO", "ok", "EIO", "ok", "ok", "ok"];
        assert_eq!(clients.go_on(), told, "moves: {moves}");
        let told = stage.daemon.warnings("disk d").pop().unwrap_or_default();
        assert!(told.contains("a flush of its image failed"), "{told}");
    }
}
