//! Measurement: what is kept of the past, and what is learned from it.

mod filling;
mod lq;
mod probe;
#[path = "../random/mod.rs"]
mod random;
mod timeline;
mod world;
