//! Mistakes that a world makes on purpose.
//!
//! Each is a fault that a driver, a mirror or an image could have. The world reintroduces
//! it from outside: it tells the mirror something else than what happened, or does
//! something else than what it was asked for. A mirror that is told the truth must hold
//! in every world; a world with a mistake must be caught, or the world is too kind to
//! find a real one.

/// What a world gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A flush of the destination is acknowledged before anything is durable.
    FlushAcknowledgedEarly,
    /// A fault of the destination is told as one that takes nothing back, so that what it
    /// was not made to keep is believed after it.
    TrustAfterFault,
    /// A loss is told before it happens, so that the jobs that begin in between are not
    /// voided by it: they end well, with a part of what they wrote gone.
    JobNotVoided,
    /// A map that is found after a kill is believed although somebody has written to an
    /// image meanwhile.
    ForeignWriteBelieved,
    /// That somebody has written to the destination is taken for a loss of what was
    /// copied: where nothing was copied, there is nothing.
    ForeignWriteTakenForLoss,
    /// That the source's storage has lost something is not told.
    SourceLossNotTold,
    /// The source is not flushed before the commit.
    SourceNotFlushed,
    /// What the source has lost and was not compared is not told after the commit.
    OwedNotTold,
    /// Nor is it compared by the next daemon.
    OwedForgottenAtKill,
    /// Nor is it told by the next daemon, if a commit was durable before the kill.
    OwedForgottenInCommit,
    /// A map that is found after a kill is believed although the source's server may have
    /// dropped writes with the daemon's connection.
    DroppedSourceBelieved,
    /// What others wrote to the destination while a commit was under way is not told.
    WritesAtCommitsForgotten,
    /// What others wrote to the destination while the migration stood still is not asked for
    /// before it goes on.
    WritesWhilePausedForgotten,
    /// What was compared before the migration stood still counts, though nobody saw who wrote
    /// to the destination meanwhile.
    UnwatchedPauseBelieved,
    /// What others wrote to the source while the migration stood still is not seen.
    SourceWritesWhilePausedUnseen,
    /// Nor is it after a kill: the guest has written to the source since.
    WritesWhilePausedHidden,
    /// The destination's file is not looked at before the seal.
    SealedWithoutLook,
    /// Nor before the source is removed.
    RemovedWithoutLook,
    /// A copy of what cannot be read ends well, with zeroes.
    UnreadableTakenForZeroes,
    /// The source's space is freed when the commit is asked for, not when it is durable.
    SourceFreedEarly,
}
