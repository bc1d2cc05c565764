//! The copy that moves a disk: QEMU's mirror.
//!
//! ```text
//! begin ──> copying ──> ready ── complete ──> ended: the destination, or an error
//!              └───────────┴──── give up ───> ended: the source, as before
//! ```
//!
//! A copy has a name that nothing else in the VM has, from which the names of its job and
//! of its nodes are made. So it is found again by whoever knows the name, whatever became
//! of the process that began it.

use crate::Export;

/// What a gentle copy copies at a time. QEMU takes 16 MiB unless told otherwise, and all
/// of that before it looks at its limit: the guest feels it. With less, the limit holds
/// as exactly as a guard needs, and as one who has named a rate expects; the copy is slower
/// where nothing limits it.
pub(crate) const GENTLE: u64 = 1 << 20;

/// A copy that is, or is to be, under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its name: letters, digits and hyphens, 24 at most (QEMU takes 31, and some of
    /// our names have an end).
    pub name: String,
    /// The disk.
    pub device: String,
    /// Where it is, in the words of [`Drive::image`](crate::Drive::image).
    pub source: String,
    /// Where it goes.
    pub to: Place,
    /// Whether it copies little at a time, because something must hold beside it or it has
    /// a limit.
    pub gentle: bool,
    /// Whether a destination that is a file keeps the room that it has: then nothing of it
    /// is discarded, also not by the guest later.
    pub thick: bool,
}

impl Copy {
    /// The node below the destination's format, where that is a file.
    pub(crate) fn file_node(&self) -> String {
        format!("{}-file", self.name)
    }
}

/// Where a copy goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To a file.
    File {
        /// Its path.
        path: String,
        /// How its bytes are to be kept.
        format: String,
    },
    /// To an export of a server that is there.
    Export(Export),
}

impl Place {
    /// As the VM names the image, once the disk is there.
    pub fn image(&self) -> String {
        match self {
            Place::File { path, .. } => path.clone(),
            Place::Export(export) => export.to_string(),
        }
    }
}

/// What there was of a copy that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Nothing.
    Nothing,
    /// Something; how it had ended is not said.
    Something,
    /// A job that ended before it switched over: the disk is where it was.
    Undone,
}

impl GivenUp {
    /// Whether there was anything.
    pub fn is_something(self) -> bool {
        self != GivenUp::Nothing
    }
}

/// Where a copy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// Bytes are being copied.
    Copying {
        /// So many.
        done: u64,
        /// Of so many, as far as is known: it grows as the guest writes.
        total: u64,
    },
    /// Both sides are the same, and can be switched over.
    Ready {
        /// So many bytes were copied.
        done: u64,
    },
    /// QEMU is switching over.
    Switching,
    /// It has ended; why, if it failed. Where the disk is then has to be asked for.
    Ended(Option<String>),
    /// QEMU knows nothing of it.
    Unknown,
}
