//! Measurement: what is kept of the past, and what is learned from it.

mod lq;
#[path = "../random/mod.rs"]
mod random;
mod timeline;
mod world;
