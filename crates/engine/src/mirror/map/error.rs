//! Why a region map cannot be made or used.

use std::io;
use std::path::{Path, PathBuf};

use sterna_core::Bytes;

use super::MapKey;

/// Why a region map cannot be made or used. After all but `Io` and `Busy` the
/// way on is to compare or copy everything, with a new map.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file system said no.
    #[error("cannot {what} the region map {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody has it open.
    #[error("the region map {} is in use; is another daemon running?", .0.display())]
    Busy(PathBuf),
    /// No disk has this shape.
    #[error("a disk of {size} bytes in regions of {region} bytes cannot be mapped")]
    Shape {
        /// The disk's size.
        size: u64,
        /// The region's size.
        region: u32,
    },
    /// Neither copy of the header is whole.
    #[error("the region map's header is damaged")]
    Header,
    /// Made by a newer Sterna.
    #[error("the region map has version {0}, which this Sterna does not know")]
    Version(u32),
    /// A map of another migration or disk.
    #[error("the region map belongs to {found:?}, not to {expected:?}")]
    Other {
        /// What it is about.
        found: MapKey,
        /// What it should be about.
        expected: MapKey,
    },
    /// The file is longer or shorter than its header says.
    #[error("the region map has {found} bytes and should have {expected}")]
    Length {
        /// The file's length.
        found: u64,
        /// What the header asks for.
        expected: u64,
    },
    /// Words that are not whole.
    #[error(
        "the region map is damaged in {count} places, for {from} to {to} of the disk"
    )]
    Words {
        /// How many.
        count: u64,
        /// Where the disk's part of the first of them begins.
        from: Bytes,
        /// Where the disk's part of the last of them ends.
        to: Bytes,
    },
}

impl MapError {
    /// Whether the map itself may be whole: then it is to be opened again, later.
    pub fn may_pass(&self) -> bool {
        match self {
            MapError::Busy(_) => true,
            MapError::Io { source, .. } => source.kind() != io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

/// The error of a map's file, at `path`.
pub(super) fn failed(what: &'static str, path: &Path, source: io::Error) -> MapError {
    MapError::Io { what, path: path.into(), source }
}
