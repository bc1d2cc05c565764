//! The data path: reactor, datastores, exports, the mirror's driver.

mod buffer;
mod image;
mod io;
mod slab;
mod timer;

pub use image::{ImageSpec, OpenError};
pub use io::{Errno, IoChoice, IoKind};
