//! A migration as the API shows it, with what to do about a pause.

use sterna_api::{
    Application, Guard, GuardState, Guarding, Migration, MigrationState, Progress,
    Result, Warning,
};
use sterna_core::mirror::{self, PauseReason, Phase};
use sterna_os::lock;
use sterna_state::{MigrationRecord, Step};

use crate::Moves;

/// Why a migration that was called off is not over: what it has asked of storage that hangs
/// belongs to the kernel until that answers.
const STILL_ASKED: &str =
    "the copy has stopped; the storage has not answered its last requests yet";
const STILL_ASKED_HINT: &str =
    "the disk is served as before; the migration ends as soon as both datastores answer";

impl Moves {
    /// All migrations, oldest first.
    pub fn list_migrations(&self) -> Result<Vec<Migration>> {
        let all = self.migration_records()?.into_iter().map(|record| self.view(record));
        let mut all: Vec<Migration> = all.collect();
        self.movers.ask(|mover| {
            all.extend(mover.list()?);
            Ok(())
        })?;
        all.sort_by_key(|migration| migration.id);
        Ok(all)
    }

    /// The migrations that have not ended, or not before that moment (seconds since 1970).
    pub fn list_recent(&self, since: u64) -> Result<Vec<Migration>> {
        let is_recent = |ended: Option<u64>| ended.is_none_or(|ended| ended >= since);
        let mut records = self.migration_records()?;
        records.retain(|record| is_recent(record.ended));
        let mut all: Vec<Migration> =
            records.into_iter().map(|record| self.view(record)).collect();
        self.movers.ask(|mover| {
            all.extend(mover.list()?.into_iter().filter(|it| is_recent(it.ended)));
            Ok(())
        })?;
        all.sort_by_key(|migration| migration.id);
        Ok(all)
    }

    /// One migration.
    pub fn show_migration(&self, id: u64) -> Result<Migration> {
        match self.by_mover(|mover| mover.show(id))? {
            Some(migration) => Ok(migration),
            None => Ok(self.view(self.migration_record(id)?)),
        }
    }

    /// Where the migrations are that have not ended, as far as is known without the engine.
    pub fn open_states(&self) -> Result<Vec<MigrationState>> {
        let state = |record| {
            let record = self.up_to_date(record);
            let record = MigrationRecord { pause: self.standstill(&record), ..record };
            let job = self.job(record.id);
            let progress = job.and_then(|job| lock(&job.state).counters.progress());
            state_of(&record, progress.as_ref())
        };
        Ok(self.storage.store.open_migrations()?.into_iter().map(state).collect())
    }

    /// How a migration's guard fares, if it has one at work.
    pub fn guarding(&self, id: u64) -> Option<Guarding> {
        lock(&self.job(id)?.state).guarding.clone()
    }

    /// What keeps the end of a migration from being recorded, if that was tried; or keeps
    /// one from being tried that was called off.
    pub fn unended(&self, id: u64) -> Option<Warning> {
        let job = self.job(id).filter(|job| !job.running())?;
        let about = format!("migration {id}");
        if let Some(error) = lock(&job.state).unended.clone() {
            let message = format!("Sterna cannot record the migration's end: {error}");
            let again = match self.storage.problem_of(job.disk()) {
                None => "Sterna tries again every few seconds".to_owned(),
                Some(_) => format!(
                    "Sterna tries again when the disk is served; or try `sterna \
                     migration cancel {id}`"
                ),
            };
            let hint = match error.hint {
                hint if hint.is_empty() => again,
                hint => format!("{hint}; {again}"),
            };
            return Some(Warning { about, message, hint });
        }
        let record = self.storage.store.migration(id).ok().flatten()?;
        let problem = self.storage.problem_of(record.disk).filter(|_| record.cancel)?;
        if record.step.ended() || !lock(&self.storage.served).contains_key(&record.disk) {
            return None; // It is being brought up.
        }
        let message = format!("disk {} is not served: {problem}", record.name);
        let hint = format!(
            "repair this, and the migration ends; or end it now: `sterna migration \
             cancel {id}`"
        );
        Some(Warning { about, message, hint })
    }

    /// A record and what the engine says, in the API's form.
    pub(super) fn view(&self, record: MigrationRecord) -> Migration {
        let record = MigrationRecord { pause: self.standstill(&record), ..record };
        let mut progress = None;
        let mut application = record.application;
        let mut copied = record.counted.copied;
        let mut guarding = None;
        let mut found = record.found.clone();
        if let Some(job) = self.job(record.id) {
            self.look_at(&job);
            found = self.found_of(&record, job.running());
            let state = lock(&job.state);
            progress = state.counters.progress();
            copied = state.counters.now().copied;
            application = state.watch.application();
            guarding = state.guarding.clone();
        }
        let guard = fares(guarding, &record.guard, &record.application, record.step);
        let state = state_of(&record, progress.as_ref());
        let is_copying = is_copying(state, guard.as_ref());
        let undone = self.undone(&record).or_else(|| self.source_changes(&record));
        let (mut reason, mut hint) = (record.note, None);
        if let (MigrationState::Paused, Some(pause)) = (state, record.pause) {
            (reason, hint) = (Some(pause.reason), pause.hint);
        } else if let Some(warning) = self.unended(record.id).or(undone) {
            (reason, hint) = (Some(warning.message), Some(warning.hint));
        } else if let (MigrationState::Cancelling, Some(Phase::Cancelled)) =
            (state, progress.as_ref().map(|progress| progress.phase))
        {
            (reason, hint) = (Some(STILL_ASKED.into()), Some(STILL_ASKED_HINT.into()));
        }
        let mut view = Migration {
            id: record.id,
            disk: record.name,
            size: record.size,
            from: record.from.datastore,
            to: record.to.datastore,
            provision: record.provision,
            rate: record.rate,
            guard,
            verify: record.verify,
            keep_source: record.keep_source,
            skip_bad_sectors: record.skip_bad,
            bad_sectors: found.bad,
            differing: found.differing,
            state,
            reason,
            hint,
            started: record.started,
            ended: record.ended,
            predicted: record.forecast.and_then(|forecast| forecast.predicted),
            balanced: None,
            held: None,
            progress: progress.map(|progress| convert(&progress, copied, is_copying)),
            application,
            report: record.report,
            unclear: false,
        };
        self.users.tell(|user| user.complete(&mut view));
        view
    }
}

/// How a guard fares, if it is this one that was looked at last; else by the records: how
/// it has fared, or that it was asked for.
pub fn fares(
    now: Option<Guarding>,
    guard: &Guard,
    application: &Application,
    step: Step,
) -> Option<Guarding> {
    now.filter(|now| now.asked == *guard)
        .or_else(|| if step.ended() { fared(guard, application) } else { asked(guard) })
}

/// Whether there is a rate to tell: nothing is copied while it is paused or called off, or
/// the hours of its guard are over.
pub fn is_copying(state: MigrationState, guard: Option<&Guarding>) -> bool {
    let is_closed = |guard: &Guarding| guard.state == Some(GuardState::Closed);
    let stands = matches!(state, MigrationState::Paused | MigrationState::Cancelling);
    !stands && !guard.is_some_and(is_closed)
}

/// How a guard has fared when all is over, by what the application had before and
/// during the migration.
fn fared(guard: &Guard, application: &Application) -> Option<Guarding> {
    let known = asked(guard)?;
    let (Some(before), Some(during)) = (application.before, application.during) else {
        return Some(known);
    };
    Some(Guarding {
        baseline_iops: Some(before.iops),
        kept: application.kept(),
        p99_us: guard.p99_us.and(during.p99_us).map(|p99| p99 as u64),
        ..known
    })
}

/// A guard of which no more is known than that it was asked for.
fn asked(guard: &Guard) -> Option<Guarding> {
    (!guard.is_none()).then(|| Guarding { asked: guard.clone(), ..Guarding::default() })
}

/// Where a migration is: the store says what is sure, the mirror the rest.
fn state_of(
    record: &MigrationRecord,
    progress: Option<&mirror::Progress>,
) -> MigrationState {
    match record.step {
        Step::Completed => return MigrationState::Completed,
        Step::Cancelled => return MigrationState::Cancelled,
        Step::Committed => return MigrationState::CleaningUp,
        Step::Created => return MigrationState::Created,
        Step::Copying | Step::Switching => {}
    }
    // Once it may be told to switch over, that may come first.
    if record.cancel && record.step == Step::Copying {
        return MigrationState::Cancelling;
    }
    if record.cancel {
        return MigrationState::SwitchingOver;
    }
    if record.pause.is_some() {
        return MigrationState::Paused;
    }
    match progress.map(|progress| progress.phase) {
        Some(Phase::Verifying) => MigrationState::Verifying,
        Some(Phase::SwitchingOver) => MigrationState::SwitchingOver,
        Some(Phase::Completed) => MigrationState::CleaningUp,
        Some(Phase::Cancelled) => MigrationState::Cancelling,
        // A pause that is not yet recorded will be in a moment.
        Some(Phase::Copying | Phase::Paused(_)) | None => MigrationState::Copying,
    }
}

/// A mirror's progress, with what was copied before it. What stands still has no
/// rate.
fn convert(progress: &mirror::Progress, copied: u64, is_copying: bool) -> Progress {
    Progress {
        total: progress.total.0,
        synced: progress.synced.0,
        copied,
        verified: progress.verified.map(|bytes| bytes.0),
        to_copy: progress.to_copy.0,
        to_compare: progress.to_compare.0,
        late_regions: progress.late_regions,
        rate: if is_copying { progress.rate } else { 0.0 },
        eta_s: progress.eta.filter(|_| is_copying).map(|eta| eta.as_secs_f64()),
        switch_over_ms: progress.held.map(|held| held.as_millis_f64()),
        undone: progress.undone,
        patience_ms: progress.patience.as_millis_f64(),
    }
}

/// What to do about a pause; nothing if somebody asked for it.
/// `server` says whether the destination is on one, `is_shared` whether other images share its
/// room.
pub(super) fn hint(
    record: &MigrationRecord,
    reason: PauseReason,
    server: bool,
    is_shared: bool,
) -> Option<String> {
    let (from, to) = (&record.from.datastore, &record.to.datastore);
    let first = match reason {
        PauseReason::Asked => return None,
        PauseReason::Destination(fault) => of_a_destination(to, fault, server, is_shared),
        PauseReason::DestinationTimedOut(_) | PauseReason::DestinationAstray => {
            format!("check datastore {to}")
        }
        PauseReason::Source(_)
        | PauseReason::SourceAstray
        | PauseReason::SourceTimedOut(_) => format!(
            "check datastore {from} (`sterna datastore show {from}` shows the problem)"
        ),
        PauseReason::NotConverging { behind: 0, .. } => {
            format!(
                "find out why datastore {from} flushes slowly, or wait for a quieter hour"
            )
        }
        PauseReason::NotConverging { .. } => {
            format!("wait for a quieter hour, or choose a faster datastore than {to}")
        }
        PauseReason::SourceRefusesWrites => format!(
            "make room on datastore {from}, or repair it; if you cannot, stop the \
             programs that write to the disk"
        ),
        PauseReason::SwitchOverTooLong { .. } => {
            format!("find out why datastore {to} or the state directory is busy")
        }
        PauseReason::StateStore => {
            "check that the state directory works and has free space".into()
        }
        PauseReason::RegionMap => "check that the machine has free memory".into(),
        PauseReason::BadSectors(_) => {
            let id = record.id;
            return Some(format!(
                "`sterna --json migration show {id}` lists all of them; `sterna \
                 migration resume {id}` tries them again, or skips them with \
                 `--skip-bad-sectors` (their data is lost); `sterna migration cancel \
                 {id}` cancels the migration"
            ));
        }
        PauseReason::Differing(_) => {
            format!("datastore {to} does not keep written data: check it")
        }
    };
    Some(then_resume(&first, record.id))
}

/// What to do about a destination that has failed.
fn of_a_destination(
    to: &str,
    fault: mirror::Fault,
    server: bool,
    is_shared: bool,
) -> String {
    match fault {
        mirror::Fault::Full if is_shared => {
            format!("make room on datastore {to}, or raise the quota there")
        }
        // Devices and exports are as large as their disk when the copy begins.
        mirror::Fault::Full => format!(
            "check whether datastore {to} became smaller, or whether the pool that it \
             takes its room from is full (`sterna datastore show {to}`)"
        ),
        mirror::Fault::Lost if server => format!(
            "check that the server of datastore {to} runs and can be reached (`sterna \
             datastore show {to}` shows the problem)"
        ),
        mirror::Fault::Lost => format!(
            "check datastore {to} (`sterna datastore show {to}` shows the problem)"
        ),
        mirror::Fault::Another => {
            format!("start the server of datastore {to} with the export of the copy")
        }
        mirror::Fault::Lacks(lack) => format!("datastore {to}: {}", lack.remedy()),
        mirror::Fault::Error(_) => format!("check datastore {to}"),
    }
}

/// `first`, and then going on.
pub(super) fn then_resume(first: &str, id: u64) -> String {
    format!(
        "{first}; then `sterna migration resume {id}`, or cancel it: `sterna migration \
         cancel {id}`"
    )
}

#[cfg(test)]
mod tests {
    use sterna_api::Figures;

    use super::*;

    #[test]
    fn what_a_guard_has_kept_is_said_at_its_end() {
        let figures = |iops| Some(Figures { iops, ..Figures::default() });
        let noticed = |before, during| Application {
            before: figures(before),
            during: figures(during),
            ..Application::default()
        };
        let guard = Guard { keep: Some(0.97), ..Guard::default() };
        let ended = fared(&guard, &noticed(1000.0, 987.0)).unwrap();
        assert_eq!((ended.baseline_iops, ended.kept), (Some(1000.0), Some(0.987)));
        // Nobody was there, or nobody looked.
        assert_eq!(fared(&guard, &noticed(0.0, 9.0)).unwrap().kept, None);
        assert_eq!(fared(&guard, &noticed(375.0, 0.0)).unwrap().kept, None);
        assert_eq!(fared(&guard, &Application::default()), asked(&guard));
        assert_eq!(fared(&Guard::default(), &noticed(1000.0, 987.0)), None);
    }
}
