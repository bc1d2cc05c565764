//! The data path: reactor, datastores, exports, the mirror's driver.

pub mod boot;
mod buffer;
mod image;
mod io;
pub mod mirror;
pub mod sidecar;
mod slab;
mod timer;

pub use image::{ImageSpec, OpenError};
pub use io::{Errno, IoChoice, IoKind};
