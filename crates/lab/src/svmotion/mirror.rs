//! A move by QEMU's own mirror, unguarded: what there is to compare with.
//!
//! The guest's disk is an export of the daemon's, and so is the destination. QEMU copies
//! from one to the other as fast as it can, switches over by itself, and forgets the
//! source.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use sterna_qemu::{Copy, CopyState, Export, Place, Reach, VmHandle};
use tokio::time::sleep;

/// How often it is looked at: its time is to be known as well as the daemon knows that of
/// a migration.
const LOOK: Duration = Duration::from_millis(50);

/// No limit, in QEMU's words.
const UNLIMITED: u64 = 0;

/// A mirror under way.
pub(super) struct Mirror {
    vm: VmHandle,
    copy: Copy,
    /// Whether it was told to switch over.
    told: bool,
}

impl Mirror {
    /// Begins to copy a disk to an export of the same size.
    pub(super) async fn begin(
        qmp: &Path,
        disk: &str,
        to: Export,
    ) -> anyhow::Result<Mirror> {
        let vm = VmHandle::reach(&Reach::Qmp(qmp.to_owned())).await;
        let vm = vm.context("cannot reach QEMU's monitor")?;
        let drive = vm.drive(disk).await.context("cannot find the guest's disk")?;
        let copy = Copy {
            name: format!("lab-{}", to.name),
            device: disk.into(),
            source: drive.image.clone(),
            to: Place::Export(to),
            gentle: false,
            thick: false,
        };
        vm.begin(&copy, &drive, UNLIMITED).await.context("cannot begin QEMU's mirror")?;
        Ok(Mirror { vm, copy, told: false })
    }

    /// Sees it to its end, the disk at its destination.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        while !self.step().await? {
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Goes on with it; says whether it is over.
    async fn step(&mut self) -> anyhow::Result<bool> {
        let copy = &self.copy;
        match self.vm.look(copy).await.context("cannot look at QEMU's mirror")? {
            CopyState::Copying { .. } | CopyState::Switching => {}
            CopyState::Ready { .. } if self.told => {}
            CopyState::Ready { .. } => {
                self.vm.complete(copy).await.context("cannot end QEMU's mirror")?;
                self.told = true;
            }
            CopyState::Ended(None) if self.told => {
                self.vm
                    .put_away(copy, true)
                    .await
                    .context("cannot remove QEMU's mirror")?;
                return Ok(true);
            }
            CopyState::Ended(reason) => {
                let reason = reason.unwrap_or_else(|| "without a command to end".into());
                bail!("QEMU's mirror of {} ended: {reason}", copy.device);
            }
            CopyState::Unknown => bail!("QEMU's mirror of {} is gone", copy.device),
        }
        Ok(false)
    }
}
