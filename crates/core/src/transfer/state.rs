//! What a transfer waits for: each state has the one question that is open.

use super::event::Words;
use super::verdict::{Rest, Verdict, Why};
use crate::Nanos;

/// What the state machine does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing was asked yet.
    Fresh,
    /// The receiver is made ready.
    Beginning(Beginning),
    /// The guest is sent.
    Following(Following),
    /// All of it was sent: it becomes the receiver's.
    Handing(Handing),
    /// It is the receiver's, and is to run there.
    Running(Running),
    /// It is the source's again, and is to run there.
    Returning(Returning),
    /// The receiver is ended, if it is ours; what comes then.
    Dismissing(Dismissing, After),
    /// The source is ended.
    PuttingAway(PuttingAway, Option<Words>),
    /// How it has ended is made durable.
    Closing(Closing, Verdict),
    /// Until it is tried again from where it is durable to be.
    Resting,
    /// Nothing more will be asked.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    Starting,
    Checking,
    Telling,
    Recording,
    Sending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Following {
    Looking,
    /// Is the receiver still there?
    Asking,
    Waiting,
}

/// Whether the source is there while all of it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// It stands still there: it could be taken back.
    Stands,
    /// It has ended: what there is of the guest has come, or comes now.
    Gone,
    /// The receiver has run it already.
    Overtaken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Handing {
    /// What does the source do? Until then it may hand over.
    Leaving(Nanos),
    Pausing(Nanos),
    /// Has all come? Until then it may take.
    Coming(Sender, Nanos),
    Waiting(Sender, Nanos),
    Committing(Sender),
    /// Until the commit is tried again.
    Resting(Sender),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Running {
    Standing,
    Leaving,
    /// Whether it may have been told before.
    Telling {
        before: bool,
    },
    /// What has come of that; why, if it was refused.
    Looking(Option<Words>),
    /// The receiver does not answer: does the source run it?
    Silent(Words),
    /// The receiver has ended so: does the source run it?
    Missing(Words),
}

/// What follows once it is durable that it is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The source is told to give up sending it.
    GiveUp,
    /// It does not answer.
    Silent(Words),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Returning {
    Recording(Then),
    /// Until that is tried again.
    Resting(Then),
    GivingUp,
    Looking,
    Waiting,
    Leaving(Nanos),
    Pausing(Nanos),
    /// Once the receiver was dealt with: what does the source do now?
    Settling(Rest),
    /// The source is told to run it; what has become of the receiver.
    GoingOn(Rest),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dismissing {
    Asking,
    Quitting,
}

/// What comes after the receiver was dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing was sent.
    Stays(Why),
    /// The guest runs at the source.
    Here,
    /// It is there, and does something else.
    Otherwise,
    /// It stands there as it was sent, and is to run.
    GoOn,
    /// It has ended with the source.
    Lost(Words),
    /// The source does not answer.
    Rest(Words),
}

/// What is known of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    /// It was not started here, and not told that a guest comes.
    Untold,
    /// It was, or may have been by an earlier daemon.
    Told,
    /// It did not answer: what it is told takes long, and is not heard.
    Deaf,
    /// It has ended.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PuttingAway {
    Leaving(Nanos),
    Pausing(Nanos),
    Quitting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Recording,
    Resting,
}
