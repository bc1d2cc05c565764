//! The files of both images of a migration while it runs, and what has become of them.
//!
//! The mirror has them open; their names may lead elsewhere by now. So before the
//! destination is sealed, and every few seconds (`lookout`), it is looked at: it must be the
//! file of its name, have all its bytes, and nobody else may have written to it. If that
//! does not hold, the migration pauses and says so. A source that has lost its name is no
//! reason to pause, as moving its disk away is the way out; one that was shortened is,
//! because what was cut off is not to become the truth.
//!
//! **What remains.** Between the seal's look and the commit, which are milliseconds, the
//! destination may still be removed; the source is then kept (`end`). A destination that was
//! shortened by a program that does not open it (`truncate(2)`), or on another machine, and
//! that the copy has lengthened again before anybody looked, does not show.

use std::sync::Arc;

use sterna_core::mirror::Control;
use sterna_engine::{Astray, FileIdentity, HeldFile, MigrateError};

use super::view::then_resume;
use super::{Job, Unsealed};
use crate::daemon::{Daemon, lock};
use crate::error::{DaemonError, Result};
use crate::lookout::Written;
use crate::store::{Blame, MigrationRecord, Pause, Place, Step};

/// The files of both images; none where an image is no file.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    source: Option<Arc<HeldFile>>,
    destination: Option<Arc<HeldFile>>,
    /// What the destination is known by, also while nobody has it open.
    copy: Option<FileIdentity>,
    /// By what it is known whether somebody else has written to the destination.
    written: Option<Arc<Written>>,
}

/// What is wrong with a destination.
struct Wrong {
    /// What has become of it.
    astray: Option<Astray>,
    /// Somebody else has written to it.
    written: bool,
}

impl Wrong {
    /// What to do about it, as far as the migration is concerned.
    fn hint(&self, id: u64) -> String {
        match self.astray {
            Some(Astray::Nameless) => {
                then_resume("if it was renamed, give it its name back", id)
            }
            Some(Astray::Replaced) => {
                then_resume("move the other file away, and put the right one back", id)
            }
            Some(Astray::Unseen(_)) => then_resume("see that its datastore works", id),
            Some(Astray::Shortened { .. }) | None => format!(
                "see who writes there; `sterna migration resume {id}` compares both \
                 images and copies what differs, `sterna migration cancel {id}` gives up"
            ),
        }
    }

    fn blame(&self) -> Blame {
        match self.astray {
            Some(Astray::Unseen(_)) => Blame::Away,
            Some(Astray::Nameless | Astray::Replaced) => Blame::Destination,
            Some(Astray::Shortened { .. }) | None => Blame::Untrue,
        }
    }

    /// Whether what was copied may not be there any more.
    fn spoils(&self) -> bool {
        self.written || matches!(self.astray, Some(Astray::Shortened { .. }))
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.astray {
            Some(astray) => astray.fmt(f),
            None => f.write_str("another program has written to it"),
        }
    }
}

impl Files {
    /// What is wrong with the destination of a disk of this size. Blocks.
    fn look(&self, size: u64) -> std::result::Result<(), Wrong> {
        let Some(destination) = &self.destination else { return Ok(()) };
        let written = self.written.as_ref().is_some_and(|written| written.is_so());
        let astray = destination.check(size).err();
        match written || astray.is_some() {
            true => Err(Wrong { astray, written }),
            false => Ok(()),
        }
    }
}

impl Job {
    /// What the file of the source is known by, if it was open.
    pub(super) fn source_file(&self) -> Option<FileIdentity> {
        lock(&self.state).held.source.as_ref().map(|it| *it.identity())
    }

    /// The same of the destination.
    pub(super) fn destination_file(&self) -> Option<FileIdentity> {
        lock(&self.state).held.copy
    }
}

impl Daemon {
    /// A job's mirror has just opened the destination.
    pub(super) fn hold_files(&self, job: &Job) {
        // One that has ended meanwhile needs none of that.
        let destination = self.engine.held_destination(job.engine_id()).ok().flatten();
        let source = self.engine.held(job.disk).ok().flatten();
        // If it was resumed: the watch of before.
        self.let_files_go(job);
        let written = destination.as_ref().and_then(|file| self.lookout.watch(file));
        let copy = destination.as_ref().map(|it| *it.identity());
        lock(&job.state).held = Files { source, destination, copy, written };
    }

    /// The migration stands still because of its destination, which the engine closes: so
    /// that its file system can be unmounted, nobody else has it open.
    pub(super) fn leave_destination(&self, job: &Job) {
        let mut state = lock(&job.state);
        let left = (state.held.destination.take(), state.held.written.take());
        drop(state);
        // Closing may wait for a file system that does not answer.
        drop(left);
    }

    /// Nobody needs to know any more which files both images were.
    pub(super) fn let_files_go(&self, job: &Job) {
        let files = std::mem::take(&mut lock(&job.state).held);
        drop(files);
    }

    /// The files of both images, also if the seal comes before they are noted down.
    fn files_of(&self, job: &Job) -> Files {
        let held = lock(&job.state).held.clone();
        if held.destination.is_some() {
            return held;
        }
        let source = self.engine.held(job.disk).ok().flatten();
        let destination = self.engine.held_destination(job.engine_id()).ok().flatten();
        let copy = destination.as_ref().map(|it| *it.identity());
        Files { source, destination, copy, written: None }
    }

    /// Whether the destination may be sealed, as far as its file is concerned.
    pub(super) fn check_files(
        &self,
        job: &Job,
        record: &MigrationRecord,
    ) -> std::result::Result<(), Unsealed> {
        let files = self.files_of(job);
        if let Some(short) =
            files.source.as_ref().and_then(|it| shortened(it, record.size))
        {
            let reason = self.says(&record.from, "image", &short);
            let first = "restore the disk from a backup";
            let better = Some((then_resume(first, record.id), Blame::Source));
            return Err(Unsealed { reason, better });
        }
        files.look(record.size).map_err(|wrong| {
            if wrong.spoils() {
                // It is compared before the next seal.
                let _ = self.distrust(job);
            }
            let reason = self.says(&record.to, "new image", &wrong);
            Unsealed { reason, better: Some((wrong.hint(record.id), wrong.blame())) }
        })
    }

    /// Nothing that was copied is believed any more. Who writes to the destination from now
    /// on is seen anew.
    fn distrust(&self, job: &Job) -> std::result::Result<(), MigrateError> {
        if let Some(written) = &lock(&job.state).held.written {
            written.clear();
        }
        self.engine.distrust(job.engine_id())
    }

    fn says(&self, at: &Place, what: &str, wrong: &dyn std::fmt::Display) -> String {
        format!("the {what} {}: {wrong}", self.place(at))
    }

    /// Looks at the destinations of all mirrors that run; those with which something is
    /// wrong stand still. Several datastores that hang take no longer than one.
    pub(crate) fn look_at_copies(&self) {
        let mut asked = Vec::new();
        for job in self.all_jobs() {
            let files = match lock(&job.state) {
                state if state.running => state.held.clone(),
                _ => continue,
            };
            let Ok(record) = self.migration_record(job.id) else { continue };
            let moves = matches!(record.step, Step::Copying | Step::Switching);
            let Ok(shelf) = self.shelf(&record.to.datastore) else { continue };
            if moves && record.pause.is_none() && files.destination.is_some() {
                let size = record.size;
                let look = shelf.ask_files(move || files.look(size));
                asked.push((job, record, look));
            }
        }
        for (job, record, look) in asked {
            let Some(Err(wrong)) = look.answer() else { continue };
            // What cannot be looked at now may be in a moment; the copy itself finds out.
            let unseen = matches!(wrong.astray, Some(Astray::Unseen(_)));
            if !unseen || wrong.written {
                self.stop_copying(&job, &record, &wrong);
            }
        }
    }

    fn stop_copying(&self, job: &Job, record: &MigrationRecord, wrong: &Wrong) {
        let id = job.engine_id();
        let paused = self
            .engine
            .control(id, Control::Pause)
            .and_then(|()| if wrong.spoils() { self.distrust(job) } else { Ok(()) });
        if paused.is_err() {
            return; // It has ended meanwhile.
        }
        let elsewhere = self.is_elsewhere(record, wrong);
        let unreachable = elsewhere.is_some();
        let (reason, hint, blame) = match elsewhere {
            Some(error) => {
                let remedy = format!("see that datastore {} works", record.to.datastore);
                let reason = self.says(&record.to, "new image", &error);
                (reason, then_resume(&remedy, job.id), Blame::Away)
            }
            None => {
                let reason = self.says(&record.to, "new image", wrong);
                (reason, wrong.hint(job.id), wrong.blame())
            }
        };
        tracing::warn!(migration = job.id, reason, "migration paused");
        let hint = Some(hint);
        let pause = Pause { reason, hint, unreachable, blame, ..Pause::default() };
        if let Err(error) = self.stand_still(job, pause) {
            let error = error.with_cause();
            tracing::error!(migration = job.id, error, "a pause is not recorded yet");
        }
    }

    /// What is wrong with the datastore, where its whole file system has gone and not only
    /// the name of one file.
    fn is_elsewhere(
        &self,
        record: &MigrationRecord,
        wrong: &Wrong,
    ) -> Option<DaemonError> {
        let named = matches!(wrong.astray, Some(Astray::Nameless | Astray::Replaced));
        let opened = || self.shelf(&record.to.datastore).and_then(|to| to.open());
        named.then(|| opened().err()).flatten()
    }

    /// A mirror is about to go on: what was shortened gets its length back, as all of it
    /// is going to be compared.
    pub(super) fn mend_copy(&self, job: &Job, record: &MigrationRecord) -> Result<()> {
        let Some(file) = self.files_of(job).destination else { return Ok(()) };
        if shortened(&file, record.size).is_none() {
            return Ok(());
        }
        let _ = self.distrust(job);
        file.lengthen(record.size).map_err(|error| {
            let place = file.path().display();
            DaemonError::unavailable(format!(
                "{place} was shortened, and cannot be lengthened: {error}"
            ))
            .hint(format!("give up with `sterna migration cancel {}`", job.id))
        })
    }

    /// Whether the source of a migration is served, and its name leads elsewhere.
    pub(super) fn has_lost_its_name(&self, record: &MigrationRecord) -> bool {
        let held = self.engine.held(record.disk).ok().flatten();
        let astray = held.and_then(|file| file.check(record.size).err());
        matches!(astray, Some(Astray::Nameless | Astray::Replaced))
    }

    /// Refuses to part with the source unless the destination, which is the truth by now,
    /// is there under its name.
    pub(super) fn check_won(&self, record: &MigrationRecord) -> Result<()> {
        let Some(file) = self.engine.held(record.disk).ok().flatten() else {
            return Ok(());
        };
        file.check(record.size).map_err(|astray| {
            let reason = self.says(&record.to, "new image", &astray);
            DaemonError::unavailable(format!("{reason}, so this one is kept"))
        })
    }
}

fn shortened(file: &HeldFile, size: u64) -> Option<Astray> {
    let astray = file.check(size).err()?;
    matches!(astray, Astray::Shortened { .. }).then_some(astray)
}
