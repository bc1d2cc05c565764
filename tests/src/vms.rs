//! VMs of a test's own: real QEMU, and no guest system.
//!
//! The guest is a boot sector. It writes a number that grows to one block of its disk,
//! again and again, through the firmware: a busy guest that starts in a second, and whose
//! last write tells which image is the truth. After 16 writes it sleeps until the clock ticks,
//! 18 times a second: without a rest each guest keeps a processor busy, and tests wait for it.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::daemon::send_signal;
use crate::images::write_image;
use crate::programs;
use crate::scratch::Scratch;
use crate::wait::{seconds, until};

/// Adds one to the number at 0x8000, and writes it to the block that the request at
/// 0x7c40 names; for ever.
const CODE: [u8; 30] = [
    0x31, 0xc0, // xor ax, ax
    0x8e, 0xd8, // mov ds, ax
    0xfb, // sti
    0x66, 0xff, 0x06, 0x00, 0x80, // again: inc dword [0x8000]
    0xbe, 0x40, 0x7c, // mov si, 0x7c40
    0xb8, 0x00, 0x43, // mov ax, 0x4300 (write)
    0xb2, 0x80, // mov dl, 0x80 (the first disk)
    0xcd, 0x13, // int 0x13
    0xf6, 0x06, 0x00, 0x80, 0x0f, // test byte [0x8000], 15
    0x75, 0xea, // jnz again
    0xf4, // hlt
    0xeb, 0xe7, // jmp again
];

/// Where the request is in the boot sector.
const REQUEST_AT: u64 = 0x40;

/// One block, from 0x8000, to block 2048.
const REQUEST: [u8; 16] = [16, 0, 1, 0, 0x00, 0x80, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0];

/// Where the number is on the disk.
const NUMBER_AT: u64 = 2048 * 512;

/// Makes a raw disk of `size` bytes, the first `data` of them not zero, that boots such
/// a guest.
#[track_caller]
pub fn write_guest(path: &Path, size: u64, data: u64) {
    write_image(path, size, data);
    let disk = OpenOptions::new().write(true).open(path).expect("open the disk");
    for (bytes, at) in [(&CODE[..], 0), (&REQUEST, REQUEST_AT), (&[0x55, 0xaa], 510)] {
        disk.write_all_at(bytes, at).expect("write the boot sector");
    }
    disk.write_all_at(&[0; 4], NUMBER_AT).expect("write the number");
}

/// The number on a raw disk.
#[track_caller]
pub fn number_on(path: &Path) -> u32 {
    let mut number = [0; 4];
    let disk = std::fs::File::open(path).expect("open the disk");
    disk.read_exact_at(&mut number, NUMBER_AT).expect("read the number");
    u32::from_le_bytes(number)
}

/// The guest writes to this raw image.
#[track_caller]
pub fn is_written(image: &Path) {
    let before = number_on(image);
    until("the guest to write", seconds(30), || {
        (number_on(image) > before).then_some(())
    });
}

/// Two raw images of the guest are the same but for the number that it writes.
#[track_caller]
pub fn same_but_the_number(a: &Path, b: &Path) {
    let [a, b] = [a, b].map(|path| path.display().to_string());
    let (before, after) = (NUMBER_AT.to_string(), (NUMBER_AT + 512).to_string());
    programs::run("cmp", ["-n", &before, &a, &b]);
    programs::run("cmp", ["-i", &after, &a, &b]);
}

/// Has QEMU carry out a command, past whoever else speaks with it.
#[track_caller]
pub fn tell(monitor: &Path, command: &str) {
    ask(monitor, &json!({ "execute": command }));
}

/// The same of a command with arguments; gives what QEMU returns.
#[track_caller]
pub fn ask(monitor: &Path, command: &Value) -> Value {
    // The socket has its name a moment before QEMU listens there.
    let mut qemu =
        until("QEMU to listen", seconds(10), || UnixStream::connect(monitor).ok());
    let answers = BufReader::new(qemu.try_clone().expect("clone a socket"));
    let commands = [json!({ "execute": "qmp_capabilities" }), command.clone()];
    for command in commands {
        qemu.write_all(format!("{command}\n").as_bytes()).expect("tell QEMU");
    }
    let said = answers.lines().map_while(Result::ok);
    let said = said.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let mut returned = said.filter_map(|said| said.get("return").cloned());
    returned.nth(1).expect("QEMU to do it")
}

/// What all VMs are.
const VM: [&str; 9] =
    ["-machine", "q35", "-accel", "tcg", "-m", "64", "-nodefaults", "-display", "none"];

/// The guest's device.
const DEVICE: &str = "virtio-blk-pci,drive=top,id=vda,bootindex=0";

/// A disk that a daemon serves, for `-blockdev`.
fn export(server: &Path, disk: &str) -> String {
    format!(
        "driver=nbd,node-name=top,server.type=unix,server.path={},export={disk},\
         reconnect-delay=300",
        server.display()
    )
}

/// A program that starts a VM as [`Vm::start_on_export`] does, which waits for
/// its guest: `PROGRAM VM HOST SOCKET`. QEMU's process is in `SOCKET.pid` then.
pub fn starter(server: &Path, disk: &str) -> String {
    let qemu = programs::find("qemu-system-x86_64").expect("it is there");
    format!(
        "#!/bin/sh\nexec {} {} -blockdev {} -device {DEVICE} \\\n\
         -qmp unix:\"$3\",server=on,wait=off -incoming defer -daemonize \
         -pidfile \"$3\".pid\n",
        qemu.display(),
        VM.join(" "),
        export(server, disk)
    )
}

/// A VM with one disk, `vda`.
pub struct Vm {
    socket: PathBuf,
    child: Child,
}

impl Vm {
    /// Starts it on an image, with more arguments.
    #[track_caller]
    pub fn start(
        scratch: &Scratch,
        name: &str,
        image: &Path,
        format: &str,
        more: &[&str],
    ) -> Vm {
        let file = format!("driver=file,node-name=low,filename={}", image.display());
        let top = format!("driver={format},node-name=top,file=low");
        Vm::run(scratch, name, &["-blockdev", &file, "-blockdev", &top], more)
    }

    /// Starts it on a disk that a daemon serves, with more arguments.
    #[track_caller]
    pub fn start_on_export(
        scratch: &Scratch,
        name: &str,
        server: &Path,
        disk: &str,
        more: &[&str],
    ) -> Vm {
        let top = export(server, disk);
        Vm::run(scratch, name, &["-blockdev", &top], more)
    }

    /// The same with a client that gives up at once when the server is away.
    #[track_caller]
    pub fn start_without_reconnecting(
        scratch: &Scratch,
        name: &str,
        server: &Path,
        disk: &str,
    ) -> Vm {
        let top = export(server, disk).replace(",reconnect-delay=300", "");
        Vm::run(scratch, name, &["-blockdev", &top], &[])
    }

    #[track_caller]
    fn run(scratch: &Scratch, name: &str, disk: &[&str], more: &[&str]) -> Vm {
        let socket = scratch.socket(&format!("{name}.qmp"));
        let child = programs::command("qemu-system-x86_64")
            .args(VM)
            .args(disk)
            .args(["-device", DEVICE, "-qmp"])
            .arg(format!("unix:{},server=on,wait=off", socket.display()))
            .args(more)
            .stdout(Stdio::null())
            .spawn()
            .expect("start qemu-system-x86_64");
        let vm = Vm { socket, child };
        until("QEMU to listen", seconds(30), || vm.socket.exists().then_some(()));
        vm
    }

    /// Its QMP socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether QEMU has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("ask for QEMU").is_some()
    }

    /// It is gone, as after a crash of QEMU.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// It answers nothing any more.
    pub fn hang(&self) {
        send_signal(&self.child, Signal::STOP);
    }

    /// It goes on where it stopped.
    pub fn go_on(&self) {
        send_signal(&self.child, Signal::CONT);
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.kill();
    }
}
