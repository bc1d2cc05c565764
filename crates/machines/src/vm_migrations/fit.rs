//! Whether a VM can be sent, and whether a QEMU that waits is one for it.
//!
//! Both must have the same disks: disks of Sterna's, by whatever name, or images that
//! QEMU itself opens, by the same path. Both are on this computer, so a path is the same
//! file, and QEMU hands its lock over with the guest. What else the two must have in common
//! QEMU finds out by itself: a guest that does not fit is not taken, and runs on.

use std::path::{Path, PathBuf};

use sterna_api::{Error, Result};
use sterna_core::DiskId;
use sterna_qemu::{Drive, QemuError, VmHandle};
use sterna_state::Reach;

use super::qemu::direct;
use crate::Machines;
use crate::usage::VmMigrationFacts;

/// A socket that somebody names.
pub fn socket_of(text: &str) -> Result<PathBuf> {
    let socket = PathBuf::from(text);
    if socket.is_absolute() {
        return Ok(socket);
    }
    let message = format!("{text} is not an absolute path");
    Err(Error::invalid(message).hint("give the absolute path of the socket"))
}

/// A QEMU that cannot be asked whether it fits.
fn unheard(error: QemuError) -> Error {
    Error::unavailable(error)
        .hint("start a QEMU there that waits for the VM: `-incoming defer -qmp unix:...`")
}

impl Machines {
    /// The QMP socket of a VM that can be sent, and the disks of ours that it has.
    pub(super) fn sendable(&self, vm: &str) -> Result<(PathBuf, Vec<DiskId>)> {
        let record = self.vm_record(vm)?;
        let Reach::Qmp(source) = &record.reach else {
            let message =
                format!("VM {vm} belongs to libvirt, which migrates its VMs itself");
            let hint = format!("`virsh migrate`, then `sterna host assign HOST {vm}`");
            return Err(Error::invalid(message).hint(hint));
        };
        self.check_no_move(vm)?;
        let link = self.vms.link(&record.reach);
        let asked = self
            .vms
            .runtime
            .block_on(async { VmMigrationFacts::of(&*link.vm().await?).await });
        let facts = asked.map_err(|error| {
            Error::unavailable(error).hint(format!("see `sterna vm show {vm}`"))
        })?;
        Ok((source.clone(), self.check_sendable(vm, &facts)?))
    }

    /// Refuses a VM of which a disk moves.
    fn check_no_move(&self, vm: &str) -> Result<()> {
        if let Some(one) =
            self.storage.store.open_vm_moves()?.into_iter().find(|it| it.vm == vm)
        {
            let message =
                format!("disk {} of {vm} moves: migration {}", one.device, one.id);
            let hint =
                format!("wait for the migration: `sterna migration watch {}`", one.id);
            return Err(Error::in_use(message).hint(hint));
        }
        if let Some(one) =
            self.storage.store.untidy_vm_moves()?.into_iter().find(|it| it.vm == vm)
        {
            let message = format!(
                "the QEMU of {vm} may still have a part of migration {}'s copy",
                one.id
            );
            return Err(Error::in_use(message).hint("Sterna removes it; try again"));
        }
        Ok(())
    }

    /// Refuses a VM that cannot migrate by these facts; gives the disks of ours that
    /// it has. What is recommended goes by this, too.
    fn check_sendable(&self, vm: &str, facts: &VmMigrationFacts) -> Result<Vec<DiskId>> {
        let VmMigrationFacts { run, drives, blocked } = facts;
        if !run.running {
            let message = format!("VM {vm} does not run: QEMU reports {}", run.word);
            return Err(Error::invalid(message).hint(
                "migrating a stopped guest has no benefit: let the guest run first",
            ));
        }
        if !blocked.is_empty() {
            let message = format!("QEMU cannot send {vm}: {}", blocked.join("; "));
            return Err(Error::invalid(message).hint(
                "a VM with a vhost-user disk cannot migrate: attach the disk over NBD \
                 (`sterna disk qemu-args`)",
            ));
        }
        let mut disks = Vec::new();
        for drive in drives {
            if let Some(disk) = self.disk_behind(&drive.image)? {
                self.storage.check_still(&disk)?;
                disks.push(disk.id);
            }
        }
        Ok(disks)
    }

    /// Why a VM with these facts cannot migrate, if so.
    pub fn unsendable(&self, vm: &str, facts: &VmMigrationFacts) -> Option<String> {
        let checked = self.check_no_move(vm);
        let checked = checked.and_then(|()| self.check_sendable(vm, facts));
        checked.err().map(|error| error.to_string())
    }

    /// Refuses a QEMU that does not wait for this VM.
    pub(super) fn check_receiver(
        &self,
        vm: &str,
        source: &Path,
        socket: &Path,
    ) -> Result<()> {
        let (from, to) = (Reach::Qmp(source.into()), Reach::Qmp(socket.into()));
        if let Some(known) =
            self.storage.store.vms()?.into_iter().find(|vm| vm.reach == to)
        {
            let message = format!("{to} belongs to VM {}", known.name);
            return Err(Error::in_use(message)
                .hint("start another QEMU that waits for the VM: `-incoming defer`"));
        }
        let (source, receiver) = (self.vms.link(&from), self.vms.link(&to));
        let fits = self.vms.runtime.block_on(async {
            let source = source.vm().await.map_err(unheard)?;
            let receiver = receiver.vm().await.map_err(unheard)?;
            self.check_fit(&source, &receiver).await
        });
        fits.map_err(|error| error.about(&format!("{vm} cannot go to {to}")))
    }

    /// Refuses a QEMU that does not wait, or has other disks.
    pub(super) async fn check_fit(
        &self,
        source: &VmHandle,
        receiver: &VmHandle,
    ) -> Result<()> {
        let awaits = direct(receiver).awaits().await;
        if !awaits.map_err(|error| unheard(error.into()))? {
            let message = "the QEMU there does not wait for a guest";
            let hint = "start it with all arguments of the first QEMU, with `-incoming \
                        defer`, and with a separate QMP socket";
            return Err(Error::invalid(message).hint(hint));
        }
        let has = source.drives().await.map_err(unheard)?;
        let would_have = receiver.drives().await.map_err(unheard)?;
        self.same_disks(&has, &would_have)
    }

    fn same_disks(&self, has: &[Drive], would_have: &[Drive]) -> Result<()> {
        let differ = |message: String| {
            let hint = "give it the same disks: Sterna disks by their exports, other \
                        disks by their paths";
            Err(Error::invalid(message).hint(hint))
        };
        if has.len() != would_have.len() {
            let (has, there) = (has.len(), would_have.len());
            return differ(format!("the VM has {there} disks there, and {has} here"));
        }
        for one in has {
            let device = &one.device;
            let Some(other) = would_have.iter().find(|it| it.device == *device) else {
                return differ(format!("the VM has no disk {device} there"));
            };
            let ours = |drive: &Drive| {
                Ok::<_, Error>(self.disk_behind(&drive.image)?.map(|disk| disk.id))
            };
            let same = match (ours(one)?, ours(other)?) {
                (None, None) => one.image == other.image,
                (one, other) => one == other,
            };
            if !same {
                let (here, there) = (&one.image, &other.image);
                return differ(format!(
                    "the VM's disk {device} is {there} there, and {here} here"
                ));
            }
            if (&one.format, one.read_only) != (&other.format, other.read_only) {
                return differ(format!(
                    "QEMU opens the VM's disk {device} differently there: {} and {}, \
                     read-only {} and {}",
                    other.format, one.format, other.read_only, one.read_only
                ));
            }
        }
        Ok(())
    }
}
