//! One of the two QEMUs of a transfer.

use std::sync::Arc;
use std::time::Duration;

use sterna_qemu::qmp::QmpError;
use sterna_qemu::{Direct, Machine, QemuError};
use tokio::time::{Instant, sleep};

use crate::vms::Link;

/// How long it may take to end if it was told to.
const GOODBYE: Duration = Duration::from_secs(2);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// QEMU itself, behind a machine at a QMP socket.
pub(super) fn direct(machine: &Machine) -> &Direct {
    machine.direct().expect("only QMP sockets are asked for here")
}

/// One of them. Its connection stays while this does.
#[derive(Debug)]
pub(super) struct Qemu {
    link: Arc<Link>,
    open: Option<Arc<Machine>>,
}

impl Qemu {
    pub(super) fn new(link: Arc<Link>) -> Qemu {
        Qemu { link, open: None }
    }

    /// It, connected.
    pub(super) async fn machine(&mut self) -> Result<Arc<Machine>, QemuError> {
        let machine = self.link.machine().await?;
        self.open = Some(machine.clone());
        Ok(machine)
    }

    /// What it answers.
    pub(super) async fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&Direct) -> Result<T, QmpError>,
    ) -> Result<T, QemuError> {
        let machine = self.machine().await?;
        Ok(question(direct(&machine)).await?)
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
            match self.machine().await {
                Err(error) if error.is_gone() => return true,
                _ => sleep(LOOK).await,
            }
        }
        false
    }
}
