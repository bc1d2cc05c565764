//! The loops that hold what was promised.
//!
//! # Rule
//!
//! A loop is told what happened in a window of time and gives what may happen in the
//! next. It measures what it holds, and never trusts a model of the device. What has
//! to be quick is not done here: that the copier stops when the guest comes is the
//! mirror's own doing (`mirror`), so a loop may take its time and be right.
//!
//! # The parts
//!
//! `migration` is the guard of a migration, with the `aim` it was given and how it is
//! `standing`. `keep` holds a part of the guest's IO/s by the `price` of copying, which
//! it finds with a `probe`; `p99` holds a response time; `deadline` sees to the time. `cruise` gives one class what
//! it was promised by slowing the others.

mod aim;
pub mod cruise;
mod deadline;
mod keep;
mod migration;
mod observation;
mod p99;
mod price;
mod probe;
mod standing;

pub use aim::{Aim, Way};
pub use migration::Guard;
pub use observation::Observation;
pub use standing::{Standing, Unreachable};
