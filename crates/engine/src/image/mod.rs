//! An image: the bytes of a disk on one datastore, as a reactor sees it.
//!
//! An `Image` is a state machine on one reactor. It is given operations with
//! `submit` and answers each exactly once, in any order, by pushing onto
//! `Cx::finished` (also from within `submit`). It gets what it asked of the
//! kernel or of the clock back through `completed` and `timer`. What happens to it
//! between operations it tells in the same way, as [`Ticket::NEWS`].
//!
//! What an image promises:
//! - Operations in flight together have no order among them, except that an
//!   image never mixes bytes that neither of two overlapping writes wrote.
//! - A `Flush` covers the writes that were answered before it was submitted.
//! - After a `Zero` the range reads as zeroes, whether or not it was unmapped.
//! - Every operation is inside the image: the caller has checked its range.
//!   Offsets and lengths are multiples of 512 unless `ImageInfo::min_block` is 1.

mod budget;
pub(crate) mod claim;
mod clone;
mod doubt;
mod emulated;
mod emulator;
mod extents;
pub(crate) mod file;
mod file_handle;
mod file_system;
mod found;
mod identity;
mod layer;
mod lease;
mod lock;
pub(crate) mod nbd;
mod open;
mod openers;
#[cfg(test)]
mod rig;
mod shaped;
mod voucher;
mod writers;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use sterna_core::durability::{Keeper, Lack, Loss};
use sterna_core::qos::Cost;
use sterna_core::{ByteRange, DiskId, Nanos};

use crate::account::Line;
use crate::buffer::{Pool, Slice};
use crate::io::{Completion, Crew, Errno, ImageId, Io, Stored, Token};
use crate::qos::{Copied, Qos};
use crate::timer::Timers;

pub use budget::Budget;
pub use file_system::is_of_this_machine;
pub use found::FoundFile;
pub use identity::{Astray, FileIdentity, HeldFile};
pub(crate) use lease::{Lease, Leased};
pub use lock::is_used;
pub(crate) use nbd::Memory;
pub use openers::{Opener, opened_by_others};
pub(crate) use voucher::Voucher;
pub use voucher::{VouchFor, Vouched};
pub(crate) use writers::written_by_others;

/// How to open an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSpec {
    /// A regular file or a block device, raw.
    File {
        /// Where it is.
        path: PathBuf,
        /// Past the page cache where the file system can (`O_DIRECT`).
        direct: bool,
    },
    /// An export of an NBD server.
    Nbd(sterna_nbd::Uri),
}

/// What all objects of a reactor share.
pub(crate) struct Cx {
    /// Who is asked about exports that nobody knows.
    pub(crate) voucher: Voucher,
    pub(crate) io: Box<dyn Io>,
    pub(crate) timers: Timers,
    pub(crate) buffers: Pool,
    /// For first receive buffers: whoever comes in finds one.
    pub(crate) newcomers: Pool,
    /// For connections to NBD servers: the first hundred need no other.
    pub(crate) links: Pool,
    /// Zeroes to write, `file::ZEROES` bytes, shared by all.
    pub(crate) zeroes: Slice,
    /// `CLOCK_MONOTONIC`, read once per iteration of the loop.
    pub(crate) now: Nanos,
    /// Answers of images, on their way to the disks that asked.
    pub(crate) finished: Vec<(Ticket, ImageResult)>,
    /// Bytes of `buffers` that guests have been answered for, or soon will be, and
    /// that a migration's destination still writes from.
    pub(crate) lent: usize,
    /// Who may start when.
    pub(crate) qos: Qos,
}

impl Cx {
    /// At the beginning of time. Nothing if the buffers have no room for the zeroes.
    pub(crate) fn new(
        io: Box<dyn Io>,
        buffers: Pool,
        [newcomers, links]: [Pool; 2],
        qos: Qos,
        voucher: Voucher,
    ) -> Option<Cx> {
        let zeroes = buffers.get(file::ZEROES)?.slice(0, file::ZEROES);
        zeroes.zero();
        Some(Cx {
            io,
            timers: Timers::default(),
            buffers,
            newcomers,
            links,
            zeroes,
            now: Nanos(0),
            finished: Vec::new(),
            lent: 0,
            qos,
            voucher,
        })
    }
}

/// Names an operation on an image to the disk that asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The disk's number on its reactor.
    pub(crate) disk: u32,
    /// What the disk (or its mirror's driver) calls it.
    pub(crate) id: u64,
}

impl Ticket {
    /// Of no operation: an image's `has_forgotten`, `has_gone_back`, `another_since` or
    /// `is_in_reach` has changed.
    pub(crate) const NEWS: u64 = u64::MAX;
    /// Of an image's last flush, which nobody is answered.
    const LAST: u64 = Self::NEWS - 1;
}

/// The tag of the timer of an image's last flush: beyond all connections, and no layer's.
const LEAVING: u32 = 1 << 16;
/// How long storage may take for the last flush. It must fit into the time that a daemon
/// takes to end, with what is still under way before.
const LEAVE_WITHIN: Nanos = Nanos::from_secs(4);

/// An operation on an image.
#[derive(Clone, Debug)]
pub(crate) enum ImageOp {
    /// Fill the slice from the image.
    Read { offset: u64, buf: Slice },
    /// Write the slice; with `fua` answered when durable.
    Write { offset: u64, buf: Slice, fua: bool },
    /// Make the range read as zeroes; with `unmap` it may lose its space. With
    /// `fast`, fail with `ENOTSUP` rather than write zeroes out.
    Zero { offset: u64, len: u64, unmap: bool, fua: bool, fast: bool },
    /// Take the range over from another image's file, by reference (reflink).
    /// Where the two cannot share blocks, fails with an error of [`no_clone`] and
    /// changes nothing.
    Clone { offset: u64, len: u64, from: Arc<Stored> },
    /// Make all answered writes durable.
    Flush,
    /// Say what is allocated, from `offset` on; at most `limit` extents, which
    /// may cover less than `len` but at least one byte.
    Extents { offset: u64, len: u64, limit: usize },
    /// The range will be read soon.
    Cache { offset: u64, len: u64 },
}

impl ImageOp {
    /// Whether its answer says that something is durable.
    pub(crate) fn makes_durable(&self) -> bool {
        matches!(
            self,
            ImageOp::Flush
                | ImageOp::Write { fua: true, .. }
                | ImageOp::Zero { fua: true, .. }
        )
    }

    /// What of the pool it keeps from others.
    pub(crate) fn memory(&self) -> usize {
        match self {
            ImageOp::Read { buf, .. } | ImageOp::Write { buf, .. } => buf.cost(),
            _ => 0,
        }
    }

    /// The bytes that it takes or gives.
    fn transferred(&self) -> u64 {
        match self {
            ImageOp::Read { buf, .. } | ImageOp::Write { buf, .. } => buf.len() as u64,
            _ => 0,
        }
    }

    /// What it costs on an image; none for what need not wait. Zeroes that are written out
    /// and what is read ahead cost what a write and a read of as much do.
    pub(crate) fn cost(&self, on: &dyn Image) -> Option<Cost> {
        let moves = on.moves_bytes(self);
        let bytes = match self {
            ImageOp::Read { .. } | ImageOp::Write { .. } => self.transferred(),
            ImageOp::Zero { len, .. } if moves => *len,
            // Blocks that are shared or let go are neither read nor written.
            ImageOp::Zero { .. } | ImageOp::Clone { .. } => 0,
            ImageOp::Cache { len, .. } if moves => *len,
            ImageOp::Flush | ImageOp::Extents { .. } | ImageOp::Cache { .. } => {
                return None;
            }
        };
        Some(Cost { bytes })
    }

    /// What it will have done as the copier's, if it is asked for now.
    pub(crate) fn copied(&self, now: Nanos) -> Copied {
        let write = !matches!(self, ImageOp::Read { .. });
        Copied { write, bytes: self.transferred(), arrived: now }
    }
}

/// Whether an error of a `Clone` means that it has to be copied: the file system
/// does not share blocks, not between these two, or not this range.
pub(crate) fn no_clone(errno: Errno) -> bool {
    matches!(
        errno.0,
        libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS | libc::EXDEV | libc::EINVAL
    )
}

/// How an operation ended.
pub(crate) type ImageResult = Result<Done, Errno>;

/// The good answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Done.
    Ok,
    /// What is where, in order and without gaps from the offset asked for.
    Extents(Vec<Extent>),
}

/// A stretch of an image of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) range: ByteRange,
    /// It takes no space (and so reads as zeroes).
    pub(crate) hole: bool,
    /// It reads as zeroes.
    pub(crate) zero: bool,
}

/// What is known about an image.
#[derive(Clone, Debug)]
pub(crate) struct ImageInfo {
    /// Bytes.
    pub(crate) size: u64,
    /// Operations must be multiples of this.
    pub(crate) min_block: u32,
    /// Past the page cache.
    pub(crate) direct: bool,
    /// Whether `Extents` finds holes (else everything is said to be data).
    pub(crate) finds_holes: bool,
    /// Whether `Zero` works without writing zeroes out, as far as is known.
    pub(crate) fast_zero: bool,
}

/// The bytes of a disk on one datastore.
pub(crate) trait Image {
    /// Starts an operation; answered exactly once through `cx.finished`.
    fn submit(&mut self, cx: &mut Cx, ticket: Ticket, op: ImageOp);

    /// An operation of the kernel that this image started is done.
    fn completed(&mut self, cx: &mut Cx, completion: Completion);

    /// A timer that this image set has fired.
    fn timer(&mut self, cx: &mut Cx, tag: u32) {
        let _ = (cx, tag);
    }

    fn info(&self) -> ImageInfo;

    /// Whether an operation keeps its datastore busy with its bytes: they are read or
    /// written, and not only marked. As far as is known.
    fn moves_bytes(&self, op: &ImageOp) -> bool {
        matches!(op, ImageOp::Read { .. } | ImageOp::Write { .. })
    }

    /// The file behind the image, if another image may `Clone` from it: none
    /// where something lies in between.
    fn file(&self) -> Option<Arc<Stored>> {
        None
    }

    /// The file behind the image and its name, whatever lies in between: none where there
    /// is no file.
    fn named(&self) -> Option<Arc<HeldFile>> {
        None
    }

    /// Operations that have not been answered.
    fn in_flight(&self) -> usize;

    /// Why writes that were answered, and not flushed since, may have been lost: the server
    /// behind the image was gone, or has failed a flush. Says so once.
    fn has_forgotten(&mut self) -> Option<Loss> {
        None
    }

    /// Whether the server behind the image came back in an older state, without writes
    /// that it had flushed. Says so once.
    fn has_gone_back(&mut self) -> bool {
        false
    }

    /// Who keeps what is written to it, if that could have a line in its disk's account and
    /// has none: the account could not be made when the image was opened.
    fn lacks_line(&self) -> Option<Keeper> {
        None
    }

    /// Its line, which it gets late: what is unflushed by now is noted there.
    fn keep_late(&mut self, cx: &mut Cx, line: Line) {
        let _ = (cx, line);
    }

    /// Since when another export answers where the image was. It is not used.
    fn another_since(&self) -> Option<Nanos> {
        None
    }

    /// Since when the export that the image is on lacks what the image relies on, and what
    /// that is. It is not used.
    fn lacks(&self) -> Option<(Nanos, Lack)> {
        None
    }

    /// What the image is known by, for the next one that is opened in its place.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Whether a flush has failed in such a way that what it should have made durable may
    /// be lost, whatever later flushes answer. Says so once.
    fn has_lost(&mut self) -> bool {
        false
    }

    /// Whether there is a way to what is behind the image. While there is none, its
    /// operations wait.
    fn is_in_reach(&self) -> bool {
        true
    }

    /// How many of its ways there it has lost by now.
    fn ways_lost(&self) -> u64 {
        0
    }

    /// Answers all operations with an error as soon as the kernel has given
    /// their buffers back, instead of waiting for a server that is gone. Images
    /// whose operations end by themselves have nothing to do.
    fn abort(&mut self, cx: &mut Cx) {
        let _ = cx;
    }

    /// No operation will be submitted any more. What the image keeps going by
    /// itself (receives, timers) must end; it is dropped when `idle`.
    fn close(&mut self, cx: &mut Cx) {
        let _ = cx;
    }

    /// As `close`, of an image that goes on to be the truth: what was answered is made
    /// durable before, if that can be had soon.
    fn take_leave(&mut self, cx: &mut Cx) {
        self.close(cx);
    }

    /// Nothing of this image is in flight, neither operations nor its own.
    fn idle(&self) -> bool {
        self.in_flight() == 0
    }
}

/// An image that has been opened on some thread and can be given to a reactor.
pub(crate) trait Opened: Send {
    /// Its size in bytes.
    fn size(&self) -> u64;

    /// Who keeps what is written to it, as far as that is known again.
    fn keeper(&self) -> Option<Keeper> {
        None
    }

    /// Has it note in a line of its disk's account whether writes are unflushed.
    fn keep(&mut self, line: Line) {
        drop(line);
    }

    /// It is the image of this disk, of so many bytes. Reads what it is to be known by
    /// again. Blocks.
    fn belong(&mut self, disk: DiskId, size: u64) -> Result<(), OpenError> {
        let _ = (disk, size);
        Ok(())
    }

    /// Has it carry nothing before it is known to be the image that was there before.
    fn recall(&mut self, memory: Memory) {
        drop(memory);
    }

    /// Makes it work on the calling reactor. All its tokens must carry
    /// `Owner::Image(id)`.
    fn start(self: Box<Self>, cx: &mut Cx, id: ImageId) -> Box<dyn Image>;
}

/// Why an image cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {what}: {reason}")]
pub struct OpenError {
    what: String,
    reason: String,
}

impl OpenError {
    pub(crate) fn new(what: impl fmt::Display, reason: impl fmt::Display) -> OpenError {
        OpenError { what: what.to_string(), reason: reason.to_string() }
    }
}

/// Opens an image of the datastore with that crew. Blocks: not for a reactor's thread.
pub(crate) fn open(
    spec: &ImageSpec,
    crew: &Arc<Crew>,
) -> Result<Box<dyn Opened>, OpenError> {
    match spec {
        ImageSpec::File { path, direct } => {
            Ok(Box::new(file::OpenedFile::open(path, *direct, crew)?))
        }
        ImageSpec::Nbd(uri) => Ok(Box::new(nbd::OpenedNbd::open(uri, crew)?)),
    }
}

/// The image as its datastore is to appear: kept within its shape, and no quicker
/// than the array that it emulates.
pub(crate) fn slowed(opened: Box<dyn Opened>, budget: &Arc<Budget>) -> Box<dyn Opened> {
    let opened = match budget.array() {
        Some(array) => emulated::emulated(opened, array),
        None => opened,
    };
    shaped::shaped(opened, budget)
}

/// The token of an image's operation or timer.
pub(crate) fn token(id: ImageId, tag: u32) -> Token {
    Token { owner: crate::io::Owner::Image(id), tag }
}
