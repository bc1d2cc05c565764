//! The program that starts VMs on a host.
//!
//! It is called as `PROGRAM VM HOST SOCKET`, by no shell, and is to start a QEMU with all
//! that the VM was started with, `-incoming defer`, and a QMP socket at SOCKET. It
//! ends when that is done; QEMU goes on by itself. What it says on stderr is shown if it
//! fails. Nothing else is known of it, and nothing is guessed: QEMU must answer at SOCKET.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_os::program;
use sterna_state::TransferRecord;
use tokio::process::Command;

use crate::Machines;

/// How long it may take: what starts a QEMU through others, on a host that is busy.
const END_WITHIN: Duration = Duration::from_secs(30);

impl Machines {
    /// The program of a host that a VM is to go to.
    pub(super) fn program_of(&self, host: &str, vm: &str) -> Result<PathBuf> {
        let registry = self.ledger.read()?;
        let known = registry.hosts.into_iter().find(|one| one.name == host);
        known.and_then(|one| one.program).ok_or_else(|| {
            let message = format!("host {host} has no program that starts VMs");
            let hint = format!(
                "set a program: `sterna host program {host} PATH`; or start a QEMU that \
                 waits for the VM (`-incoming defer`), and give its socket: `sterna drs \
                 apply {vm} --qmp PATH`"
            );
            Error::invalid(message).hint(hint)
        })
    }

    /// Has a program start the QEMU of a VM migration; says what is wrong, if it does not.
    pub(super) async fn run_program(
        &self,
        path: &Path,
        record: &TransferRecord,
    ) -> Result<(), String> {
        let scratch = self.storage.places.state.join(format!("transfer-{}", record.id));
        let mut command = Command::new(path);
        command.args([&record.vm, &record.design.to]).arg(&record.design.destination);
        let outcome = program::run(&mut command, &scratch, END_WITHIN, pending()).await;
        outcome.map_err(|why| format!("{} {why}", path.display()))
    }
}
