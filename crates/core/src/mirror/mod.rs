//! The mirror: how a disk moves while its guest goes on.

mod event;
mod map;
mod progress;

pub use event::{
    Action, Control, End, Event, Fault, Job, JobId, JobKind, Notice, Outcome, Request,
    RequestId, RequestKind,
};
pub use map::{MemoryMap, RegionMap, Stored};
pub use progress::{PauseReason, Phase, Progress};
