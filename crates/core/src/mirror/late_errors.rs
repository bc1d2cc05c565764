//! Errors of the guest's writes that are told later, while a switch-over is prepared.
//!
//! A write that the source refuses, as it is full or read-only, leaves bytes of which nobody knows
//! what they are; so the copier reads them once more. A guest that tries again at once does that a
//! thousand times a second. No switch-over would ever find both images equal, and a disk could not
//! be moved off the very datastore that it has to leave.
//!
//! **Rule.** From the beginning of an attempt to switch over, such a write is answered when the
//! attempt ends, or [`WAIT`] after it began. What fails does not go on meanwhile: the rest is
//! copied, and both images are equal. After the commit the guest is told the error, as the
//! destination has what the source had.
//!
//! A write that succeeds never waits here, and none waits outside of an attempt.

use super::{Action, Mirror, RegionMap, RequestId};
use crate::Nanos;

/// How long errors wait from the beginning of an attempt: time for two flushes of a busy disk,
/// and far less than the engine waits for requests when the daemon stops. An application that is
/// about to be told that its disk fails loses nothing by hearing it later.
pub(super) const WAIT: Nanos = Nanos::from_secs(2);

/// The errors that wait, as many as the guest may have requests in flight.
#[derive(Debug, Default)]
pub(super) struct LateErrors {
    /// Until when errors wait; nothing outside of an attempt.
    until: Option<Nanos>,
    waiting: Vec<RequestId>,
    /// Whether a write has failed since the last attempt that was late.
    any: bool,
    /// Attempts that were late, and those of them in which a write has failed.
    late: u32,
    refused: u32,
}

impl LateErrors {
    /// An attempt begins, or goes on after what fell behind was copied.
    pub(super) fn begin(&mut self, now: Nanos) {
        if self.until.is_none_or(|until| until <= now && self.waiting.is_empty()) {
            self.until = Some(now.plus(WAIT));
        }
    }

    /// An attempt was undone because writes fell behind. Says whether most of those that were had
    /// a write that the source refused.
    pub(super) fn was_late(&mut self) -> bool {
        self.late += 1;
        self.refused += u32::from(std::mem::take(&mut self.any));
        self.refused * 2 > self.late
    }

    /// The operator wants it tried again: what was counted is over.
    pub(super) fn resumed(&mut self) {
        (self.late, self.refused, self.any) = (0, 0, false);
    }

    /// Whether the guest waits for any of them.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When they are told at the latest.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.until.filter(|_| self.is_waited_for())
    }

    /// Whether an error waits that comes now.
    fn wait(&self, now: Nanos) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

impl<M: RegionMap> Mirror<M> {
    /// A write has failed at the source: its answer waits, if a switch-over is prepared.
    pub(super) fn answer_error(
        &mut self,
        now: Nanos,
        id: RequestId,
        out: &mut Vec<Action>,
    ) {
        self.late_errors.any = true;
        if !self.running() || !self.late_errors.wait(now) {
            self.answer(now, id, out);
        } else if self.flights.answered(now, id) {
            self.late_errors.waiting.push(id);
        }
    }

    /// The attempt is over: errors are told.
    pub(super) fn tell_errors(&mut self, out: &mut Vec<Action>) {
        self.late_errors.until = None;
        out.extend(self.late_errors.waiting.drain(..).map(Action::Answer));
    }

    /// Tells errors that have waited long enough; the attempt goes on. Those that come later in
    /// it do not wait.
    pub(super) fn tell_due_errors(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if self.late_errors.deadline().is_some_and(|until| now >= until) {
            out.extend(self.late_errors.waiting.drain(..).map(Action::Answer));
        }
    }
}
