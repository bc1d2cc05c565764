//! A move of a plan, as far as it is, and why it may not get further.

use sterna_core::Nanos;

/// Why a move does not come to its end, or stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The destination has no room.
    Full,
    /// The destination fails.
    Destination,
    /// The destination is away: it cannot be reached, or does not answer.
    Away,
    /// The datastore that the disk leaves cannot be read, or is away.
    Source,
    /// Nothing new can be recorded: no move of the plan begins until that is over.
    Unrecorded,
    /// Something that may pass.
    Passing,
    /// Something that will not: the disk is gone, or somebody has cancelled the move.
    Lasting,
}

impl Fault {
    /// Whether it is the destination's, so that nothing more is sent there in the end.
    pub(super) fn is_of_destination(self) -> bool {
        matches!(self, Fault::Full | Fault::Destination | Fault::Away)
    }
}

/// Where a move is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It waits to begin.
    #[default]
    Waiting,
    /// It is being begun.
    Starting,
    /// It is under way.
    Running,
    /// It stands still for this reason, with all that it has copied, and is to go on.
    Stalled(Fault),
    /// It is being given up, for this reason.
    Leaving(Fault),
    /// The disk is where it should be.
    Moved,
    /// It is not, and will not be.
    Failed(Fault),
    /// It was not begun, as a disk of this group, which goes before it, has not moved.
    Skipped(usize),
    /// It was given up with the plan.
    GivenUp,
}

impl Stage {
    /// Whether nothing will happen any more.
    pub fn ended(self) -> bool {
        matches!(
            self,
            Stage::Moved | Stage::Failed(_) | Stage::Skipped(_) | Stage::GivenUp
        )
    }

    /// Whether it has begun and not ended.
    pub fn is_under_way(self) -> bool {
        self.takes_a_place() || matches!(self, Stage::Stalled(_))
    }

    /// Whether it takes a place at its datastores. One that stands still copies nothing,
    /// and others need not wait for it.
    pub fn takes_a_place(self) -> bool {
        matches!(self, Stage::Starting | Stage::Running | Stage::Leaving(_))
    }
}

/// A move, as far as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The datastore that it goes to now.
    pub to: usize,
    /// Where it is.
    pub stage: Stage,
    /// How often it has failed for something that may pass, or was to go on after that.
    pub tries: u32,
    /// It is not tried again before.
    pub not_before: Nanos,
    /// When it was last begun, or was to go on.
    pub since: Nanos,
    /// Whether it stands still, or is to, because the plan does.
    pub held: bool,
}
