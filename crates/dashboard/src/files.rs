//! All files of `dist/`, by `build.rs`.

use super::File;

/// All of them.
pub(crate) const ALL: &[File] = include!(concat!(env!("OUT_DIR"), "/files.in"));
