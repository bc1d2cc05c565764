//! Cruise control on modelled arrays: the published experiment, and worlds made from
//! seeds, steady ones and such with bursts, waves, steps and slow arrays.
//!
//! A failure prints its seed.

mod published;
mod seeded;
mod speeds;

use sterna_core::qos::Goal;
use sterna_core::qos::policy::{Cruise, Fallback, Tolerance};

/// A response time: that is an upper bound, and nobody is delayed to it.
fn is_time(goal: Goal) -> bool {
    matches!(goal, Goal::Response(_))
}

/// A target, within a tenth.
fn cruise(target: Goal) -> Cruise {
    let tolerance = Tolerance::new(10).expect("a tolerance");
    Cruise { target, tolerance, floor: None, fallback: Fallback::None }
}
