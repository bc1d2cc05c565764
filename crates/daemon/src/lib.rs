//! The daemon: state, jobs and API around the engine.
//!
//! It wires the rooms together. The engine moves bytes; the store knows what is
//! true; the jobs make what a migration decides durable; the API lets people
//! ask and see. `serve` starts them in the order that a crash demands: the lock
//! first, then the state, then the disks as the state has them, and clients
//! last.
//!
//! **Failure cases.** A daemon that is killed at any instruction leaves a state
//! that the next one goes on from (`jobs`). A datastore that cannot be reached
//! is offline and tried again (`shelf`, `keeper`); its disks are reported as not
//! served. A state that is not ours, is newer, or is in use is refused before
//! anything is touched.
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
