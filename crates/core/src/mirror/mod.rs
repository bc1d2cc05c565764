//! The mirror: how a disk moves while its guest goes on.

mod event;
mod progress;

pub use event::{
    Action, Control, End, Event, Fault, Job, JobId, JobKind, Notice, Outcome, Request,
    RequestId, RequestKind,
};
pub use progress::{PauseReason, Phase, Progress};
