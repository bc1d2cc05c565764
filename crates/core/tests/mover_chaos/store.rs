//! The state: what is durable of a move.

use sterna_core::mover::{MoverStep, Tidied, Verdict, Wishes};

use crate::images::Inode;

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) step: MoverStep,
    pub(crate) wishes: Wishes,
    /// The file that was made for the copy.
    pub(crate) file: Option<Inode>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) untidy: bool,
    /// People are warned that the last writes may be in either image.
    pub(crate) unclear: bool,
}

impl Record {
    pub(crate) fn new() -> Self {
        let wishes = Wishes::default();
        Record {
            step: MoverStep::Created,
            wishes,
            file: None,
            verdict: None,
            untidy: false,
            unclear: false,
        }
    }

    /// Goes on to `next`, if the step leads there.
    pub(crate) fn advance(&mut self, next: MoverStep) {
        let leads = match (self.step, next) {
            (now, next) if now == next => true,
            (MoverStep::Created, MoverStep::Copying)
            | (MoverStep::Copying, MoverStep::Switching)
            | (MoverStep::Switching, MoverStep::Copying | MoverStep::Committed) => true,
            _ => false,
        };
        assert!(leads, "{:?} does not lead to {next:?}", self.step);
        self.step = next;
    }

    /// Whether QEMU may be told to switch over, which is durable then.
    pub(crate) fn switches(&mut self) -> bool {
        if self.step != MoverStep::Switching && self.wishes.cancel {
            return false;
        }
        self.advance(MoverStep::Switching);
        true
    }

    pub(crate) fn close(&mut self, verdict: &Verdict) {
        if let Some(before) = &self.verdict {
            assert_eq!(before, verdict, "it had ended otherwise");
            return;
        }
        if matches!(verdict, Verdict::Moved { .. }) {
            assert_eq!(self.step, MoverStep::Committed, "moved, and not committed");
        }
        self.step = MoverStep::Ended;
        self.untidy = verdict.is_untidy();
        self.unclear = verdict.is_unclear();
        self.verdict = Some(verdict.clone());
    }

    /// Nothing is left at the machine.
    pub(crate) fn tidy(&mut self, tidied: &Tidied) {
        self.untidy = false;
        self.unclear |= matches!(tidied, Tidied::Unclear(_));
    }
}
