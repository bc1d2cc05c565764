//! The move of one disk: the daemon's state machine (`core::mirror`) told what happens
//! here, and heard on what is to be done.
//!
//! What is not a disk array's doing (the state store, the sidecars) takes a fixed time.

use sterna_core::array::Kind;
use sterna_core::mirror::{
    Action, Commit, Config, Counted, Event, Job, JobId, JobKind, MemoryMap, Mirror,
    Notice, Outcome, Request, RequestId, RequestKind, Rung, Stored,
};
use sterna_core::{ByteRange, Nanos};

use super::parameters::Parameters;

/// What is to be done for the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
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
pub(super) enum Reply {
    /// Nothing is a hole.
    Scanned(u64),
    Flushed,
    Prepared,
    Sealed,
    Committed,
}

/// The move under way.
#[derive(Debug)]
pub(super) struct Mover {
    mirror: Mirror<MemoryMap>,
    size: u64,
    actions: Vec<Action>,
}

impl Mover {
    pub(super) fn new(now: Nanos, size: u64, parameters: &Parameters) -> Mover {
        let Parameters { chunk, in_flight: depth, .. } = *parameters;
        let rung = Some(Rung { chunk, depth });
        let config = Config { rung, reads_zero: true, ..Config::new(size) };
        let map = MemoryMap::new(config.regions(), Stored::Absent);
        let mirror = Mirror::new(now, config, Counted::new(map));
        Mover { mirror, size, actions: Vec::new() }
    }

    /// Whether what a guest asks of the disk is the move's business. (Of a sample, what
    /// lies behind it is not.)
    pub(super) fn concerns(&self, (offset, bytes): (u64, u64)) -> bool {
        offset + bytes <= self.size
    }

    /// When time is to be told at the latest.
    pub(super) fn deadline(&mut self) -> Option<Nanos> {
        self.mirror.deadline()
    }

    pub(super) fn tick(&mut self, now: Nanos, orders: &mut Vec<Order>) {
        self.tell(now, Event::Tick, orders);
    }

    /// A guest's request has come.
    pub(super) fn arrive(
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

    pub(super) fn source_done(&mut self, now: Nanos, id: u64, orders: &mut Vec<Order>) {
        self.tell(now, Event::SourceDone { id: RequestId(id), ok: true }, orders);
    }

    pub(super) fn destination_done(
        &mut self,
        now: Nanos,
        id: u64,
        orders: &mut Vec<Order>,
    ) {
        let event = Event::DestinationDone { id: RequestId(id), result: Ok(()) };
        self.tell(now, event, orders);
    }

    /// A job has read its bytes, and writes them from now on.
    pub(super) fn read(&mut self, now: Nanos, job: JobId, orders: &mut Vec<Order>) {
        self.tell(now, Event::JobOnSource { job, is: false }, orders);
    }

    pub(super) fn written(
        &mut self,
        now: Nanos,
        job: JobId,
        written: u64,
        orders: &mut Vec<Order>,
    ) {
        let outcome = Outcome::Copied { written };
        self.tell(now, Event::JobDone { job, outcome }, orders);
    }

    pub(super) fn reply(&mut self, now: Nanos, reply: Reply, orders: &mut Vec<Order>) {
        let event = match reply {
            Reply::Scanned(job) => {
                let outcome = Outcome::Scanned(Vec::new());
                Event::JobDone { job: JobId(job), outcome }
            }
            Reply::Flushed => Event::Flushed(Ok(())),
            Reply::Prepared => Event::Prepared(true),
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
        JobKind::Copy { .. } | JobKind::Zero | JobKind::Compare => {
            Order::Read(job.id, job.range)
        }
    }
}
