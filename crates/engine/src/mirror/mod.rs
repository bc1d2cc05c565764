//! The mirror on a reactor: its driver, and the region map in its file.

pub mod map;
