//! The destination of a move: a file, or a disk of ours that is made for it.

use sterna_core::mover::{Removed, Words};

use super::Driver;
use super::files::{self, Made};
use crate::daemon::Daemon;
use crate::error::DaemonError;
use crate::figures::Watch;
use crate::jobs::first_allowance;
use crate::store::VmMoveRecord;
use crate::vms::Kind;

impl Driver {
    /// Makes the destination; a file, unless whoever owns the machine does. One that is
    /// there already is somebody else's. Gives what the copy may have at first.
    pub(super) async fn make(&mut self) -> Result<Option<u64>, Words> {
        // What the application did before the copy is known now.
        let before = self.watch.application().during;
        self.watch = Watch::new(sterna_api::Application { before, ..Default::default() });
        let machine = self.machine().await.map_err(|failure| failure.words().clone())?;
        let made = match &self.record.kind {
            Kind::Adopt(disk) => {
                let made = self.daemon.make_adopted(&self.record, disk);
                made.map(|()| Made::default())
            }
            // Of a file that cannot be seen now, nothing is learned.
            _ => self.check_place().and_then(|()| match machine.makes_files() {
                true => files::is_free(&self.record).map(|()| Made::default()),
                false => files::make(&self.record, machine.owner()),
            }),
        };
        let made = made.map_err(|error| error.to_string())?;
        (self.file, self.copy.thick) = (made.known, made.thick);
        Ok(self.pace.allowed(first_allowance(&self.record.guard)))
    }

    /// Refuses a datastore's directory that is not what it was: there may be another file
    /// of that name. A disk may be released to a directory of no datastore as well.
    fn check_place(&self) -> Result<(), DaemonError> {
        match self.daemon.shelf(&self.record.to) {
            Ok(shelf) => shelf.open().map(drop),
            Err(_) => Ok(()),
        }
    }

    /// Whether a file of this move's own name is there with nothing in it: a daemon was
    /// killed before QEMU was told of it.
    pub(super) fn is_blank(&self) -> bool {
        self.record.kind == Kind::Move && files::is_blank(&self.record)
    }

    /// Whether the destination's name leads to the file that QEMU copies to, as far as
    /// that is known: after the next start of the machine nothing else would be found.
    fn is_in_its_place(&self) -> bool {
        let found = || files::known(&self.record);
        self.file.is_none_or(|known| found().is_some_and(|found| found.is(&known)))
    }

    /// From now on QEMU may make the destination the truth. Says whether it is a copy
    /// still.
    pub(super) fn seal(&self) -> Result<bool, Words> {
        match &self.record.kind {
            Kind::Adopt(disk) => {
                self.daemon.seal_adopted(disk).map_err(|error| error.to_string())
            }
            _ => Ok(self.is_in_its_place()),
        }
    }

    /// From now on it is but a copy again.
    pub(super) fn unseal(&self) -> Result<(), Words> {
        match &self.record.kind {
            Kind::Adopt(disk) => {
                self.daemon.unseal_adopted(disk).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Removes the destination, if it is what was made. QEMU has forgotten it, or never
    /// will: a disk that is removed cannot be flushed.
    pub(super) async fn remove(&mut self) -> Result<Removed, Words> {
        let Kind::Adopt(disk) = &self.record.kind else {
            self.check_place().map_err(|error| error.to_string())?;
            let removed = files::remove(&self.record, self.file)?;
            return Ok(match removed {
                files::Removed::Gone => Removed::Gone,
                files::Removed::Kept => Removed::Kept,
                files::Removed::Another => Removed::Another,
            });
        };
        self.daemon.await_goodbye(disk).await;
        match self.daemon.remove_adopted(disk) {
            Ok(true) => Ok(Removed::Gone),
            Ok(false) => Ok(Removed::Kept),
            Err(error) => Err(format!(
                "disk {}, which holds a part of a copy, could not be removed: {error}; it \
                 is tried again",
                disk.name
            )),
        }
    }

    /// Whether the destination is there, or may be.
    pub(super) fn is_there(&self) -> bool {
        match &self.record.kind {
            Kind::Adopt(disk) => self.daemon.has_adopted(disk),
            _ => files::is_there(&self.record),
        }
    }

    /// Whether the destination is a disk of ours that calls itself the truth.
    pub(super) fn is_sealed(&self) -> bool {
        match &self.record.kind {
            Kind::Adopt(disk) => self.daemon.is_sealed(disk),
            _ => false,
        }
    }
}

/// Both images, for people.
pub(in crate::vms) fn both(record: &VmMoveRecord) -> (String, String) {
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
