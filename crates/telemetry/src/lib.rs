//! What the daemon has measured: the last day of each disk, class and datastore
//! (`samples`), and what an application noticed of a move (`figures`).
//!
//! Telemetry keeps what others enter, for a bounded time, in memory. It asks no disk, and
//! never says what a figure means: its readers decide.
#![forbid(unsafe_code)]

pub mod figures;
pub mod samples;
