//! What an export can no longer do, without which its image cannot go on.
//!
//! A server that comes back may be able to do less. Most of that is a convenience, and is done
//! without. What is here is not: writes would fail, or a flush would not cover what it covered
//! when the image was opened.

use std::fmt;

use crate::Bytes;

/// What a disk's blocks have: an export that takes none so small is not opened.
const BLOCK: u32 = 512;

/// Why an export that came back is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It takes no writes.
    Writable,
    /// It is shorter.
    Size {
        /// How long it is.
        now: Bytes,
        /// How long it was.
        before: Bytes,
    },
    /// It takes no flush, so nobody can make anything durable.
    Flush,
    /// Its connections may see different bytes, so a flush covers one of them only.
    Sharing,
    /// It takes no blocks as small as before.
    SmallBlocks {
        /// The smallest that it takes.
        minimum: u32,
    },
}

impl Lack {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Lack::Writable => "export it writable again",
            Lack::Size { .. } => "export it with its former size again",
            Lack::Flush => "start the server with flushes again, or restart the daemon",
            Lack::Sharing => {
                "start the server for several clients again (qemu-nbd: --shared=8; nbdkit: \
                 with multi-conn), or restart the daemon"
            }
            // After a restart it would not be opened at all.
            Lack::SmallBlocks { minimum } if *minimum > BLOCK => {
                "start the server with its former block size again"
            }
            Lack::SmallBlocks { .. } => {
                "start the server with its former block size again, or restart the daemon"
            }
        }
    }
}

/// Goes on after "the export".
impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Writable => write!(f, "can no longer be written: it is read-only now"),
            Lack::Size { now, before } => write!(
                f,
                "can no longer hold the image: it has {now} ({} bytes) now, and had {} bytes",
                now.0, before.0
            ),
            Lack::Flush => {
                write!(f, "can no longer be flushed: its server takes no flushes now")
            }
            Lack::Sharing => write!(
                f,
                "can no longer be used over several connections: its server does not say any \
                 more that all of them see the same bytes (multi-conn)"
            ),
            Lack::SmallBlocks { minimum } => write!(
                f,
                "can no longer be asked for small blocks: it wants {minimum} bytes at least now"
            ),
        }
    }
}
