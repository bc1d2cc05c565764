//! Load: applications that do to a disk what a profile says, and how they fare.
//!
//! A [`Profile`] describes an application. A [`Demand`] is one at work: it decides
//! which request comes next and when, by a seed and nothing else, so a simulator in
//! virtual time and a driver on a real clock ask a disk for the same. An
//! [`Application`] is that driver: it speaks NBD on a thread of its own.
//!
//! Response times are those that a user would wait. An application that asks at a
//! rate of its own (an open loop) goes on asking while the disk is slow, and what
//! could not be sent in time counts from the moment at which it was due. Otherwise
//! a disk that stands still for a second would spoil one figure, not a thousand.
//!
//! What is written is noise, and what is read is not looked at: the checker does
//! that.

mod application;
mod demand;
mod profile;

pub use application::Application;
pub use demand::{Demand, Kind, Next, Request};
pub use profile::{Bursts, Lengths, Order, Pace, Profile, ProfileError};
