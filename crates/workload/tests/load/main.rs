//! Applications ask for what their profile says.

mod application;
mod demand;
