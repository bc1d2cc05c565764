//! The daemon: starts the services, wires them, and ends them.
//!
//! `daemon` shows the services and wires them. `serve` starts them in the order that a
//! crash demands: the lock first, then the state, then the disks as the state has them, and
//! clients last. Each service is a crate that opens with what it is: `sterna_storage`,
//! `sterna_moves`, `sterna_machines`, `sterna_service_levels`, `sterna_planner`,
//! `sterna_server`.
//!
//! The daemon decides nothing that `core` could decide, and copies no byte itself.
//!
//! **Failures.** A daemon that is killed at any instruction leaves a state that the next
//! one goes on from (`sterna_moves`, `bring_up`). A datastore that cannot be reached is
//! offline and tried again (`sterna_storage::handle`, `retry`); its disks are reported as
//! not served. A state that is not ours, is newer, or is in use is refused before anything
//! is touched.
#![forbid(unsafe_code)]

mod boot;
mod bring_up;
mod daemon;
mod retry;
mod serve;
mod settings;
mod start_limits;
mod stopping;
mod systemd;
#[cfg(test)]
mod threadless;

pub use serve::{Running, serve};
pub use settings::{IoChoice, Settings};
pub use start_limits::{RUNTIME_WORKERS, check_start};
pub use sterna_os::is_moment;
pub use sterna_runtime::log::{LAST_LINES, Log, State as LogState};
pub use sterna_runtime::notes::Notes;
pub use sterna_runtime::threads::within;
pub use sterna_server::http::openapi_document;
