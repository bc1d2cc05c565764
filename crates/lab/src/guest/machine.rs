//! The guest of the experiment: QEMU as the image's own `boot` starts it.
//!
//! The guest does what it is told on a serial port, a line of shell at a time, and says
//! how that ended. One that ends by itself is told with its last words: QEMU's, or those
//! on its console. Dropping the machine ends QEMU.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_qemu::arguments as qemu;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::Link;
use super::monitor::Monitor;
use crate::site::NBD_SOCKET;

/// How long QEMU may take until it has its sockets. It is first found out what guests
/// run under, which may take some of it.
const START: Duration = Duration::from_secs(40);
/// How long it may take to boot: an emulated one does in six seconds, and in a minute where
/// the machine has other work.
const BOOT: Duration = Duration::from_secs(300);
/// How long a guest may be silent while it does one thing, on a machine that has other
/// work. A file system with a large store takes its time.
const SILENCE: Duration = Duration::from_secs(1800);
/// How long it may take to power off.
const END: Duration = Duration::from_secs(60);
/// How many lines are somebody's last words: a kernel says in some what went wrong, and
/// then in one that it gives up.
const LAST_LINES: usize = 3;
/// What the image's directory has.
const PARTS: [&str; 4] = ["boot", "kernel", "initrd", "root.qcow2"];

/// Where a guest's image is.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    dir: PathBuf,
}

impl Image {
    /// The image in a directory, if it is whole.
    pub(crate) fn in_dir(dir: &Path) -> anyhow::Result<Image> {
        let missing = PARTS.iter().find(|part| !dir.join(part).is_file());
        if let Some(part) = missing {
            return Err(Failure {
                code: ErrorCode::NotFound,
                message: format!("{} has no guest: {part} is missing", dir.display()),
                hint: "make a guest: tests/guest/build DIR in Sterna's sources".into(),
            }
            .into());
        }
        Ok(Image { dir: dir.to_owned() })
    }

    /// A machine with it says nothing any more, after these last words.
    fn is_silent(&self, when: &str, words: Option<String>) -> Failure {
        Failure {
            code: ErrorCode::Unavailable,
            message: match words {
                Some(words) => format!("the guest does not answer {when}: {words}"),
                None => {
                    format!("the guest does not answer {when}; it has not said a word")
                }
            },
            hint: "see whether the machine is busy with something else, and try again"
                .into(),
        }
    }

    /// A machine with it has ended before its time, after these last words.
    fn ended(&self, when: &str, words: Option<String>) -> Failure {
        let dir = self.dir.display();
        Failure {
            code: ErrorCode::Unavailable,
            message: match words {
                Some(words) => format!("the guest ended {when}: {words}"),
                None => format!("the guest ended {when}, without a message"),
            },
            hint: format!(
                "if this happens again, the guest's image in {dir} may be broken; make \
                 the guest anew, in Sterna's sources: rm {dir}/key; tests/guest/build \
                 {dir}"
            ),
        }
    }
}

/// The last lines of what somebody has said; nothing if that was nothing.
fn last_words(said: &str) -> Option<String> {
    let lines = said.split(['\n', '\r']).map(|line| line.replace(char::is_control, ""));
    let lines: Vec<String> = lines
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    (!last.is_empty()).then(|| last.join("; "))
}

/// The last words in a machine's directory: QEMU's own, if it had any.
fn last_words_in(dir: &Path) -> Option<String> {
    ["qemu.log", "console.log"].iter().find_map(|file| {
        // What cannot be read has nothing to tell.
        let said = std::fs::read(dir.join(file)).unwrap_or_default();
        last_words(&String::from_utf8_lossy(&said))
    })
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
pub(crate) fn socket(dir: &Path, disk: &str) -> PathBuf {
    dir.join(format!("{disk}.sock"))
}

/// The memory of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// How much it is, as QEMU takes it.
    pub(crate) size: String,
    /// The control group in which QEMU runs, with memory that is QEMU's alone; without one, the
    /// memory is shared, for vhost-user.
    pub(crate) group: Option<PathBuf>,
}

/// Enters a control group, and becomes the program after it.
const ENTER: &str = r#"echo $$ >"$0/cgroup.procs" && exec "$@""#;

impl Memory {
    /// What starts QEMU. However the experiment ends, its guest ends with it.
    fn command(&self) -> Command {
        const TIED: [&str; 3] = ["--pdeathsig", "KILL", "--"];
        let Some(group) = &self.group else {
            let mut command = Command::new("setpriv");
            command.args(TIED);
            return command;
        };
        let mut command = Command::new("sh");
        command.args(["-c", ENTER]).arg(group).arg("setpriv").args(TIED);
        command
    }

    /// QEMU's arguments for memory of its own.
    fn arguments(&self) -> Vec<String> {
        let own = || {
            let memory = format!("memory-backend-ram,id=own,size={}", self.size);
            ["-object", &memory, "-machine", "memory-backend=own"].map(str::to_owned)
        };
        self.group.iter().flat_map(|_| own()).collect()
    }
}

/// A machine that runs.
pub(crate) struct Machine {
    image: Image,
    dir: PathBuf,
    link: Link,
    qmp: PathBuf,
    own: PathBuf,
    child: Child,
    control: BufReader<UnixStream>,
    port: u16,
}

impl Machine {
    /// Boots one that has these disks and this memory. Its own files are in `dir`,
    /// beside the daemon's.
    pub(crate) async fn boot(
        image: &Image,
        dir: &Path,
        memory: &Memory,
        link: Link,
        disks: &[&str],
    ) -> anyhow::Result<Machine> {
        let (qmp, own) = (dir.join("qmp.sock"), dir.join("own-qmp.sock"));
        let socket = dir.join("control.sock");
        // One may be there of a machine that was turned off.
        let _ = std::fs::remove_file(&socket);
        // QEMU comes to us, so that no word of the guest's is lost.
        let listener =
            UnixListener::bind(&socket).context("cannot listen for the guest")?;
        let port = free_port().await?;
        let log = File::create(dir.join("qemu.log")).context("cannot make QEMU's log")?;
        let mut command = memory.command();
        command
            .arg(image.dir.join("boot"))
            .arg(&memory.size)
            .args([&socket, &dir.join("console.log")])
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C on the terminal is for the experiment.
            .process_group(0)
            .kill_on_drop(true);
        for monitor in [&qmp, &own] {
            let socket = format!("unix:{},server=on,wait=off", monitor.display());
            command.arg("-qmp").arg(socket);
        }
        command.args(memory.arguments());
        for disk in disks {
            command.args(arguments(link, disk, dir));
        }
        let mut child = command.spawn().context("cannot start the guest")?;
        let (control, _) = tokio::select! {
            came = timeout(START, listener.accept()) => {
                came.context("QEMU does not come up")?.context("cannot hear of QEMU")?
            }
            ended = child.wait() => {
                ended.context("cannot wait for QEMU")?;
                return Err(image.ended("at its start", last_words_in(dir)).into());
            }
        };
        let control = BufReader::new(control);
        let (image, dir) = (image.clone(), dir.to_owned());
        let mut machine = Machine { image, dir, link, qmp, own, child, control, port };
        let word = machine.hear("boot", BOOT).await?;
        ensure!(word == "ready", "the guest should be ready, but says `{word}`");
        Ok(machine)
    }

    /// Does a line of shell; fails if that does. Gives what it said.
    pub(crate) async fn run(&mut self, line: &str) -> anyhow::Result<String> {
        let (ended, said) = self.attempt(line).await?;
        ensure!(ended, "the guest's `{line}` failed: {said}");
        Ok(said)
    }

    /// Does a line of shell: whether it ended well, and what it said.
    pub(crate) async fn attempt(&mut self, line: &str) -> anyhow::Result<(bool, String)> {
        let text = format!("{line}\n");
        let told = self.control.get_mut().write_all(text.as_bytes()).await;
        told.context("cannot send a command to the guest")?;
        let mut said = String::new();
        loop {
            let word = self.hear(line, SILENCE).await?;
            match word.split_at_checked(1) {
                Some(("|", text)) => said = said + text + "\n",
                Some(("=", code)) => return Ok((code == "0", said)),
                _ => bail!("the guest's `{line}` said `{word}`"),
            }
        }
    }

    /// The next line that the guest says.
    async fn hear(&mut self, doing: &str, at_most: Duration) -> anyhow::Result<String> {
        let mut line = String::new();
        let Ok(heard) = timeout(at_most, self.control.read_line(&mut line)).await else {
            let when = format!("during `{doing}` for {} s", at_most.as_secs());
            return Err(self.image.is_silent(&when, last_words_in(&self.dir)).into());
        };
        let count = heard.context("cannot listen to the guest")?;
        if count == 0 {
            let when = format!("during `{doing}`");
            return Err(self.image.ended(&when, last_words_in(&self.dir)).into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Powers it off. What it has on its disks must have been given back.
    pub(crate) async fn power_off(mut self) -> anyhow::Result<()> {
        let text = b"echo o >/proc/sysrq-trigger\n";
        self.control
            .get_mut()
            .write_all(text)
            .await
            .context("cannot send a command to the guest")?;
        let ended = timeout(END, self.child.wait()).await;
        ended.context("the guest does not power off")?.context("cannot wait for QEMU")?;
        Ok(())
    }

    /// How it reaches its disks.
    pub(crate) fn link(&self) -> Link {
        self.link
    }

    /// The socket of QEMU's monitor.
    pub(crate) fn qmp(&self) -> &Path {
        &self.qmp
    }

    /// A monitor of the experiment's own.
    pub(crate) async fn monitor(&self) -> anyhow::Result<Monitor> {
        Monitor::connect(&self.own).await
    }

    /// QEMU's process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// The database `shop`, for its owner.
    pub(crate) fn uri(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/shop", self.port)
    }
}

/// A port that nobody listens on.
async fn free_port() -> anyhow::Result<u16> {
    let listener =
        TcpListener::bind("127.0.0.1:0").await.context("cannot find a port")?;
    Ok(listener.local_addr().context("cannot find a port")?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_ends_is_told_with_its_last_words_and_how_to_make_another() {
        let console = "\x1b[0mLinux\r\nALERT! LABEL=root does not exist.\r\n\r\n\
                       Kernel panic - not syncing\r\nRebooting\r\n";
        let words = last_words(console);
        let image = Image { dir: "/home/me/guest".into() };
        let failure = image.ended("during `boot`", words);
        assert_eq!(
            failure.message,
            "the guest ended during `boot`: ALERT! LABEL=root does not exist.; \
             Kernel panic - not syncing; Rebooting"
        );
        assert!(failure.hint.contains("tests/guest/build /home/me/guest"), "{failure:?}");
        assert_eq!(last_words(" \r\n\n"), None);
    }
}
