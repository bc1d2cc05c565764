//! What people and programs see: the API over HTTP, and views of several services at once.
//!
//! A handler parses, calls one service and converts. Nothing is decided here, and nothing
//! below knows the server.

mod disks;
pub(crate) mod http;
mod reconnecting;
mod status;
mod survey;
mod top;

use std::sync::Arc;

use self::http::Visitors;
use crate::log::Log;
use crate::machines::Machines;
use crate::moves::Moves;
use crate::planner::Planner;
use crate::service_levels::ServiceLevels;
use crate::storage::Storage;
use crate::tasks::Tasks;

/// What answers requests of the API.
pub(crate) struct Server {
    pub(crate) storage: Arc<Storage>,
    pub(crate) moves: Arc<Moves>,
    pub(crate) machines: Arc<Machines>,
    pub(crate) levels: Arc<ServiceLevels>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) log: Log,
    /// Who is connected to the API.
    pub(crate) visitors: Arc<Visitors>,
    /// When the daemon was started (seconds since 1970).
    pub(crate) started: u64,
}
