//! What a device or an export in use said before anybody used it.
//!
//! It is asked when it is opened first: later its server may take no second client. If it does
//! not answer in time, it may answer late, and that counts. If it cannot be read, or the system
//! has no thread, it is asked again, and not often.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use sterna_os::lock;

use super::reading::{KEPT, TELLING};
use super::sidecars::Sidecars;
use crate::asker::Asker;

/// What it said, if it has.
#[derive(Default)]
pub(super) struct AtFirst {
    asker: Asker,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Whether it was asked.
    is_asked: bool,
    /// When that was, if it may not be asked again before a while is over.
    asked: Option<Instant>,
    said: Option<Sidecars>,
}

impl AtFirst {
    /// What it said. Nothing while it has not answered; if `question` gives nothing, it
    /// cannot be read now.
    pub(super) fn ask(
        &self,
        question: impl FnOnce() -> Option<Sidecars> + Send + 'static,
    ) -> Option<Sidecars> {
        let mut state = lock(&self.state);
        if state.said.is_some() || state.asked.is_some_and(|at| at.elapsed() < KEPT) {
            return state.said.clone();
        }
        state.asked = Some(Instant::now());
        state.is_asked = true;
        drop(state);
        let state = self.state.clone();
        let said = self.asker.ask(TELLING, move || {
            let said = question();
            lock(&state).said.clone_from(&said);
            said
        });
        said.answer()?
    }

    /// The same if it was asked before. One that was not has got its disk while this daemon
    /// ran: it said nothing then.
    pub(super) fn ask_again(
        &self,
        question: impl FnOnce() -> Option<Sidecars> + Send + 'static,
    ) -> Option<Sidecars> {
        if !lock(&self.state).is_asked {
            return Some(Sidecars::default());
        }
        self.ask(question)
    }

    /// What it said does not hold any more: it is asked again.
    pub(super) fn forget(&self) {
        let mut state = lock(&self.state);
        state.said = None;
        state.asked = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// It was asked so long ago that it may be asked again.
    fn was_asked_long_ago(first: &AtFirst) {
        lock(&first.state).asked = Instant::now().checked_sub(KEPT);
    }

    #[test]
    fn a_place_that_cannot_be_read_at_first_is_asked_again_and_not_at_once() {
        let first = AtFirst::default();
        assert!(first.ask(|| None).is_none());
        assert!(first.ask_again(|| unreachable!()).is_none());
        was_asked_long_ago(&first);
        assert!(first.ask_again(|| Some(Sidecars::default())).is_some());
        assert!(first.ask_again(|| unreachable!()).is_some(), "that is known for good");
    }

    #[test]
    fn a_place_whose_word_does_not_hold_any_more_is_asked_again_at_once() {
        let first = AtFirst::default();
        first.forget();
        assert!(first.ask_again(|| unreachable!()).is_some(), "it said nothing");
        assert!(first.ask(|| Some(Sidecars::default())).is_some());
        first.forget();
        assert!(first.ask_again(|| None).is_none());
    }

    #[test]
    fn what_a_place_says_too_late_is_known_from_then_on() {
        let first = AtFirst::default();
        let (release, held) = mpsc::channel::<()>();
        let late = move || held.recv().is_err().then(Sidecars::default);
        assert!(first.ask(late).is_none());
        drop(release);
        while first.asker.is_open() {
            std::thread::yield_now();
        }
        assert!(first.ask_again(|| unreachable!()).is_some());
    }

    #[test]
    fn a_place_that_has_got_its_disk_since_the_start_said_nothing() {
        let first = AtFirst::default();
        assert!(first.ask_again(|| unreachable!()).is_some());
    }
}
