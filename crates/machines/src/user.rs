//! What the service `machines` tells the services that use it.

use sterna_api::Result;

/// A service that has something to do with VMs.
pub trait VmUser: Send + Sync {
    /// A VM migration that nobody had asked for has failed: the VM is where it was.
    fn migration_failed(&self, _vm: &str, _why: &str) {}

    /// Whether a VM may be forgotten, as far as this service is concerned; what it has lent is
    /// given back first.
    fn may_leave(&self, _vm: &str) -> Result<()> {
        Ok(())
    }

    /// A VM is about to be forgotten: what is done with it is to end.
    fn leaves(&self, _vm: &str) {}
}
