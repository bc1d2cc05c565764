//! Asking what may never answer.
//!
//! A hung NFS server holds whoever touches it, for ever. Nothing that people
//! wait for (a start, a list, a status) may hang with it: such questions are
//! asked on a thread of their own, and left behind when time is up. A question
//! that is still open is not asked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Whether a question is still open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    open: Arc<AtomicBool>,
}

impl Patience {
    /// The answer of `question`, unless it takes longer than `limit` or an
    /// earlier one is still open.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        limit: Duration,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.open.swap(true, Ordering::AcqRel) {
            return None;
        }
        let open = self.open.clone();
        let (sender, receiver) = mpsc::sync_channel(1);
        let ask = move || {
            let answer = question();
            open.store(false, Ordering::Release);
            // Who asked may have gone on.
            let _ = sender.send(answer);
        };
        let thread = thread::Builder::new().name("sterna-ask".into()).spawn(ask);
        if thread.is_err() {
            self.open.store(false, Ordering::Release);
            return None;
        }
        receiver.recv_timeout(limit).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_hangs_is_left_behind() {
        let patience = Patience::default();
        assert_eq!(patience.ask(Duration::from_secs(5), || 7), Some(7));
        let (release, held) = mpsc::channel::<()>();
        let hang = move || held.recv().is_ok();
        assert_eq!(patience.ask(Duration::from_millis(10), hang), None);
        assert_eq!(patience.ask(Duration::from_secs(5), || 8), None);
        drop(release);
        let answered = || patience.ask(Duration::from_secs(5), || 9);
        while answered().is_none() {
            thread::yield_now();
        }
    }
}
