//! What a transfer is told, and what it asks for.
//!
//! The driver has both monitors and the state; the state machine sees what they said. Each
//! [`Action`] that asks something is answered by exactly one [`Event`], whatever happens
//! to what it asked; the others (*notes*) are answered by nothing. At most one question
//! is open at a time. Words are for people: nothing is decided by them.

use super::verdict::{Rest, Verdict};
use crate::Nanos;

/// What people are told.
pub type Words = String;

/// One of the two QEMUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that the guest leaves.
    Source,
    /// The one that it goes to.
    Receiver,
}

/// Where a transfer is, as far as a kill must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing was sent.
    Created,
    /// The guest may be on its way. It was told to run nowhere.
    Copying,
    /// It is taken back: only the source may run it, and may have been told to.
    Returning,
    /// Only the receiver may run it, and may have been told to.
    Committed,
}

/// Why a QEMU did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody is there any more: it has ended.
    Nobody(Words),
    /// The connection broke: whether it has heard is not known.
    Cut(Words),
    /// It may be there, and does not answer. It may do it later.
    Silent(Words),
    /// It has heard it, and does not do it.
    Refused(Words),
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
            | Failure::Other(words) => words,
        }
    }
}

/// How far a guest is, in the words of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing was begun.
    Nothing,
    /// It is under way.
    UnderWay {
        /// How many times its memory was gone through.
        passes: u64,
        /// Whether somebody has it stand still.
        paused: bool,
    },
    /// All of it was sent.
    All,
    /// It was given up, or failed; why, if it failed.
    Stayed(Option<Words>),
}

/// What the source does with the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// It is about to hand it over.
    HandsOver,
    /// It has handed it over: the guest stands still there, as it was sent.
    Stands,
    /// It runs it.
    Runs,
    /// Something else, in QEMU's word: it is another one, or was told something since.
    Otherwise(Words),
}

/// How it goes with a guest that is in a QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guest {
    /// It stands still, as one does that has come; or somebody has it stand still.
    Still,
    /// It runs.
    Runs,
    /// In QEMU's word: something has befallen it, here or before it came.
    Otherwise(Words),
}

/// What is at the receiver's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// One that waits for a guest, and was not told of this one.
    Idle,
    /// One that waits for this one, or takes it in.
    Awaits,
    /// One that has a guest which was sent to it.
    Has(Guest),
    /// One that has a guest which was started there: another QEMU.
    Stranger(Guest),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Have the program start the receiver, and wait until it listens. What is wanted
    /// meanwhile breaks it off. Answered by [`Event::Prepared`].
    Start,
    /// See whether the receiver waits, and fits. Answered by [`Event::Prepared`].
    Check,
    /// Tell the receiver that the guest comes, and that it is to hold it still. Answered
    /// by [`Event::Done`].
    Receive,
    /// Tell the source to send it. Answered by [`Event::Done`].
    Send,
    /// Tell the source to give it up, if that is still possible. Answered by
    /// [`Event::Done`].
    GiveUp,
    /// Ask the source how far it is. Answered by [`Event::Sent`].
    AskSent,
    /// Ask the source what it does with the guest. Answered by [`Event::Left`].
    AskLeft,
    /// Ask what is at the receiver's socket. Answered by [`Event::Stands`].
    AskStand,
    /// Have the guest run there. Answered by [`Event::Done`].
    GoOn(End),
    /// Have that QEMU end, and wait for it. Answered by [`Event::Quit`].
    Quit(End),
    /// Make the step [`Step::Copying`] durable. Answered by [`Event::Stored`].
    RecordCopying,
    /// Make [`Step::Returning`] durable, and that the VM is at the source, whatever was
    /// said of that before. Answered by [`Event::Stored`].
    TakeBack,
    /// Make [`Step::Committed`] durable, and that the VM is at the receiver. Answered by
    /// [`Event::Committed`].
    Commit {
        /// Not if somebody wants it to be given up.
        heeds: bool,
    },
    /// Make it durable how it has ended. Answered by [`Event::Stored`].
    Close(Verdict),
    /// Wait until then, or until something is wanted or may have happened. Answered by
    /// [`Event::Woken`].
    Wait(Nanos),
    /// A note: the guest has been seen at the receiver, where it was told to run.
    Arrived,
    /// A note for people: it cannot go on now, and is tried again.
    Tell(Trouble),
    /// A note: nothing more will be asked.
    Over,
}

/// Why a transfer cannot go on at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The source.
    Source(Words),
    /// The source does not answer; the guest stays there. What has become of the receiver.
    Silent(Words, Rest),
    /// The source has ended, and whether all has come is not known.
    Unclear(Words),
    /// The state does not take it.
    NotRecorded(Words),
    /// The source does not run the guest.
    DoesNotGoOn(Words),
    /// The receiver, after the commit.
    Receiver(Words),
    /// The receiver does not run it, and may have run it: so no other may.
    MayHaveRun(Words),
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The driver is ready. The first event.
    Start,
    /// Somebody wants it to be given up, and that is durable. It comes at any time.
    Cancel,
    /// The daemon stops. It comes at any time.
    Stop,
    /// Answers [`Action::Start`] and [`Action::Check`].
    Prepared(Result<(), Words>),
    /// Answers what a QEMU was to do.
    Done(Result<(), Failure>),
    /// Answers [`Action::AskSent`].
    Sent(Result<Sent, Failure>),
    /// Answers [`Action::AskLeft`].
    Left(Result<Left, Failure>),
    /// Answers [`Action::AskStand`].
    Stands(Result<Stand, Failure>),
    /// Answers [`Action::Quit`]: whether it has ended.
    Quit(bool),
    /// Answers what was to be made durable. What is said to have failed may be durable
    /// all the same.
    Stored(Result<(), Words>),
    /// Answers [`Action::Commit`]: whether it is; not, if it is to be given up.
    Committed(Result<bool, Words>),
    /// Answers [`Action::Wait`].
    Woken,
}
