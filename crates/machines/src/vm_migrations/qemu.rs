//! One of the two QEMUs of a VM migration.
//!
//! A connection that ends is no sign that QEMU has: it is connected to anew, and has ended
//! only if nobody listens, or nobody has greeted for a while ([`BACK`]). What it was told
//! right before is then in doubt ([`QmpError::Broken`]).
//!
//! Where its process is known, another one at its socket is not it, whatever that says of
//! itself: it has ended, or has lost its socket's name and cannot be asked any more.

use std::sync::Arc;
use std::time::Duration;

use sterna_qemu::qmp::QmpError;
use sterna_qemu::{Direct, Process, QemuError, Run, VmHandle};
use sterna_state::ReceiverProcess;
use tokio::time::{Instant, sleep};

use crate::link::Link;

/// How long it may take to end if it was told to.
const GOODBYE: Duration = Duration::from_secs(2);

/// For how long it is connected to anew while each connection ends at once: a QEMU that is
/// about to end does so, and somebody between it and us may.
const BACK: Duration = Duration::from_secs(1);

/// How often it is looked whether it has ended, or is back.
const LOOK: Duration = Duration::from_millis(20);

/// QEMU itself, behind a VM at a QMP socket.
pub(super) fn direct(vm: &VmHandle) -> &Direct {
    vm.direct().expect("only QMP sockets are asked for here")
}

/// A process, as the state keeps it.
pub(super) fn remembered(process: Process) -> ReceiverProcess {
    let Process { pid, started } = process;
    ReceiverProcess { pid, started }
}

/// The process that the state keeps.
pub(super) fn process(receiver: ReceiverProcess) -> Process {
    let ReceiverProcess { pid, started } = receiver;
    Process { pid, started }
}

/// One of the two QEMUs of a VM migration. Its connection stays while this does.
#[derive(Debug)]
pub(super) struct Qemu {
    link: Arc<Link>,
    open: Option<Arc<VmHandle>>,
    /// Its process, once that is known.
    process: Option<Process>,
}

impl Qemu {
    pub(super) fn new(link: Arc<Link>, process: Option<Process>) -> Qemu {
        Qemu { link, open: None, process }
    }

    /// From now on it is this one, if its process can be seen.
    pub(super) async fn keep(&mut self) -> Result<Option<Process>, QemuError> {
        self.process = self.ask(async |qemu| qemu.process().await).await?;
        Ok(self.process)
    }

    /// It, connected.
    pub(super) async fn vm(&mut self) -> Result<Arc<VmHandle>, QemuError> {
        let deadline = Instant::now() + BACK;
        let vm = loop {
            match self.link.vm().await {
                Err(error) if is_cut(&error) && Instant::now() < deadline => {
                    sleep(LOOK).await;
                }
                found => break found?,
            }
        };
        is_it(self.process, vm.listener())?;
        self.open = Some(vm.clone());
        Ok(vm)
    }

    /// What it answers.
    pub(super) async fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&Direct) -> Result<T, QmpError>,
    ) -> Result<T, QemuError> {
        let vm = self.vm().await?;
        match question(direct(&vm)).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.meaning(error.into()).await),
        }
    }

    /// How it goes with it.
    pub(super) async fn run(&mut self) -> Result<Run, QemuError> {
        let vm = self.vm().await?;
        match vm.run().await {
            Ok(run) => Ok(run),
            Err(error) => Err(self.meaning(error).await),
        }
    }

    /// What it means that a question came to nothing: the end of a connection alone is not
    /// QEMU's.
    pub(super) async fn meaning(&mut self, error: QemuError) -> QemuError {
        if !is_cut(&error) {
            return error;
        }
        match self.vm().await {
            Ok(_) => QmpError::Broken.into(),
            Err(now) if now.is_gone() => error,
            Err(now) => now,
        }
    }

    /// Has it end, and waits for that; says whether it has.
    pub(super) async fn quit(&mut self) -> bool {
        match self.ask(async |qemu| qemu.quit().await).await {
            Err(error) if error.is_gone() => return true,
            Err(_) => return false,
            Ok(()) => {}
        }
        let deadline = Instant::now() + GOODBYE;
        while Instant::now() < deadline {
            match self.vm().await {
                Err(error) if error.is_gone() => return true,
                _ => sleep(LOOK).await,
            }
        }
        false
    }
}

/// Refuses another one than the one that is known.
fn is_it(known: Option<Process>, found: Option<Process>) -> Result<(), QemuError> {
    match known {
        Some(process) if found != known => {
            Err(QmpError::Another { is_there: process.is_there() }.into())
        }
        _ => Ok(()),
    }
}

/// Whether a connection has ended, which is all that this says.
fn is_cut(error: &QemuError) -> bool {
    matches!(error, QemuError::Qmp(QmpError::Gone))
}
