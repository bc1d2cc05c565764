//! Service levels: who may start when.

mod goal;
mod terms;

pub use goal::{Goal, ParseGoalError};
pub use terms::{Limit, Rate, SHARES, Terms};
