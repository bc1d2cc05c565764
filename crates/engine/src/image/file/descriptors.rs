//! The two descriptors of a file, past the page cache and through it: which of them an
//! operation takes, and what it leaves in a cache.

use crate::buffer::{Slice, UNIT};
use crate::image::ImageOp;
use crate::io::Fd;

/// Clients write sectors of this size, in bytes: a file that takes them directly takes all
/// of their writes so.
const SECTOR: u32 = 512;

/// A file's descriptors, and what the one past the page cache asks of operations.
pub(super) struct Descriptors {
    /// Through the page cache.
    pub(super) cached: Fd,
    /// Past it, if the file system can.
    pub(super) direct: Option<Direct>,
    /// A direct write that was answered is on the storage, and in no server's cache.
    pub(super) direct_is_stored: bool,
}

/// The descriptor past the page cache.
pub(super) struct Direct {
    pub(super) fd: Fd,
    /// What offset, length and memory of an operation are multiples of. A power of two.
    pub(super) align: u32,
    /// What offset and length of a write are multiples of, besides.
    pub(super) whole: u32,
}

/// How the bytes of an operation that changes some get to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As all of the image's do.
    Usual,
    /// Through the page cache, though the image is direct.
    Cached,
    /// Its edges through the page cache, and all else directly.
    Both,
}

impl Way {
    /// Whether two may be under way in the same pages.
    pub(super) fn goes_with(self, other: Way) -> bool {
        self == other && self != Way::Both
    }
}

impl Descriptors {
    /// The descriptor to read with.
    pub(super) fn to_read(&self, offset: u64, buf: &Slice) -> Fd {
        match &self.direct {
            Some(direct) if direct.can_read(offset, buf) => direct.fd.clone(),
            _ => self.cached.clone(),
        }
    }

    /// The descriptor to write with.
    pub(super) fn to_write(&self, offset: u64, buf: &Slice) -> Fd {
        match &self.direct {
            Some(direct) if direct.can_write(offset, buf) => direct.fd.clone(),
            _ => self.cached.clone(),
        }
    }

    /// How an operation gets to the device.
    pub(super) fn way(&self, op: &ImageOp) -> Way {
        let Some(direct) = &self.direct else { return Way::Usual };
        let whole = |at: u64| at.is_multiple_of(UNIT as u64);
        match op {
            ImageOp::Write { offset, buf, .. } if !direct.can_write(*offset, buf) => {
                Way::Cached
            }
            ImageOp::Zero { offset, len, .. } if !whole(*offset) || !whole(*len) => {
                Way::Both
            }
            _ => Way::Usual,
        }
    }

    /// Whether an operation that goes this way leaves something in the page cache. Zeroes do
    /// at their edges.
    pub(super) fn dirties(&self, op: &ImageOp, way: Way) -> bool {
        let changes = matches!(op, ImageOp::Write { .. } | ImageOp::Zero { .. });
        changes && (self.direct.is_none() || way != Way::Usual)
    }

    /// Whether some writes of a direct image go through the page cache, which may put back
    /// old bytes around them.
    pub(super) fn share_pages(&self) -> bool {
        self.direct.as_ref().is_some_and(|direct| direct.whole > SECTOR)
    }
}

impl Direct {
    fn can_read(&self, offset: u64, buf: &Slice) -> bool {
        offset & (u64::from(self.align) - 1) == 0 && buf.is_aligned(self.align)
    }

    /// A write is of whole blocks, too.
    fn can_write(&self, offset: u64, buf: &Slice) -> bool {
        let whole = |at: u64| at.is_multiple_of(u64::from(self.whole));
        self.can_read(offset, buf) && whole(offset) && whole(buf.len() as u64)
    }
}
