//! What people see of a migration.

use std::fmt;

use super::{Fault, Places};
use crate::{Bytes, Nanos};

/// Where a migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Regions are being copied.
    Copying,
    /// Both sides are being read and compared.
    Verifying,
    /// Nothing is behind; the switch-over is being made.
    SwitchingOver,
    /// Stopped, with a reason; can be resumed.
    Paused(PauseReason),
    /// The destination is the truth.
    Completed,
    /// The source is the truth, as before.
    Cancelled,
}

/// Why a migration stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// The operator asked for it.
    Asked,
    /// The destination failed.
    Destination(Fault),
    /// An operation on the destination has taken longer than this.
    DestinationTimedOut(Nanos),
    /// Somebody has done something to it: it is not where it was, or not what it was.
    DestinationAstray,
    /// The source cannot be read (its errno).
    Source(i32),
    /// The copier has waited for the source longer than this.
    SourceTimedOut(Nanos),
    /// Writes come faster than the destination takes them within its patience.
    NotConverging {
        /// Regions still behind; none if they fall behind only while the source is flushed.
        behind: u64,
        /// The longest that a guest write may wait for the destination.
        patience: Nanos,
    },
    /// A part of the source is gone for good: it was shortened.
    SourceAstray,
    /// The guest's writes fail at the source, and put regions behind faster than they can be
    /// copied.
    SourceRefusesWrites,
    /// The switch-over did not fit its budget, time after time.
    SwitchOverTooLong {
        /// The budget.
        budget: Nanos,
    },
    /// The state store cannot record the switch-over.
    StateStore,
    /// The region map cannot be kept in its file.
    RegionMap,
    /// Copied regions keep reading differently on the destination.
    Differing(Places),
    /// All else is done, and these sectors of the source cannot be read.
    BadSectors(Places),
}

impl PauseReason {
    /// Whether the destination has failed, does not answer or is astray, so that what is
    /// open of it is of no use until it is opened anew. A full one is only full.
    pub fn is_destinations(&self) -> bool {
        match self {
            PauseReason::Destination(fault) => *fault != Fault::Full,
            PauseReason::DestinationTimedOut(_) | PauseReason::DestinationAstray => true,
            _ => false,
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PauseReason::Asked => write!(f, "asked for"),
            PauseReason::Destination(Fault::Full) => {
                write!(f, "the destination is full (ENOSPC)")
            }
            // Its own limit is no fault of the destination's.
            PauseReason::Destination(Fault::Error(errno @ (23 | 24))) => {
                write!(f, "the destination cannot be opened ({})", Errno(*errno))
            }
            PauseReason::Destination(Fault::Error(errno)) => {
                write!(f, "the destination failed ({})", Errno(*errno))
            }
            PauseReason::Destination(Fault::Lost) => {
                write!(f, "the connection to the destination is lost")
            }
            PauseReason::Destination(Fault::Another) => {
                write!(f, "another export answers at the destination's address")
            }
            PauseReason::Destination(Fault::Lacks(lack)) => {
                write!(f, "the destination's export {lack}")
            }
            PauseReason::DestinationTimedOut(after) => {
                write!(f, "the destination has not answered for {after}")
            }
            PauseReason::DestinationAstray => {
                write!(f, "the destination is no longer the same image")
            }
            PauseReason::Source(errno) => {
                write!(f, "the source cannot be read ({})", Errno(*errno))
            }
            PauseReason::SourceTimedOut(after) => {
                write!(f, "the source has not answered for {after}")
            }
            PauseReason::NotConverging { behind: 0, patience } => write!(
                f,
                "writes fall behind at each flush of the source, though they wait up to \
                 {patience} for the destination"
            ),
            PauseReason::NotConverging { behind, patience } => write!(
                f,
                "the destination is too slow: {behind} regions stay behind though \
                 writes wait up to {patience} for it"
            ),
            PauseReason::SourceAstray => write!(f, "a part of the source is gone"),
            PauseReason::SourceRefusesWrites => write!(
                f,
                "writes of the disk fail at the source, and Sterna has to copy again \
                 what each of them left"
            ),
            PauseReason::SwitchOverTooLong { budget } => write!(
                f,
                "the switch-over does not fit into {budget}: the destination or the \
                 state directory is too slow to flush"
            ),
            PauseReason::StateStore => {
                write!(f, "the state directory cannot record the switch-over")
            }
            PauseReason::RegionMap => {
                write!(f, "the region map cannot be kept in memory")
            }
            PauseReason::Differing(places) => write!(
                f,
                "the destination reads differently after copying again: {places}"
            ),
            PauseReason::BadSectors(places) => {
                write!(f, "the source cannot be read: {places}; the rest is copied")
            }
        }
    }
}

/// An error of the system, by the name that operators search for.
struct Errno(i32);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Linux's numbers; the others are rare enough to be looked up.
        match self.0 {
            1 => f.write_str("EPERM: not permitted"),
            5 => f.write_str("EIO: input/output error"),
            6 | 19 => f.write_str("ENODEV: no such device"),
            9 => f.write_str("EBADF: closed"),
            11 => f.write_str("EAGAIN: it was too busy"),
            12 => f.write_str("ENOMEM: out of memory"),
            22 => f.write_str("EINVAL: invalid request"),
            61 => f.write_str("ENODATA: the medium has lost the data"),
            74 => f.write_str("EBADMSG: checksum error"),
            84 => f.write_str("EILSEQ: integrity error"),
            117 => f.write_str("EUCLEAN: file system damaged"),
            23 => f.write_str("ENFILE: this machine has too many open files"),
            24 => f.write_str("EMFILE: the daemon has too many open files"),
            30 => f.write_str("EROFS: read-only"),
            95 => f.write_str("EOPNOTSUPP: not supported"),
            110 => f.write_str("ETIMEDOUT: timed out"),
            125 => f.write_str("ECANCELED: cancelled"),
            other => write!(f, "error {other}"),
        }
    }
}

/// A migration in figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Where it is.
    pub phase: Phase,
    /// The disk's size.
    pub total: Bytes,
    /// Bytes on the destination that equal the source's (copied, or known as holes).
    pub synced: Bytes,
    /// Bytes written to the destination by the copier so far (re-copies count again).
    pub copied: Bytes,
    /// Bytes verified so far, if verification was asked for.
    pub verified: Option<Bytes>,
    /// Bytes that are still to be copied, as far as is known; holes take no time and do not
    /// count.
    pub to_copy: Bytes,
    /// Bytes of each side that are still to be compared, like those.
    pub to_compare: Bytes,
    /// Regions that guest writes or failures put behind and that must be copied anew.
    pub late_regions: u64,
    /// Bytes of the source that cannot be read, as far as is known by now.
    pub unreadable: Bytes,
    /// What the copier gets through now, bytes of the disk per second.
    pub rate: f64,
    /// How long the guest has sent nothing, all in all since this mirror began: gaps
    /// that the copier has to itself, as far as they are of use.
    pub guest_idle: Nanos,
    /// Bytes that the copier got through since this mirror began, whether it copied,
    /// compared or found zeroes.
    pub passed: Bytes,
    /// How long guests' writes waited for the destination alone, all of them together,
    /// since this mirror began.
    pub mirror_wait: Nanos,
    /// Guests' writes that were mirrored, and answered, since this mirror began.
    pub mirrored_writes: u64,
    /// How long the rest will take at the rate of the last seconds to minutes, if that can
    /// be said.
    pub eta: Option<Nanos>,
    /// How long the guest was held at the switch-over that succeeded.
    pub held: Option<Nanos>,
    /// Switch-overs begun and undone.
    pub undone: u32,
    /// How long a write may wait for the destination now.
    pub patience: Nanos,
}
