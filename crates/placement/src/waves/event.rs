//! What the machine hears, and what it asks for.

use super::task::Fault;
use sterna_core::Nanos;

/// What is wanted of the plan as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// It goes on.
    #[default]
    Run,
    /// It stands still, and so do the moves that are under way.
    Pause,
    /// It is given up; what has moved stays where it is.
    Cancel,
}

/// What has happened, or how something is now. To hear the same twice does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A move has begun.
    Began(usize),
    /// A move could not be begun.
    Refused(usize, Fault),
    /// A move that was being begun before a crash has not begun.
    Lost(usize),
    /// A move goes on, as far as it is known.
    Goes(usize),
    /// A move stands still because that was asked for.
    Held(usize),
    /// A move stands still, and can go on from where it is if that is asked for.
    Stalled(usize, Fault),
    /// A move stands still, and cannot go on.
    Stuck(usize, Fault),
    /// A move has ended: the disk has moved, or is where it was.
    Ended(usize, bool),
    /// The workload of a group has stopped, or has not.
    WorkloadStopped(usize, bool),
    /// The workload of a group has started, or has not.
    WorkloadStarted(usize, bool),
    /// What is wanted has changed.
    Wish(Wish),
    /// The hours in which moves may begin have come, or are over.
    Open(bool),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin a move.
    Start {
        /// The move.
        task: usize,
        /// Where it goes.
        to: usize,
    },
    /// Give a move up that is under way.
    Cancel(usize),
    /// Have it stand still.
    Pause(usize),
    /// Have it go on.
    Resume(usize),
    /// Stop the workload of a group.
    StopWorkload(usize),
    /// Start the workload of a group.
    StartWorkload(usize),
    /// Nothing happens before; come back then.
    Wake(Nanos),
    /// All have ended.
    Finish,
}
