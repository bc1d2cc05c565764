//! Halls: what holds in any, what DRS brings to those that come with the sources, and how
//! they are refused.

mod building;
mod errors;
mod failing;
mod laws;
mod shipped;
mod size;
