//! Disks that are made without a datastore: the planner chooses one.

use sterna_api::{CreateDisk, CreatedDisk, Result};
use sterna_storage::datastores::check_name;
use sterna_storage::disks::check_size;

use crate::Server;

impl Server {
    /// Creates an empty disk, on a datastore that Storage DRS chooses if none is given.
    pub(crate) fn create_disk(&self, request: &CreateDisk) -> Result<CreatedDisk> {
        let CreateDisk { name, size, datastore, provision } = request;
        check_name("disk", name)?;
        check_size(*size)?;
        let (datastore, chosen) = match datastore {
            Some(datastore) => (datastore.clone(), None),
            None => {
                let (datastore, chosen) = self.planner.choose_datastore(*size)?;
                (datastore, Some(chosen))
            }
        };
        let disk = self.storage.create_disk(name, *size, &datastore, *provision)?;
        Ok(CreatedDisk { disk, chosen })
    }
}
