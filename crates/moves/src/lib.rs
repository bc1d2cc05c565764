//! Moves of disks between datastores: jobs that outlive the process, and their guards.
//!
//! Begin with `start` (what is asked for), `events` (what the mirror asks) and `end`. This
//! service never decides what is copied when: the engine's mirror does (`sterna_core::mirror`).
//!
//! A job is a record in the store (`steps` of the state has its steps) and, while
//! it runs, a mirror in the engine. The mirror decides; the job makes what it
//! decides durable and says so:
//!
//! ```text
//! mirror asks   the job makes durable                                  answers
//! Prepare       the step `switching`, and the commit's record:         prepared
//!               prepared
//! Seal          the destination's sidecar: active, generation N+1      sealed
//! Commit        the commit's record: committed                         committed
//!               then one transaction: the disk is the destination,
//!               the step is `committed` (`commit`)                     -
//! Unseal        the source's sidecar: active, generation N+2; then the
//!               step `copying` again, and the destination's sidecar:
//!               partial, generation N+3                                -
//! ```
//!
//! `switching` is left only by the commit or by raising the source's generation
//! (`fence`), whatever becomes of the switch-over: a destination that may call
//! itself active is never left without a source that outranks it. The one exception
//! is a cancel that finds that the source is not there any more: it leaves both images
//! as they are (`end`). What an image must say to be a migration's own is in `own_images`.
//!
//! After a restart the store is the truth, the region map says what is copied,
//! and what cannot be trusted is compared, never guessed (`launch`).
//!
//! Each job has a thread for its mirror's events, so that a destination that
//! hangs in one job's sidecar does not hold the others. Requests of the
//! operator take turns (`Job::turn`); events need no turn, as all they change is
//! changed by a transaction that checks the step.
#![forbid(unsafe_code)]

mod commit;
mod control;
pub mod copies;
mod counters;
mod destination;
mod end;
mod events;
mod findings;
mod guard;
mod guarding;
mod lately;
mod launch;
mod left_behind;
mod obstacle;
mod overdue;
mod own_images;
pub mod predictions;
mod room;
mod runner;
mod sources;
mod standstill;
mod start;
mod switch;
mod totals;
mod undone;
mod user;
mod view;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use sterna_api::{Application, Disk, Error, Guard, Guarding, Migration, Result};
use sterna_core::DiskId;
use sterna_core::guard::Experience;
use sterna_core::measure::Window;
use sterna_core::mirror::{Allowance, Progress};
use sterna_engine::mirror::MigrationId;
use sterna_os::lock;
use sterna_runtime::users::Users;
use sterna_state::{Blame, Counted, DiskRecord, MigrationRecord, Pause, Step};
use sterna_storage::DiskUser;
use sterna_storage::Storage;
use sterna_storage::commit_record::CommitRecord;
use sterna_telemetry::figures::Watch;

pub use self::control::check_rate;
use self::counters::CopyCounters;
pub use self::guard::{moment, wanted};
pub use self::guarding::guarding;
pub use self::room::{no_room, old_copy};
pub use self::runner::{GuardRunner, aim, first_allowance};
pub use self::start::NotStarted;
pub(crate) use self::start::check_elsewhere;
use self::totals::Copied;
pub use self::totals::{MoveTotals, StandsFor};
pub use self::user::{MoveUser, Mover};
pub use self::view::{fares, is_copying};

/// How the note of a migration begins whose old image was kept.
pub const KEPT: &str = "kept:";

/// How long a request waits for its turn at a job. People count a second as an answer.
const TURN: Duration = Duration::from_millis(700);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(5);

/// A migration that has not ended, as this process knows it.
#[derive(Debug)]
pub struct Job {
    id: u64,
    disk: DiskId,
    /// Where the bytes are counted that its mirrors copy.
    total: Copied,
    /// Whoever changes the job at the operator's request holds this.
    turn: Mutex<()>,
    /// What the guard has told the copier that it may take. Held while the copier is
    /// told, so that it hears last what was asked for last.
    leave: Mutex<Option<Allowance>>,
    state: Mutex<State>,
    /// Why it stands still, as long as the store could not be told. Held while the
    /// store is told, so that it hears last what was said last.
    unrecorded: Mutex<Option<Pause>>,
    /// The switch-over that was begun.
    prepared: Mutex<Option<Prepared>>,
}

/// What a switch-over needs while a guest is held: the state database is not asked then.
#[derive(Debug)]
struct Prepared {
    /// The record of the commit that it will end with.
    record: CommitRecord,
    migration: MigrationRecord,
}

#[derive(Debug)]
struct State {
    /// Whether the engine has a mirror for it.
    running: bool,
    /// Why it stands still, if that was said.
    stands: Option<StandsFor>,
    /// When this process began it, if it did.
    began: Option<Instant>,
    /// What the copier has done.
    counters: CopyCounters,
    watch: Watch,
    /// What must hold while it runs.
    asked: Guard,
    /// How that fares.
    guarding: Option<Guarding>,
    /// What the guard of a move beside an application like this one had found out.
    begins_with: Experience,
    /// What its own guard has found out.
    experience: Experience,
    /// Why the destination was not sealed the last time.
    unsealed: Option<Unsealed>,
    /// What was wrong with the destination when the mirror was last told to stand still.
    astray: Option<copies::Wrong>,
    /// How often it has opened the destination anew by itself.
    came_back: u32,
    /// How often others have changed its source.
    changed: sources::Changed,
    /// The files of both images, while there is a mirror, and until its end is recorded.
    held: copies::Files,
    /// Why its end is not recorded, if that was tried.
    unended: Option<Error>,
}

/// Why a destination was not sealed.
#[derive(Debug)]
struct Unsealed {
    reason: String,
    /// What to do, and whose fault it is, if that is known better than by the mirror.
    better: Option<(String, Blame)>,
    /// All that is needed is that the destination is closed and opened anew.
    comes_back: bool,
    /// What was copied may not be there any more.
    spoils: bool,
}

impl Unsealed {
    /// Nothing more is known than the reason.
    fn because(reason: String) -> Unsealed {
        Unsealed { reason, better: None, comes_back: false, spoils: false }
    }
}

impl Job {
    /// The turn, for whoever changes the job at the operator's request. Who has it may
    /// wait for storage that hangs; the operator hears that soon.
    fn take_turn(&self) -> Result<MutexGuard<'_, ()>> {
        let deadline = Instant::now() + TURN;
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(LOOK);
                }
                Err(TryLockError::WouldBlock) => {
                    let message = format!("migration {} is being changed", self.id);
                    return Err(Error::in_use(message).hint(
                        "the change waits for storage: see `sterna datastore list`, and \
                         try again",
                    ));
                }
            }
        }
    }

    fn new(
        record: &MigrationRecord,
        application: Application,
        begins_with: Experience,
        total: Copied,
    ) -> Job {
        let watch = Watch::new(application);
        Job {
            id: record.id,
            disk: record.disk,
            total,
            turn: Mutex::default(),
            leave: Mutex::default(),
            state: Mutex::new(State {
                running: false,
                stands: record.pause.as_ref().map(StandsFor::from),
                began: None,
                counters: CopyCounters::new(record.counted),
                watch,
                asked: record.guard.clone(),
                guarding: None,
                begins_with,
                experience: Experience::default(),
                unsealed: None,
                astray: None,
                came_back: 0,
                changed: sources::Changed::default(),
                held: copies::Files::default(),
                unended: None,
            }),
            unrecorded: Mutex::default(),
            prepared: Mutex::default(),
        }
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Adds what its disk did, while it runs.
    fn watch(&self, window: &Window) {
        let mut state = lock(&self.state);
        if state.running {
            let bound = state.asked.p99_us;
            state.watch.add(window, bound);
        }
    }

    /// The disk that it moves.
    pub(crate) fn disk(&self) -> DiskId {
        self.disk
    }

    /// Its name in the engine.
    fn engine_id(&self) -> MigrationId {
        MigrationId(self.id)
    }

    /// Whether the engine has its mirror.
    pub fn running(&self) -> bool {
        lock(&self.state).running
    }

    /// Its mirror says how far it is.
    fn hear_progress(&self, progress: Progress) {
        let more = lock(&self.state).counters.set_progress(progress);
        self.total.fetch_add(more, Relaxed);
    }

    /// What the copier has done so far.
    pub fn counted(&self) -> Counted {
        lock(&self.state).counters.now()
    }

    /// What the application has noticed so far.
    pub fn application(&self) -> Application {
        lock(&self.state).watch.application()
    }
}

/// Moves of disks.
pub struct Moves {
    storage: Arc<Storage>,
    jobs: Mutex<HashMap<u64, Arc<Job>>>,
    /// Those that have ended and whose old images are still to be put away.
    overdue: overdue::Overdue,
    /// What all moves came to.
    pub totals: MoveTotals,
    /// The services above that are told of moves.
    pub users: Users<dyn MoveUser>,
    /// Services that carry out moves of their own.
    pub movers: Users<dyn Mover>,
}

impl Moves {
    /// None is under way.
    pub fn new(storage: Arc<Storage>) -> Self {
        let (jobs, overdue, totals, users, movers) = Default::default();
        Moves { storage, jobs, overdue, totals, users, movers }
    }

    /// A move has ended, or stands still.
    pub fn tell_changed(&self) {
        self.users.tell(|user| user.changed());
    }

    /// The daemon ends. A thread that hangs with its storage has what is open until that
    /// answers, and the next daemon could not open it.
    pub fn close_files(&self) {
        self.all_jobs().iter().for_each(|job| job.close_files());
    }

    /// How many have not ended.
    pub fn count(&self) -> u64 {
        lock(&self.jobs).len() as u64
    }

    /// Has the mover whose move it is answer; nothing if it is the move of none.
    fn by_mover(
        &self,
        ask: impl Fn(&dyn Mover) -> Result<Option<Migration>>,
    ) -> Result<Option<Migration>> {
        let mut answer = None;
        self.movers.ask(|mover| {
            if answer.is_none() {
                answer = ask(mover)?;
            }
            Ok(())
        })?;
        Ok(answer)
    }
}

impl DiskUser for Moves {
    fn check_unmoved(&self, disk: &DiskRecord) -> Result<()> {
        let Some(migration) = self.migration_of(disk.id)? else { return Ok(()) };
        let id = migration.id;
        let message = format!("disk {} is being moved by migration {id}", disk.name);
        let hint = format!("wait for the migration, or `sterna migration cancel {id}`");
        Err(Error::in_use(message).hint(hint))
    }

    fn complete(&self, disk: DiskId, view: &mut Disk) -> Result<()> {
        if let Some(migration) = self.migration_of(disk)? {
            view.migration = Some(migration.id);
        }
        Ok(())
    }
}

impl Moves {
    /// The record of a migration that exists.
    pub fn migration_record(&self, id: u64) -> Result<MigrationRecord> {
        let record = self.storage.store.migration(id)?;
        let record = record.ok_or_else(|| Error::not_found("migration", id))?;
        Ok(self.up_to_date(record))
    }

    /// The job of a migration that has not ended.
    fn job(&self, id: u64) -> Option<Arc<Job>> {
        lock(&self.jobs).get(&id).cloned()
    }

    /// Asks a job's mirror how far it is.
    pub fn look_at(&self, job: &Job) {
        if job.running()
            && let Ok(now) = self.storage.engine.progress(job.engine_id())
        {
            job.hear_progress(now);
        }
    }

    /// Has the jobs watch their disks.
    pub fn watch_migrations(self: &Arc<Self>) {
        let moves = Arc::downgrade(self);
        self.storage.samples.listen(move |tick| {
            let Some(moves) = moves.upgrade() else { return };
            for job in moves.all_jobs() {
                job.watch(&tick.window(job.disk()));
                moves.count_standstill(&job, tick.span);
            }
        });
    }

    /// All jobs.
    pub fn all_jobs(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).values().cloned().collect()
    }

    /// The job of a record; made if there is none yet.
    pub fn job_of(&self, record: &MigrationRecord) -> Arc<Job> {
        match self.job(record.id) {
            Some(job) => job,
            None => self.job_with(record, self.experience_for(record)),
        }
    }

    /// The same, with what its guard begins with if there is none yet.
    fn job_with(&self, record: &MigrationRecord, begins_with: Experience) -> Arc<Job> {
        let total = self.totals.between(&record.from.datastore, &record.to.datastore);
        let new = || Arc::new(Job::new(record, record.application, begins_with, total));
        lock(&self.jobs).entry(record.id).or_insert_with(new).clone()
    }

    /// Lets a migration go on whose disk has just been served, after a restart.
    pub fn go_on(self: &Arc<Self>, job: &Arc<Job>) -> Result<()> {
        let _turn = lock(&job.turn);
        // Somebody else may have had the turn, and called it off or ended it.
        let record = &self.migration_record(job.id)?;
        match record.step {
            Step::Created => self.end_unstarted(record),
            Step::Copying | Step::Switching if record.cancel => self.put_away(job),
            Step::Copying | Step::Switching if job.running() => Ok(()),
            Step::Copying | Step::Switching => {
                self.take_up(job, record);
                Ok(())
            }
            Step::Committed => self.put_away(job),
            Step::Completed | Step::Cancelled => {
                lock(&self.jobs).remove(&job.id);
                Ok(())
            }
        }
    }

    /// Ends a migration that has switched over, or was called off, and whose end could not
    /// be recorded. In the job's turn, as its own thread may be at it; and only once its
    /// disk is served, as the source may not be put away for a destination nobody has seen.
    pub fn end_again(self: &Arc<Self>, job: &Job) -> Result<()> {
        if job.running() || self.storage.problem_of(job.disk).is_some() {
            return Ok(());
        }
        // Who has it may wait for storage.
        let Ok(_turn) = job.turn.try_lock() else { return Ok(()) };
        if job.running() {
            return Ok(());
        }
        let record = self.migration_record(job.id)?;
        let called_off =
            record.cancel && matches!(record.step, Step::Copying | Step::Switching);
        if record.step == Step::Committed || called_off {
            // What keeps it from that is noted down.
            let _ = self.put_away(job);
        }
        Ok(())
    }

    /// The migration of a disk that has not ended.
    pub fn migration_of(&self, disk: DiskId) -> Result<Option<MigrationRecord>> {
        let open = self.storage.store.open_migrations()?;
        Ok(open.into_iter().find(|one| one.disk == disk))
    }

    /// Whether the engine has the copy of a migration open.
    pub fn holds_copy(&self, id: u64) -> bool {
        self.storage.engine.holds_destination(MigrationId(id)).unwrap_or(false)
    }

    /// Whether a migration stands still for something that only a person can know. If its record
    /// cannot be read, yes.
    pub fn waits_for_a_person(&self, id: u64) -> bool {
        let record = self.migration_record(id);
        record.map_or(true, |record| record.pause.is_some_and(|pause| pause.compare))
    }

    /// Whether a migration has a job, which it has until it has ended.
    pub fn is_under_way(&self, id: u64) -> bool {
        let mut is = lock(&self.jobs).contains_key(&id);
        self.movers.tell(|mover| is |= mover.is_under_way(id));
        is
    }

    /// Whether the store says of a migration, also of a machine's disk, that it has
    /// ended. Nothing if there is none of that number.
    pub fn has_ended(&self, id: u64) -> Result<Option<bool>> {
        if let Some(migration) = self.storage.store.migration(id)? {
            return Ok(Some(migration.step.ended()));
        }
        Ok(self.storage.store.vm_move(id)?.map(|one| one.step.ended()))
    }

    /// The region map of a migration.
    pub fn map_path(&self, id: u64) -> PathBuf {
        self.storage.places.state.join("maps").join(format!("{id}.map"))
    }
}
