//! The state: what Sterna remembers, in an SQLite database on a thread of its own.
//!
//! It keeps records: disks and datastores, moves with their steps, plans, VMs and hosts,
//! classes, policies, rules and settings. It says what is so, and what may follow on
//! what: a step that a record cannot take is refused. It decides nothing else. It knows
//! no engine, no network and no QEMU, and what a record means for a disk is up to the
//! daemon, which asks from its own threads.
//!
//! SQLite is the truth about which image is a disk's truth, but for the moment in
//! which a switch-over is committed and it has not been told yet (`commit_record` in the
//! daemon).
//!
//! **Invariants.**
//!
//! - Every transaction is durable before its call returns (WAL with `synchronous=FULL`),
//!   and so is what a start finds here (`durable`).
//! - The commit of a migration changes the disk and the migration's step in one
//!   transaction (`commit`).
//! - A released step of the schema never changes, and a database of a newer Sterna, or of
//!   somebody else, is refused before anything is written (`schema`).
//!
//! One thread owns the connection. A call sends it a closure and waits, so
//! callers block: they are on threads that may, and no guest is held for them.
//! Each record has a file with its type and its calls.
//!
//! Where to begin: [`Store`], then `steps`, which has the life of a migration, and
//! `disks`, whose record everything else is about.
#![forbid(unsafe_code)]

mod activity;
mod beside;
mod classes;
mod commit;
mod counted;
mod datastores;
mod disks;
mod durable;
mod error;
#[cfg(any(test, feature = "test-util"))]
pub mod examples;
mod experience;
mod fingerprints;
mod forecast;
mod history;
mod hours;
mod in_place;
mod kept_hours;
mod known_file;
mod ledger;
mod memory_terms;
mod migrations;
mod plans;
mod policies;
mod reach;
mod registry;
mod schema;
mod steps;
mod storage_drs;
mod swap_tiers;
#[cfg(test)]
mod tests;
mod transfers;
mod vm_memory;
mod vm_move_kind;
mod vm_moves;
mod vms;
mod waiting;
mod workloads;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use error::cannot;
use in_place::InPlace;
use sterna_core::Nanos;
use sterna_core::measure::Timed;
use sterna_os::lock;

pub use activity::{ActivityLog, Wanted};
pub use beside::BesideError;
pub use classes::{ClassChange, ClassRecord};
pub use counted::{Counted, Figured};
pub use datastores::DatastoreRecord;
pub use disks::DiskRecord;
pub use error::StoreError;
pub use experience::Learned;
pub use fingerprints::FingerprintRecord;
pub use forecast::Forecast;
pub use history::{DiskHour, HistoryFile};
pub use kept_hours::KeptHour;
pub use known_file::{KnownFile, MadeFile};
pub use ledger::{Change, Ledger, LocalLedger};
pub use memory_terms::MemoryTermsRecord;
pub use migrations::{Blame, FoundInImages, MigrationRecord, Pause, Place};
pub use plans::{
    Closed, Course, MoveDesign, PlanChanges, PlanDesign, PlanEnd, PlanMove, PlanRecord,
};
pub use policies::PolicyRecord;
pub use reach::Reach;
pub use registry::{
    Entry, History, HostRecord, PoolRecord, Registry, RuleRecord, SeatRecord,
};
pub use steps::{Ending, Step};
pub use storage_drs::StorageRuleRecord;
pub use swap_tiers::SwapTierRecord;
pub use transfers::{
    ReceiverProcess, TransferDesign, TransferEnd, TransferRecord, TransferStep,
};
pub use vm_move_kind::{OurDisk, VmMoveKind};
pub use vm_moves::{Leaves, VmMoveRecord};
pub use vms::VmRecord;
pub use waiting::Waiting;
pub use workloads::WorkloadCourse;

/// What the store's thread is asked to do.
type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// The state. Cheap to clone; the last one closes the database.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    /// No more work is taken.
    closed: Arc<AtomicBool>,
    work: Option<mpsc::Sender<Work>>,
    place: Arc<InPlace>,
    under_way: Arc<UnderWay>,
    /// How long durable changes took.
    changes: Arc<Mutex<Timed>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Since when the store's thread has been at what it is at.
#[derive(Default)]
struct UnderWay(Mutex<Option<Instant>>);

impl UnderWay {
    fn set(&self, since: Option<Instant>) {
        *lock(&self.0) = since;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.work.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported as `Closed` to who asked.
            let _ = thread.join();
        }
    }
}

impl Store {
    /// Opens the database at `path`; makes it, or brings it up to date, if need
    /// be. What it says is durable then.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let synced = durable::sync(path);
        let mut connection = schema::open(path)?;
        durable::settle(&connection, synced)?;
        let place = InPlace::guard(path, &mut connection);
        let (sender, receiver) = mpsc::channel::<Work>();
        let under_way = Arc::new(UnderWay::default());
        let changes = Arc::<Mutex<Timed>>::default();
        let (mine, timed) = (Arc::clone(&under_way), Arc::clone(&changes));
        let run = move || {
            for work in receiver {
                let (since, changed) = (Instant::now(), connection.total_changes());
                mine.set(Some(since));
                work(&mut connection);
                if connection.total_changes() != changed {
                    lock(&timed).record(Nanos::from(since.elapsed()));
                }
                mine.set(None);
            }
        };
        let thread = thread::Builder::new().name("sterna-store".into()).spawn(run);
        let thread = thread.map_err(StoreError::NoThread)?;
        let inner = Inner {
            closed: Arc::default(),
            work: Some(sender),
            place,
            under_way,
            changes,
            thread: Some(thread),
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// For how long the database has not answered by now: its storage may hang, or be
    /// frozen. Nought if it has nothing to do.
    pub fn silent_for(&self) -> Duration {
        lock(&self.inner.under_way.0).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The error of all changes, if the database is no longer where it was opened.
    pub fn is_gone(&self) -> Option<StoreError> {
        (!self.inner.place.is_there()).then_some(StoreError::Gone)
    }

    /// The same, before something is done outside of it that it is to know of.
    pub fn must_be_there(&self) -> Result<(), StoreError> {
        self.is_gone().map_or(Ok(()), Err)
    }

    /// How long changes have taken since the store was opened, until each was durable. Does
    /// not wait for the database.
    pub fn changes(&self) -> Timed {
        *lock(&self.inner.changes)
    }

    /// Waits for what the database is at, and takes nothing more from whoever still has the
    /// store: another daemon is to have it.
    pub fn close(&self) {
        let Some(work) = &self.inner.work else { return };
        self.inner.closed.store(true, Ordering::SeqCst);
        let (done, over) = mpsc::sync_channel(1);
        let last: Work = Box::new(move |_| {
            let _ = done.send(());
        });
        // If its thread is gone, it is at nothing.
        if work.send(last).is_ok() {
            let _ = over.recv();
        }
    }

    /// Carries `work` out on the store's thread and waits for it.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let closed = Arc::clone(&self.inner.closed);
        let work: Work = Box::new(move |connection| {
            // Asked in the moment in which the store was closed, it is not done after that.
            if closed.load(Ordering::SeqCst) {
                return;
            }
            // Who asked may have given up; the work is done all the same.
            let _ = answer.send(work(connection));
        });
        let sender = self.inner.work.as_ref().ok_or(StoreError::Closed)?;
        sender.send(work).map_err(|_| StoreError::Closed)?;
        waiting::wait(|| answered.recv()).map_err(|_| StoreError::Closed)
    }
}

/// A number as SQLite keeps it. Sizes and generations stay far below 2^63.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number as SQLite kept it.
fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A value that is kept as text, read back.
fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: String = row.get(column)?;
    text.parse().map_err(|error| unfit(row, column, error))
}

/// A value that is kept as JSON, read back.
fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: Option<String> = row.get(column)?;
    let value = serde_json::from_str(text.as_deref().unwrap_or("null"));
    value.map_err(|error| unfit(row, column, error))
}

/// A value that cannot be what was kept.
fn unfit(
    row: &Row<'_>,
    column: &str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    let at = row.as_ref().column_index(column).unwrap_or(0);
    let text = rusqlite::types::Type::Text;
    rusqlite::Error::FromSqlConversionFailure(at, text, Box::new(error))
}

/// A value as it is kept in JSON.
fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("records are plain data")
}
