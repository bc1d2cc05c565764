//! The daemon: five services around the engine and the state, a server above them, and
//! what starts and ends all that.
//!
//! `daemon` shows the services and wires them. `serve` starts them in the order that a
//! crash demands: the lock first, then the state, then the disks as the state has them, and
//! clients last. Each service is a folder that opens with what it is: `storage`, `moves`,
//! `machines`, `service_levels`, `planner`, `server`. What they are made of stands beside
//! them: tasks, threads, samples, figures, users.
//!
//! The daemon decides nothing that `core` could decide, and copies no byte itself.
//!
//! **Failures.** A daemon that is killed at any instruction leaves a state that the next
//! one goes on from (`moves`, `bring_up`). A datastore that cannot be reached is offline and
//! tried again (`storage::shelf`, `keeper`); its disks are reported as not served. A state
//! that is not ours, is newer, or is in use is refused before anything is touched.
#![forbid(unsafe_code)]

mod boot;
mod bring_up;
mod daemon;
mod figures;
mod keeper;
mod log;
mod machines;
mod moves;
mod planner;
mod samples;
mod serve;
mod server;
mod service_levels;
mod settings;
mod storage;
mod systemd;
mod tasks;
mod threads;
mod users;

pub use log::{LAST_LINES, Log, State as LogState};
pub use serve::{Running, serve};
pub use server::http::openapi_document;
pub use settings::{IoChoice, Settings};
