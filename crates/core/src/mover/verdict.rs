//! How a move has ended.

use super::event::{Failure, Words};

/// Why the disk stays where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Somebody asked for that.
    Asked,
    /// The VM has failed, or does not answer.
    Vm(Words),
    /// The destination or the state has.
    Here(Words),
    /// The VM's copy failed.
    Failed(Words),
    /// The destination did not catch up with the guest, so it was not switched over.
    Late,
    /// What is at the destination is not what was made for the copy.
    NotTheCopy,
    /// Somebody has taken the disk from the VM.
    Unplugged,
    /// The VM's disk is at another image.
    Elsewhere(Words),
    /// Somebody else has given the copy up.
    ByHand,
}

/// Why nobody can say where the last writes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The VM ended while it switched over.
    Ended,
    /// The VM knows nothing of the switch-over.
    Forgotten,
    /// The disk was taken from the VM while it switched over.
    TakenAway,
    /// The disk is at neither image.
    Neither,
    /// The VM runs with the copy, and nobody has seen that it was whole.
    Unseen,
    /// The image at the destination is not the one that was made.
    NotTheCopy,
}

/// What has become of the destination of a move that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There is none of ours.
    Gone,
    /// It is kept: nobody has seen that it is only a copy.
    Kept,
    /// It goes once the VM has let go of it.
    Later,
    /// It could not be removed; that is tried again.
    InTheWay(Words),
}

/// How a move that leads nowhere has ended, now that its VM has nothing of it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tidied {
    /// The disk is where it was, as was said; and what has become of the destination.
    Stays(Rest),
    /// It was said that the disk stays, and the last writes may be in either image.
    Unclear(Doubt),
}

/// How a move has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The disk is at the destination.
    Moved {
        /// The VM has no such disk any more; the destination has all of it.
        unplugged: bool,
        /// What the VM could not be had to forget, and why.
        left: Option<Words>,
    },
    /// The disk is where it was.
    Stays {
        /// Why.
        why: Why,
        /// Why the VM may still have something of the copy.
        still: Option<Failure>,
        /// What has become of the destination.
        rest: Rest,
    },
    /// The last writes may be in either image; both are kept.
    Unclear(Doubt),
}

impl Verdict {
    /// Whether the last writes may be in either image. So they may where QEMU has switched
    /// over to an image that is not the one that was made ([`Doubt::NotTheCopy`]); where
    /// that was seen before the switch-over the disk stays ([`Why::NotTheCopy`]).
    pub fn is_unclear(&self) -> bool {
        match self {
            Verdict::Unclear(_) => true,
            Verdict::Moved { .. } | Verdict::Stays { .. } => false,
        }
    }

    /// Whether something is still to be put away.
    pub fn is_untidy(&self) -> bool {
        match self {
            Verdict::Stays { still, rest, .. } => {
                still.is_some() || matches!(rest, Rest::InTheWay(_) | Rest::Later)
            }
            Verdict::Moved { .. } | Verdict::Unclear(_) => false,
        }
    }
}
