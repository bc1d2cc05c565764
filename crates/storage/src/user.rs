//! What storage asks of, and tells, the services that use its disks and datastores.

use sterna_api::{Datastore, Disk, Result};
use sterna_core::DiskId;
use sterna_state::DiskRecord;

/// A service that uses disks or datastores. What it does not care about it leaves out.
pub trait DiskUser: Send + Sync {
    /// Refuses a disk that is being given to a VM or taken from one, or whose VM is on
    /// its way to another host.
    fn check_settled(&self, _disk: &DiskRecord) -> Result<()> {
        Ok(())
    }

    /// Refuses a disk that moves.
    fn check_unmoved(&self, _disk: &DiskRecord) -> Result<()> {
        Ok(())
    }

    /// Refuses a disk that somebody uses who is not connected at the moment.
    fn check_unused(&self, _disk: &DiskRecord) -> Result<()> {
        Ok(())
    }

    /// Refuses a datastore that is still needed.
    fn check_datastore_unused(&self, _datastore: &str) -> Result<()> {
        Ok(())
    }

    /// Whether clients must not find a disk by its name.
    fn hides(&self, _disk: DiskId) -> Result<bool> {
        Ok(false)
    }

    /// Clients can use a disk from now on, or could if the engine served it.
    fn served(&self, _disk: DiskId) {}

    /// The record of a disk is gone.
    fn removed(&self, _disk: DiskId) {}

    /// Adds what the service knows to what people see of a disk.
    fn complete(&self, _disk: DiskId, _view: &mut Disk) -> Result<()> {
        Ok(())
    }

    /// The same of a datastore.
    fn complete_datastore(&self, _view: &mut Datastore) -> Result<()> {
        Ok(())
    }
}
