//! What this process knows of a VM migration that has not ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sterna_api::TransferProgress;
use sterna_os::lock;
use tokio::sync::Notify;

/// What this process knows of VM migrations that have not ended, by number.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Mutex<BTreeMap<u64, Arc<Session>>>,
    /// Those that have no thread, and are to have one.
    pub(super) stranded: Mutex<BTreeSet<u64>>,
    /// The daemon is to stop.
    pub(super) stopping: AtomicBool,
}

impl Sessions {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<Session>> {
        lock(&self.all).get(&id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.all).values().cloned().collect()
    }

    pub(super) fn add(&self, id: u64, session: Arc<Session>) {
        lock(&self.all).insert(id, session);
    }

    pub(super) fn remove(&self, id: u64) {
        lock(&self.all).remove(&id);
    }
}

/// What this process knows of one VM migration.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Wakes the driver.
    pub(super) asked: Notify,
    cancel: AtomicBool,
    status: Mutex<SessionStatus>,
}

/// How a VM migration goes.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionStatus {
    pub(super) progress: Option<TransferProgress>,
    /// Why it cannot go on at the moment.
    pub(super) trouble: Option<String>,
}

impl Session {
    pub(super) fn new(cancel: bool) -> Session {
        Session { cancel: AtomicBool::new(cancel), ..Session::default() }
    }

    pub(super) fn wake(&self) {
        self.asked.notify_one();
    }

    /// Somebody wants it to be given up, and that is durable.
    pub(super) fn cancel(&self) {
        self.cancel.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::SeqCst)
    }

    pub(super) fn status(&self) -> SessionStatus {
        lock(&self.status).clone()
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut SessionStatus)) {
        change(&mut lock(&self.status));
    }
}
