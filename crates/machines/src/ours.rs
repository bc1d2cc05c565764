//! Disks of ours that a VM has: found by what QEMU calls their images, made for an
//! adoption, and taken away again where that comes to nothing.
//!
//! While QEMU copies to a disk, that disk is nobody's truth. Its image calls itself
//! partial, so that a recovery does not take it; it cannot be moved, removed or attached
//! elsewhere; and clients do not find it by its name: QEMU knows it by its id, now and
//! later. (So nobody takes it for a disk while QEMU is disconnected because the daemon
//! was killed, and writes into the copy.) Right before the switch-over its image is
//! *sealed* ([`Machines::seal_adopted`]): it calls itself active from then on, as QEMU
//! may make it the truth at any moment. If QEMU then says that it has not, that is undone
//! before the move may be called anything but switching. Only what calls itself partial
//! is removed: a state from an old backup takes a VM's disk for a copy.
//!
//! A disk that came to nothing is served until QEMU has let go of it, also by a later
//! daemon: QEMU flushes what it forgets, and its guest stands still until that is answered.

use std::path::Path;
use std::time::Duration;

use sterna_api::{Error, ImageFate, Provision, Result};
use sterna_core::DiskId;
use sterna_engine::sidecar::{Identity, Role};
use sterna_os::lock;
use sterna_qemu::Export;
use sterna_state::{DiskRecord, OurDisk, VmMoveKind, VmMoveRecord};
use sterna_storage::disks::{claim_of, identity, new_record};
use sterna_storage::handle::DatastoreHandle;
use sterna_storage::places::NbdPlace;
use tokio::time::{Instant, sleep};

use crate::Machines;

/// How long QEMU's connection may take to end after QEMU has dropped its node: both are
/// on this host.
const GOODBYE: Duration = Duration::from_secs(2);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Whether QEMU calls a disk so.
pub(super) fn is_called(disk: &DiskRecord, name: &str) -> bool {
    disk.name == name || disk.id.to_string() == name
}

impl Machines {
    /// The disk of ours that an image is, in QEMU's words.
    pub fn disk_behind(&self, image: &str) -> Result<Option<DiskRecord>> {
        let Some(name) = self.name_behind(image) else { return Ok(None) };
        Ok(self.storage.store.disks()?.into_iter().find(|disk| is_called(disk, &name)))
    }

    /// What that is called: by a disk's name, or its id.
    pub(super) fn name_behind(&self, image: &str) -> Option<String> {
        let here = |place: &NbdPlace| match place {
            NbdPlace::Unix(path) => {
                let export = Export::parse(image)?;
                (Path::new(&export.socket) == path).then_some(export.name)
            }
            NbdPlace::Tcp(_) => image.strip_prefix(&place.uri("")).map(str::to_owned),
        };
        self.storage.places.nbd.iter().find_map(here)
    }

    /// Where QEMU finds a disk of ours, also while others do not.
    pub(super) fn export_of(&self, disk: DiskId) -> Result<Export> {
        let socket = self.storage.places.nbd.iter().find_map(|place| match place {
            NbdPlace::Unix(path) => Some(path.display().to_string()),
            NbdPlace::Tcp(_) => None,
        });
        let name = disk.to_string();
        socket.map(|socket| Export { name, socket }).ok_or_else(|| {
            Error::unavailable("this daemon does not serve NBD on a unix socket").hint(
                "configure one: `sterna serve --nbd-socket PATH`, or a socket unit of \
                 systemd",
            )
        })
    }

    /// The adoption or release under way that has to do with a disk of ours.
    pub fn vm_move_of(&self, disk: DiskId) -> Result<Option<VmMoveRecord>> {
        let of_it = |one: &VmMoveRecord| one.kind.disk().is_some_and(|it| it.id == disk);
        Ok(self.storage.store.open_vm_moves()?.into_iter().find(of_it))
    }

    /// The adoption that has ended, and of which its VM may still have the disk.
    fn untidy_adoption_of(&self, disk: DiskId) -> Result<Option<VmMoveRecord>> {
        let all = self.storage.store.untidy_vm_moves()?;
        Ok(all.into_iter().find(|one| one.kind.adopts_disk(disk)))
    }

    /// Refuses a disk that is being adopted or released, or whose VM has not let go of
    /// it.
    pub(super) fn check_not_given(&self, disk: &DiskRecord) -> Result<()> {
        if let Some(VmMoveRecord { id, vm, .. }) = self.untidy_adoption_of(disk.id)? {
            let name = &disk.name;
            let message =
                format!("disk {name} may still be used by {vm}: migration {id}");
            let hint = format!(
                "Sterna removes the disk once {vm} answers; if {vm} never will, `sterna \
                 vm remove {vm}` first"
            );
            return Err(Error::in_use(message).hint(hint));
        }
        let Some(one) = self.vm_move_of(disk.id)? else { return Ok(()) };
        let what = match one.kind {
            VmMoveKind::Adopt(_) => "is being adopted as",
            _ => "is being released as",
        };
        let (id, device, vm) = (one.id, one.device, one.vm);
        let message =
            format!("disk {} {what} disk {device} of {vm}: migration {id}", disk.name);
        let hint = format!("wait for the migration, or `sterna migration cancel {id}`");
        Err(Error::in_use(message).hint(hint))
    }

    /// Whether QEMU copies to a disk that is to be adopted, or may still have one that was.
    pub(crate) fn is_adopted(&self, disk: DiskId) -> Result<bool> {
        Ok(self.vm_move_of(disk)?.is_some_and(|one| one.kind.adopts())
            || self.untidy_adoption_of(disk)?.is_some())
    }

    /// What the image of a disk must call itself.
    pub fn role_of(&self, disk: &DiskRecord, handle: &DatastoreHandle) -> Result<Role> {
        if !self.is_adopted(disk.id)? {
            return Ok(Role::Active);
        }
        // Before the seal, or after it.
        let found = handle.says(&disk.image, disk.size)?;
        Ok(found.map_or(Role::Active, |found: Identity| match found.role {
            Role::Partial => Role::Partial,
            _ => Role::Active,
        }))
    }

    /// Makes the disk that a VM's disk is to become, unless a daemon that was killed has
    /// made it. An old state may have it, and a VM that uses it: then its image does not
    /// call itself partial.
    pub(super) fn make_adopted(&self, one: &VmMoveRecord, disk: &OurDisk) -> Result<()> {
        if let Some(record) = self.adopted(disk)? {
            return match self.calls_itself(&record)? {
                Some(Role::Partial) => Ok(()),
                _ => Err(Error::exists("disk", &record.name)),
            };
        }
        let _claims = self.storage.claim_new(&disk.name, &one.to)?;
        let new = new_record(&disk.name, one.size, &one.to, Provision::Thin)?;
        let new = DiskRecord { id: disk.id, ..new };
        self.storage.make_disk_again(new, Role::Partial)?;
        Ok(())
    }

    /// From now on QEMU may make the disk the truth. Says whether its image is the copy, or
    /// was: an old state may name one that has been left since.
    pub(super) fn seal_adopted(&self, disk: &OurDisk) -> Result<bool> {
        let Some(record) = self.adopted(disk)? else { return Ok(false) };
        match self.calls_itself(&record)? {
            Some(Role::Partial) => self.call_itself(&record, Role::Active).map(|()| true),
            Some(Role::Active) => Ok(true),
            Some(Role::Retired) | None => Ok(false),
        }
    }

    /// QEMU says that it has not, and will not.
    pub(super) fn unseal_adopted(&self, disk: &OurDisk) -> Result<()> {
        let Some(record) = self.adopted(disk)? else { return Ok(()) };
        match self.calls_itself(&record)? {
            Some(Role::Active) => self.call_itself(&record, Role::Partial),
            _ => Ok(()),
        }
    }

    /// The disk is like any other from now on.
    pub(super) fn open_adopted(&self, disk: &OurDisk) {
        self.storage.engine.set_named(disk.id);
    }

    /// A disk of an adoption of which nobody has seen the end: it may be a part of a
    /// copy, or have the VM's last writes. Unless a VM has it, it is for nobody until
    /// somebody has looked.
    pub(super) fn put_aside(&self, disk: &OurDisk) {
        let Ok(Some(record)) = self.adopted(disk) else { return };
        if self.storage.engine.stats(disk.id).is_ok_and(|it| it.connections > 0) {
            return;
        }
        let Some(why) = self.part_of_a_copy(&record) else { return };
        let name = &record.name;
        tracing::warn!(disk = name, why, "disk not served");
        lock(&self.storage.served).insert(record.id, Err(Error::unavailable(why)));
        // One that was not served is not to be detached.
        let _ = self.storage.engine.detach(record.id);
    }

    /// Why a disk is not served whose image calls itself a part of a copy, if it does: it
    /// is that of an adoption of which nobody has seen the end.
    pub fn part_of_a_copy(&self, disk: &DiskRecord) -> Option<String> {
        if self.calls_itself(disk).ok()? != Some(Role::Partial) {
            return None;
        }
        let all = self.storage.store.vm_moves().ok()?;
        let one = all.iter().rfind(|one| one.kind.adopts_disk(disk.id))?;
        let (name, vm, id) = (&disk.name, &one.vm, one.id);
        Some(format!(
            "the end of migration {id} is unknown, so the disk may be an incomplete \
             copy. If {vm} has its old image and no data is missing: `sterna disk \
             remove {name}`; else `sterna disk remove {name} --keep-image`, and `sterna \
             disk import`"
        ))
    }

    /// Waits until QEMU has left a disk that it has been told to leave.
    pub(super) async fn await_goodbye(&self, disk: &OurDisk) {
        let until = Instant::now() + GOODBYE;
        let is_used =
            || self.storage.engine.stats(disk.id).is_ok_and(|it| it.connections > 0);
        while is_used() && Instant::now() < until {
            sleep(LOOK).await;
        }
    }

    /// Removes the disk of an adoption that came to nothing, and that QEMU has left; unless
    /// its image calls itself something else than a part. Says whether it is gone.
    pub(super) fn remove_adopted(&self, disk: &OurDisk) -> Result<bool> {
        let Some(record) = self.adopted(disk)? else { return Ok(true) };
        let _claim = self.storage.claims.alone(claim_of(&record.name))?;
        if self.calls_itself(&record)? != Some(Role::Partial) {
            return Ok(false);
        }
        self.storage.take_away(&record, ImageFate::Delete)?;
        Ok(true)
    }

    /// Whether there is such a disk, or may be.
    pub(super) fn has_adopted(&self, disk: &OurDisk) -> bool {
        self.adopted(disk).map_or(true, |record| record.is_some())
    }

    /// Whether its image calls itself the truth.
    pub(super) fn is_sealed(&self, disk: &OurDisk) -> bool {
        let record = self.adopted(disk).ok().flatten();
        let role = record.and_then(|record| self.calls_itself(&record).ok().flatten());
        role == Some(Role::Active)
    }

    /// What the image of a disk calls itself; nothing, if it is not the image that its
    /// record means.
    fn calls_itself(&self, record: &DiskRecord) -> Result<Option<Role>> {
        let says =
            self.storage.handle(&record.datastore)?.says(&record.image, record.size)?;
        let meant = says
            .filter(|found| *found == identity(record, record.generation, found.role));
        Ok(meant.map(|found| found.role))
    }

    fn call_itself(&self, record: &DiskRecord, role: Role) -> Result<()> {
        let says = identity(record, record.generation, role);
        self.storage.handle(&record.datastore)?.identify(&record.image, &says)
    }

    fn adopted(&self, disk: &OurDisk) -> Result<Option<DiskRecord>> {
        Ok(self.storage.store.disks()?.into_iter().find(|known| known.id == disk.id))
    }
}
