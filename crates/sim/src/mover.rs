//! The move of one disk: the daemon's state machine (`core::mirror`) told what happens
//! here, and heard on what is to be done.
//!
//! What is not a disk array's doing (the state store, the sidecars) takes a fixed time.

use sterna_core::array::Kind;
use sterna_core::mirror::{
    Action, Allowance, Commit, Config, Control, Counted, Event, Job, JobId, JobKind,
    JobOutcome, MemoryMap, Mirror, Notice, Progress, Request, RequestId, RequestKind,
    Stored,
};
use sterna_core::{ByteRange, Nanos};

/// What is to be done for the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Ask the source for what this guest's request wants.
    Source(u64),
    /// Write it to the destination as well.
    Destination(u64),
    /// Answer the guest.
    Answer(u64),
    /// Read these bytes for a job.
    Read(JobId, ByteRange),
    /// Answer this after a step of the state store or a sidecar.
    Later(Reply),
    /// The guest is held from now on, or no longer.
    Held(bool),
    /// The destination is the truth.
    Ended,
}

/// What is answered by others than disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reply {
    /// Nothing is a hole.
    Scanned(u64),
    Flushed,
    SourceFlushed,
    Prepared,
    Sealed,
    Committed,
}

/// The move under way.
#[derive(Debug)]
pub(crate) struct Mover {
    mirror: Mirror<MemoryMap>,
    size: u64,
    actions: Vec<Action>,
}

impl Mover {
    /// To a destination that reads as zeroes.
    pub(crate) fn new(now: Nanos, config: Config) -> Mover {
        let map = MemoryMap::new(config.regions(), Stored::Absent);
        let config = Config { reads_zero: true, ..config };
        let mirror = Mirror::new(now, config, Counted::new(map));
        Mover { mirror, size: config.size, actions: Vec::new() }
    }

    /// Whether what a guest asks of the disk is the move's business. (Of a sample, what
    /// lies behind it is not.)
    pub(crate) fn concerns(&self, (offset, bytes): (u64, u64)) -> bool {
        offset + bytes <= self.size
    }

    /// When time is to be told at the latest.
    pub(crate) fn deadline(&mut self) -> Option<Nanos> {
        self.mirror.deadline()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.mirror.progress()
    }

    /// What the copier may take from now on.
    pub(crate) fn allow(
        &mut self,
        now: Nanos,
        allowance: Allowance,
        orders: &mut Vec<Order>,
    ) {
        self.tell(now, Event::Control(Control::Allow(allowance)), orders);
    }

    pub(crate) fn tick(&mut self, now: Nanos, orders: &mut Vec<Order>) {
        self.tell(now, Event::Tick, orders);
    }

    /// A guest's request has come.
    pub(crate) fn arrive(
        &mut self,
        now: Nanos,
        id: u64,
        kind: Kind,
        (offset, len): (u64, u64),
        orders: &mut Vec<Order>,
    ) {
        let kind = match kind {
            Kind::Read => RequestKind::Read,
            Kind::Write => RequestKind::Write,
        };
        let range = ByteRange::new(offset, len);
        let request = Request { id: RequestId(id), kind, range };
        self.tell(now, Event::Arrived(request), orders);
    }

    pub(crate) fn source_done(&mut self, now: Nanos, id: u64, orders: &mut Vec<Order>) {
        self.tell(now, Event::SourceDone { id: RequestId(id), ok: true }, orders);
    }

    pub(crate) fn destination_done(
        &mut self,
        now: Nanos,
        id: u64,
        orders: &mut Vec<Order>,
    ) {
        let event = Event::DestinationDone { id: RequestId(id), result: Ok(()) };
        self.tell(now, event, orders);
    }

    /// A job has read its bytes, and writes them from now on.
    pub(crate) fn read(&mut self, now: Nanos, job: JobId, orders: &mut Vec<Order>) {
        self.tell(now, Event::JobOnSource { job, is: false }, orders);
    }

    pub(crate) fn written(
        &mut self,
        now: Nanos,
        job: JobId,
        written: u64,
        orders: &mut Vec<Order>,
    ) {
        let outcome = JobOutcome::Copied { written };
        self.tell(now, Event::JobDone { job, outcome }, orders);
    }

    pub(crate) fn reply(&mut self, now: Nanos, reply: Reply, orders: &mut Vec<Order>) {
        let event = match reply {
            Reply::Scanned(job) => {
                let outcome = JobOutcome::Scanned(Vec::new());
                Event::JobDone { job: JobId(job), outcome }
            }
            Reply::Flushed => Event::Flushed(Ok(())),
            Reply::SourceFlushed => Event::SourceFlushed(true),
            Reply::Prepared => Event::Prepared(Some(Nanos(0))),
            Reply::Sealed => Event::Sealed(Ok(())),
            Reply::Committed => Event::Committed(Commit::Durable),
        };
        self.tell(now, event, orders);
    }

    fn tell(&mut self, now: Nanos, event: Event, orders: &mut Vec<Order>) {
        self.mirror.handle(now, event, &mut self.actions);
        for action in self.actions.drain(..) {
            orders.extend(match action {
                Action::Source(id) => Some(Order::Source(id.0)),
                Action::Destination(id) => Some(Order::Destination(id.0)),
                Action::Answer(id) => Some(Order::Answer(id.0)),
                Action::Start(job) => Some(start(job)),
                Action::FlushDestination => Some(Order::Later(Reply::Flushed)),
                Action::FlushSource => Some(Order::Later(Reply::SourceFlushed)),
                Action::Prepare => Some(Order::Later(Reply::Prepared)),
                Action::Seal => Some(Order::Later(Reply::Sealed)),
                Action::Commit => Some(Order::Later(Reply::Committed)),
                Action::Notice(Notice::Holding) => Some(Order::Held(true)),
                Action::Notice(Notice::SwitchOverUndone { .. }) => {
                    Some(Order::Held(false))
                }
                Action::Ended(_) => Some(Order::Ended),
                // The run ends with the move.
                Action::Moved(_) | Action::Unseal | Action::Notice(_) => None,
            });
        }
    }
}

fn start(job: Job) -> Order {
    match job.kind {
        JobKind::Scan => Order::Later(Reply::Scanned(job.id.0)),
        // No read of a modelled source fails, so that there is nothing to probe.
        JobKind::Copy { .. } | JobKind::Zero | JobKind::Compare | JobKind::Probe => {
            Order::Read(job.id, job.range)
        }
    }
}
