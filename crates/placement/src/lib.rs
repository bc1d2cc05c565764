//! Decides where things should be, and in which order they get there.
//!
//! - [`hosts`]: which VMs should be on other hosts (DRS).
//! - [`storage`]: which disks should be on other datastores (Storage DRS).
//! - [`waves`]: how one disk or thousands get elsewhere: where to, in which order, and
//!   how many at once.
//!
//! All of it obeys one rule, "no harm": a move that does not pay for itself, or that
//! pushes somebody else over a bound, is refused, and the reason is said.
//!
//! Everything here is pure, as in `sterna-core`: no I/O, no clock, no thread, no randomness.
//! The daemon's planner carries the decisions out, the simulator rehearses them for days of
//! virtual time. Nothing on the data path depends on this crate. Begin with [`waves::PlanRun`],
//! [`storage::advise`] and [`hosts::advise`].
#![forbid(unsafe_code)]

pub mod hosts;
pub mod storage;
pub mod waves;
