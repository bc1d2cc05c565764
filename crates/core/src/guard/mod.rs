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
//! it finds by copying in `turns`, in the one of two `gears` that costs least; `p99` holds
//! a response time, is in `doubt` whose doing it was that it was long, and tells what of it
//! is the guest's `alone`; `deadline` sees to the time. The `outlook` is what is known of
//! turns before there are any, and an `experience` what an earlier guard has found out.
//! `cruise` gives one class what it
//! was promised by slowing the others.

mod aim;
mod alone;
pub mod cruise;
mod deadline;
mod doubt;
mod experience;
mod gear;
mod gears;
mod keep;
mod migration;
mod mirrored;
mod observation;
pub(crate) mod outlook;
mod p99;
mod price;
mod standing;
mod turns;
mod twice;

pub use aim::{Aim, Way};
pub use experience::{Experience, Turned, Within};
pub use migration::Guard;
pub use observation::Observation;
pub use standing::{Standing, Unreachable};

/// The rate that a loop begins with where means are kept, bytes per second: three small
/// chunks in a tenth of a second, which no mean shows.
const START: f64 = (2 << 20) as f64;

/// Below this, copying beside the guest is not worth what it costs: four small chunks
/// per second.
const LEAST: f64 = (256 << 10) as f64;

/// More than any device copies.
const MOST: f64 = (16_u64 << 30) as f64;
