//! A disk in the hands of a VM, over vhost-user-blk.
//!
//! The VM is QEMU's, and its driver that of its firmware: it boots from the disk a
//! program of one sector, which reads the next sector and writes it behind itself.

use std::fs;
use std::path::{Path, PathBuf};

use sterna_tests::programs::{attempt, command, run};
use sterna_tests::{MIB, Stage};

/// The boot sector: sector 1 is read and written as sector 2, by the firmware's service
/// for disks (int 13h, functions 42h and 43h); then QEMU is told how that went.
const PROGRAM: [u8; 47] = [
    0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xc0, // ax, ds, es = 0
    0xbe, 0x40, 0x7c, 0xb4, 0x42, 0xcd, 0x13, 0x72, 0x17, // read, or fail
    0x66, 0xc7, 0x06, 0x48, 0x7c, 2, 0, 0, 0, // sector 2 from now on
    0xb8, 0x00, 0x43, 0xbe, 0x40, 0x7c, 0xcd, 0x13, 0x72, 0x04, // write, or fail
    0xb0, 0x10, 0xeb, 0x02, // well
    0xb0, 0x11, // failed
    0xba, 0xf4, 0x00, 0xee, 0xf4, 0xeb, 0xfd, // out 0f4h, and stop
];

/// What the firmware is asked for: one sector, at 8000h, sector 1.
const PACKET: [u8; 16] = [16, 0, 1, 0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

/// QEMU's exit code when the program says that all went well (10h).
const WELL: i32 = 0x10 << 1 | 1;

fn boot_sector(folder: &Path) -> PathBuf {
    let mut sector = vec![0; 512];
    sector[..PROGRAM.len()].copy_from_slice(&PROGRAM);
    sector[0x40..0x50].copy_from_slice(&PACKET);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    let file = folder.join("boot");
    fs::write(&file, sector).expect("a file");
    file
}

/// A disk `a` from which a VM boots that writes sector 1 as sector 2; gives the path for
/// its socket.
pub(crate) fn prepared(stage: &Stage) -> PathBuf {
    let uri = stage.disk("a", 8 * MIB);
    let boot = boot_sector(&stage.here);
    let write = format!("write -s {} 0 512", boot.display());
    run("qemu-io", ["-f", "raw", "-c", &write, "-c", "write -P 90 512 512", &uri]);
    stage.here.join("a.sock")
}

/// Whether the 512 bytes there are what the program writes.
pub(crate) fn says_90(uri: &str, at: u64) -> bool {
    let read = format!("read -P 90 {at} 512");
    attempt("qemu-io", ["-f", "raw", "-c", &read, uri]).0
}

/// Boots a VM from the disk; QEMU's exit code.
fn boot(socket: &Path) -> Option<i32> {
    let chardev = format!("socket,id=a,path={}", socket.display());
    let status = command("timeout")
        .args(["60", "qemu-system-x86_64", "-machine", "q35,memory-backend=mem"])
        .args(["-object", "memory-backend-memfd,id=mem,size=64M,share=on", "-m", "64"])
        .args(["-accel", "tcg", "-display", "none", "-serial", "none"])
        .args(["-monitor", "none", "-no-reboot", "-nodefaults"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-chardev", &chardev])
        .args(["-device", "vhost-user-blk-pci,chardev=a,bootindex=0"])
        .status();
    status.expect("QEMU runs").code()
}

#[test]
fn a_vm_boots_from_its_disk_and_writes_to_it() {
    let needs = ["qemu-system-x86_64", "qemu-io"];
    let Some(stage) = Stage::given(&needs) else { return };
    let socket = prepared(&stage);
    stage.daemon.sterna(&format!("disk attach a --vhost-user {}", socket.display())).ok();
    assert_eq!(boot(&socket), Some(WELL));
    assert!(says_90(&stage.daemon.uri("a"), 1024));
}

#[test]
fn the_socket_is_there_again_after_a_restart_and_a_move() {
    let needs = ["qemu-system-x86_64", "qemu-io"];
    let Some(mut stage) = Stage::given(&needs) else { return };
    let socket = prepared(&stage);
    stage.daemon.sterna(&format!("disk attach a --vhost-user {}", socket.display())).ok();
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(stage.daemon.disk("a")["vhost_user"], socket.display().to_string());
    let id = stage.daemon.migrate("a --to there");
    stage.daemon.completed(id);
    assert_eq!(boot(&socket), Some(WELL));
    stage.daemon.sterna("disk detach a").ok();
    assert!(!socket.exists(), "the socket should be gone");
}

#[test]
fn a_disk_has_one_socket_and_a_socket_one_disk() {
    let Some(stage) = Stage::given(&[]) else { return };
    stage.disk("a", MIB);
    stage.disk("b", MIB);
    let path = |name: &str| stage.here.join(name).display().to_string();
    let attach = |disk: &str, name: &str| {
        stage.daemon.sterna(&format!("disk attach {disk} --vhost-user {}", path(name)))
    };
    attach("a", "one.sock").ok();
    attach("a", "one.sock").ok();
    attach("a", "two.sock").fails_with(&["sterna disk detach a"]);
    attach("b", "one.sock").fails_with(&["disk a is attached to"]);
    fs::write(path("file"), "precious").expect("a file");
    attach("b", "file").fails_with(&["not a socket"]);
    assert_eq!(fs::read(path("file")).expect("it is there"), b"precious");
    stage.daemon.sterna("disk detach b").fails_with(&["attached to no socket"]);
    let ways = stage.daemon.sterna("disk qemu-args a").ok().stdout;
    for part in ["export=a", "vhost-user-blk-pci", "drive=a,id=a", &path("one.sock")] {
        assert!(ways.contains(part), "{part} is not in {ways}");
    }
}
