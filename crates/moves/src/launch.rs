//! Giving a migration its mirror: at the start, after a restart, and when the
//! operator resumes one that has none.

use std::sync::{Arc, mpsc};
use std::thread;

use sterna_api::{Error, Provision, Result};
use sterna_core::mirror::{Control, Notice, PauseReason};
use sterna_engine::mirror::{MigrationEvent, MigrationId, MigrationSpec, Options, Start};
use sterna_engine::{ImageSpec, MigrateError};
use sterna_os::limits::{self, THREADS};
use sterna_os::{descriptors, lock};
use sterna_runtime::threads;
use sterna_state::{Blame, MigrationRecord, Pause, Place};

use super::Job;
use super::copies::copies;
use super::events::unread;
use super::obstacle::{Obstacle, obstacle};
use super::runner::first_allowance;
use super::view::then_resume;
use crate::Moves;

/// What to do about a program that writes to a copy.
const STOP_WRITER: &str = "stop that program";

impl Moves {
    /// Starts the mirror of a migration, and a thread for what it says.
    pub(super) fn launch(
        self: &Arc<Self>,
        job: &Arc<Job>,
        record: &MigrationRecord,
        start: Start,
    ) -> Result<(), Obstacle> {
        let to = &record.to.datastore;
        let reachable = format!("check datastore {to}");
        let what = format!("migration {}", record.id);
        self.storage
            .descriptors
            .check_move(&what)
            .map_err(|error| obstacle(error, descriptors::HINT, false))?;
        let from = &record.from.datastore;
        // Here the job's turn is held, and the source is looked at.
        self.storage.handle(from).and_then(|from| from.must_not_hang()).map_err(
            |error| Obstacle {
                unreachable: true,
                blame: Blame::Source,
                ..obstacle(error, &format!("check datastore {from}"), false)
            },
        )?;
        let spec = self.spec(record, start)?;
        let events = self.listener(job).map_err(|error| {
            let message = format!("cannot start a thread for a migration: {error}");
            obstacle(Error::internal(message), THREADS, false)
        })?;
        {
            let mut state = lock(&job.state);
            state.counters.mirror_starts(start == Start::Suspect, record.pause.is_none());
            // Before the first event, which may be the last.
            state.running = true;
        }
        let launched = self.storage.engine.migrate(&spec, events);
        if launched.is_ok() {
            self.storage.gate.mirrored(record.id);
            self.hold_files(job);
        }
        launched.map_err(|error| {
            lock(&job.state).running = false;
            let refusal = Error::unavailable(&error);
            match error {
                MigrateError::Map(error) if error.may_pass() => {
                    let first = "check the state directory";
                    Obstacle {
                        blame: Blame::Other,
                        is_unrecorded: true,
                        ..obstacle(refusal, first, false)
                    }
                }
                MigrateError::Map(_) => obstacle(refusal, "", true),
                MigrateError::WrittenByOthers(_) => obstacle(refusal, STOP_WRITER, true),
                MigrateError::Memory(error) => {
                    let first = limits::hint(&error).unwrap_or("try again");
                    Obstacle { blame: Blame::Other, ..obstacle(refusal, first, false) }
                }
                _ => obstacle(refusal, &reachable, false),
            }
        })
    }

    /// A thread that hears what a migration's mirror says, until it is gone.
    fn listener(
        self: &Arc<Self>,
        job: &Arc<Job>,
    ) -> std::io::Result<mpsc::Sender<MigrationEvent>> {
        let (sender, events) = mpsc::channel();
        let (moves, job) = (Arc::downgrade(self), job.clone());
        let name = format!("sterna-job-{}", job.id);
        let listen = move || {
            for event in events {
                // Gone: the daemon stops, and the store has all that matters.
                let Some(moves) = moves.upgrade() else { return };
                moves.on_event(&job, event);
            }
        };
        thread::Builder::new().name(name).spawn(listen)?;
        Ok(sender)
    }

    /// What the engine is told of a migration.
    fn spec(
        &self,
        record: &MigrationRecord,
        start: Start,
    ) -> Result<MigrationSpec, Obstacle> {
        let image = |place: &Place| {
            let handle = self.storage.handle(&place.datastore);
            let found = handle.and_then(|it| Ok((it.image(&place.image)?, it.budget())));
            let remedy = || format!("check datastore {}", place.datastore);
            found.map_err(|error| obstacle(error, &remedy(), false))
        };
        let (source, _) = image(&record.from)?;
        let from = self.storage.handle(&record.from.datastore).ok();
        let says = from.filter(|from| !from.may_compress());
        let allocated =
            says.and_then(|from| from.allocated(&record.from.image, record.size));
        let (destination, budget) = image(&record.to)?;
        let options = Options {
            verify: record.verify,
            rate: record.rate,
            allowance: first_allowance(&record.guard),
            paused: record.pause.is_some(),
            thin: record.provision == Provision::Thin,
            write_zeroes: record.provision == Provision::ThickZeroed,
            reads_zero: record.reads_zero,
            skip_bad: record.skip_bad,
            allocated,
        };
        Ok(MigrationSpec {
            id: MigrationId(record.id),
            disk: record.disk,
            source,
            destination,
            budget,
            map: self.map_path(record.id),
            start,
            boot: self.storage.boot,
            options,
        })
    }

    /// Has a mirror go on that stands still, with its destination opened anew if it has
    /// let go of it.
    pub(super) fn go_on_again(&self, job: &Job, record: &MigrationRecord) -> Result<()> {
        self.storage.ask_again(&record.to.datastore);
        let is_source_seen = self.look_at_source(record);
        if self.storage.engine.has_left(job.engine_id()).unwrap_or(false) {
            self.open_again(job, record).map_err(|obstacle| {
                if obstacle.is_unproven {
                    // Who resumes after that has said that it is the copy.
                    self.obstruct(job, &obstacle.clone().of_a_mirror());
                }
                let Obstacle { error, remedy, .. } = obstacle;
                let hint = then_resume(&remedy, record.id);
                error
                    .about(&format!(
                        "the migration of disk {} cannot continue",
                        record.name
                    ))
                    .hint(hint)
            })?;
        } else {
            self.hold_on(job);
        }
        if !is_source_seen || !self.sees_who_writes(job, &record.to.datastore) {
            // One that has ended meanwhile has nothing to compare.
            let _ = self.storage.engine.compare_again(job.engine_id());
        }
        self.set_pause(job, None)?;
        self.tell(job, Control::Resume)
    }

    /// Opens a destination anew that a mirror has let go of.
    fn open_again(&self, job: &Job, record: &MigrationRecord) -> Result<(), Obstacle> {
        // Before the check, which may take the operator's word for it.
        let to = self.storage.handle(&record.to.datastore);
        let is_proven = to.and_then(|to| {
            to.must_answer()?;
            to.check_is_surely(&record.to.image)
        });
        let is_proven = is_proven.is_ok();
        self.check_destination(record, false)?;
        let spec = self.spec(record, Start::Resume)?;
        let opened = self.storage.engine.come_back(&spec);
        opened.map_err(|error| {
            let refusal = Error::unavailable(&error);
            if let MigrateError::WrittenByOthers(_) = error {
                // Since when, nobody knows.
                let _ = self.distrust(job);
                return obstacle(refusal, STOP_WRITER, true);
            }
            // It was opened, or not, a moment ago: this does not wait for what hangs.
            let is_there = match &spec.destination {
                ImageSpec::File { path, .. } => path.exists(),
                _ => true,
            };
            let remedy = match is_there {
                true => format!("check datastore {}", record.to.datastore),
                false => "if the copy was renamed, restore its name".into(),
            };
            obstacle(refusal, &remedy, false)
        })?;
        self.hold_files(job);
        if !is_proven {
            // What was copied may be in another file.
            let _ = self.distrust(job);
        }
        Ok(())
    }

    /// A mirror has let go of its destination because others have opened that, and goes on
    /// by itself unless one of them has it open for writing. What stands in the way becomes
    /// the reason of a pause.
    pub(super) fn comes_back(self: &Arc<Self>, job: &Arc<Job>) -> bool {
        let job = job.clone();
        threads::aside(self, move |moves| {
            let _turn = lock(&job.turn);
            let record = match moves.migration_record(job.id) {
                Ok(record) => record,
                Err(error) => {
                    let pause = unread(job.id, error.to_string(), Blame::Other);
                    let _ = moves.stand_still(&job, pause);
                    return;
                }
            };
            // Somebody may have wished for something else meanwhile.
            if !job.running() || !copies(&record) || record.cancel {
                return;
            }
            if moves.storage.engine.has_left(job.engine_id()).unwrap_or(false)
                && let Err(obstacle) = moves.open_again(&job, &record)
            {
                return moves.obstruct(&job, &obstacle.of_a_mirror());
            }
            moves.hold_on(&job);
            if let Err(error) = moves.tell(&job, Control::Resume) {
                tracing::debug!(migration = job.id, %error, "the migration has ended \
                                                             meanwhile");
            }
        })
    }

    /// Lets a migration go on after a restart of the daemon. What stands in the
    /// way becomes the reason of a pause.
    pub(super) fn take_up(self: &Arc<Self>, job: &Arc<Job>, record: &MigrationRecord) {
        if record.pause.as_ref().is_some_and(|pause| pause.compare) {
            return; // Only the operator may let it go on.
        }
        // The operator has not said anything to this daemon.
        let unsaid = MigrationRecord { pause: None, ..record.clone() };
        let checked = self.check_destination(&unsaid, false);
        if self.is_called_off(record) {
            return; // Whoever did that waits for the turn, and ends it.
        }
        let start = self.start_of(record);
        match checked.and_then(|()| self.launch(job, record, start)) {
            Ok(()) => tracing::info!(migration = record.id, "migration continues"),
            // What the operator asked for holds, and comes up again on resuming.
            Err(obstacle) if record.pause.is_some() && !obstacle.compare => {
                let error = &obstacle.error;
                tracing::warn!(migration = record.id, %error, "the paused migration \
                                                               could not continue anyway");
            }
            Err(obstacle) => self.obstruct(job, &obstacle),
        }
    }

    /// Whether the operator has given a migration up, perhaps since its record was read.
    fn is_called_off(&self, record: &MigrationRecord) -> bool {
        record.cancel || self.migration_record(record.id).is_ok_and(|now| now.cancel)
    }

    /// A datastore is back: what waited for nothing else goes on by itself.
    /// Says whether all of that was seen: some may be taken up only now.
    pub fn datastore_is_back(self: &Arc<Self>, name: &str) -> Result<bool> {
        let mut all = true;
        for record in self.open_migration_records()? {
            let waits = record.pause.as_ref().is_some_and(|pause| pause.unreachable);
            let there = [&record.from.datastore, &record.to.datastore];
            if !waits || !there.iter().any(|it| *it == name) {
                continue;
            }
            let Some(job) = self.job(record.id) else {
                all = false;
                continue;
            };
            let _turn = lock(&job.turn);
            // Somebody may have wished for something else meanwhile.
            let record = self.migration_record(record.id)?;
            let waits = record.pause.as_ref().is_some_and(|pause| pause.unreachable);
            if !waits || record.step.ended() {
                continue;
            }
            if job.running() && !record.cancel {
                // All but its seal was there.
                let left = self.storage.engine.has_left(job.engine_id()).unwrap_or(false);
                if left && let Err(obstacle) = self.open_again(&job, &record) {
                    self.obstruct(&job, &obstacle.of_a_mirror());
                    continue;
                }
                // What cannot go on yet stands still as before.
                if let Err(error) = self.go_on_again(&job, &record) {
                    let migration = record.id;
                    tracing::warn!(migration, %error, "the migration could not continue");
                }
            } else if !job.running()
                && !record.cancel
                && self.storage.problem_of(record.disk).is_none()
            {
                // What stands in the way now is recorded by it.
                let _ = self.relaunch(&job, &record);
            }
        }
        Ok(all)
    }

    /// Lets a migration without a mirror go on: the operator says so, or its
    /// datastore is back.
    pub(super) fn relaunch(
        self: &Arc<Self>,
        job: &Arc<Job>,
        record: &MigrationRecord,
    ) -> Result<()> {
        let compare = record.pause.as_ref().is_some_and(|pause| pause.compare);
        let start = self.start_of(record);
        let running = MigrationRecord { pause: None, ..record.clone() };
        let checked = self.check_destination(record, compare);
        if self.is_called_off(record) {
            let message = format!("migration {} is being cancelled", record.id);
            return Err(Error::in_use(message));
        }
        match checked.and_then(|()| self.launch(job, &running, start)) {
            Ok(()) => {
                self.set_pause(job, None)?;
                tracing::info!(migration = record.id, compare, "migration continues");
                Ok(())
            }
            Err(mut obstacle) => {
                // What could not be believed before is not believed now.
                obstacle.compare |= compare;
                self.obstruct(job, &obstacle);
                let hint = obstacle.hint(record.id);
                let name = &record.name;
                Err(obstacle
                    .error
                    .about(&format!("the migration of disk {name} cannot continue"))
                    .hint(hint))
            }
        }
    }

    /// How a migration goes on. All is compared that may not be believed, and where there is no
    /// map: a daemon was killed before it had made one, or one that could not be opened at the
    /// start was given up when clients came in.
    fn start_of(&self, record: &MigrationRecord) -> Start {
        let compare = record.pause.as_ref().is_some_and(|pause| pause.compare);
        let has_map = self.map_path(record.id).exists();
        if compare || !has_map { Start::Suspect } else { Start::Resume }
    }

    /// Records what stands in a migration's way.
    fn obstruct(&self, job: &Job, obstacle: &Obstacle) {
        let id = job.id;
        let reason = obstacle.error.to_string();
        if self.storage.is_ending() && !obstacle.compare {
            // It may be nothing but the end; if not, the next daemon finds it, too.
            tracing::debug!(migration = id, reason, "the migration goes no further");
            return;
        }
        tracing::warn!(migration = id, reason, "migration paused");
        let hint = Some(obstacle.hint(id));
        let pause = Pause {
            reason,
            hint,
            compare: obstacle.compare,
            unreachable: obstacle.unreachable,
            // Where all has to be compared, the map or the image is wrong.
            blame: if obstacle.compare { Blame::Other } else { obstacle.blame },
        };
        if let Err(error) = self.stand_still(job, pause) {
            tracing::error!(migration = id, error = %error.with_cause(), "not recorded yet");
        }
    }

    /// What a notice of the mirror is worth in the log.
    pub(super) fn log_notice(&self, id: u64, notice: &Notice) {
        match notice {
            // Whoever asked has said so.
            Notice::Paused(PauseReason::Asked) => {
                tracing::debug!(migration = id, "migration paused");
            }
            Notice::Paused(reason) => {
                tracing::warn!(migration = id, %reason, "migration paused");
            }
            Notice::Differing { regions } => {
                tracing::warn!(migration = id, regions, "verification found differences");
            }
            Notice::SwitchOverUndone { held } => {
                tracing::info!(migration = id, %held, "switch-over undone");
            }
            Notice::PatienceRaised(patience) => {
                tracing::info!(migration = id, %patience, "patience raised");
            }
            Notice::FirstPassDone => tracing::info!(migration = id, "first pass done"),
            Notice::Verifying => tracing::info!(migration = id, "verifying"),
            Notice::Resumed => tracing::debug!(migration = id, "migration continues"),
            Notice::Holding => tracing::debug!(migration = id, "guest held"),
        }
    }
}
