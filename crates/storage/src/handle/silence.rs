//! A datastore that lets questions hang: since when, in which words, and who is refused for it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sterna_api::Result;

use super::{DatastoreHandle, FIGURE, NO_THREAD, SILENT};
use crate::asker::Asked;

impl DatastoreHandle {
    /// Refuses what somebody asks for now, if the datastore lets questions hang. One that is
    /// out of order and says so is no hindrance: a disk may be moved away from it.
    pub fn must_not_hang(&self) -> Result<()> {
        let Ok(datastore) = self.get() else { return Ok(()) };
        // Servers and devices are not asked: whoever uses one has a bound of its own.
        if !datastore.holds_many() {
            return self.answered(self.asker.ask_nothing(FIGURE));
        }
        // What it answers is of no account.
        self.answer_to(move || drop((datastore.space(), datastore.check())))
    }

    /// The answer to a question, which comes soon; if it does not, what waits for the
    /// datastore is seen to when it answers again.
    pub fn answer_to<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.answered(self.asker.ask(FIGURE, question))
    }

    /// The same about the path by which it is known: that it is answered says nothing of what
    /// is there.
    pub(crate) fn answer_of_path<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.answered(self.files.ask(FIGURE, question))
    }

    pub(super) fn answered<T>(&self, asked: Asked<T>) -> Result<T> {
        let has_no_thread = asked.has_no_thread();
        asked.answer().ok_or_else(|| {
            self.has_not_answered();
            match has_no_thread {
                true => self.unavailable(NO_THREAD),
                false => self.unavailable(&self.silent()),
            }
        })
    }

    /// It has let a question hang: what waits for it is seen to when it answers again.
    pub(crate) fn has_not_answered(&self) {
        self.is_seen_to.store(false, Relaxed);
    }

    /// What is wrong with a datastore that lets questions hang.
    pub(super) fn silent(&self) -> String {
        match self.silent_for().filter(|span| span.as_secs() > 0) {
            Some(span) => format!("{SILENT} in time (for {} s by now)", span.as_secs()),
            None => self.takes_no_writes().unwrap_or_else(|| SILENT.into()),
        }
    }

    /// For how long nothing that was asked has been answered: one span for all who say it.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        let asked = [self.asker.silent_for(), self.listing.silent_for()];
        asked.into_iter().chain([self.visits.silent_for()]).flatten().max()
    }
}
