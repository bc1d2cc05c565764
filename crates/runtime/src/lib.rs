//! What every service of the daemon is made with: tasks that run again and again, threads
//! for work that may wait, users of a service, and the log.
//!
//! Nothing here knows a disk, a move or a machine, and nothing here decides.
//!
//! Begin with `tasks`; `users` says how a lower service asks the ones above it.
#![forbid(unsafe_code)]

pub mod log;
pub mod notes;
pub mod tasks;
pub mod threads;
pub mod users;
