//! Attachments: a disk in the hands of a VM, over vhost-user-blk.
//!
//! A disk has one socket at most, and a socket one VM at a time: two of them on one disk
//! would ruin it. The path is part of the disk's record, so that the socket is there
//! again after a restart, and QEMU finds it (`reconnect`).

use std::path::Path;

use sterna_api::{Disk, Error, Result};
use sterna_os::sockets::bind_unix;
use sterna_os::{descriptors, lock};
use sterna_state::DiskRecord;

use crate::Storage;
use crate::claims::Claim;
use crate::disks::claim_of;

impl Storage {
    /// Makes a socket on which a hypervisor finds a disk.
    pub fn attach_disk(&self, name: &str, path: &str) -> Result<Disk> {
        let (_claim, mut record) = self.claimed(name)?;
        self.check_settled(&record)?;
        if !Path::new(path).is_absolute() {
            let message = format!("the socket's path {path} does not begin with `/`");
            return Err(Error::invalid(message).hint("give the absolute path"));
        }
        match record.vhost_user.as_deref() {
            Some(there) if there == path => {
                if !lock(&self.sockets).contains_key(&record.id) {
                    self.open_socket(&record, path)?;
                }
                return self.view_disk(record);
            }
            Some(there) => {
                let message = format!("disk {name} is attached already, to {there}");
                return Err(Error::in_use(message)
                    .hint(format!("detach it first: sterna disk detach {name}")));
            }
            None => {}
        }
        if let Some(other) = self.on_socket(path)? {
            let message = format!("disk {other} is attached to {path}");
            return Err(Error::in_use(message).hint("choose another path"));
        }
        if let Some(problem) = self.problem_of(record.id) {
            let message = format!("disk {name} is not served: {problem}");
            return Err(Error::unavailable(message)
                .hint(format!("see `sterna disk show {name}`")));
        }
        // After a restart of the host it is made again; here it may be a slip.
        if let Some(directory) = Path::new(path).parent().filter(|it| !it.is_dir()) {
            let message = format!("there is no directory {}", directory.display());
            return Err(
                Error::invalid(message).hint("create the directory, or correct the path")
            );
        }
        self.open_socket(&record, path)?;
        if let Err(error) = self.store.set_vhost_user(record.id, Some(path.into())) {
            self.close_socket(&record);
            return Err(error.into());
        }
        tracing::info!(disk = name, socket = path, "disk attached to a socket");
        record.vhost_user = Some(path.into());
        self.view_disk(record)
    }

    /// Takes a disk away from its socket. A VM that has it sees it no more.
    pub fn detach_disk(&self, name: &str) -> Result<Disk> {
        let (_claim, mut record) = self.claimed(name)?;
        let Some(path) = record.vhost_user.take() else {
            let message = format!("disk {name} is attached to no socket");
            return Err(Error::invalid(message)
                .hint("`sterna disk show` lists the disk's NBD clients"));
        };
        self.store.set_vhost_user(record.id, None)?;
        self.close_socket(&record);
        tracing::info!(disk = name, socket = path, "disk detached from its socket");
        self.view_disk(record)
    }

    /// The disk was brought up: its socket is made again.
    pub(crate) fn attach_again(&self, record: &DiskRecord) {
        if let Some(path) = &record.vhost_user
            && let Err(error) = self.open_socket(record, path)
        {
            tracing::error!(disk = record.name, %error, "the disk has no socket");
        }
    }

    /// Makes sockets that could not be made.
    pub fn attach_missing(&self) -> Result<()> {
        for disk in self.store.disks()? {
            let missing = !lock(&self.sockets).contains_key(&disk.id);
            if disk.vhost_user.is_some() && missing && self.problem_of(disk.id).is_none()
                // Whoever holds it is at it already.
                && let Ok((_claim, record)) = self.claimed(&disk.name)
            {
                self.attach_again(&record);
            }
        }
        Ok(())
    }

    fn claimed(&self, name: &str) -> Result<(Claim, DiskRecord)> {
        let claim = self.claims.alone(claim_of(name))?;
        Ok((claim, self.disk_record(name)?))
    }

    /// The disk that is attached to a socket.
    fn on_socket(&self, path: &str) -> Result<Option<String>> {
        let on_it = |disk: &DiskRecord| disk.vhost_user.as_deref() == Some(path);
        Ok(self.store.disks()?.into_iter().find(on_it).map(|disk| disk.name))
    }

    fn open_socket(&self, record: &DiskRecord, path: &str) -> Result<()> {
        let what = format!("the socket of disk {}", record.name);
        self.check_new_files(&what, descriptors::MACHINE)?;
        // One of a disk that was brought up again removes its file when it goes.
        lock(&self.sockets).remove(&record.id);
        let (listener, bound) = bind_unix(Path::new(path))?;
        self.engine.serve(record.id, listener).map_err(|error| {
            let message = format!("disk {} cannot be attached: {error}", record.name);
            Error::unavailable(message)
        })?;
        lock(&self.sockets).insert(record.id, bound);
        Ok(())
    }

    fn close_socket(&self, record: &DiskRecord) {
        self.engine.unserve(record.id);
        lock(&self.sockets).remove(&record.id);
    }
}
