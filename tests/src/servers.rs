//! Storage servers from elsewhere, which can be made to fail.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::Signal;

use crate::daemon::send_signal;
use crate::images::write_image;
use crate::programs;
use crate::scratch::Scratch;
use crate::wait::{seconds, until};

/// An nbdkit on a file, behind filters, reachable at a unix socket.
pub struct Nbdkit {
    socket: PathBuf,
    file: PathBuf,
    log: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Nbdkit {
    /// Serves a fresh file of `size` bytes, with these filters and their settings
    /// (`--filter=error error=EIO …`).
    #[track_caller]
    pub fn on_new_file(
        scratch: &Scratch,
        name: &str,
        size: u64,
        filters: &[&str],
    ) -> Nbdkit {
        let file = scratch.path(&format!("{name}.raw"));
        write_image(&file, size, 0);
        Nbdkit::on_file(scratch, name, &file, filters)
    }

    /// Serves a file that is there.
    #[track_caller]
    pub fn on_file(
        scratch: &Scratch,
        name: &str,
        file: &Path,
        filters: &[&str],
    ) -> Nbdkit {
        let serves = ["file".to_owned(), format!("file={}", file.display())];
        Nbdkit::start(scratch, name, file, filters, &serves)
    }

    /// Passes on the export `disk` of the server at a socket.
    #[track_caller]
    pub fn passing_on(
        scratch: &Scratch,
        name: &str,
        server: &Path,
        disk: &str,
    ) -> Nbdkit {
        let socket = format!("socket={}", server.display());
        let serves = ["nbd".to_owned(), socket, format!("export={disk}")];
        Nbdkit::start(scratch, name, server, &[], &serves)
    }

    #[track_caller]
    fn start(
        scratch: &Scratch,
        name: &str,
        file: &Path,
        filters: &[&str],
        serves: &[String],
    ) -> Nbdkit {
        let socket = scratch.socket(&format!("{name}.sock"));
        let file = file.to_path_buf();
        let (filters, settings): (Vec<&str>, Vec<&str>) =
            filters.iter().partition(|word| word.starts_with("--"));
        let mut arguments: Vec<String> =
            vec!["--foreground".into(), "--threads=16".into(), "--unix".into()];
        arguments.push(socket.display().to_string());
        arguments.extend(filters.into_iter().map(str::to_owned));
        arguments.extend(serves.iter().cloned());
        arguments.extend(settings.into_iter().map(str::to_owned));
        let log = scratch.path(&format!("{name}.log"));
        let mut server = Nbdkit { socket, file, log, arguments, child: None };
        server.restart();
        server
    }

    /// Its location, as a datastore.
    pub fn location(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The file that it serves.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// It is gone, without a goodbye.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("nbdkit runs");
        child.kill().expect("kill nbdkit");
        child.wait().expect("wait for nbdkit");
    }

    /// It comes (back).
    #[track_caller]
    pub fn restart(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        // Most of what it says is about the errors that it was told to make.
        let log = File::create(&self.log).expect("make nbdkit's log");
        let mut child = programs::command("nbdkit")
            .args(&self.arguments)
            .stderr(log)
            .spawn()
            .expect("start nbdkit");
        until("nbdkit to listen", seconds(10), || {
            if child.try_wait().expect("ask for nbdkit").is_some() {
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                panic!("nbdkit ended: {said}");
            }
            // Its socket has a name before anybody listens there.
            UnixStream::connect(&self.socket).ok()
        });
        self.child = Some(child);
    }

    /// It answers nothing any more, and keeps its connections.
    pub fn hang(&self) {
        send_signal(self.child.as_ref().expect("nbdkit runs"), Signal::STOP);
    }

    /// It goes on where it stopped.
    pub fn go_on(&self) {
        send_signal(self.child.as_ref().expect("nbdkit runs"), Signal::CONT);
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A file system in user space that shows a directory, and can be made to hang.
pub struct Bindfs {
    mount: PathBuf,
    child: Child,
}

impl Bindfs {
    /// Mounts a fresh directory at another one. Needs bindfs, and root.
    #[track_caller]
    pub fn new(scratch: &Scratch, name: &str) -> Bindfs {
        let from = scratch.dir(&format!("{name}.behind"));
        Bindfs::over(&from, scratch, name)
    }

    /// Mounts a directory that is there at a fresh one, too.
    #[track_caller]
    pub fn over(from: &Path, scratch: &Scratch, name: &str) -> Bindfs {
        let mount = scratch.dir(name);
        let before = file_system(&mount);
        let child = programs::command("bindfs")
            .args(["-f".as_ref(), from.as_os_str(), mount.as_os_str()])
            .spawn()
            .expect("start bindfs");
        let bindfs = Bindfs { mount, child };
        until("bindfs to be mounted", seconds(10), || {
            (file_system(&bindfs.mount) != before).then_some(())
        });
        bindfs
    }

    /// Where it is mounted.
    pub fn dir(&self) -> &Path {
        &self.mount
    }

    /// It answers nothing any more: whoever touches it waits.
    pub fn hang(&self) {
        send_signal(&self.child, Signal::STOP);
    }

    /// It goes on where it stopped.
    pub fn go_on(&self) {
        send_signal(&self.child, Signal::CONT);
    }
}

/// The number of the file system at a path.
fn file_system(path: &Path) -> u64 {
    let metadata = std::fs::metadata(path).expect("ask for a directory");
    std::os::unix::fs::MetadataExt::dev(&metadata)
}

impl Drop for Bindfs {
    fn drop(&mut self) {
        self.go_on();
        let mount = self.mount.as_os_str();
        let _ = programs::attempt("umount", ["--lazy".as_ref(), mount]);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// QEMU as a client in the middle: `qemu-storage-daemon` opens our disk with
/// its NBD driver and `reconnect-delay`, as a VM does, and offers
/// it to a client of ours.
pub struct QemuClient {
    socket: PathBuf,
    child: Child,
}

impl QemuClient {
    /// Puts QEMU between `socket` and the disk at `server`.
    #[track_caller]
    pub fn start(socket: &Path, server: &Path, disk: &str) -> QemuClient {
        let blockdev = format!(
            "driver=nbd,node-name=disk,server.type=unix,server.path={},export={disk},\
             reconnect-delay=120",
            server.display()
        );
        let child = programs::command("qemu-storage-daemon")
            .args(["--blockdev", &blockdev, "--nbd-server"])
            .arg(format!("addr.type=unix,addr.path={}", socket.display()))
            .args(["--export", "type=nbd,id=e,node-name=disk,name=disk,writable=on"])
            .spawn()
            .expect("start qemu-storage-daemon");
        let client = QemuClient { socket: socket.into(), child };
        until("qemu-storage-daemon to listen", seconds(10), || {
            client.socket.exists().then_some(())
        });
        client
    }

    /// Where the disk is offered.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///disk?socket={}", self.socket.display())
    }
}

impl Drop for QemuClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
