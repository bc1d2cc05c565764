//! What the mover waits for: each state has the one question that is open.

use super::event::Failure;
use super::event::{Ended, GivenUp, Words};
use super::verdict::{Doubt, Tidied, Verdict, Why};
use crate::Nanos;

/// What the mover does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing was asked yet.
    Fresh,
    /// The copy is made to begin.
    Beginning(Beginning),
    /// The copy is watched.
    Following(Following),
    /// The copy has ended so: where is the disk?
    Judging(Over),
    /// The VM has gone while it switched over.
    Lost(Lost),
    /// The disk is at the destination.
    Arriving(Arriving, Arrival),
    /// The disk is where it was.
    Staying(Staying, Stay),
    /// How it has ended is made durable.
    Closing(Closing, Verdict),
    /// What a VM has not let go of is put away.
    Tidying(Tidying, Told),
    /// Nothing more will be asked.
    Over,
}

/// Whether the wishes are those that are wanted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// As far as is known.
    Current,
    /// Something may have been asked for since they were read.
    Behind,
}

/// What this process has told QEMU of the switch-over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing.
    None,
    /// Nothing, and not before this moment.
    Later(Nanos),
    /// To switch over, at this moment; it has taken the word.
    Complete(Nanos),
    /// Not to, after all.
    CallOff {
        /// When it was told so last.
        at: Nanos,
        /// Why.
        why: Why,
        /// Whether it had taken the word to switch over.
        was_told: bool,
        /// Whether it has taken this word.
        heard: bool,
    },
}

impl Order {
    /// Whether the VM has taken the word to switch over.
    pub(super) fn was_told(&self) -> bool {
        matches!(self, Order::Complete(_) | Order::CallOff { was_told: true, .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    GivingUp,
    Finding(GivenUp),
    Peeking,
    Counting,
    Reading { until: Nanos },
    Watching { until: Nanos },
    Waiting { until: Nanos },
    Clearing,
    Making,
    Starting(u64),
    Recording,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Following {
    Reading,
    Looking,
    Watching,
    /// The VM counts nothing of the disk: is it gone?
    Missing,
    Pacing(u64),
    /// It switches over, and is not to take long.
    Hurrying,
    /// A limit was refused, for this reason: has the job ended?
    Checking(Words),
    Waiting,
    /// Is the disk still what is copied? Then it is switched over.
    Finding,
    MaySwitch,
    Sealing,
    Freeing,
    Completing,
    CallingOff(Why),
    StandingStill,
}

/// How a copy ended, as far as QEMU says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// So.
    Said(Ended),
    /// It knows nothing of the copy.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    Looking,
    Finding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arriving {
    Recording(super::MoverStep),
    Sealing,
    /// Until that is tried again; sealed, if it is no step.
    Resting(Option<super::MoverStep>),
    PuttingAway,
    /// What an unplugged disk leaves in QEMU is given up.
    GivingUp {
        left: Option<Words>,
    },
}

/// What is to be said of a disk that is at the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Moved { unplugged: bool },
    Unclear(Doubt),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Staying {
    Unsealing,
    Recording,
    GivingUp,
    Finding,
    Removing,
    /// Until the step is tried again that failed.
    Resting(Retry),
}

/// What is tried again of a move that leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Unseal,
    Record,
    Find,
}

/// What is known of a move that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) why: Why,
    /// QEMU has said that the copy ended before it switched over.
    pub(super) undone: bool,
    /// What QEMU had of it when it gave it up; nothing if it was not told yet.
    pub(super) found: Option<GivenUp>,
    /// Why the VM may still have something.
    pub(super) still: Option<Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Recording,
    Resting,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tidying {
    Resting,
    GivingUp,
    Finding(GivenUp),
    Removing,
    /// The VM runs with a disk of ours, which is to say that it is no mere copy.
    Sealing,
    /// That nothing is left at the VM, and how the move has ended after all.
    Recording(Tidied),
}

/// Whether people were told why it takes so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    NotYet,
    Once,
}
