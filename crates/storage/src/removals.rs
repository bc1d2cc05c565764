//! Removals: a disk goes, and its image with it or not.
//!
//! Sterna removes what Sterna made. A file that was imported is the operator's
//! own and stays, unless they say otherwise; a migration ends that, as it makes
//! another image (or begins it again, if the disk comes back to that file). An image
//! whose sidecar says that it is another disk's by now, or newer than this state
//! knows, is not touched: the state was restored from an old backup. Nor is one
//! removed whose sidecar does not say whose it is. Nor is another file that has got the
//! image's name while the disk was served, or since. The record goes before the image:
//! a crash in between leaves an image that no disk has, never a disk without its
//! image.

use sterna_api::{Disk, Error, ImageFate, RemovedDisk, Result};
use sterna_engine::HeldFile;
use sterna_engine::datastore::DatastoreError;
use sterna_engine::sidecar::{Role, SidecarError};
use sterna_os::lock;
use sterna_state::DiskRecord;

use crate::Storage;
use crate::disks::{claim_of, identity};
use crate::handle::Gone;

/// What became of the image of a disk that was removed.
#[derive(Debug)]
enum Became {
    Kept,
    Removed(Gone),
    /// Somebody else had removed it before.
    Missing,
}

impl Storage {
    /// Removes a disk that nobody uses.
    pub fn remove_disk(&self, name: &str, wish: ImageFate) -> Result<RemovedDisk> {
        let _claim = self.claims.alone(claim_of(name))?;
        let record = self.disk_record(name)?;
        self.check_still(&record)?;
        self.users.ask(|user| user.check_unused(&record))?;
        self.take_away(&record, wish)
    }

    /// Removes a disk that the caller has claimed, if no client uses it.
    pub fn take_away(&self, record: &DiskRecord, wish: ImageFate) -> Result<RemovedDisk> {
        let name = &record.name;
        self.check_no_clients(record)?;
        // Else it would have been detached in vain.
        self.store.must_be_there()?;
        let keep = match wish {
            ImageFate::Auto => record.imported,
            ImageFate::Keep => true,
            ImageFate::Delete => false,
        };
        let gone = self.view_disk(record.clone())?;
        // While it is open it is known which file it is, whatever has its name by now.
        let held = self.engine.held(record.id);
        // The engine is asked, too: clients must not go on writing to what is removed.
        let is_served = held.is_ok() || self.problem_of(record.id).is_none();
        let held = held.ok().flatten();
        if is_served {
            // If the store then fails, the daemon (`retry`) brings the disk up again.
            let going = Err(Error::unavailable("it was about to be removed"));
            let before = lock(&self.served).insert(record.id, going);
            if let Err(error) = self.engine.detach(record.id) {
                // Its clients go on.
                if let Some(before) = before {
                    lock(&self.served).insert(record.id, before);
                }
                let message = format!("disk {name} cannot be detached: {error}");
                return Err(Error::unavailable(message));
            }
        }
        self.store.remove_disk(record.id)?;
        self.users.tell(|user| user.removed(record.id));
        lock(&self.served).remove(&record.id);
        lock(&self.sockets).remove(&record.id);
        self.lookout.forget(record.id);
        self.samples.forget_disk(record.id);
        self.forget_account(record);
        tracing::info!(disk = name, id = %record.id, keep, "disk removed");
        let put_away = self.put_image_away(record, keep, is_served, held.as_deref());
        let became = put_away.map_err(|error| {
            let message = format!("disk {name} is removed, but its image is as it was");
            Error::unavailable(format!("{message}: {error}")).hint(left_behind(
                &gone,
                keep,
                self.handle(&record.datastore).is_ok_and(|it| it.is_shared()),
            ))
        })?;
        if let Became::Removed(Gone::Another(error) | Gone::Unproven(error)) = &became {
            let message =
                format!("disk {name} is removed, and its image is not: {error}");
            return Err(Error::in_use(message).hint(
                "find out whose file it is before you remove it: another program may have put \
                 it in the place of the image",
            ));
        }
        if let Became::Removed(Gone::ButSidecar(error)) = became {
            let message = format!("disk {name} is removed, but a sidecar of it stays");
            return Err(Error::unavailable(format!("{message}: {error}"))
                .hint("remove the sidecar by hand"));
        }
        Ok(RemovedDisk {
            disk: gone,
            image_kept: matches!(became, Became::Kept),
            image_missing: matches!(became, Became::Missing),
        })
    }

    /// Refuses a disk that is being adopted or released, or whose VM is on its way.
    pub fn check_settled(&self, record: &DiskRecord) -> Result<()> {
        self.users.ask(|user| user.check_settled(record))
    }

    /// Refuses a disk that is being moved, adopted or released.
    pub fn check_still(&self, record: &DiskRecord) -> Result<()> {
        self.check_settled(record)?;
        self.users.ask(|user| user.check_unmoved(record))
    }

    fn check_no_clients(&self, record: &DiskRecord) -> Result<()> {
        let name = &record.name;
        let stats = self.engine.stats(record.id);
        match stats.map_or((0, 0), |stats| (stats.connections, stats.in_flight)) {
            (0, 0) => Ok(()),
            (0, requests) => {
                let message = format!("disk {name} has {requests} requests under way");
                Err(Error::in_use(message)
                    .hint("its datastore does not answer: check the datastore"))
            }
            (clients, _) => {
                let plural = if clients == 1 { "client" } else { "clients" };
                let message = format!("disk {name} is in use by {clients} {plural}");
                Err(Error::in_use(message).hint("disconnect the clients first"))
            }
        }
    }

    /// Removes the image, or makes it nobody's; gives what became of it.
    fn put_image_away(
        &self,
        record: &DiskRecord,
        keep: bool,
        was_served: bool,
        held: Option<&HeldFile>,
    ) -> Result<Became> {
        let handle = self.handle(&record.datastore)?;
        handle.must_answer()?;
        let store = handle.open()?;
        let image = handle.image(&record.image)?;
        let is_there =
            || !store.holds_many() || store.allocated(&image, record.size).is_some();
        let ours = match store.read_sidecar(&image, record.size) {
            Ok(found) => found.id == record.id && found.generation <= record.generation,
            Err(DatastoreError::Sidecar { source, .. }) => match source {
                SidecarError::Missing if !is_there() => return Ok(Became::Missing),
                SidecarError::Missing => keep || was_served,
                // Nothing is lost if it is only made nobody's.
                SidecarError::Foreign | SidecarError::Damaged(_) => keep,
                _ => false,
            },
            Err(_) => false,
        };
        if !ours {
            tracing::warn!(
                disk = record.name,
                "Sterna keeps an image that may belong to another disk"
            );
            return Ok(Became::Kept);
        }
        if keep {
            // Nobody's truth any more, so that it can be imported again.
            let retired = identity(record, record.generation, Role::Retired);
            handle.identify(&record.image, &retired)?;
            Ok(Became::Kept)
        } else {
            let held = held.map(HeldFile::identity);
            Ok(Became::Removed(handle.remove(&record.image, record.size, held)?))
        }
    }
}

/// What to do with an image that could not be put away when its disk was removed.
fn left_behind(disk: &Disk, keep: bool, is_file: bool) -> String {
    let (image, name) = (&disk.image, &disk.name);
    match keep {
        true => format!(
            "the image is kept, and still says that it is the disk's: once its datastore \
             works again, `sterna disk recover` makes the disk again ({image})"
        ),
        // A device or an export has a sidecar behind the image, and is not removed by hand.
        false if !is_file => format!(
            "{image} still says that it is the disk's: once its datastore works again, \
             `sterna disk recover` makes the disk again, and `sterna disk remove {name} \
             --delete-image` removes it"
        ),
        false => {
            format!(
                "once its datastore works again, remove the image and its sidecar by hand: \
                 {image}"
            )
        }
    }
}
