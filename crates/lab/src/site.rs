//! A daemon of an experiment's own, in a directory of its own.
//!
//! The daemon is a child, the same program as this one: the real thing. It has a
//! process group of its own, so that Ctrl-C on the terminal reaches only the
//! experiment, which then ends everything in order. Dropping the site ends the
//! daemon and removes the directory. If nobody is left to do that (the experiment was
//! killed), the daemon does it by itself (`serve --experiment`).

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use sterna_api::{Client, ClientError, Status};
use tempfile::TempDir;

/// What the name of its directory begins with. The daemon of an experiment that is gone
/// removes only directories whose name begins with `sterna-`.
const PREFIX: &str = "sterna-lab-";

/// Where it serves disks over NBD, in its directory.
pub(crate) const NBD_SOCKET: &str = "nbd.sock";

/// How long the daemon may take until it answers: a loaded machine's worst.
const START: Duration = Duration::from_secs(20);
/// How long it may take to end. Past it, it is killed.
const END: Duration = Duration::from_secs(20);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// How much of its log is shown if it fails.
const LOG_LINES: usize = 5;

/// A daemon, and where it lives.
pub(crate) struct Site {
    dir: TempDir,
    client: Client,
    child: Child,
}

impl Site {
    /// Starts a daemon in a fresh directory and waits until it answers.
    pub(crate) async fn start() -> anyhow::Result<(Site, Status)> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir();
        let dir = dir.context("cannot make a directory for the experiment")?;
        let at = |name: &str| dir.path().join(name);
        let log =
            File::create(at("daemon.log")).context("cannot make the daemon's log")?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(&program)
            .arg("--socket")
            .arg(at("api.sock"))
            .args(["serve", "--state"])
            .arg(at("state"))
            .arg("--nbd-socket")
            .arg(at(NBD_SOCKET))
            .arg("--experiment")
            .arg(dir.path())
            // Closed when this process is gone, and not before.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let client = Client::new(at("api.sock"));
        let mut site = Site { dir, client, child };
        let status = site.ready().await?;
        Ok((site, status))
    }

    async fn ready(&mut self) -> anyhow::Result<Status> {
        let end = Instant::now() + START;
        loop {
            match self.client.status().await {
                Ok(status) => return Ok(status),
                // Its socket is not there yet.
                Err(ClientError::NoDaemon { .. }) if Instant::now() < end => {}
                Err(error) => {
                    return Err(error).context(self.ending("the daemon does not answer"));
                }
            }
            if let Some(status) =
                self.child.try_wait().context("cannot check whether the daemon runs")?
            {
                bail!(self.ending(&format!("the daemon ended at its start ({status})")));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What happened, and how the daemon's log ends.
    fn ending(&self, what: &str) -> String {
        let log = std::fs::read_to_string(self.dir.path().join("daemon.log"));
        let log = log.unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(LOG_LINES).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        format!("{what}; its log ends with: {}", lines.join(" | "))
    }

    /// Its directory. What an experiment puts there goes with it.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The daemon's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The way to it.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let end = Instant::now() + END;
        while Instant::now() < end {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
