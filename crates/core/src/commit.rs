//! The commit of a switch-over: which image is the truth, and when what may be done.
//!
//! # Rule
//!
//! The source is the truth until the commit record is durable; the destination after it;
//! a commit whose outcome is not clear is made clear before anything else is done.
//!
//! # The record and the state
//!
//! The record is one block of a file that is there, written and measured before guests are
//! held: overwriting it once more is all that a guest has to wait for. The state database
//! is told afterwards, for as long as it takes, and a start looks at the record first.
//!
//! ```text
//!            prepared ──write──> committed ──told──> (state says so) ──freed──> dropped
//!                 ^                  │
//!                 └─────erase────────┘  an outcome that is not clear
//! ```
//!
//! # Invariants
//!
//! 1. `Durable` is answered, and the destination served, only once the record is durable.
//! 2. `Failed` is answered, and the source served on, only if the record is certainly
//!    absent: it never reached the file, or was overwritten durably.
//! 3. The source is freed only when the record is durable and the state has it, durably.
//! 4. The record is dropped only when the state needs it no more.
//!
//! # What a crash finds
//!
//! | the record | the state | the truth |
//! |---|---|---|
//! | none, torn, of another switch-over, or "prepared" | switching | the source: its generation is raised, which no record of before then fits |
//! | "committed" | switching | unclear: it may be in the page cache alone. It is written once more, durably; then the destination |
//! | any | committed | the destination: what the state says at a start was made durable |
//!
//! A record is known by the switch-over that it is of (migration, disk, generations,
//! attempt), and written with the same bytes each time, so that writing it once more cannot
//! tear what is there. One that an earlier migration left, or that does not go with a
//! state from a backup, is of another one, and says nothing. [`record`] has its bytes.

pub mod record;

use crate::mirror::Commit;

/// What the record's file says of this switch-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: it is not there, is damaged, or is of another switch-over.
    Nothing,
    /// The switch-over was begun.
    Prepared,
    /// It was committed, as far as can be read.
    Committed,
}

/// What the state says of this switch-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// It was begun.
    Switching,
    /// It was committed.
    Committed,
}

/// What became of a write of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is durable.
    Durable,
    /// The file says what it said before, and the write is not on its way any more.
    Absent,
    /// A crash might find either, whatever is read now.
    Unclear,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// Have the record say "committed", durably.
    Write,
    /// Have it say "prepared" again, durably.
    Erase,
    /// Tell whoever holds the guest.
    Answer(Commit),
    /// Record in the state, durably, that the destination is the disk's image.
    Tell,
    /// Put the source away, as soon as nothing is in flight there.
    Free,
    /// Remove the record.
    Drop,
    /// Nothing more.
    End,
}

/// A commit under way, or taken up again. Ask what to [`Commitment::next`] do, do it,
/// and say what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Commitment(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Nobody has been answered yet.
    Writing,
    /// It was found after a crash; nobody waits for an answer.
    Confirming,
    Erasing,
    Answering(bool),
    Telling,
    Freeing,
    Dropping,
    Over,
}

impl Commitment {
    /// The commit that a switch-over asks for.
    #[must_use]
    pub fn asked() -> Self {
        Commitment(State::Writing)
    }

    /// What a start makes of what it finds; nothing if the source is the truth.
    #[must_use]
    pub fn found(record: Found, stated: Stated) -> Option<Self> {
        match (stated, record) {
            (Stated::Committed, _) => Some(Commitment(State::Freeing)),
            (Stated::Switching, Found::Committed) => Some(Commitment(State::Confirming)),
            (Stated::Switching, Found::Nothing | Found::Prepared) => None,
        }
    }

    /// What is to be done.
    #[must_use]
    pub fn next(&self) -> Do {
        match self.0 {
            State::Writing | State::Confirming => Do::Write,
            State::Erasing => Do::Erase,
            State::Answering(true) => Do::Answer(Commit::Durable),
            State::Answering(false) => Do::Answer(Commit::Failed),
            State::Telling => Do::Tell,
            State::Freeing => Do::Free,
            State::Dropping => Do::Drop,
            State::Over => Do::End,
        }
    }

    /// Whether the destination is the truth, for certain.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        matches!(
            self.0,
            State::Answering(true) | State::Telling | State::Freeing | State::Dropping
        )
    }

    /// The record was written, or not.
    pub fn written(&mut self, written: Written) {
        self.0 = match (self.0, written) {
            (State::Writing, Written::Durable) => State::Answering(true),
            (State::Writing, Written::Absent) => State::Answering(false),
            (State::Writing, Written::Unclear) => State::Erasing,
            (State::Confirming, Written::Durable) => State::Telling,
            // What was found stays found: it is not for a start to take it back.
            (state, _) => state,
        };
    }

    /// The record was taken back, durably; otherwise it is tried again.
    pub fn erased(&mut self) {
        if self.0 == State::Erasing {
            self.0 = State::Answering(false);
        }
    }

    /// Whoever holds the guest was told.
    pub fn answered(&mut self) {
        self.0 = match self.0 {
            State::Answering(true) => State::Telling,
            State::Answering(false) => State::Over,
            state => state,
        };
    }

    /// The state has it, durably; otherwise it is tried again.
    pub fn told(&mut self) {
        if self.0 == State::Telling {
            self.0 = State::Freeing;
        }
    }

    /// The source is put away, and the state says that the migration has ended.
    pub fn freed(&mut self) {
        if self.0 == State::Freeing {
            self.0 = State::Dropping;
        }
    }

    /// The record is gone.
    pub fn dropped(&mut self) {
        if self.0 == State::Dropping {
            self.0 = State::Over;
        }
    }
}
