//! What machines ask of the services that use them.

use sterna_api::Result;

/// A service that has something to do with machines.
pub trait VmUser: Send + Sync {
    /// Refuses a machine that is on its way to another host.
    fn check_rests(&self, vm: &str) -> Result<()>;
}
