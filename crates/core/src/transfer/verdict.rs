//! How a transfer has ended.

use super::event::Words;

/// Why the guest is where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Somebody asked for that.
    Asked,
    /// The daemon was stopped.
    Stopped,
    /// The daemon was ended before anything was sent.
    NotSent,
    /// The daemon was ended while it was taken back.
    Interrupted,
    /// What a QEMU, or what starts it, has said.
    Vm(Words),
    /// The state does not take it.
    NotRecorded(Words),
    /// The guest writes to its memory faster than that is copied.
    Slow,
    /// Somebody has the guest stand still.
    Paused,
    /// The receiver does not take it.
    NotTaken(Words),
    /// It takes too long to.
    TooLong,
    /// Another QEMU is at the receiver's socket.
    Replaced,
    /// The source has failed to send it.
    Failed(Words),
    /// Somebody else has had the source give it up.
    ByHand,
    /// The source knows nothing of it.
    Unknown,
    /// The source goes on, after all of it was sent.
    GoesOn,
    /// The source did not answer.
    Silent,
    /// The source had ended.
    Ended,
    /// The receiver has refused to run it.
    Refused(Words),
}

/// Why a guest runs nowhere, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its QEMU has ended before the receiver had it.
    Ended {
        /// How that is known.
        words: Words,
        /// What had come of the transfer before.
        why: Why,
    },
    /// The receiver has ended, and may have run it: what the source has of it is older
    /// than its disks.
    MayHaveRun(Words),
}

/// What has become of a receiver to which the guest does not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There is none that was told of it.
    Gone,
    /// It does not answer.
    Deaf,
    /// It may be somebody else's, and is left alone.
    Spared,
    /// It does not end.
    Stays,
}

/// What the guest has left behind at the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A QEMU that does something else by now, and is left alone.
    Busy,
    /// One that does not end.
    Stays,
}

/// How a transfer has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The guest is at the receiver, and has run there or could not.
    There {
        /// Why it does not run there, in QEMU's word.
        befallen: Option<Words>,
        /// What it has left behind.
        left: Option<Leftover>,
    },
    /// It is at the source.
    Stays {
        /// Why.
        why: Why,
        /// Why it does not run there, in QEMU's word.
        stands: Option<Words>,
        /// What has become of the receiver.
        rest: Rest,
    },
    /// It runs nowhere, or it is not known where.
    Lost(Loss, Rest),
}
