//! What people and programs see: the API over HTTP, and views of several services at once.
//!
//! A handler parses, calls one service and converts. Nothing is decided here.

mod disks;
pub(crate) mod http;
mod survey;
mod top;
