//! The destination of a move: a file, or a disk of ours that is made for it.

use sterna_qemu::{Machine, QemuError};

use super::files::Removed;
use super::{Making, Mover, files};
use crate::daemon::Daemon;
use crate::error::DaemonError;
use crate::store::VmMoveRecord;
use crate::vms::{Kind, Reach};

impl Mover {
    /// Makes the destination; a file, unless whoever owns the machine does. One that is
    /// there already is somebody else's.
    pub(super) fn make_destination(
        &mut self,
        machine: &Machine,
    ) -> Result<(), DaemonError> {
        let record = &self.record;
        if !record.kind.adopts() {
            // Of a file that cannot be seen now, nothing is learned.
            self.check_place()?;
        }
        // What others make is not there yet, and may be somebody else's until they say
        // that they have made it.
        let mut made_by = Making::Ours;
        let made = match &record.kind {
            Kind::Adopt(disk) => self.daemon.make_adopted(record, disk).map(|()| None),
            _ => self.make_way().and_then(|()| match machine.makes_files() {
                true => {
                    made_by = Making::Unknown;
                    files::is_free(record).map(|()| None)
                }
                false => files::make(record, machine.owner()),
            }),
        };
        self.making = if made.is_ok() { made_by } else { Making::NotOurs };
        self.file = made?;
        Ok(())
    }

    /// QEMU or libvirt does not begin. What it was to make itself it has not made, if it
    /// says so.
    pub(super) fn has_not_begun(&mut self, error: &QemuError) {
        if self.making == Making::Unknown && error.is_refusal() {
            self.making = Making::NotOurs;
        }
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

    /// QEMU copies to the destination, or did until now: it is nothing but a copy.
    pub(super) fn is_seen(&mut self) {
        if self.making == Making::Unknown {
            self.making = Making::Ours;
        }
        let is_file = !self.record.kind.adopts();
        if is_file && self.making == Making::Ours && self.file.is_none() {
            self.file = files::known(&self.record);
        }
    }

    /// Removes what a daemon has made that was killed before it could record that the copy
    /// had begun.
    fn make_way(&self) -> Result<(), DaemonError> {
        match self.making {
            Making::Ours => files::remove(&self.record, self.file)
                .map(drop)
                .map_err(DaemonError::unavailable),
            Making::Unknown | Making::NotOurs => Ok(()),
        }
    }

    /// Whether the destination's name leads to the file that QEMU copies to, as far as
    /// that is known: after the next start of the machine nothing else would be found.
    pub(super) fn is_in_its_place(&self) -> bool {
        match (&self.record.kind, &self.file) {
            (Kind::Adopt(_), _) | (_, None) => true,
            (Kind::Move | Kind::Release(_), Some(known)) => {
                files::known(&self.record).is_some_and(|found| found.is(known))
            }
        }
    }

    /// From now on QEMU may make the destination the truth. Says whether it is a copy
    /// still.
    pub(super) fn seal(&self) -> Result<bool, DaemonError> {
        match &self.record.kind {
            Kind::Adopt(disk) => self.daemon.seal_adopted(disk),
            _ => Ok(true),
        }
    }

    /// From now on it is but a copy again.
    pub(super) fn unseal(&self) -> Result<(), DaemonError> {
        match &self.record.kind {
            Kind::Adopt(disk) => self.daemon.unseal_adopted(disk),
            _ => Ok(()),
        }
    }

    /// Whether the destination is served, if it is a disk of ours. QEMU flushes what it
    /// forgets, and stands still with its guest until that is answered.
    pub(super) fn destination_is_served(&self) -> bool {
        match &self.record.kind {
            Kind::Adopt(disk) => self.daemon.engine.stats(disk.id).is_ok(),
            Kind::Move | Kind::Release(_) => true,
        }
    }

    /// The same of the source.
    pub(super) fn source_is_served(&self) -> bool {
        match &self.record.kind {
            Kind::Release(disk) => self.daemon.engine.stats(disk.id).is_ok(),
            Kind::Move | Kind::Adopt(_) => true,
        }
    }

    /// Removes the destination if it is nothing but a copy; says what is in the way. QEMU
    /// has forgotten it, or never will: a disk that is removed cannot be flushed.
    pub(super) async fn remove_destination(&mut self) -> Option<String> {
        match self.making {
            Making::Ours => {}
            Making::Unknown => return self.kept(),
            Making::NotOurs => return None,
        }
        let removed = match &self.record.kind {
            Kind::Adopt(disk) => {
                self.daemon.await_goodbye(disk).await;
                let name = &disk.name;
                let removed = self.daemon.remove_adopted(disk);
                removed
                    .map(|gone| if gone { Removed::Gone } else { Removed::Kept })
                    .map_err(|error| {
                        format!(
                            "disk {name}, which holds a part of a copy, could not be \
                             removed: {error}; it is tried again"
                        )
                    })
            }
            _ => match self.check_place() {
                Ok(()) => files::remove(&self.record, self.file),
                Err(error) => Err(error.to_string()),
            },
        };
        match removed {
            Ok(Removed::Gone | Removed::Another) => self.making = Making::NotOurs,
            // libvirt may be about to make one that is not there.
            Ok(Removed::Kept) => {
                self.making = Making::Unknown;
                return self.kept();
            }
            Err(why) => return Some(why),
        }
        None
    }

    /// What is said of a destination of which nobody knows that it is only a copy.
    fn kept(&self) -> Option<String> {
        let record = &self.record;
        let is_there = match &record.kind {
            Kind::Adopt(disk) => self.daemon.has_adopted(disk),
            _ => files::is_there(record),
        };
        let (_, destination) = both(record);
        is_there.then(|| {
            format!(
                "{destination} is kept: nobody has seen how the copy ended, so the last \
                 writes of {} may be in it",
                record.vm
            )
        })
    }

    /// What whoever starts the machine has to know: where nobody else keeps how it is
    /// started, it would be with the image that it has left.
    pub(super) fn next_start(&self) -> Option<String> {
        let VmMoveRecord { vm, kind, destination, .. } = &self.record;
        if !matches!(self.reach, Reach::Qmp(_)) {
            return None;
        }
        let with = match kind {
            Kind::Move | Kind::Release(_) => destination.clone(),
            Kind::Adopt(disk) => {
                format!("what `sterna disk qemu-args {}` prints", disk.name)
            }
        };
        Some(format!("from now on start {vm} with {with}, and never with the old one"))
    }

    /// Whether the destination is a disk of ours that calls itself the truth.
    pub(super) fn is_sealed(&self) -> bool {
        match &self.record.kind {
            Kind::Adopt(disk) => self.daemon.is_sealed(disk),
            _ => false,
        }
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
