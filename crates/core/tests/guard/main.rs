//! The guard of a migration, in front of a device that the guest and the copier share.
//!
//! Thousands of random devices and guests, each from a seed: what is kept, how soon,
//! and that nothing swings. What is judged is what the plant really did; what the guard
//! sees of it is noisy.

mod double_write_cost;
mod experienced;
mod keeping;
mod plant;
#[path = "../random/mod.rs"]
mod random;
mod run;
mod silence;
mod timing;
mod waiting;
