//! Scenarios: the published one, what holds in any, how near they are to a world of
//! single requests, and how they are refused.

mod errors;
mod laws;
mod nas250;
mod size;
mod worlds;
