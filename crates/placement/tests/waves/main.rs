//! Plans for many disks: who goes where, in which order, and what becomes of it.
//!
//! `chaos` runs the machine against orders of events, faults and crashes that are made
//! from seeds; a failure prints its seed.

mod assigning;
mod chaos;
mod ordering;
mod plain;
#[path = "../../../core/tests/random/mod.rs"]
mod random;
mod running;
mod setups;
mod workloads;
