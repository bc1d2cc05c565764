//! A datastore as the daemon has it open, or not.
//!
//! A datastore that cannot be reached does not stop the daemon: it is offline,
//! with the reason, and tried again by the keeper. What asks it for figures has
//! little patience, since a hung server answers nobody.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sterna_engine::datastore::{Datastore, DatastoreError, Space};
use sterna_engine::sidecar::Identity;
use sterna_engine::{Budget, ImageSpec};

use crate::daemon::{Daemon, lock};
use crate::error::{DaemonError, Result};
use crate::patience::{Asked, Patience};
use crate::refusals::{lost_sidecar, refusal};
use crate::store::DatastoreRecord;

/// How long a figure may take. People wait for it.
const FIGURE: Duration = Duration::from_secs(2);
/// How long opening may take: a connection to another continent, not more.
const OPENING: Duration = Duration::from_secs(10);

/// What is wrong with a datastore that lets questions hang.
const SILENT: &str = "it does not answer";

/// A datastore that has been asked what it has; or why it cannot be asked.
type Question = Result<Asked<Found>, String>;

/// What a datastore has; or why it is offline.
pub(crate) type Found = Result<Space, String>;

/// A datastore, open or not.
#[derive(Debug)]
pub(crate) struct Shelf {
    record: DatastoreRecord,
    budget: Arc<Budget>,
    sidecars: PathBuf,
    state: Mutex<Result<Arc<Datastore>, String>>,
    /// Whoever opens it holds this; others wait for the outcome.
    opening: Mutex<()>,
    patience: Patience,
}

impl Shelf {
    /// A datastore that has not been opened yet.
    pub(crate) fn closed(record: DatastoreRecord, sidecars: PathBuf) -> Shelf {
        let state = Mutex::new(Err("it has not been opened yet".into()));
        let budget = Arc::new(Budget::new(record.shape.unwrap_or_default()));
        Shelf {
            record,
            budget,
            sidecars,
            state,
            opening: Mutex::default(),
            patience: Patience::default(),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.record.name
    }

    /// What the store knows of it.
    pub(crate) fn record(&self) -> &DatastoreRecord {
        &self.record
    }

    /// What it lets through: for all its images.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.budget)
    }

    /// Why it cannot be used, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        lock(&self.state).as_ref().err().cloned()
    }

    /// Opens it, if it is not open.
    pub(crate) fn open(&self) -> Result<Arc<Datastore>> {
        if let Ok(datastore) = self.get() {
            return Ok(datastore);
        }
        let _opening = lock(&self.opening);
        if let Ok(datastore) = self.get() {
            return Ok(datastore);
        }
        let (record, sidecars) = (self.record.clone(), self.sidecars.clone());
        let opened = self.patience.ask(OPENING, move || {
            Datastore::open(record.name, record.location)
                .map(|datastore| Arc::new(datastore.keep_sidecars_in(&sidecars)))
        });
        let opened = match opened.answer() {
            Some(Ok(datastore)) => Ok(datastore),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(SILENT.to_owned()),
        };
        let mut state = lock(&self.state);
        (*state).clone_from(&opened);
        opened.map_err(|problem| self.unavailable(&problem))
    }

    /// The open datastore.
    pub(crate) fn get(&self) -> Result<Arc<Datastore>> {
        let state = lock(&self.state).clone();
        state.map_err(|problem| self.unavailable(&problem))
    }

    /// What it has now, if it says so in time; else why it is offline.
    pub(crate) fn look(&self) -> Found {
        found(self.ask())
    }

    /// What it has, if it says so in time.
    pub(crate) fn space(&self) -> Option<Space> {
        self.look().ok()
    }

    /// Asks it what it has.
    fn ask(&self) -> Question {
        let datastore = lock(&self.state).clone()?;
        let space = move || datastore.space().map_err(|error| error.to_string());
        Ok(self.patience.ask(FIGURE, space))
    }

    /// What an image takes, if it says so in time.
    pub(crate) fn allocated(&self, file: &str, size: u64) -> Option<u64> {
        let datastore = self.get().ok()?;
        let file = file.to_owned();
        let asked = self.patience.ask(FIGURE, move || {
            datastore.allocated(&datastore.image(&file).ok()?, size)
        });
        asked.answer()?
    }

    /// How to open an image, unchecked.
    pub(crate) fn image(&self, file: &str) -> Result<ImageSpec> {
        self.get()?.image(file).map_err(|error| self.refused(&error))
    }

    /// How to open an image that must be the expected one.
    pub(crate) fn expect(&self, file: &str, expected: &Identity) -> Result<ImageSpec> {
        self.get()?.open_image(file, expected).map_err(|error| {
            lost_sidecar(self.name(), &expected.name, file, &error)
                .unwrap_or_else(|| self.refused(&error))
        })
    }

    /// Makes an image say what it is.
    pub(crate) fn identify(&self, file: &str, identity: &Identity) -> Result<()> {
        let datastore = self.get()?;
        let written = datastore
            .image(file)
            .and_then(|image| datastore.write_sidecar(&image, identity));
        written.map_err(|error| self.refused(&error))
    }

    /// Removes an image.
    pub(crate) fn remove(&self, file: &str, size: u64) -> Result<()> {
        let datastore = self.get()?;
        let removed =
            datastore.image(file).and_then(|image| datastore.remove_image(&image, size));
        removed.map_err(|error| self.refused(&error))
    }

    /// The datastore's own error, for the API.
    pub(crate) fn refused(&self, error: &DatastoreError) -> DaemonError {
        refusal(self.name(), error)
    }

    fn unavailable(&self, problem: &str) -> DaemonError {
        let name = self.name();
        DaemonError::unavailable(format!("datastore {name} cannot be used: {problem}"))
            .hint("put that right; it is tried again every few seconds")
    }
}

/// What became of a question.
fn found(asked: Question) -> Found {
    asked?.answer().unwrap_or_else(|| Err(SILENT.into()))
}

impl Daemon {
    /// All datastores, by name, with what each has now. All are asked before the
    /// first is waited for: several that hang take no longer than one.
    pub(crate) fn look_at_shelves(&self) -> Vec<(Arc<Shelf>, Found)> {
        let shelves = self.all_shelves();
        let asked: Vec<Question> = shelves.iter().map(|shelf| shelf.ask()).collect();
        shelves.into_iter().zip(asked.into_iter().map(found)).collect()
    }

    /// All datastores, by name.
    pub(crate) fn all_shelves(&self) -> Vec<Arc<Shelf>> {
        lock(&self.shelves).values().cloned().collect()
    }

    /// The datastore of that name.
    pub(crate) fn shelf(&self, name: &str) -> Result<Arc<Shelf>> {
        let shelf = lock(&self.shelves).get(name).cloned();
        shelf.ok_or_else(|| DaemonError::not_found("datastore", name))
    }

    /// A shelf for a record.
    pub(crate) fn new_shelf(&self, record: DatastoreRecord) -> Arc<Shelf> {
        Arc::new(Shelf::closed(record, self.places.state.join("sidecars")))
    }
}
