//! libvirt, by way of `virsh`.
//!
//! A call is a process. It costs 20 ms and spares us libvirt's C library, and `virsh`
//! speaks with every version of libvirt that it comes with. What it prints for people is
//! not read: `domain` reads the VM's XML, `figures` what `domstats` and `blockjob --raw`
//! print, which are `key=value` lines. `network` has the XML that we write.

mod domain;
mod error;
mod figures;
mod network;

use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

pub use domain::{Domain, DomainDisk, MirrorElement};
pub use error::VirshError;
pub use figures::{BlockFigures, JobFigures};
pub(crate) use network::{nbd_disk, probe};

use crate::qmp::ANSWER_WITHIN;

/// How long libvirt may take to be started anew: twice what it takes. Who asks has others
/// to ask, within seconds.
const ANEW: Duration = Duration::from_secs(2);

/// How long after a connection that was refused the next one is tried.
const AGAIN: Duration = Duration::from_millis(250);

/// What is done to a program before it is started.
static PREPARE: OnceLock<fn(&mut std::process::Command)> = OnceLock::new();

/// Has this done to each program before it is started, from now on: whoever has changed its
/// own limits gives its programs those that they expect. Only the first time counts.
pub fn prepare_programs(prepare: fn(&mut std::process::Command)) {
    let _ = PREPARE.set(prepare);
}

/// One libvirt.
#[derive(Clone, Debug)]
pub struct Virsh {
    uri: String,
}

impl Virsh {
    /// The libvirt at this URI.
    pub fn at(uri: &str) -> Virsh {
        Virsh { uri: uri.into() }
    }

    /// The names of all its VMs.
    pub async fn names(&self) -> Result<Vec<String>, VirshError> {
        let list = self.run(&["list", "--all", "--name"]).await?;
        Ok(list
            .lines()
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .map(Into::into)
            .collect())
    }

    /// Runs one command and gives what it printed.
    pub async fn run(&self, args: &[&str]) -> Result<String, VirshError> {
        self.run_with(args, String::new(), ANSWER_WITHIN).await
    }

    /// Runs one command that reads `input`, and gives what it printed. A libvirt that
    /// nobody can connect to may be in the middle of being started anew: it is tried again
    /// for [`ANEW`].
    pub async fn run_with(
        &self,
        args: &[&str],
        input: String,
        patience: Duration,
    ) -> Result<String, VirshError> {
        let (began, until) = (Instant::now(), Instant::now() + ANEW.min(patience));
        loop {
            let left = patience.saturating_sub(began.elapsed());
            match self.run_once(args, input.clone(), left).await {
                Err(error) if error.is_away() && Instant::now() < until => {
                    sleep(AGAIN).await;
                }
                answer => return answer,
            }
        }
    }

    async fn run_once(
        &self,
        args: &[&str],
        input: String,
        patience: Duration,
    ) -> Result<String, VirshError> {
        let command = || args.join(" ");
        let mut program = Command::new("virsh");
        if let Some(prepare) = PREPARE.get() {
            prepare(program.as_std_mut());
        }
        let started = program
            .args(["--quiet", "--connect", &self.uri])
            .args(args)
            // Messages are compared; they must not be translated.
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut virsh =
            started.map_err(|error| VirshError::NoVirsh(error.to_string()))?;
        if let Some(mut stdin) = virsh.stdin.take() {
            // A few hundred bytes, which the pipe takes; a program that has ended says
            // why.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let silent = |_| VirshError::Silent { command: command(), after: patience };
        let output = timeout(patience, virsh.wait_with_output()).await.map_err(silent)?;
        let output = output.map_err(|error| VirshError::NoVirsh(error.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().map(|line| line.trim_start_matches("error: ").trim());
        let said: Vec<&str> = said.filter(|line| !line.is_empty()).collect();
        Err(VirshError::Refused { command: command(), said: said.join("; ") })
    }

    /// A VM as libvirt has it now.
    pub async fn domain(&self, name: &str) -> Result<Domain, VirshError> {
        let args = ["dumpxml", name];
        let text = self.run(&args).await?;
        text.parse().map_err(|error: roxmltree::Error| VirshError::NotUnderstood {
            command: args.join(" "),
            reason: error.to_string(),
        })
    }

    /// How libvirt would start a VM the next time.
    pub async fn kept(&self, name: &str) -> Result<Domain, VirshError> {
        let args = ["dumpxml", "--inactive", name];
        let text = self.run(&args).await?;
        text.parse().map_err(|error: roxmltree::Error| VirshError::NotUnderstood {
            command: args.join(" "),
            reason: error.to_string(),
        })
    }

    /// What a VM's disks did so far.
    pub async fn figures(&self, name: &str) -> Result<Vec<BlockFigures>, VirshError> {
        Ok(BlockFigures::parse(&self.run(&["domstats", "--block", name]).await?))
    }

    /// What a disk's job does; nothing if it has none.
    pub async fn job(
        &self,
        name: &str,
        device: &str,
    ) -> Result<Option<JobFigures>, VirshError> {
        let text = self.run(&["blockjob", name, device, "--info", "--raw"]).await?;
        Ok(JobFigures::parse(&text))
    }
}
