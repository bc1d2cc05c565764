//! The destination of a move: a file, or a disk of ours that is made for it.
//!
//! Its file system may hang for ever, and the move must be given up all the same: so Sterna
//! asks with a time limit. If the file system does not answer in time, Sterna assumes that the
//! destination exists, is no file of Sterna's, and is not sealed; and it does again what was to
//! be done.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sterna_api::Error;
use sterna_core::mover::{Removed, Words};
use sterna_engine::datastore::Known;
use sterna_moves::first_allowance;
use sterna_state::{OurDisk, Reach, VmMoveKind, VmMoveRecord};
use sterna_telemetry::figures::Watch;

use super::Driver;
use super::files::{self, Made};
use crate::Machines;

/// How long the destination's answer is waited for: as long as a VM's.
const ANSWER: Duration = Duration::from_secs(4);

/// How long a file may take to be made: room for terabytes is given in seconds.
const MAKING: Duration = Duration::from_secs(60);

impl Driver {
    /// Asks something of the file that may never be answered.
    fn ask<T: Send + 'static>(
        &self,
        limit: Duration,
        question: impl FnOnce(&VmMoveRecord) -> T + Send + 'static,
    ) -> Option<T> {
        let record = self.record.clone();
        self.asker.ask(limit, move || question(&record)).answer()
    }

    /// The same of a disk of ours.
    fn ask_of<T: Send + 'static>(
        &self,
        disk: &OurDisk,
        question: impl FnOnce(&Machines, &OurDisk) -> T + Send + 'static,
    ) -> Option<T> {
        let (machines, disk) = (self.machines.clone(), disk.clone());
        self.asker.ask(ANSWER, move || question(&machines, &disk)).answer()
    }

    /// What is said where something was to be done, and there is no answer.
    fn silent(&self) -> Words {
        format!("{} does not answer", self.record.to)
    }

    /// Refuses a datastore's directory that is not what it was: there may be another file
    /// of that name. A disk may be released to a directory of no datastore as well.
    fn check_place(&self) -> Result<(), Error> {
        match self.machines.storage.handle(&self.record.to) {
            Ok(handle) => handle.open().map(drop),
            Err(_) => Ok(()),
        }
    }

    /// Makes the destination; a file, unless whoever owns the VM does. One that is there
    /// already is somebody else's. Gives what the copy may have at first.
    pub(super) async fn make(&mut self) -> Result<Option<u64>, Words> {
        // What the application did before the copy is known now.
        let before = self.watch.application().during;
        self.watch = Watch::new(sterna_api::Application { before, ..Default::default() });
        let vm = self.vm().await.map_err(|failure| failure.words().clone())?;
        let made = match &self.record.kind {
            VmMoveKind::Adopt(disk) => {
                let made = self.machines.make_adopted(&self.record, disk);
                made.map(|()| Made::default())
            }
            _ => self.make_file(vm.makes_files(), vm.owner()),
        };
        let made = made.map_err(|error| error.to_string())?;
        (self.file, self.copy.thick) = (made.known, made.thick);
        if let Err(why) = self.record_file() {
            // A later daemon would not know it from another file of that name. If QEMU has
            // not heard of it, it can go.
            self.remove_file()?;
            return Err(why);
        }
        Ok(self.pace.allowed(first_allowance(&self.record.guard)))
    }

    /// Makes the file, unless libvirt is to. One that is made when nobody waits for it any
    /// more goes again.
    fn make_file(&self, by_owner: bool, qemu: Option<(u32, u32)>) -> Result<Made, Error> {
        // Of a file that cannot be seen now, nothing is learned.
        self.check_place()?;
        let is_late = Arc::new(AtomicBool::new(false));
        let seen = is_late.clone();
        let made = self.ask(MAKING, move |record| {
            if by_owner {
                return files::is_free(record).map(|()| Made::default());
            }
            let made = files::make(record, qemu)?;
            if seen.load(Ordering::SeqCst) {
                let _ = files::remove(record, made.known);
            }
            Ok(made)
        });
        made.unwrap_or_else(|| {
            is_late.store(true, Ordering::SeqCst);
            Err(Error::unavailable(self.silent()))
        })
    }

    /// What the file that is there is known by, as far as that is known.
    pub(super) fn known(&self) -> Option<Known> {
        self.ask(ANSWER, files::known).flatten().map(Known::File)
    }

    /// Makes it durable which file is the copy: while no daemon runs, somebody may give its
    /// name to another file, and QEMU goes on to say the name.
    pub(super) fn record_file(&mut self) -> Result<(), Words> {
        let Some(Known::File(file)) = self.file else { return Ok(()) };
        let made = files::made(&file);
        if self.record.destination_file == Some(made) {
            return Ok(());
        }
        if matches!(self.reach, Reach::Libvirt { .. }) {
            // Of a file that libvirt has made, nobody has kept the name.
            let keep =
                |record: &VmMoveRecord| files::keep_name(Path::new(&record.destination));
            let kept = self.ask(MAKING, keep).ok_or_else(|| self.silent())?;
            let to = &self.record.to;
            kept.map_err(|error| format!("cannot make {to} durable: {error}"))?;
        }
        let stored = self.machines.storage.store.vm_move_made(self.record.id, made);
        stored.map_err(|error| self.not_recorded(&error))?;
        self.record.destination_file = Some(made);
        Ok(())
    }

    /// Whether a file of this move's own name is there with nothing in it: a daemon was
    /// killed before QEMU was told of it. Where that daemon has recorded which file it has
    /// made, it is that one.
    pub(super) fn is_blank(&self) -> bool {
        let is_blank = || self.ask(ANSWER, files::is_blank);
        self.record.kind == VmMoveKind::Move && is_blank() == Some(true)
    }

    /// Whether the destination's name leads to the file that QEMU copies to, as far as
    /// that is known: after the next start of the VM nothing else would be found.
    fn is_in_its_place(&self) -> Result<bool, Words> {
        let Some(known) = self.file else { return Ok(true) };
        let found = self.ask(ANSWER, files::known).ok_or_else(|| self.silent())?;
        Ok(found.is_some_and(|found| known.is(&found)))
    }

    /// From now on QEMU may make the destination the truth. Says whether it is a copy
    /// still.
    pub(super) fn seal(&self) -> Result<bool, Words> {
        match &self.record.kind {
            VmMoveKind::Adopt(disk) => {
                let done = self.ask_of(disk, Machines::seal_adopted);
                done.ok_or_else(|| self.silent())?.map_err(|error| error.to_string())
            }
            _ => self.is_in_its_place(),
        }
    }

    /// From now on it is but a copy again.
    pub(super) fn unseal(&self) -> Result<(), Words> {
        match &self.record.kind {
            VmMoveKind::Adopt(disk) => {
                let done = self.ask_of(disk, Machines::unseal_adopted);
                done.ok_or_else(|| self.silent())?.map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Removes the destination, if it is what was made. QEMU has forgotten it, or never
    /// will: a disk that is removed cannot be flushed.
    pub(super) async fn remove(&mut self) -> Result<Removed, Words> {
        let VmMoveKind::Adopt(disk) = &self.record.kind else {
            return self.remove_file();
        };
        self.machines.await_goodbye(disk).await;
        let removed = self.ask_of(disk, Machines::remove_adopted);
        match removed.ok_or_else(|| self.silent())? {
            Ok(true) => Ok(Removed::Gone),
            Ok(false) => Ok(Removed::Kept),
            Err(error) => Err(format!(
                "Sterna cannot remove disk {}, which holds a part of a copy: {error}; \
                 Sterna tries again",
                disk.name
            )),
        }
    }

    /// The same of a file. Where nothing says which file was made, none goes.
    fn remove_file(&mut self) -> Result<Removed, Words> {
        self.check_place().map_err(|error| error.to_string())?;
        let file = self.file;
        let removed = self.ask(ANSWER, move |record| files::remove(record, file));
        let removed = removed.ok_or_else(|| self.silent())??;
        self.is_unknown = file.is_none() && self.is_there();
        if self.is_unknown {
            tracing::warn!(migration = self.record.id, "{}", self.keeps_unknown());
        }
        Ok(match removed {
            files::Removed::Gone => Removed::Gone,
            files::Removed::Kept => Removed::Kept,
            files::Removed::Another => Removed::Another,
        })
    }

    /// Whether the destination is there, or may be.
    pub(super) fn is_there(&self) -> bool {
        match &self.record.kind {
            VmMoveKind::Adopt(disk) => self.machines.has_adopted(disk),
            _ => self.ask(ANSWER, files::is_there).unwrap_or(true),
        }
    }

    /// Whether the destination is a disk of ours that calls itself the truth.
    pub(super) fn is_sealed(&self) -> bool {
        match &self.record.kind {
            VmMoveKind::Adopt(disk) => {
                self.ask_of(disk, Machines::is_sealed) == Some(true)
            }
            _ => false,
        }
    }

    /// The disk that was made is for nobody, unless somebody has it.
    pub(super) fn put_aside(&self, disk: &OurDisk) {
        // Without an answer it is done later.
        let _ = self.ask_of(disk, Machines::put_aside);
    }

    /// What the destination takes.
    pub(super) fn allocated(&self) -> Option<u64> {
        let taken = match &self.record.kind {
            VmMoveKind::Adopt(disk) => self.ask_of(disk, |machines, it| {
                machines.storage.show_disk(&it.name).ok()?.allocated
            }),
            _ => self.ask(ANSWER, files::allocated),
        };
        taken.flatten()
    }
}
