//! A VM with a real Linux and a real database.
//!
//! `tests/guest` says what it is made of, how it boots, and how it brings up PostgreSQL
//! on three disks, [`DISKS`]. It is made once, which takes minutes and a network, and
//! kept in the build directory.
//!
//! What it shall do is told over its second serial port, a line at a time; the first
//! one has the kernel's words. The database is reached through a port of this host.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::programs;
use crate::scratch::{Scratch, target_dir};
use crate::wait::{seconds, until};

/// The disks that the guest's database is on, by their serial numbers.
pub const DISKS: [&str; 3] = ["data", "index", "wal"];
/// How long a guest may be silent while it boots, or does one thing: an emulated one,
/// on a host that has other work.
const SILENCE: Duration = seconds(120);
/// Its memory: little, so that the disks are asked.
const MEMORY: &str = "512M";

/// Emulated guests slow each other down far more than their share: two at once take several
/// times as long as one after the other.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other guest of this program runs, and keeps others from it.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A VM that runs.
pub struct Guest {
    _turn: MutexGuard<'static, ()>,
    child: Child,
    control: BufReader<UnixStream>,
    console: PathBuf,
    port: u16,
}

impl Guest {
    /// Boots one with these arguments of QEMU for its disks, if all that it takes is
    /// installed; else the test is skipped.
    #[track_caller]
    pub fn given(scratch: &Scratch, disks: &[String]) -> Option<Guest> {
        image().map(|image| Guest::boot(&image, scratch, disks))
    }

    #[track_caller]
    fn boot(image: &Path, scratch: &Scratch, disks: &[String]) -> Guest {
        let turn = turn();
        let (console, socket) = (scratch.path("console.log"), scratch.socket("control"));
        // QEMU comes to us, so that no word of the guest's is lost.
        let listener = UnixListener::bind(&socket).expect("listen for the guest");
        listener.set_nonblocking(true).expect("listen without blocking");
        let port = free_port();
        let mut command = Command::new(image.join("boot"));
        command.arg(MEMORY).args([&socket, &console]).arg(port.to_string()).args(disks);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("start QEMU");
        let control = until("QEMU to come up", seconds(30), || {
            let ended = child.try_wait().expect("ask for QEMU");
            assert!(ended.is_none(), "QEMU ended at its start: {ended:?}");
            listener.accept().ok()
        });
        let control = control.0;
        control.set_nonblocking(false).expect("wait for the guest");
        control.set_read_timeout(Some(SILENCE)).expect("not for ever");
        let control = BufReader::new(control);
        let mut guest = Guest { _turn: turn, child, control, console, port };
        assert_eq!(guest.hear("boot"), "ready");
        guest
    }

    /// Does a line of shell, which must succeed; gives what that said.
    #[track_caller]
    pub fn run(&mut self, line: &str) -> String {
        self.begin(line);
        self.end(line)
    }

    /// Begins with a line of shell.
    #[track_caller]
    pub fn begin(&mut self, line: &str) {
        writeln!(self.control.get_mut(), "{line}").expect("tell the guest");
    }

    /// Waits for the end of a line of shell that was begun.
    #[track_caller]
    pub fn end(&mut self, line: &str) -> String {
        let mut said = String::new();
        loop {
            let word = self.hear(line);
            match word.split_at_checked(1) {
                Some(("|", text)) => said = said + text + "\n",
                Some(("=", "0")) => return said,
                _ => panic!("the guest's `{line}` ended with {word}:\n{said}"),
            }
        }
    }

    /// The next line that the guest says.
    #[track_caller]
    fn hear(&mut self, doing: &str) -> String {
        let mut line = String::new();
        match self.control.read_line(&mut line) {
            Ok(1..) => line.trim_end().to_owned(),
            Ok(0) => panic!("the guest ended while it did `{doing}`"),
            Err(error) => panic!("the guest is silent while it does `{doing}`: {error}"),
        }
    }

    /// The database `shop`, for its owner.
    pub fn uri(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/shop", self.port)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let text = fs::read_to_string(&self.console).unwrap_or_default();
            eprintln!("--- the guest's console:\n{text}\n---");
        }
    }
}

/// Where the guest is, as `tests/guest` says today, if all that it takes is installed;
/// else the test is skipped. A test that cannot have it all the same fails.
#[track_caller]
pub fn image() -> Option<PathBuf> {
    let needs = ["qemu-system-x86_64", "qemu-img", "mmdebstrap", "mkfs.ext4"];
    if !programs::have(&needs) {
        return None;
    }
    let dir = target_dir().join("guest");
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/guest/build");
    let output = Command::new(build).arg(&dir).stdin(Stdio::null()).output();
    let output = output.expect("start tests/guest/build");
    assert!(output.status.success(), "no guest to boot:\n{}", programs::both(&output));
    Some(dir)
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("find a port");
    listener.local_addr().expect("it has one").port()
}
