//! What the mirror is told and what it asks for.
//!
//! The driver owns the buffers, the files and the clock; the mirror sees only
//! names of requests and jobs. Each `Action` that starts something is answered
//! by exactly one `Event`, whatever happens to the thing it started.

use super::{Allowance, Doubt, PauseReason, Sectors};
use crate::durability::{Lack, Loss};
use crate::{ByteRange, Nanos};

/// The driver's name for a guest request, unique among those in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The mirror's name for a job of the copier; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// What a guest request does, as far as the mirror cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Leaves the bytes as they are (read, block status, cache).
    Read,
    /// Changes the bytes: a write, write-zeroes or a discard.
    Write,
    /// Makes earlier writes durable. Waits for the source alone.
    Flush,
}

/// A guest request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The driver's name for it.
    pub id: RequestId,
    /// What it does.
    pub kind: RequestKind,
    /// The bytes it touches; empty for a flush.
    pub range: ByteRange,
}

/// What went wrong on the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No space left.
    Full,
    /// The destination answered with an error (its errno).
    Error(i32),
    /// The connection to the destination is gone.
    Lost,
    /// Another export answers where the destination was.
    Another,
    /// The destination's export can no longer do what the copy relies on.
    Lacks(Lack),
}

/// What a job of the copier does with its range. All of them read the source
/// while the guest goes on; writes that touch the range meanwhile make the
/// result stale for the regions they touch, which the mirror sees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Ask the source which parts of the range are holes.
    Scan,
    /// Read the source, write the destination. With `fresh` the destination
    /// has never been written there and reads as zeroes, so zeroes need no write.
    Copy {
        /// Zeroes need no write.
        fresh: bool,
    },
    /// The source is a hole there: make the destination read as zeroes.
    Zero,
    /// Read both sides and say which regions differ.
    Compare,
    /// Read the source, and see whether that can be done.
    Probe,
}

/// A job of the copier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The mirror's name for it.
    pub id: JobId,
    /// What to do.
    pub kind: JobKind,
    /// Where. Starts at a region's first byte; ends at a region's or the disk's end. A
    /// probe is anywhere inside one.
    pub range: ByteRange,
    /// Sectors of the source that cannot be read, if it is one region with such. A copy
    /// reads the others and takes these for zeroes, a comparison leaves them out; neither
    /// is asked for where there are no others.
    pub bad: Sectors,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// The scan's answer: the holes, in order, inside the range. Empty if the
    /// source cannot tell.
    Scanned(Vec<ByteRange>),
    /// The copy or zero job is done; so many bytes went over the wire.
    Copied {
        /// Bytes written to the destination as data.
        written: u64,
    },
    /// The comparison's answer: byte ranges of the regions that differ.
    Compared {
        /// Parts that differ, in order.
        differing: Vec<ByteRange>,
        /// Bytes of each side that were read: what is empty on both needs no reading.
        read: u64,
    },
    /// The probe's range can be read.
    Readable,
    /// The source could not be read (its errno).
    SourceFailed(i32),
    /// The destination failed.
    DestinationFailed(Fault),
}

/// What became of the commit record. An outcome that is not clear is none of these:
/// it is not told before it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It is durable.
    Durable,
    /// It is certainly absent: the state directory cannot record it.
    Failed,
}

/// What the operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Stop copying; nothing touches the destination.
    Pause,
    /// The same, because somebody has done something to the destination.
    PauseAstray,
    /// The same, because the source has lost a part.
    PauseSource,
    /// Go on. Sectors that could not be read are tried again.
    Resume,
    /// Leave sectors behind that cannot be read; holds from now on.
    SkipBad,
    /// Give up; the source stays as it is.
    Cancel,
    /// Limit the copier to so many bytes per second; `None` lifts the limit.
    SetRate(Option<u64>),
    /// Yield to the guest as far as this says.
    Allow(Allowance),
}

/// What the mirror is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A guest request has come.
    Arrived(Request),
    /// The guest waits for what has not come to the mirror, as requests that have to wait
    /// for admission at the source do; or it does not any more. A request that comes
    /// meanwhile is taken for one of those.
    GuestWaits(bool),
    /// The source is done with a request.
    SourceDone {
        /// Which.
        id: RequestId,
        /// Whether it succeeded.
        ok: bool,
    },
    /// The destination is done with a mirrored write.
    DestinationDone {
        /// Which.
        id: RequestId,
        /// What it said.
        result: Result<(), Fault>,
    },
    /// The last way to the destination was lost, or one was found again. What it was
    /// asked to do waits meanwhile.
    DestinationInReach(bool),
    /// What answers where the destination was is not used, for this reason; or there is no
    /// such reason any more.
    DestinationUnfit(Option<Fault>),
    /// The destination went away and came back, and may have lost what it had not
    /// been asked to make durable. That is copied again.
    DestinationForgot,
    /// Something that was believed of the two sides is not believed any more: an image
    /// was opened anew.
    Doubted(Doubt),
    /// While the migration stood still, others may have written to an image where nobody sees
    /// it. What was compared until then counts no longer.
    Unwatched,
    /// The source went away and came back, and may have lost what it had answered: copies
    /// of that are newer than it is. It stays the truth, and what was equal is compared.
    SourceForgot(Loss),
    /// A mirrored write never went to the destination: there was no memory to
    /// send it from until the guest had its answer. Its regions fall behind.
    DestinationSkipped {
        /// Which.
        id: RequestId,
    },
    /// What a job waits for is the source from now on, or is not any more. A job
    /// begins with the source, unless something else is said.
    JobOnSource {
        /// Which.
        job: JobId,
        /// Whether it is.
        is: bool,
    },
    /// An operation of a job waits for admission, which is neither side's doing, or
    /// has got it.
    JobHeld {
        /// Which.
        job: JobId,
        /// Whether it waits.
        is: bool,
    },
    /// A job has ended.
    JobDone {
        /// Which.
        job: JobId,
        /// How.
        outcome: JobOutcome,
    },
    /// The destination has flushed.
    Flushed(Result<(), Fault>),
    /// The source has flushed (true), or could not; in that case its image has told what that
    /// means (`SourceForgot`) before.
    SourceFlushed(bool),
    /// The intention to switch over is durable, and so long did a write of the commit's
    /// record take; or neither could be had.
    Prepared(Option<Nanos>),
    /// The destination's sidecar names it active (durable), or that failed.
    Sealed(Result<(), Fault>),
    /// What became of the commit record.
    Committed(Commit),
    /// The operator speaks.
    Control(Control),
    /// Time has passed; sent no later than `Mirror::deadline`.
    Tick,
}

/// How a migration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorEnd {
    /// The destination is the truth.
    Completed,
    /// The source is the truth, as before.
    Cancelled,
}

/// Something worth a log line or a record of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The migration paused.
    Paused(PauseReason),
    /// It goes on.
    Resumed,
    /// The first pass over the disk is done.
    FirstPassDone,
    /// The verification pass begins.
    Verifying,
    /// The guest's writes are held for the switch-over.
    Holding,
    /// The switch-over was undone: it did not fit its budget, or writes came late.
    SwitchOverUndone {
        /// How long the guest was held.
        held: Nanos,
    },
    /// Patience was raised so that the migration converges.
    PatienceRaised(Nanos),
    /// Verification found regions that differ; they are copied anew.
    Differing {
        /// How many regions.
        regions: u64,
    },
}

/// What the mirror asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Carry the request out on the source.
    Source(RequestId),
    /// Carry the write out on the destination as well.
    Destination(RequestId),
    /// Answer the guest with the source's result.
    Answer(RequestId),
    /// Start a job of the copier.
    Start(Job),
    /// Flush the destination.
    FlushDestination,
    /// Flush the source, so that its image tells what it has lost. Does not keep what comes
    /// after it waiting.
    FlushSource,
    /// Record the intention to switch over, durably, and write the commit's record as it
    /// is before a commit.
    Prepare,
    /// Make the destination's sidecar say active, durably.
    Seal,
    /// A seal was undone: the source's sidecar must get a newer generation.
    Unseal,
    /// Write the commit record, durably. Cannot be undone.
    Commit,
    /// The switch-over is done: carry the request out on the destination alone.
    Moved(RequestId),
    /// The migration has ended. Requests still in flight are still answered.
    Ended(MirrorEnd),
    /// Something worth telling.
    Notice(Notice),
}
