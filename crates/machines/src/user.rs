//! What the service `machines` tells the services that use it.

/// A service that has something to do with VMs.
pub trait VmUser: Send + Sync {
    /// A VM migration that nobody had asked for has failed: the VM is where it was.
    fn migration_failed(&self, vm: &str, why: &str);
}
