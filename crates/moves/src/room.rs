//! Whether a datastore has room for a disk that is to move there.
//!
//! A move that plainly does not fit is refused before anything is recorded: it would
//! fill the datastore, and keep it full for all who are there, until it is given up.
//! Plainly means by what is known. A thin image needs what the source takes, less what
//! an old copy there has already; where that is not known, or where both are on one file
//! system that may let them share their blocks, the copy finds out. So it does when
//! others take the room meanwhile: then the migration pauses.

use std::sync::Arc;

use sterna_api::{Error, ErrorCode, Provision, Result};
use sterna_core::Bytes;
use sterna_engine::datastore::{Datastore, Space};
use sterna_engine::sidecar::Role;
use sterna_state::DiskRecord;
use sterna_storage::handle::DatastoreHandle;

use crate::Moves;

impl Moves {
    /// What a disk needs on a datastore, in bytes; nothing if the copy has to find out.
    pub fn needs_at(
        &self,
        disk: &DiskRecord,
        provision: Provision,
        to: &DatastoreHandle,
    ) -> Result<Option<u64>> {
        let from = self.storage.handle(&disk.datastore)?;
        let needs = match provision {
            Provision::Thin if from.may_share_blocks(to) => None,
            Provision::Thin => from.allocated(&disk.image, disk.size),
            Provision::Thick | Provision::ThickZeroed => Some(disk.size),
        };
        Ok(needs.map(|needs| needs.min(disk.size)))
    }

    /// Refuses a datastore that takes nothing new, or is too small for a disk, and gives it
    /// open.
    pub(crate) fn check_takes(
        &self,
        disk: &DiskRecord,
        to: &DatastoreHandle,
        provision: Option<Provision>,
    ) -> Result<Arc<Datastore>> {
        to.check_takes_new()?;
        let store = self.storage.open_for_new(to)?;
        self.check_room(disk, provision, to, &store)?;
        Ok(store)
    }

    fn check_room(
        &self,
        disk: &DiskRecord,
        provision: Option<Provision>,
        to: &DatastoreHandle,
        store: &Datastore,
    ) -> Result<()> {
        let Some(space) = to.space() else { return Ok(()) };
        if !store.holds_many() {
            return check_capacity(disk, to, space);
        }
        let provision = provision.unwrap_or(disk.provision);
        let Some(needs) = self.needs_at(disk, provision, to)? else { return Ok(()) };
        // Whether there is an old copy takes long to find out: not unless it matters.
        if space.free >= needs || space.free >= needs.saturating_sub(old_copy(disk, to)?)
        {
            return Ok(());
        }
        Err(no_room(&disk.name, needs, to.name(), space.free)
            .hint(format!("make room on datastore {}, or choose another", to.name())))
    }
}

/// A device or export holds the disk or does not.
fn check_capacity(disk: &DiskRecord, to: &DatastoreHandle, space: Space) -> Result<()> {
    if space.capacity >= disk.size {
        return Ok(());
    }
    let message = format!(
        "disk {} ({}) does not fit on datastore {} ({}): {} are missing",
        disk.name,
        Bytes(disk.size),
        to.name(),
        Bytes(space.capacity),
        Bytes(disk.size - space.capacity)
    );
    Err(Error::new(ErrorCode::NoSpace, message).hint("choose a larger datastore"))
}

/// What old copies of the disk take there: one of them can be made the new one.
pub fn old_copy(disk: &DiskRecord, to: &DatastoreHandle) -> Result<u64> {
    let mut taken = 0;
    for (found, _) in to.images()? {
        let is_old = found.identity.is_ok_and(|it| {
            it.id == disk.id && it.size == disk.size && it.role != Role::Active
        });
        if is_old {
            taken += to.allocated(&found.file, disk.size).unwrap_or(0);
        }
    }
    Ok(taken)
}

/// A disk takes more than a datastore has free.
pub fn no_room(disk: &str, needs: u64, datastore: &str, free: u64) -> Error {
    let message = format!(
        "disk {disk} takes {}, and datastore {datastore} has {} free: {} are missing",
        Bytes(needs),
        Bytes(free),
        Bytes(needs.saturating_sub(free))
    );
    Error::new(ErrorCode::NoSpace, message)
}
