//! Decisions. Everything here is pure: no I/O, no clock, no thread, no
//! randomness. A decision takes `(now, event)` and gives actions; the daemon
//! carries them out on real disks, the simulator on modelled ones, a property
//! test on chaos.
#![forbid(unsafe_code)]

pub mod advise;
pub mod array;
pub mod commit;
mod dice;
pub mod durability;
pub mod entitle;
pub mod file_system;
pub mod fingerprint;
pub mod guard;
pub mod hurt;
mod id_map;
mod ids;
pub mod measure;
pub mod memory;
pub mod mirror;
pub mod mover;
pub mod old_copy;
pub mod predict;
pub mod qos;
pub mod range;
pub mod room;
pub mod schedule;
mod shape;
pub mod transfer;
pub mod twin;
pub mod units;

pub use id_map::IdMap;
pub use ids::{DiskId, Mark};
pub use range::ByteRange;
pub use shape::{ParseShapeError, Shape};
pub use units::{Bytes, Nanos, Percent};
