//! The destination of a move: a file, or a disk of ours that is made for it.

use sterna_qemu::Machine;

use super::{Mover, files};
use crate::daemon::Daemon;
use crate::error::DaemonError;
use crate::store::VmMoveRecord;
use crate::vms::Kind;

/// Whether QEMU, which has been told to leave a disk of ours, is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Its connection ends soon.
    Goodbye,
    /// It does not answer, and would not leave.
    None,
}

impl Mover {
    /// Makes the destination; a file, unless whoever owns the machine does. One that is
    /// there already is somebody else's.
    pub(super) fn make_destination(
        &mut self,
        machine: &Machine,
    ) -> Result<(), DaemonError> {
        let record = &self.record;
        let made = match &record.kind {
            Kind::Adopt(disk) => self.daemon.make_adopted(record, disk),
            _ => self.make_way().and_then(|()| match machine.makes_files() {
                true => files::is_free(record),
                false => files::make(record, machine.owner()),
            }),
        };
        self.may_remove = made.is_ok();
        made
    }

    /// Removes what a daemon has made that was killed before it could record that the copy
    /// had begun.
    fn make_way(&self) -> Result<(), DaemonError> {
        let left = self.may_remove.then(|| files::remove(&self.record)).flatten();
        left.map_or(Ok(()), |why| Err(DaemonError::unavailable(why)))
    }

    /// From now on QEMU may make the destination the truth.
    pub(super) fn seal(&self) -> Result<(), DaemonError> {
        match &self.record.kind {
            Kind::Adopt(disk) => self.daemon.seal_adopted(disk),
            _ => Ok(()),
        }
    }

    /// Removes the destination, which QEMU does not use; says what is in the way.
    pub(super) async fn remove_destination(
        &mut self,
        patience: Patience,
    ) -> Option<String> {
        // A disk is known by its id, whichever daemon has made it; a file is not: what
        // has its name after it was removed is somebody else's.
        let Kind::Adopt(disk) = &self.record.kind else {
            let left = self.may_remove.then(|| files::remove(&self.record)).flatten();
            self.may_remove &= left.is_some();
            return left;
        };
        let name = &disk.name;
        if patience == Patience::Goodbye {
            self.daemon.await_goodbye(disk).await;
        }
        let error = self.daemon.remove_adopted(disk).err()?;
        Some(format!(
            "disk {name} could not be removed: {error}; it holds a part of a copy: `sterna \
             disk remove {name}`"
        ))
    }
}

/// What is said of what the disk has left.
pub(super) fn left_behind(record: &VmMoveRecord) -> String {
    match &record.kind {
        Kind::Move => format!("kept: {}", record.source),
        Kind::Adopt(disk) => {
            format!(
                "kept: {}; the disk is Sterna's disk {} now",
                record.source, disk.name
            )
        }
        Kind::Release(disk) => {
            let name = &disk.name;
            format!(
                "kept: disk {name}, which {} uses no more; `sterna disk remove {name}` \
                 removes it",
                record.vm
            )
        }
    }
}

/// Both images, for people.
pub(super) fn both(record: &VmMoveRecord) -> (String, String) {
    let (source, destination) = (record.source.clone(), record.destination.clone());
    match &record.kind {
        Kind::Move => (source, destination),
        Kind::Adopt(disk) => (source, format!("disk {}", disk.name)),
        Kind::Release(disk) => (format!("disk {}", disk.name), destination),
    }
}

/// What the destination takes.
pub(super) fn allocated(daemon: &Daemon, record: &VmMoveRecord) -> Option<u64> {
    match &record.kind {
        Kind::Adopt(disk) => daemon.show_disk(&disk.name).ok()?.allocated,
        _ => files::allocated(record),
    }
}
