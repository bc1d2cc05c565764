//! Whether a datastore is a disk of this daemon under another name: an export of the daemon
//! itself, or a device that has its bytes in the image of a disk.
//!
//! A copy to such a datastore would overwrite a disk, or be the very image that is moved,
//! whose removal would then be the end of both. So no move and no new disk goes there. What
//! another server does with its export cannot be seen from here; for that, a move keeps an
//! old image that another program can write to (`jobs::end`).

use sterna_api::{Error, Result};
use sterna_engine::FileIdentity;
use sterna_engine::datastore::Location;

use crate::storage::Storage;
use crate::storage::shelf::Shelf;

impl Storage {
    /// Whether a location is an export of this daemon.
    pub(crate) fn exports(&self, location: &Location) -> bool {
        self.places.nbd.iter().any(|place| place.serves(location))
    }

    /// Refuses a datastore that is a disk.
    pub(crate) fn check_is_no_disk(&self, to: &Shelf) -> Result<()> {
        let location = &to.record().location;
        if self.exports(location) {
            let message = format!(
                "datastore {} is an export of this daemon itself: {location}",
                to.name()
            );
            return Err(Error::invalid(message).hint("choose another datastore"));
        }
        let files = location.files_below();
        if files.is_empty() {
            return Ok(());
        }
        // They may be on what hangs, whatever the device itself does.
        let below: Vec<FileIdentity> = to.answer_to(move || {
            files.iter().filter_map(|file| FileIdentity::at(file).ok()).collect()
        })?;
        for disk in self.store.disks()? {
            // By what is open: no datastore is asked, of which one may hang.
            let Some(image) = self.engine.held(disk.id).ok().flatten() else { continue };
            if below.iter().any(|file| file.is(image.identity())) {
                let message = format!(
                    "datastore {} is the image of disk {}: {location} has its bytes there",
                    to.name(),
                    disk.name,
                );
                return Err(Error::invalid(message).hint("choose another datastore"));
            }
        }
        Ok(())
    }
}
