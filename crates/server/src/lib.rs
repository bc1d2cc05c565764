//! What people and programs see: the API over HTTP, and views of several services at once.
//!
//! A handler parses, calls one service and converts. Nothing is decided here, and nothing
//! below knows the server.
#![forbid(unsafe_code)]

mod access;
pub mod activity;
mod disks;
pub mod http;
mod live;
mod metrics;
mod reconnecting;
mod status;
mod timelines;
mod top;
mod warnings;

use std::sync::{Arc, Mutex};

use sterna_machines::Machines;
use sterna_memory::Memory;
use sterna_moves::Moves;
use sterna_planner::Planner;
use sterna_runtime::log::Log;
use sterna_runtime::tasks::Tasks;
use sterna_service_levels::ServiceLevels;
use sterna_state::ActivityLog;
use sterna_storage::Storage;

use self::access::{Links, Sessions};
use self::http::{Loopback, Visitors};
pub use self::live::Live;
pub use self::metrics::Metrics;

/// What answers requests of the API.
pub struct Server {
    /// Datastores and disks.
    pub storage: Arc<Storage>,
    /// Moves of disks.
    pub moves: Arc<Moves>,
    /// VMs whose disks QEMU serves itself.
    pub machines: Arc<Machines>,
    /// Memory of VMs, and swap.
    pub memory: Arc<Memory>,
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
    /// What was done, and by whom.
    pub activity: ActivityLog,
    /// Who is told of live figures.
    pub live: Live,
    /// Who looks at the dashboard, and from where.
    pub dashboard: Dashboard,
    /// When the daemon was started (seconds since 1970).
    pub started: u64,
}

/// The dashboard's way in, and who has come.
#[derive(Debug, Default)]
pub struct Dashboard {
    /// The listener for browsers.
    pub loopback: Loopback,
    links: Mutex<Links>,
    sessions: Mutex<Sessions>,
}
