//! A datastore as the daemon has it open, or not.
//!
//! A datastore that cannot be reached does not stop the daemon: the datastore is offline, with
//! the reason, and the daemon tries again (`retry` of `sterna_daemon`). A datastore at whose
//! path another file system is found is offline, too (`marks`). If a datastore does not tell
//! its free space in time ([`FIGURE`]), nobody waits for it longer.

mod at_first;
mod directory;
mod images;
mod old_copies;
mod reading;
mod rounds;
mod sidecars;
mod silence;
mod visits;
mod writes;

pub use self::images::Gone;
pub use self::old_copies::ImageLook;
pub use self::reading::{Answer, Told};

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_core::{Bytes, Mark};
use sterna_engine::Budget;
use sterna_engine::datastore::{Datastore, DatastoreError, Location, Space};
use sterna_os::lock;
use sterna_state::Store;

use crate::Storage;
use crate::asker::{Asked, Asker};
use crate::marks::{self, DatastoreRecord};
use crate::refusals::refusal;
use at_first::AtFirst;
use reading::Readings;
use rounds::Rounds;
use visits::Visits;

/// How long a figure may take. People wait for it, and count a second as an answer.
const FIGURE: Duration = Duration::from_millis(800);
/// How long opening may take: a connection to another continent, not more.
const OPENING: Duration = Duration::from_secs(10);

/// What is wrong with a datastore that lets questions hang.
const SILENT: &str = "it does not answer";

/// What is wrong if the system gives no thread on which it could be asked: nothing of its own.
const NO_THREAD: &str = "nobody could ask it: the system has no thread (check the limit of \
    threads: TasksMax of the service, `ulimit -u`, and `ulimit -v`)";

/// A datastore that has been asked what it has; or why it cannot be asked.
type Question = Result<Asked<SpaceAnswer>, String>;

/// What a datastore has; or why it is offline.
pub type SpaceAnswer = Result<Space, String>;

/// A datastore, open or not.
pub struct DatastoreHandle {
    record: DatastoreRecord,
    /// Nothing new goes there. (The record has what held when it was opened.)
    maintenance: AtomicBool,
    budget: Arc<Budget>,
    sidecars: PathBuf,
    store: Store,
    /// What its directory is known by. (The record has what held when it was made.)
    mark: Mutex<Option<Mark>>,
    state: Mutex<Result<Arc<Datastore>, String>>,
    /// What it is on that others may be on, too; as it was when it was opened last.
    backing: Mutex<Option<String>>,
    /// Whether it has been offline since the daemon (`retry`) last saw it online.
    was_offline: AtomicBool,
    /// Whether what waited for it has been seen to.
    is_seen_to: AtomicBool,
    /// Whether `retry` is at it.
    is_looked_at: AtomicBool,
    /// Whoever opens it holds this; others wait for the outcome.
    opening: Mutex<()>,
    asker: Asker,
    /// Whether it takes writes, apart from figures: where writes hang, what is read may be
    /// answered still.
    writes: Asker,
    /// Apart from figures, which are asked for all the time: a list that was not
    /// asked for because of one would look like a server that hangs.
    listing: Asker,
    /// Of what has become of images that are open.
    files: Asker,
    /// Whether one of its images is a certain file.
    pub(crate) names: Asker,
    /// Of what is at its place.
    pub(crate) visits: Visits,
    /// What all sidecars say.
    readings: Readings,
    /// What a place in use said when it was opened first, if it answered.
    at_first: AtFirst,
    /// Whether it is asked for newer images of disks that are elsewhere.
    pub(crate) rounds: Rounds,
    /// Whether the daemon stops.
    ending: Arc<AtomicBool>,
}

impl DatastoreHandle {
    /// A datastore that has not been opened yet.
    fn closed(
        record: DatastoreRecord,
        sidecars: PathBuf,
        store: Store,
        ending: Arc<AtomicBool>,
    ) -> DatastoreHandle {
        let state = Mutex::new(Err("it has not been opened yet".into()));
        let budget = Budget::new(record.shape.unwrap_or_default());
        let budget = Arc::new(match record.location.model() {
            Some(model) => budget.emulating(model.clone()),
            None => budget,
        });
        let asker = Asker::default();
        DatastoreHandle {
            listing: asker.beside(),
            names: asker.beside(),
            visits: Visits::beside(&asker),
            asker,
            maintenance: AtomicBool::new(record.maintenance.is_some()),
            mark: Mutex::new(record.mark),
            record,
            budget,
            sidecars,
            store,
            state,
            backing: Mutex::default(),
            was_offline: AtomicBool::default(),
            is_seen_to: AtomicBool::default(),
            is_looked_at: AtomicBool::default(),
            opening: Mutex::default(),
            writes: Asker::default(),
            files: Asker::default(),
            readings: Readings::default(),
            at_first: AtFirst::default(),
            rounds: Rounds::default(),
            ending,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Whether the daemon stops, so that nobody wants to know any more what is there.
    pub(crate) fn ending(&self) -> &AtomicBool {
        &self.ending
    }

    /// Which part of its room is taken, 0 to 1, if images share it. A device or an export with
    /// its one image is not full: nothing else was to come there.
    pub fn taken(&self, space: &Space) -> Option<f64> {
        let is_judged = self.is_shared() && space.capacity > 0;
        let taken = space.capacity.saturating_sub(space.free);
        is_judged.then(|| taken as f64 / space.capacity as f64)
    }

    /// Whether images share its room. A device, or an export, is all its image's.
    pub fn is_shared(&self) -> bool {
        match self.record.location {
            Location::Directory(_) | Location::Array(_) => true,
            Location::Device(_) | Location::Nbd(_) => false,
        }
    }

    /// Whether nothing new goes there.
    pub fn is_in_maintenance(&self) -> bool {
        self.maintenance.load(Relaxed)
    }

    /// Says whether anything new goes there.
    pub(crate) fn set_maintenance(&self, maintenance: bool) {
        self.maintenance.store(maintenance, Relaxed);
    }

    /// Refuses what is new, if nothing new goes there.
    pub fn check_takes_new(&self) -> Result<()> {
        if !self.is_in_maintenance() {
            return Ok(());
        }
        let name = self.name();
        let message =
            format!("datastore {name} is in maintenance: no new disks or moves");
        Err(Error::in_use(message).hint(format!(
            "choose another datastore, or end the maintenance: `sterna datastore \
             maintenance {name} --off`"
        )))
    }

    /// What the store knows of it.
    pub fn record(&self) -> &DatastoreRecord {
        &self.record
    }

    /// What it lets through: for all its images.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.budget)
    }

    /// Why it cannot be used, if so.
    pub fn problem(&self) -> Option<String> {
        lock(&self.state).as_ref().err().cloned()
    }

    /// Opens it, if it is not open, or is not what it was.
    pub fn open(&self) -> Result<Arc<Datastore>> {
        if let Some(datastore) = self.still_open() {
            return Ok(datastore);
        }
        let _opening = lock(&self.opening);
        if let Some(datastore) = self.still_open() {
            return Ok(datastore);
        }
        let record = DatastoreRecord { mark: self.mark(), ..self.record.clone() };
        let (sidecars, store) = (self.sidecars.clone(), self.store.clone());
        let open = move || marks::open(&record, &sidecars, &store);
        let asked = self.asker.ask_patiently(OPENING, open);
        let unanswered = if asked.has_no_thread() { NO_THREAD } else { SILENT };
        let opened = match asked.answer() {
            Some(Ok(opened)) => {
                *lock(&self.backing) = opened.backing;
                if opened.mark.is_some() {
                    *lock(&self.mark) = opened.mark;
                }
                Ok(opened.datastore)
            }
            Some(Err(problem)) => Err(problem),
            None => Err(unanswered.to_owned()),
        };
        match &opened {
            Ok(datastore) => self.has_opened(datastore),
            Err(_) => self.goes_offline(),
        }
        (*lock(&self.state)).clone_from(&opened);
        opened.map_err(|problem| self.unavailable(&problem))
    }

    /// It is being opened for as long as this is kept.
    #[cfg(test)]
    pub(crate) fn opens(&self) -> std::sync::MutexGuard<'_, ()> {
        lock(&self.opening)
    }

    /// A device or an export says what it is before anybody uses it.
    fn has_opened(&self, datastore: &Arc<Datastore>) {
        if self.is_shared() {
            return;
        }
        match self.is_in_use() {
            Some(true) => self.hears_at_first(datastore),
            // The sidecar of an image that is kept is found by where the end was.
            Some(false) if datastore.has_left_behind() => {}
            // Smaller for now, or not attached: a sidecar may be where the end was. Whoever puts
            // a disk there takes note of the size.
            Some(false)
                if self.store.place_size(self.name()).ok().flatten()
                    > datastore.size_at_opening() => {}
            // No disk of this state has its sidecar elsewhere.
            Some(false) => self.note_size(datastore),
            None => {}
        }
    }

    /// A device or an export may have another size than when it was opened: it was not attached
    /// yet, or another one was. Then it is opened anew, which is right only if nobody uses it
    /// now (`is_worked_on`): where its sidecar is depends on its size. An export that is free is
    /// not asked, as its server may have one client at a time.
    pub fn follow_size(&self, is_worked_on: impl Fn() -> bool) {
        if is_worked_on() {
            return;
        }
        let Ok(datastore) = self.get() else { return };
        let may_be_asked = match self.record.location {
            Location::Directory(_) | Location::Array(_) => false,
            Location::Device(_) => true,
            Location::Nbd(_) => self.is_in_use() == Some(true),
        };
        if !may_be_asked {
            return;
        }
        let _opening = lock(&self.opening);
        let asked = datastore.clone();
        let size = self.asker.ask(FIGURE, move || asked.size_now());
        let Some(Ok(Some(now))) = size.answer() else { return };
        if datastore.size_at_opening().is_none_or(|was| was == now) {
            return;
        }
        // Somebody may have begun since: to ask a server takes a while.
        if is_worked_on() {
            return;
        }
        let problem = format!("it has {} now, and is opened anew", Bytes(now));
        tracing::warn!(datastore = self.name(), problem, "another size");
        self.says_something_else();
        self.goes_offline();
        *lock(&self.state) = Err(problem);
    }

    /// Takes note of how large a device or an export is, for a daemon that finds it larger: an
    /// image's sidecar is, or was just put, at its end.
    pub fn note_size(&self, datastore: &Datastore) {
        let (name, size) = (self.name(), datastore.size_at_opening());
        let Some(size) = size.filter(|_| !self.is_shared()) else { return };
        let known = self.store.place_size(name).ok().flatten();
        if known != Some(size)
            && let Err(error) = self.store.set_place_size(name, size)
        {
            tracing::warn!(datastore = name, %error, "cannot record how large it is");
        }
    }

    /// The datastore, if it is open and is what it was. One that could not be marked is
    /// opened anew, as it may have room for its mark by now. One that does not say it in
    /// time may be: who does something there finds out.
    fn still_open(&self) -> Option<Arc<Datastore>> {
        let datastore = self.get().ok().filter(|datastore| datastore.is_marked())?;
        if !datastore.holds_many() {
            return Some(datastore); // There is nothing to ask of it.
        }
        let asked = datastore.clone();
        let checked = self.asker.ask(FIGURE, move || asked.check());
        if let Some(Err(error)) = checked.answer() {
            self.note(&error);
        }
        self.get().ok()
    }

    /// One at whose path another file system is found is offline from now on.
    pub fn note(&self, error: &DatastoreError) {
        if !matches!(error, DatastoreError::Elsewhere { .. }) {
            return;
        }
        let (datastore, problem) = (self.name(), error.to_string());
        tracing::warn!(datastore, problem, "datastore offline");
        self.goes_offline();
        *lock(&self.state) = Err(problem);
    }

    fn goes_offline(&self) {
        self.was_offline.store(true, Relaxed);
        self.is_seen_to.store(false, Relaxed);
        // Others may have it meanwhile.
        self.readings.forget();
    }

    /// Whether it is online, and what waited for it has not been seen to. A daemon that
    /// starts has seen to nothing.
    pub fn is_back(&self) -> bool {
        let is_online = self.open().is_ok();
        if is_online && self.was_offline.swap(false, Relaxed) {
            tracing::info!(datastore = self.name(), "datastore online");
        }
        is_online && !self.is_seen_to.load(Relaxed)
    }

    /// Whether `retry` may see to it now: not while it still is at it, as it is for as
    /// long as a datastore hangs.
    pub fn begin_look(&self) -> bool {
        !self.is_looked_at.swap(true, Relaxed)
    }

    /// The keeper has seen to it.
    pub fn end_look(&self) {
        self.is_looked_at.store(false, Relaxed);
    }

    /// What waited for it has been seen to.
    pub fn seen_to(&self) {
        self.is_seen_to.store(true, Relaxed);
    }

    /// What its directory is known by, if it has a mark.
    pub(crate) fn mark(&self) -> Option<Mark> {
        *lock(&self.mark)
    }

    /// The open datastore.
    pub fn get(&self) -> Result<Arc<Datastore>> {
        let state = lock(&self.state).clone();
        state.map_err(|problem| self.unavailable(&problem))
    }

    /// What it is on that others may be on, too: a disk, or a server. Nothing if it is by
    /// itself, or was never open.
    pub fn backing(&self) -> Option<String> {
        lock(&self.backing).clone()
    }

    /// What it has now, if it says so in time; else why it is offline.
    pub fn look(&self) -> SpaceAnswer {
        found(self.ask(), self)
    }

    /// What it has, if it says so in time.
    pub fn space(&self) -> Option<Space> {
        self.look().ok()
    }

    /// Asks it what it has.
    fn ask(&self) -> Question {
        let datastore = lock(&self.state).clone()?;
        let space = move || datastore.space().map_err(|error| error.to_string());
        Ok(self.asker.ask_patiently(FIGURE, space))
    }

    /// Asks something of its files, apart from figures; nothing if it does not answer.
    pub fn ask_files<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Asked<T> {
        self.files.ask(FIGURE, question)
    }

    /// The datastore's own error, for the API.
    pub fn refused(&self, error: &DatastoreError) -> Error {
        self.note(error);
        refusal(self.name(), error)
    }

    fn unavailable(&self, problem: &str) -> Error {
        let name = self.name();
        Error::unavailable(format!("datastore {name} cannot be used: {problem}"))
            .hint("repair this; Sterna tries again every few seconds")
    }
}

/// What became of a question.
fn found(asked: Question, handle: &DatastoreHandle) -> SpaceAnswer {
    let asked = asked?;
    let has_no_thread = asked.has_no_thread();
    let found = asked.answer().unwrap_or_else(|| {
        Err(if has_no_thread { NO_THREAD.into() } else { handle.silent() })
    })?;
    // Nothing can be put there, whatever room there is.
    handle.takes_no_writes().map_or(Ok(found), Err)
}

impl Storage {
    /// All datastores, by name, with what each has now. All are asked before the
    /// first is waited for: several that hang take no longer than one.
    pub fn look_at_handles(&self) -> Vec<(Arc<DatastoreHandle>, SpaceAnswer)> {
        let handles = self.all_handles();
        let asked: Vec<Question> = handles.iter().map(|handle| handle.ask()).collect();
        let both = handles.into_iter().zip(asked);
        let looked = both.map(|(handle, asked)| {
            let found = found(asked, &handle);
            (handle, found)
        });
        looked.collect()
    }

    /// All datastores, by name.
    pub fn all_handles(&self) -> Vec<Arc<DatastoreHandle>> {
        lock(&self.handles).values().cloned().collect()
    }

    /// The datastore of that name.
    pub fn handle(&self, name: &str) -> Result<Arc<DatastoreHandle>> {
        let handle = lock(&self.handles).get(name).cloned();
        handle.ok_or_else(|| Error::not_found("datastore", name))
    }

    /// The handle of a datastore that the state knows.
    pub fn new_handle(&self, record: DatastoreRecord) -> Arc<DatastoreHandle> {
        let sidecars = self.places.state.join("sidecars");
        let (store, ending) = (self.store.clone(), self.ending.clone());
        Arc::new(DatastoreHandle::closed(record, sidecars, store, ending))
    }
}

/// A datastore on a fresh directory, `images`, which nobody has opened.
#[cfg(test)]
fn on_a_fresh_directory(scratch: &tempfile::TempDir) -> Arc<DatastoreHandle> {
    let directory = scratch.path().join("images");
    std::fs::create_dir(&directory).unwrap();
    let record = DatastoreRecord {
        name: "one".into(),
        location: Location::Directory(directory),
        shape: None,
        added: 0,
        maintenance: None,
        mark: None,
    };
    let store = Store::open(&scratch.path().join("state.db")).unwrap();
    let sidecars = scratch.path().join("sidecars");
    Arc::new(DatastoreHandle::closed(record, sidecars, store, Arc::default()))
}
