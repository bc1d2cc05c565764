//! QMP: QEMU's monitor, spoken by a client of our own.
//!
//! A message is a line of JSON. The server greets, the client agrees on capabilities,
//! then each command is answered once, and events come in between. `lines` cuts what
//! is received, `message` reads a line, `monitor` keeps a connection, and a file for
//! each noun has the commands about it and what they answer.
//!
//! Tested with QEMU 7.2; what newer ones add is passed over.

mod balloon;
mod block;
mod command;
mod error;
mod event;
mod job;
mod lines;
mod message;
mod migrate;
mod monitor;
mod stats;
mod vm;

pub use balloon::{
    BalloonSize, GetGuestStats, GetProperty, GuestStats, ListObjects, ObjectProperty,
    QueryBalloon, SetBalloon, SetStatsInterval,
};
pub use block::{
    AddNode, Bitmap, Block, Cache, DeleteNode, ExportOptions, FileOptions, FormatOptions,
    Image, Inserted, NewImage, NodeOptions, QueryBlock, QueryNodes, UnixServer,
};
pub use command::Command;
pub use error::QmpError;
pub use event::Event;
pub use job::{
    CompleteJob, CreateImage, DismissJob, Job, JobStatus, Mirror, QueryJobs, SetSpeed,
    StopJob,
};
pub use lines::{LINE_MAX, Lines, TooLong};
pub use message::{Message, NotAMessage, Version};
pub use migrate::{
    CancelSend, Capability, Continue, QueryCapabilities, QuerySend, Quit, Receive, Send,
    SendInfo, SentMemory, SetCapabilities, SetSendSpeed, Stop,
};
pub use monitor::{ANSWER_WITHIN, Monitor};
pub use stats::{BlockStats, Histogram, LatencyHistogram, QueryBlockStats, Stats};
pub use vm::{
    Capabilities, MemorySize, Named, Processor, QueryMemory, QueryName, QueryProcessors,
    QueryStatus, RunState,
};
