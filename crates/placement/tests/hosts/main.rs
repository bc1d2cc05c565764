//! DRS, by what it promises: what machines are entitled to, what should move and why, what
//! is refused, and that it comes to rest.

mod acting;
mod building;
mod cooldown;
mod entitlements;
mod figures;
mod moving;
#[path = "../../../core/tests/random/mod.rs"]
mod random;
mod resting;
mod ruling;
mod speed;
