//! Of whom is asked what is at a datastore's place, so that storage that hangs costs a thread
//! for each kind of question, however often it is asked again.
//!
//! One visit of a place goes on at a time. Several that come at once wait for each other; one
//! whose place hangs is overdue, and until it ends no other begins: so nothing is put on a
//! place to which a late visit may still write.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sterna_engine::datastore::{Datastore, DatastoreError, Visit};
use sterna_os::lock;

use super::DatastoreHandle;
use crate::asker::{Asked, Asker};

/// The questions about one place.
#[derive(Default)]
pub(crate) struct Visits {
    /// Visits of the place.
    place: Asker,
    /// Looks for a tracer, which is somewhere for a moment only.
    pub(crate) looks: Asker,
    /// What one sidecar says.
    pub(crate) sidecar: Asker,
    /// Comparisons with other places, by datastore: if another place hangs, this one does not.
    pairs: Mutex<HashMap<String, Asker>>,
}

impl Visits {
    /// Of a place of whom `asker` asks something, too.
    pub(super) fn beside(asker: &Asker) -> Visits {
        Visits { place: asker.beside(), ..Visits::default() }
    }

    /// For how long a visit has been under way, if one is, or there was no answer.
    pub(super) fn silent_for(&self) -> Option<Duration> {
        self.place.silent_for()
    }

    /// Comparisons with that datastore.
    pub(crate) fn pair(&self, other: &str) -> Asker {
        lock(&self.pairs).entry(other.to_owned()).or_default().clone()
    }
}

impl DatastoreHandle {
    /// Does something during a visit of the place once no other visit goes on; unless one has
    /// been under way for longer than it and this one may, or it is `over` before.
    pub(crate) fn ask_visit<T: Send + 'static>(
        &self,
        store: &Arc<Datastore>,
        limit: Duration,
        over: Option<&AtomicBool>,
        work: impl FnOnce(Option<Visit>) -> T + Send + 'static,
    ) -> Asked<Result<T, DatastoreError>> {
        let store = store.clone();
        self.visits.place.ask_in_turn(limit, over, move || store.connected(work))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::handle::on_a_fresh_directory;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(10);

    /// A datastore on a fresh directory, open.
    fn opened(scratch: &tempfile::TempDir) -> (Arc<DatastoreHandle>, Arc<Datastore>) {
        let handle = on_a_fresh_directory(scratch);
        let opened = handle.open().unwrap();
        (handle, opened)
    }

    #[test]
    fn a_place_that_hangs_costs_one_thread_however_often_it_is_visited() {
        let scratch = tempfile::tempdir().unwrap();
        let (handle, store) = opened(&scratch);
        let begun = Arc::new(AtomicUsize::new(0));
        let (release, held) = mpsc::channel::<()>();
        let visit = |limit, held: Option<mpsc::Receiver<()>>| {
            let begun = begun.clone();
            let asked = handle.ask_visit(&store, limit, None, move |_| {
                begun.fetch_add(1, Ordering::Relaxed);
                held.map(|held| held.recv())
            });
            asked.answer().is_some()
        };
        assert!(!visit(SHORT, Some(held)));
        for _ in 0..5 {
            let begun = Instant::now();
            assert!(!visit(SHORT, None));
            assert!(begun.elapsed() > SHORT * 5, "it might have been just ending");
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        drop(release);
        assert!(visit(LONG, None), "it answers again");
    }

    #[test]
    fn visits_of_a_place_in_order_wait_for_each_other() {
        let scratch = tempfile::tempdir().unwrap();
        let (handle, store) = opened(&scratch);
        let there = Arc::new(AtomicUsize::new(0));
        let visit = || {
            let there = there.clone();
            let asked = handle.ask_visit(&store, LONG, None, move |_| {
                let others = there.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
                there.fetch_sub(1, Ordering::SeqCst);
                others
            });
            asked.answer().and_then(Result::ok)
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(visit)).collect();
            assert!(all.into_iter().all(|one| one.join().unwrap() == Some(0)));
        });
    }
}
