//! A QEMU of a test's own, with disks and without a guest system.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sterna_qemu::qmp::Monitor;
use tempfile::TempDir;

/// How long QEMU may take to come up on a busy machine.
const START: Duration = Duration::from_secs(30);

/// A machine that is there but has not been started.
pub(crate) struct Machine {
    dir: TempDir,
    child: Child,
}

impl Machine {
    /// A machine with a raw disk `vda` of so many bytes, none of them zero; nothing, said so,
    /// where there is no QEMU.
    pub(crate) fn start(size: u64) -> Option<Machine> {
        let dir = tempfile::tempdir().unwrap();
        let bytes = usize::try_from(size).unwrap();
        std::fs::write(dir.path().join("a.raw"), vec![7; bytes]).unwrap();
        let child = Command::new("qemu-system-x86_64")
            .args(["-machine", "q35", "-accel", "tcg", "-m", "64", "-S", "-nodefaults"])
            .args(["-display", "none", "-name", "machine"])
            .arg("-qmp")
            .arg(format!(
                "unix:{},server=on,wait=off",
                dir.path().join("qmp.sock").display()
            ))
            .args(["-blockdev", "driver=file,node-name=low,filename=a.raw"])
            .args(["-blockdev", "driver=raw,node-name=top,file=low"])
            .args(["-device", "virtio-blk-pci,drive=top,id=vda"])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .spawn();
        match child {
            Ok(child) => Some(Machine { dir, child }),
            Err(error) => {
                eprintln!("skipped: qemu-system-x86_64 does not start: {error}");
                None
            }
        }
    }

    /// Where its monitor listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("qmp.sock")
    }

    /// A file of the test's own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Connects, as soon as it listens.
    pub(crate) async fn monitor(&self) -> Monitor {
        connect(&self.socket()).await
    }

    /// Its process.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn connect(socket: &Path) -> Monitor {
    let deadline = Instant::now() + START;
    loop {
        match Monitor::connect(socket).await {
            Ok(monitor) => return monitor,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
