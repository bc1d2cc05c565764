//! The state: what is durable of a transfer.

use sterna_core::transfer::{End, Loss, Step, Verdict};

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) step: Step,
    pub(crate) cancel: bool,
    /// Where the machine is reached.
    pub(crate) reach: End,
    pub(crate) verdict: Option<Verdict>,
    /// The process that was told of the guest, if it can be seen.
    pub(crate) receiver: Option<u64>,
}

impl Record {
    pub(crate) fn new() -> Self {
        Record {
            step: Step::Created,
            cancel: false,
            reach: End::Source,
            verdict: None,
            receiver: None,
        }
    }

    pub(crate) fn copies(&mut self, receiver: Option<u64>) {
        assert_eq!(self.step, Step::Created, "it does not lead to copying");
        (self.step, self.receiver) = (Step::Copying, receiver);
    }

    pub(crate) fn takes_back(&mut self) {
        assert_ne!(self.step, Step::Created, "nothing was sent");
        (self.step, self.reach) = (Step::Returning, End::Source);
    }

    /// Whether it is the receiver's from now on.
    pub(crate) fn commits(&mut self, heeds: bool) -> bool {
        assert_ne!(self.step, Step::Created, "nothing was sent");
        if heeds && self.cancel {
            return false;
        }
        (self.step, self.reach) = (Step::Committed, End::Receiver);
        true
    }

    pub(crate) fn close(&mut self, verdict: &Verdict) {
        if let Some(before) = &self.verdict {
            assert_eq!(before, verdict, "it had ended otherwise");
            return;
        }
        let is_right = match (verdict, self.step) {
            (Verdict::There { .. } | Verdict::Lost(Loss::MayHaveRun(_), _), step) => {
                step == Step::Committed && self.reach == End::Receiver
            }
            (Verdict::Lost(Loss::Ended { .. }, _), step) => {
                step == Step::Returning && self.reach == End::Source
            }
            (Verdict::Stays { .. }, Step::Created | Step::Returning) => {
                self.reach == End::Source
            }
            // Its record was durable, although that was said to have failed.
            (Verdict::Stays { .. }, Step::Copying) => true,
            (Verdict::Stays { .. }, Step::Committed) => false,
        };
        assert!(is_right, "{verdict:?} in {self:?}");
        self.verdict = Some(verdict.clone());
    }
}
