//! The program that starts machines on a host.
//!
//! It is called as `PROGRAM VM HOST SOCKET`, by no shell, and is to start a QEMU with all
//! that the machine was started with, `-incoming defer`, and a QMP socket at SOCKET. It
//! ends when that is done; QEMU goes on by itself. What it says on stderr is shown if it
//! fails. Nothing else is known of it, and nothing is guessed: QEMU must answer at SOCKET.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::daemon::Daemon;
use crate::error::{DaemonError, Result};
use crate::store::TransferRecord;

/// How long it may take: what starts a QEMU through others, on a host that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// So much of what it has said is shown.
const SAID: usize = 200;

impl Daemon {
    /// The program of a host that a machine is to go to.
    pub(super) fn program_of(&self, host: &str, vm: &str) -> Result<PathBuf> {
        let roll = self.drs.ledger.read()?;
        let known = roll.hosts.into_iter().find(|one| one.name == host);
        known.and_then(|one| one.program).ok_or_else(|| {
            let message = format!("host {host} has no program that starts machines");
            let hint = format!(
                "name one: `sterna host program {host} PATH`; or start a QEMU that waits \
                 (`-incoming defer`), and name it: `sterna drs apply {vm} --qmp PATH`"
            );
            DaemonError::invalid(message).hint(hint)
        })
    }

    /// Has a program start the QEMU of a transfer; says what is wrong, if it does not.
    pub(super) async fn run_program(
        &self,
        program: &Path,
        record: &TransferRecord,
    ) -> Result<(), String> {
        let said = self.places.state.join(format!("transfer-{}.log", record.id));
        let outcome = run(program, record, &said).await;
        // It is of no use to anybody later.
        let _ = fs::remove_file(&said);
        outcome.map_err(|why| format!("{} {why}", program.display()))
    }
}

async fn run(program: &Path, record: &TransferRecord, said: &Path) -> Result<(), String> {
    let file = File::create(said).map_err(|error| format!("has no log: {error}"))?;
    let started = Command::new(program)
        .args([&record.vm, &record.design.to])
        .arg(&record.design.destination)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(file))
        .kill_on_drop(true)
        .spawn();
    let mut child = started.map_err(|error| format!("does not start: {error}"))?;
    match timeout(PATIENCE, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("ended with {status}{}", last_words(said))),
        Ok(Err(error)) => Err(format!("cannot be waited for: {error}")),
        Err(_) => Err(format!("has not ended within {PATIENCE:?}{}", last_words(said))),
    }
}

/// The last line that it has said.
fn last_words(said: &Path) -> String {
    let text = fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or(String::new(), |line| {
        format!(": {}", line.chars().take(SAID).collect::<String>())
    })
}
