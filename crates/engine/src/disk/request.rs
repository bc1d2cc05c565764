//! A guest's operation on its way from the client to the answer.

use sterna_core::Nanos;

use crate::image::{Done, ImageOp, ImageResult};
use crate::io::Errno;
use crate::qos::Admission;

/// A guest's operation.
pub(crate) struct Request {
    pub(crate) origin: Origin,
    pub(crate) op: ImageOp,
    pub(crate) arrived: Nanos,
    pub(super) progress: Progress,
    /// What had been promised when it came.
    pub(super) promised: u64,
}

/// How far a request is.
pub(super) enum Progress {
    /// It waits for admission.
    Waiting,
    /// It is admitted since then; what it has to read before is being read.
    Patching(Nanos, Option<Admission>),
    /// It is on its way since then, without admission if it needed none.
    Started(Nanos, Option<Admission>),
}

/// Who waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) client: Client,
    /// The client's number for the command.
    pub(crate) command: u32,
}

/// A client of the disk, by its number on the reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Over NBD.
    Connection(u32),
    /// A machine with its own driver.
    Device(u32),
}

/// A request that is done.
pub(crate) struct Answer {
    pub(crate) origin: Origin,
    pub(crate) op: ImageOp,
    pub(crate) result: Result<Done, Errno>,
}

/// Whether a request was declined, as it asked to be: whoever asks for zeroes that must be
/// fast writes them otherwise. That is neither an answer nor an error.
pub(super) fn is_declined(op: &ImageOp, result: &ImageResult) -> bool {
    let fast = matches!(op, ImageOp::Zero { fast: true, .. });
    fast && matches!(result, Err(Errno(libc::EOPNOTSUPP)))
}
