//! The modelled array against the arithmetic of its parts, and against published
//! measurements.

mod copying;
mod drive;
mod laws;
#[path = "../random/mod.rs"]
mod random;
mod reading;
mod text;
mod writing;
