//! The scheduler in virtual time: clients, schedulers that share a pool, and a device.

mod figures;
mod keeping;
mod threads;
mod world;
