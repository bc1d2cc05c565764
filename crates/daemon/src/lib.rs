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

mod advice;
mod attachments;
mod boot;
mod bring_up;
mod claims;
mod classes;
mod commits;
mod daemon;
mod datastores;
mod disks;
mod drs;
mod figures;
mod gate;
mod hours;
mod http;
mod imports;
mod itself;
mod jobs;
mod keeper;
mod log;
mod lookout;
mod marks;
mod patience;
mod plans;
mod policies;
mod predictions;
mod probes;
mod profile;
mod recovery;
mod refusals;
mod removals;
mod samples;
mod serve;
mod settings;
mod shelf;
mod site;
mod storage_drs;
mod survey;
mod systemd;
mod tasks;
mod threads;
mod troubles;
mod vms;

pub use http::openapi_document;
pub use log::{LAST_LINES, Log, State as LogState};
pub use serve::{Running, serve};
pub use settings::{IoChoice, Settings};
