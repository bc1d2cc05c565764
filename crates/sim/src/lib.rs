//! Virtual time: what would happen.
//!
//! A [`World`] has arrays (`core::array`), clients that ask things of them, faults,
//! and a [`Controller`]. It goes from event to event; nothing waits for a clock, so
//! an hour takes seconds. What decides is the code that decides in the daemon: the
//! scheduler of `core::qos` stands before each array, and a controller sees the same
//! windows and gives the same terms as the daemon's.
//!
//! All that is random comes from the plan's seed: the same plan gives the same
//! [`Series`], to the nanosecond.
#![forbid(unsafe_code)]

mod client;
mod controller;
mod cruise;
mod dice;
mod fault;
pub mod fluid;
mod gate;
pub mod guarded;
pub mod hall;
mod mover;
pub mod overcommit;
mod scenario;
mod series;
pub mod svmotion;
mod text;
mod world;

pub use client::{Access, Client, Load};
pub use controller::{Controller, Orders, Seen, Uncontrolled};
pub use cruise::Cruising;
pub use fault::SlowDown;
pub use scenario::Scenario;
pub use series::{Course, Series};
pub use text::ScenarioError;
pub use world::{Plan, World};
