//! Measurement: what is kept of the past, and what is learned from it.

mod lq;
mod timeline;
mod world;
