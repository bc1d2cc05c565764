//! What people and programs see: the API over HTTP, and views of several services at once.
//!
//! A handler parses, calls one service and converts. Nothing is decided here, and nothing
//! below knows the server.
#![forbid(unsafe_code)]

mod disks;
pub mod http;
mod metrics;
mod reconnecting;
mod status;
mod top;
mod warnings;

use std::sync::Arc;

use sterna_machines::Machines;
use sterna_moves::Moves;
use sterna_planner::Planner;
use sterna_runtime::log::Log;
use sterna_runtime::tasks::Tasks;
use sterna_service_levels::ServiceLevels;
use sterna_storage::Storage;

use self::http::Visitors;
pub use self::metrics::Metrics;

/// What answers requests of the API.
pub struct Server {
    /// Datastores and disks.
    pub storage: Arc<Storage>,
    /// Moves of disks.
    pub moves: Arc<Moves>,
    /// VMs whose disks QEMU serves itself.
    pub machines: Arc<Machines>,
    /// Classes and policies.
    pub levels: Arc<ServiceLevels>,
    /// Plans, Storage DRS and DRS.
    pub planner: Arc<Planner>,
    /// What the daemon does again and again.
    pub tasks: Arc<Tasks>,
    /// The log, whose losses are shown.
    pub log: Log,
    /// What metrics need that no service has.
    pub metrics: Metrics,
    /// Who is connected to the API.
    pub visitors: Arc<Visitors>,
    /// When the daemon was started (seconds since 1970).
    pub started: u64,
}
