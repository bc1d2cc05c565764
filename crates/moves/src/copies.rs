//! The files of both images of a migration while it runs, and what has become of them.
//!
//! The mirror has them open; their names may lead elsewhere by now. So before the
//! destination is sealed, and every few seconds (the task `copies`), Sterna looks at it: it must
//! be the file of its name, have all its bytes, and nobody else may have written to it. If
//! that does not hold, the migration pauses and says so, and the destination is closed. Before
//! Sterna closes the file, and before a paused migration continues, Sterna asks the kernel
//! again for writes by others; once the file is closed, the kernel no longer knows. A source
//! that has lost its name is no reason to pause, because moving its disk away is the way out;
//! a source that was shortened is, because what was cut off must not become the truth.
//!
//! **Others who have it open.** A program that has opened the copy may just read it, or write
//! to it for as long as it likes, and which of both can be known only while it is not open
//! here. So if anybody has opened it before a seal, the mirror lets go of it and opens it
//! anew by itself: that succeeds only where nobody has it open for writing (the engine asks,
//! as it does whenever it opens a destination). Nobody is told, unless it fails.
//!
//! **What remains.** Between the seal's look and the commit, which are milliseconds, the
//! destination may still be removed; the source is then kept (`end`). A destination that was
//! shortened by a program that does not open it (`truncate(2)`), or on another machine, and
//! that the copy has lengthened again before anybody looked, does not show. What others write
//! on another machine does not show either. Who has the copy open for writing is known of
//! file systems of this machine alone (ext4, XFS, Btrfs, F2FS), not of NFS, FUSE or devices;
//! and not if that program opens it while it is being opened here, which takes as long as the
//! state directory needs to record the region map. If a daemon is
//! killed within 3 s of a write by others to a copy that is being written to, that write is
//! found by the verification alone.

mod wrong;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_core::mirror::Control;
use sterna_engine::{
    Astray, FileIdentity, HeldFile, ImageSpec, MigrateError, is_of_this_machine,
};
use sterna_os::lock;
use sterna_runtime::tasks::Task;
use sterna_state::{Blame, MigrationRecord, Pause, Place, Step};
use sterna_storage::lookout::Watched;

pub(super) use self::wrong::Wrong;
use super::view::then_resume;
use super::{Job, Unsealed};
use crate::Moves;

/// How often destinations are looked at: what is copied to a wrong one meanwhile is lost
/// work, and nothing else.
const EVERY: Duration = Duration::from_secs(3);

/// How often a migration opens its destination anew by itself because others have opened it.
/// A backup does that a few times; what does it more often keeps the migration from its end,
/// and somebody should know.
const ALONE_MAX: u32 = 20;

/// The files of both images; none where an image is no file.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    source: Option<Arc<HeldFile>>,
    /// What the source was known by, once it is closed.
    old: Option<FileIdentity>,
    destination: Option<Arc<HeldFile>>,
    /// What the destination is known by, also while nobody has it open.
    copy: Option<FileIdentity>,
    /// By what it is known what others have done to the destination since it was opened.
    watched: Option<Arc<Watched>>,
}

impl Files {
    /// What is wrong with the destination of a disk of this size. Blocks.
    fn look(&self, size: u64) -> std::result::Result<(), Wrong> {
        let Some(destination) = &self.destination else { return Ok(()) };
        let written = self.is_written();
        let astray = destination.check(size).err();
        match written || astray.is_some() {
            true => Err(Wrong { astray, written }),
            false => Ok(()),
        }
    }

    /// Whether others have written to the destination.
    fn is_written(&self) -> bool {
        self.watched.as_ref().is_some_and(|watched| watched.is_written())
    }

    /// Whether others may have the destination open for writing. Where that can never be
    /// known, nobody is kept waiting for it.
    fn may_be_open(&self) -> bool {
        let opened = self.watched.as_ref().is_some_and(|watched| watched.is_opened());
        opened && self.destination.as_ref().is_some_and(|file| file.tells_writers())
    }
}

impl Job {
    /// Closes the file of the source, which is not served any more, and says what it is
    /// known by, if it was open, and that still proves which file it is.
    pub(super) fn close_source(&self) -> Option<FileIdentity> {
        let held = &mut lock(&self.state).held;
        if let Some(source) = held.source.take() {
            held.old = Some(*source.identity());
            return held.old;
        }
        // Closed a while ago: by its number alone it may be another file by now.
        held.old.filter(FileIdentity::is_lasting)
    }

    /// Whether the file of the source is there, and its name leads elsewhere.
    pub(super) fn source_has_another_name(&self) -> bool {
        let source = lock(&self.state).held.source.clone();
        source.is_some_and(|source| source.has_another_name())
    }

    /// Closes what it has open. What the files are known by it keeps.
    pub(super) fn close_files(&self) {
        self.close_source();
        lock(&self.state).held.destination = None;
    }

    /// What the destination is known by, if that proves which file it is.
    pub(super) fn destination_file(&self) -> Option<FileIdentity> {
        let held = &lock(&self.state).held;
        held.copy.filter(|copy| held.destination.is_some() || copy.is_lasting())
    }

    /// Whether the migration may open its destination anew by itself once more.
    pub(super) fn may_come_back(&self) -> bool {
        let mut state = lock(&self.state);
        state.came_back += 1;
        state.came_back <= ALONE_MAX
    }
}

/// Looks at the images of moves: stops copies to destinations that are not what they were,
/// and has both sides compared if others have written to the source.
pub fn looking(moves: &Arc<Moves>) -> Task {
    let look = |moves: &Arc<Moves>| {
        moves.look_at_copies();
        moves.look_at_sources();
        Ok(())
    };
    Task::every("copies", "look at the images of moves", EVERY, moves, look)
}

impl Moves {
    /// A job's mirror has just opened the destination.
    pub(super) fn hold_files(&self, job: &Job) {
        // One that has ended meanwhile needs none of that.
        let destination =
            self.storage.engine.held_destination(job.engine_id()).ok().flatten();
        let source = self.storage.engine.held(job.disk).ok().flatten();
        let watched = destination.as_ref().and_then(|file| Watched::new(file));
        let (watched, copy) =
            (watched.map(Arc::new), destination.as_ref().map(|it| *it.identity()));
        let files = Files { source, old: None, destination, copy, watched };
        let before = std::mem::replace(&mut lock(&job.state).held, files);
        drop(before);
        // The mirror may stand still because of it by now: then nobody else is to hold it.
        if self.storage.engine.leave(job.engine_id()).unwrap_or(true) {
            let left = lock(&job.state).held.destination.take();
            drop(left);
        }
    }

    /// A job's mirror goes on with the destination that it has had open all the time. What
    /// others have written while it stood still is compared.
    pub(super) fn hold_on(&self, job: &Job) {
        if lock(&job.state).held.destination.is_none() {
            let destination =
                self.storage.engine.held_destination(job.engine_id()).ok().flatten();
            lock(&job.state).held.destination = destination;
        }
        self.ask_who_wrote(job);
    }

    /// Whether the kernel tells who else writes to the destination: it is a device, or in a
    /// file system of this machine.
    pub(super) fn sees_who_writes(&self, job: &Job, datastore: &str) -> bool {
        let Files { destination, watched, .. } = lock(&job.state).held.clone();
        let (Some(file), Some(watched)) = (destination, watched) else { return false };
        let Ok(handle) = self.storage.handle(datastore) else { return false };
        let asked = handle
            .ask_files(move || watched.is_device() || is_of_this_machine(&file.file()));
        asked.answer().unwrap_or(false)
    }

    /// If others have written to the destination, nothing is believed of it any more.
    fn ask_who_wrote(&self, job: &Job) {
        let files = lock(&job.state).held.clone();
        if files.is_written() {
            tracing::warn!(
                migration = job.id,
                "another program has written to the new image: Sterna compares both \
                 images"
            );
            // One that has ended meanwhile has nothing to believe.
            let _ = self.distrust(job);
        }
    }

    /// The migration stands still because of its destination, which the engine closes: so
    /// that its file system can be unmounted, nobody else has it open.
    pub(super) fn leave_destination(&self, job: &Job) {
        let before = lock(&job.state).held.destination.clone();
        // Before it is closed, which looks like somebody else's doing.
        self.ask_who_wrote(job);
        if !self.storage.engine.leave(job.engine_id()).unwrap_or(true) {
            return; // It goes on already.
        }
        // The mirror closes it as soon as nothing is in flight there. If it goes on again
        // meanwhile, what is held now is another one.
        let same = |now: &mut Arc<HeldFile>| {
            before.as_ref().is_some_and(|before| Arc::ptr_eq(before, now))
        };
        let left = lock(&job.state).held.destination.take_if(same);
        // Closing may wait for a file system that does not answer.
        drop((left, before));
    }

    /// Writes to what says whose a job's destination is, which on a device is on the device
    /// itself: that is not to be taken for another program's doing.
    pub(super) fn mark_copy<T>(&self, job: &Job, write: impl FnOnce() -> T) -> T {
        let watched = lock(&job.state).held.watched.clone();
        match watched {
            Some(watched) => watched.apart_from(write),
            None => write(),
        }
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
        let source = self.storage.engine.held(job.disk).ok().flatten();
        let destination =
            self.storage.engine.held_destination(job.engine_id()).ok().flatten();
        let copy = destination.as_ref().map(|it| *it.identity());
        Files { source, old: None, destination, copy, watched: None }
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
            return Err(self.source_is_short(record, &short));
        }
        files.look(record.size).map_err(|wrong| {
            let reason = self.says(&record.to, "new image", &wrong);
            let better = Some((wrong.hint(record.id), wrong.blame()));
            Unsealed { better, spoils: wrong.spoils(), ..Unsealed::because(reason) }
        })?;
        if files.may_be_open() {
            let opened = "other programs open it, and may have it open for writing";
            let reason = self.says(&record.to, "new image", &opened);
            let first = "find and stop these programs";
            let better = Some((then_resume(first, record.id), Blame::Destination));
            return Err(Unsealed {
                better,
                comes_back: true,
                ..Unsealed::because(reason)
            });
        }
        Ok(())
    }

    /// A part of the source is gone.
    pub(super) fn source_is_short(
        &self,
        record: &MigrationRecord,
        short: &Astray,
    ) -> Unsealed {
        let reason = self.says(&record.from, "image", short);
        let first = "restore the disk from a backup, and restart the daemon";
        let better = Some((then_resume(first, record.id), Blame::Source));
        Unsealed { better, ..Unsealed::because(reason) }
    }

    /// Nothing that was copied is believed any more. Who writes to the destination from now
    /// on is seen anew.
    pub(super) fn distrust(&self, job: &Job) -> std::result::Result<(), MigrateError> {
        if let Some(watched) = &lock(&job.state).held.watched {
            watched.clear_written();
        }
        self.storage.engine.distrust(job.engine_id())
    }

    fn says(&self, at: &Place, what: &str, wrong: &dyn std::fmt::Display) -> String {
        format!("the {what} {}: {wrong}", self.place(at))
    }

    /// Looks at the destinations of all mirrors that run; those with which something is
    /// wrong stand still. Several datastores that hang take no longer than one.
    fn look_at_copies(&self) {
        // Those of a datastore are one question: a second one would wait for the first.
        let mut by_handle = BTreeMap::<String, Vec<(Arc<Job>, Files, u64)>>::new();
        for job in self.all_jobs() {
            let Some(record) = self.copies(&job) else { continue };
            // Nobody looks at the source here, and whoever held it would keep it from being
            // closed before its removal.
            let files = Files { source: None, ..lock(&job.state).held.clone() };
            if files.destination.is_some() {
                let on_it = by_handle.entry(record.to.datastore).or_default();
                on_it.push((job, files, record.size));
            }
        }
        let mut asked = Vec::new();
        for (name, on_it) in by_handle {
            let Ok(handle) = self.storage.handle(&name) else { continue };
            let look = |(job, files, size): (Arc<Job>, Files, u64)| {
                files.look(size).err().map(|wrong| (job, wrong))
            };
            asked.push(handle.ask_files(move || {
                on_it.into_iter().filter_map(look).collect::<Vec<_>>()
            }));
        }
        for (job, wrong) in
            asked.into_iter().flat_map(|it| it.answer().unwrap_or_default())
        {
            // What cannot be looked at now may be in a moment; the copy itself finds out.
            let unseen = matches!(wrong.astray, Some(Astray::Unseen(_)));
            if !unseen || wrong.written {
                self.stop_copying(&job, wrong);
            }
        }
    }

    /// The record of a job whose mirror copies, and does not stand still.
    pub(super) fn copies(&self, job: &Job) -> Option<MigrationRecord> {
        let record = self.migration_record(job.id).ok().filter(|_| job.running())?;
        copies(&record).then_some(record)
    }

    /// Has a mirror stand still. That it does so is recorded when it says so, in the order
    /// in which it does what it is told (`pause_for`).
    fn stop_copying(&self, job: &Job, wrong: Wrong) {
        // Who has the turn may just be letting it go on: then the next look sees to it.
        let Ok(_turn) = job.turn.try_lock() else { return };
        if self.copies(job).is_none() {
            return;
        }
        let spoils = wrong.spoils();
        lock(&job.state).astray = Some(wrong);
        // If it has ended meanwhile, there is nothing to stop.
        let paused = self.storage.engine.control(job.engine_id(), Control::PauseAstray);
        if paused.is_ok() && spoils {
            let _ = self.distrust(job);
        }
    }

    /// The pause of a migration that was stopped because of its destination.
    pub(super) fn pause_for(&self, record: &MigrationRecord, wrong: &Wrong) -> Pause {
        let elsewhere = self.is_elsewhere(record, wrong);
        let unreachable = elsewhere.is_some();
        let (reason, hint, blame) = match elsewhere {
            Some(error) => {
                let remedy = format!("check datastore {}", record.to.datastore);
                let reason = self.says(&record.to, "new image", &error);
                (reason, then_resume(&remedy, record.id), Blame::Away)
            }
            None => {
                let reason = self.says(&record.to, "new image", wrong);
                (reason, wrong.hint(record.id), wrong.blame())
            }
        };
        let hint = Some(hint);
        Pause { reason, hint, unreachable, blame, ..Pause::default() }
    }

    /// What is wrong with the datastore, where its whole file system has gone and not only
    /// the name of one file.
    fn is_elsewhere(&self, record: &MigrationRecord, wrong: &Wrong) -> Option<Error> {
        let named = matches!(
            wrong.astray,
            Some(Astray::Nameless | Astray::Renamed | Astray::Replaced)
        );
        let opened =
            || self.storage.handle(&record.to.datastore).and_then(|to| to.open());
        named.then(|| opened().err()).flatten()
    }

    /// A mirror is about to go on: what was shortened gets its length back, as all of it
    /// is going to be compared.
    pub(super) fn mend_copy(&self, job: &Job, record: &MigrationRecord) -> Result<()> {
        let mended = match self.files_of(job).destination {
            Some(file) if shortened(&file, record.size).is_some() => {
                let _ = self.distrust(job);
                file.lengthen(record.size)
            }
            Some(_) => return Ok(()),
            None => self.lengthen_closed(job, record),
        };
        mended.map_err(|error| {
            let place = self.place(&record.to);
            let (id, to) = (job.id, &record.to.datastore);
            Error::unavailable(format!(
                "{place} was shortened, and cannot be lengthened: {error}"
            ))
            .hint(format!(
                "make datastore {to} as large as it was, then `sterna migration resume \
                 {id}`; or cancel the migration: `sterna migration cancel {id}`"
            ))
        })
    }

    /// The same of a copy that was closed, if it is the file that it was.
    fn lengthen_closed(
        &self,
        job: &Job,
        record: &MigrationRecord,
    ) -> std::io::Result<()> {
        let image = self
            .storage
            .handle(&record.to.datastore)
            .and_then(|to| to.image(&record.to.image));
        // What is wrong with either is told when it is opened.
        let (Ok(ImageSpec::File { path, .. }), Some(copy)) =
            (image, job.destination_file())
        else {
            return Ok(());
        };
        lengthen(&path, &copy, record.size)
    }

    /// Whether the source of a migration is served, and its name leads elsewhere.
    pub(super) fn has_lost_its_name(&self, record: &MigrationRecord) -> bool {
        let held = self.storage.engine.held(record.disk).ok().flatten();
        let astray = held.and_then(|file| file.check(record.size).err());
        matches!(astray, Some(Astray::Nameless | Astray::Renamed | Astray::Replaced))
    }

    /// Refuses to part with the source unless the destination, which is the truth by now,
    /// is there under its name.
    pub(super) fn check_won(&self, record: &MigrationRecord) -> Result<()> {
        let held = self.storage.engine.held(record.disk).map_err(|error| {
            let message = format!("it is unknown whether the new image exists: {error}");
            Error::unavailable(format!("{message}; so Sterna keeps the old image"))
        })?;
        let Some(file) = held else { return Ok(()) };
        file.check(record.size).map_err(|astray| {
            let reason = self.says(&record.to, "new image", &astray);
            Error::unavailable(format!("{reason}, so Sterna keeps the old image"))
        })
    }
}

/// Whether a migration whose mirror runs copies, and does not stand still.
pub(super) fn copies(record: &MigrationRecord) -> bool {
    let moves = matches!(record.step, Step::Copying | Step::Switching);
    moves && record.pause.is_none()
}

pub(super) fn shortened(file: &HeldFile, size: u64) -> Option<Astray> {
    let astray = file.check(size).err()?;
    matches!(astray, Astray::Shortened { .. }).then_some(astray)
}

/// Gives a file its length, if it is the one that is meant and is shorter.
fn lengthen(path: &Path, meant: &FileIdentity, size: u64) -> std::io::Result<()> {
    let flags = libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(path);
    // One that is not there, or is a link, is told when it is opened.
    let Ok(file) = opened else { return Ok(()) };
    let found = file.metadata()?;
    let short = found.is_file() && found.len() < size;
    if short && FileIdentity::of(&file)?.is(meant) {
        file.set_len(size)?;
    }
    Ok(())
}
