//! What a disk, a class or a datastore did, in figures: what the loops decide on and
//! what people see.

mod spread;
mod window;

pub use spread::Spread;
pub use window::{Traffic, Window};
