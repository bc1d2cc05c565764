//! What must hold, and the loops that hold it.
//!
//! `cruise` gives one class what it was promised by slowing the others.

pub mod cruise;
