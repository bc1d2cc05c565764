//! What the mover is told, and what it asks for.
//!
//! The driver has the monitor, the files and the state; the mover sees what they said.
//! Each [`Action`] that asks something is answered by exactly one [`Event`], whatever
//! happens to what it asked; the others (*notes*) are answered by nothing. At most one
//! question is open at a time. Words are for people: nothing is decided by them.

use super::verdict::{Tidied, Verdict};
use crate::Nanos;

/// What people are told.
pub type Words = String;

/// Who has the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// QEMU itself is asked. Nobody keeps how the VM is started.
    Qemu,
    /// libvirt is asked. It keeps where the disk is, also of a VM that is off; it makes
    /// the destination's file; and it does not say how a copy ended.
    Libvirt,
}

/// What the disk becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, which says nothing of itself.
    File,
    /// A disk of ours, whose image says whether it is the truth or a part of a copy.
    Disk,
}

/// Where a move is, as far as a kill must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoverStep {
    /// The copy has not begun, as far as is known.
    Created,
    /// QEMU copies; the source is the truth.
    Copying,
    /// QEMU may have been told to switch over: only QEMU can say where the disk is.
    Switching,
    /// The destination is the truth.
    Committed,
    /// It has ended; its VM may still have something of the copy.
    Ended,
}

/// What is wanted of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// That it be given up.
    pub cancel: bool,
    /// That it stand still.
    pub paused: bool,
    /// Bytes per second that it may copy at most.
    pub rate: Option<u64>,
}

/// Why a VM did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody is there any more: the VM has ended.
    Nobody(Words),
    /// The connection broke: whether the VM has heard is not known.
    Cut(Words),
    /// The VM may be there, and does not answer. It may do it later.
    Silent(Words),
    /// The VM has heard it, and does not do it.
    Refused(Words),
    /// The VM would wait for a disk of ours that is not served.
    Unserved(Words),
    /// Anything else.
    Other(Words),
}

impl Failure {
    /// In words.
    pub fn words(&self) -> &Words {
        match self {
            Failure::Nobody(words)
            | Failure::Cut(words)
            | Failure::Silent(words)
            | Failure::Refused(words)
            | Failure::Unserved(words)
            | Failure::Other(words) => words,
        }
    }
}

/// How a job ended, where that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Without an error: it has switched over, or was ended by somebody who wanted both
    /// images as they were at that moment.
    Clean,
    /// It was given up before it switched over.
    Cancelled,
    /// It failed before it switched over.
    Failed(Words),
}

/// Where the copy is, in the words of the VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// It copies.
    Copying {
        /// Bytes that are copied.
        done: u64,
        /// Of so many, as far as is known.
        total: u64,
    },
    /// Both images are the same, and the VM waits for a word.
    Ready {
        /// Bytes that were copied.
        done: u64,
    },
    /// It switches over.
    Switching,
    /// It has ended, and is remembered.
    Ended(Ended),
    /// The VM knows nothing of it.
    Unknown,
}

/// Where the VM says that its disk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// At the source.
    Source,
    /// At the destination.
    Destination,
    /// At another image.
    Elsewhere(Words),
    /// The VM has no such disk.
    Nowhere,
}

/// What a VM had of a copy that it was told to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Nothing.
    Nothing,
    /// Something; how it had ended is not said.
    Something,
    /// A job that ended before it switched over.
    Undone,
}

/// What a look at the guest has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Whether the VM counts what the disk does: it does not of one that is gone.
    pub there: bool,
    /// Bytes per second that the guard lets the copy have; unlimited without.
    pub allowed: Option<u64>,
}

/// What has become of what was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Gone,
    /// It was not there, or nothing says that it is only a copy.
    Kept,
    /// Another one has its name, and is left alone.
    Another,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the VM where the copy is. Answered by [`Event::Looked`].
    Look,
    /// Ask the VM where the disk is. Answered by [`Event::Found`].
    Find,
    /// Look at what the guest does, and what the guard lets the copy have. Answered by
    /// [`Event::Watched`].
    Watch(Option<Job>),
    /// Have the disk count how long requests take. Answered by [`Event::Done`].
    CountTimes,
    /// Begin the copy, at so many bytes per second. Answered by [`Event::Done`].
    Begin(u64),
    /// Limit the copy. Answered by [`Event::Done`].
    SetSpeed(u64),
    /// Tell the VM to switch over. Answered by [`Event::Done`].
    Complete,
    /// Tell it not to, after all. Answered by [`Event::Done`].
    CallOff,
    /// Give the copy up, and have the VM forget it. Answered by [`Event::GaveUp`].
    GiveUp,
    /// Have the VM forget the source. Answered by [`Event::Done`].
    PutAway,
    /// Look whether the destination is a file as an earlier daemon has made it for this
    /// move: of its name and length, made since the move was asked for, with nothing in it;
    /// and that very file, where it is durable which one that daemon has made. Answered by
    /// [`Event::Peeked`].
    Peek,
    /// Make the destination, and make it durable which file that is. Answered by
    /// [`Event::Made`].
    Make,
    /// A note: the file that is there now is the copy; only that one is ever to be removed.
    /// Which one it is becomes durable with the step `copying` at the latest. Without this
    /// note and [`Action::Make`] the driver knows the file by what is durable, or not at
    /// all.
    Know,
    /// Remove the destination, if it is what was made or known. Answered by
    /// [`Event::Removed`].
    Remove,
    /// Have the destination's image say that it is the truth. Answered by
    /// [`Event::Sealed`].
    Seal,
    /// Have it say that it is a part of a copy. Answered by [`Event::Stored`].
    Unseal,
    /// Read what is wanted. Answered by [`Event::Wished`].
    ReadWishes,
    /// Make a step durable. Answered by [`Event::Stored`].
    Record(MoverStep),
    /// Make it durable that the VM is told to switch over, unless somebody wants the move
    /// to be given up. Answered by [`Event::MaySwitch`].
    RecordSwitching,
    /// Make it durable how the move has ended. Answered by [`Event::Stored`].
    Close(Verdict),
    /// Make it durable that nothing is left at the VM, and how the move has ended after
    /// all. Answered by [`Event::Stored`].
    RecordTidy(Tidied),
    /// Wait until then, or until something is asked for. Answered by [`Event::Woken`].
    Wait(Nanos),
    /// A note for people.
    Tell(Notice),
    /// A note: nothing more will be asked.
    Over,
}

/// What people should know meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Why the move cannot go on now; it is tried again.
    Trouble(Words),
    /// The switch-over is called off.
    CalledOff,
    /// Why what is left of a move that has ended is not put away yet.
    Untidy(Words),
    /// The destination is kept for good: the VM has ended, and may have written to it.
    Kept,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The driver is ready. The first event.
    Start,
    /// Something may be wanted. It comes at any time.
    Asked,
    /// The daemon stops: the next one goes on. It comes at any time.
    Stop,
    /// Answers [`Action::Look`].
    Looked(Result<Job, Failure>),
    /// Answers [`Action::Find`].
    Found(Result<At, Failure>),
    /// Answers [`Action::Watch`].
    Watched(Result<Watched, Failure>),
    /// Answers what the VM was to do.
    Done(Result<(), Failure>),
    /// Answers [`Action::GiveUp`].
    GaveUp(Result<GivenUp, Failure>),
    /// Answers [`Action::Peek`].
    Peeked(bool),
    /// Answers [`Action::Make`], with what the guard lets the copy have at first.
    Made(Result<Option<u64>, Words>),
    /// Answers [`Action::Remove`].
    Removed(Result<Removed, Words>),
    /// Answers [`Action::Seal`]: whether the image is the copy, or was.
    Sealed(Result<bool, Words>),
    /// Answers [`Action::ReadWishes`]: nothing, if they are not known now.
    Wished(Option<Wishes>),
    /// Answers what was to be made durable, and [`Action::Unseal`]. What is said to have
    /// failed may be durable all the same.
    Stored(Result<(), Words>),
    /// Answers [`Action::RecordSwitching`].
    MaySwitch(Result<bool, Words>),
    /// Answers [`Action::Wait`].
    Woken,
}
