//! The guest of the experiment: QEMU as the image's own `boot` starts it.
//!
//! The guest does what it is told on a serial port, a line of shell at a time, and says
//! how that ended. Dropping the machine ends QEMU.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sterna_api::ErrorCode;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::plan::Link;
use crate::connect::Failure;
use crate::lab::site::NBD_SOCKET;
use crate::qemu;

/// How long QEMU may take until it has its sockets. It is first found out what guests
/// run under, which may take some of it.
const START: Duration = Duration::from_secs(40);
/// How long a guest may be silent while it boots or does one thing: an emulated one on
/// a machine that has other work. A file system with a large store takes its time.
const SILENCE: Duration = Duration::from_secs(1800);
/// How long it may take to power off.
const END: Duration = Duration::from_secs(60);
/// What the image's directory has.
const PARTS: [&str; 4] = ["boot", "kernel", "initrd", "root.qcow2"];

/// Where a guest's image is.
#[derive(Clone, Debug)]
pub(super) struct Image {
    dir: PathBuf,
}

impl Image {
    /// The image in a directory, if it is whole.
    pub(super) fn in_dir(dir: &Path) -> anyhow::Result<Image> {
        let missing = PARTS.iter().find(|part| !dir.join(part).is_file());
        if let Some(part) = missing {
            return Err(Failure {
                code: ErrorCode::NotFound,
                message: format!("there is no guest in {}: no {part}", dir.display()),
                hint: "make one: tests/guest/build DIR in Sterna's sources".into(),
            }
            .into());
        }
        Ok(Image { dir: dir.to_owned() })
    }
}

/// QEMU's arguments for a disk of a daemon that has its sockets in this directory. The
/// guest knows the disk by its name, the serial number.
fn arguments(link: Link, disk: &str, dir: &Path) -> [String; 4] {
    match link {
        Link::VhostUser => [
            "-chardev".into(),
            qemu::chardev(disk, &socket(dir, disk).display().to_string()),
            "-device".into(),
            format!("vhost-user-blk-pci,chardev={disk}"),
        ],
        Link::Nbd => [
            "-blockdev".into(),
            qemu::blockdev(
                &format!("{disk}-nbd"),
                &qemu::unix_server(&dir.join(NBD_SOCKET).display().to_string()),
                disk,
            ),
            "-device".into(),
            format!("virtio-blk-pci,drive={disk}-nbd,id={disk},serial={disk}"),
        ],
    }
}

/// Where the daemon serves a disk over vhost-user.
pub(super) fn socket(dir: &Path, disk: &str) -> PathBuf {
    dir.join(format!("{disk}.sock"))
}

/// A machine that runs.
pub(super) struct Machine {
    link: Link,
    qmp: PathBuf,
    child: Child,
    control: BufReader<UnixStream>,
    port: u16,
}

impl Machine {
    /// Boots one that has these disks and so much memory. Its own files are in `dir`,
    /// beside the daemon's.
    pub(super) async fn boot(
        image: &Image,
        dir: &Path,
        memory: &str,
        link: Link,
        disks: &[&str],
    ) -> anyhow::Result<Machine> {
        let qmp = dir.join("qmp.sock");
        let socket = dir.join("control.sock");
        // One may be there of a machine that was turned off.
        let _ = std::fs::remove_file(&socket);
        // QEMU comes to us, so that no word of the guest's is lost.
        let listener = UnixListener::bind(&socket).context("listen for the guest")?;
        let port = free_port().await?;
        let mut command = Command::new(image.dir.join("boot"));
        command
            .arg(memory)
            .args([&socket, &dir.join("console.log")])
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C on the terminal is for the experiment.
            .process_group(0)
            .kill_on_drop(true);
        command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", qmp.display()));
        for disk in disks {
            command.args(arguments(link, disk, dir));
        }
        let mut child = command.spawn().context("start the guest")?;
        let (control, _) = tokio::select! {
            came = timeout(START, listener.accept()) => {
                came.context("wait for QEMU")?.context("hear of QEMU")?
            }
            ended = child.wait() => {
                bail!("QEMU ended at its start: {}", ended.context("wait for QEMU")?)
            }
        };
        let control = BufReader::new(control);
        let mut machine = Machine { link, qmp, child, control, port };
        let word = machine.hear("boot").await?;
        ensure!(word == "ready", "the guest should be ready, but says `{word}`");
        Ok(machine)
    }

    /// Does a line of shell; fails if that does. Gives what it said.
    pub(super) async fn run(&mut self, line: &str) -> anyhow::Result<String> {
        let (ended, said) = self.attempt(line).await?;
        ensure!(ended, "the guest's `{line}` failed: {said}");
        Ok(said)
    }

    /// Does a line of shell: whether it ended well, and what it said.
    pub(super) async fn attempt(&mut self, line: &str) -> anyhow::Result<(bool, String)> {
        let text = format!("{line}\n");
        let told = self.control.get_mut().write_all(text.as_bytes()).await;
        told.context("tell the guest")?;
        let mut said = String::new();
        loop {
            let word = self.hear(line).await?;
            match word.split_at_checked(1) {
                Some(("|", text)) => said = said + text + "\n",
                Some(("=", code)) => return Ok((code == "0", said)),
                _ => bail!("the guest's `{line}` said `{word}`"),
            }
        }
    }

    /// The next line that the guest says.
    async fn hear(&mut self, doing: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        let heard = timeout(SILENCE, self.control.read_line(&mut line)).await;
        let count = heard
            .with_context(|| format!("the guest is silent while it does `{doing}`"))?
            .context("listen to the guest")?;
        ensure!(count > 0, "the guest ended while it did `{doing}`");
        Ok(line.trim_end().to_owned())
    }

    /// Powers it off. What it has on its disks must have been given back.
    pub(super) async fn power_off(mut self) -> anyhow::Result<()> {
        let text = b"echo o >/proc/sysrq-trigger\n";
        self.control.get_mut().write_all(text).await.context("tell the guest")?;
        let ended = timeout(END, self.child.wait()).await;
        ended.context("wait for the guest to power off")?.context("wait for QEMU")?;
        Ok(())
    }

    /// How it reaches its disks.
    pub(super) fn link(&self) -> Link {
        self.link
    }

    /// The socket of QEMU's monitor.
    pub(super) fn qmp(&self) -> &Path {
        &self.qmp
    }

    /// QEMU's process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// The database `shop`, for its owner.
    pub(super) fn uri(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/shop", self.port)
    }
}

/// A port that nobody listens on.
async fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("find a port")?;
    Ok(listener.local_addr().context("find a port")?.port())
}
