//! What others have written to the source of a migration, while its disk is served from it.
//!
//! Somebody restores a backup over the image of a machine that is off, or repairs its file
//! system through a loop device: programs that do not ask for the image's lock. If a migration
//! of the disk is under way, or paused, what was copied before is older than that. So every few
//! seconds, before a migration goes on, and before a switch-over, Sterna asks the file system
//! when the image last changed. If that was later than the guest's last write, both images are
//! compared (the engine's driver knows when that was, and says what does not show).
//! What lies where nobody sees who writes, a server's export or a directory of FUSE, may have
//! been written to while a migration stood still: what was compared before is compared again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sterna_api::Warning;
use sterna_core::mirror::Control;
use sterna_engine::mirror::{MigrationId, SourceLook};
use sterna_engine::{Astray, ImageSpec};
use sterna_os::lock;
use sterna_state::{MigrationRecord, Step};
use sterna_storage::asker::Asked;

use crate::Moves;
use crate::copies::shortened;

/// What was seen of the sources of some migrations.
type Seen = Vec<SourceSeen>;

/// What was seen of the source of a migration.
struct SourceSeen {
    record: MigrationRecord,
    look: SourceLook,
    /// A part of it is gone.
    short: Option<Astray>,
}

/// From so many changes on people are told: one may be a backup that was put back.
const TOLD: u32 = 2;

/// So long after the last change people are told of it, also if both images have been compared
/// since: whatever writes there may do so again.
const FRESH: Duration = Duration::from_secs(60);

/// How often others have changed the source of a migration, since this daemon runs it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    times: u32,
    last: Option<Instant>,
}

impl Changed {
    fn once_more(&mut self) {
        self.times = self.times.saturating_add(1);
        self.last = Some(Instant::now());
    }

    /// Whether that is why the migration does not end.
    fn is_told(&self, is_comparing: bool) -> bool {
        let is_fresh = self.last.is_some_and(|last| last.elapsed() < FRESH);
        self.times >= TOLD && (is_fresh || is_comparing)
    }
}

fn changes(record: &MigrationRecord, times: u32) -> Warning {
    let (id, disk, from) = (record.id, &record.name, &record.from.datastore);
    let message = format!(
        "another program has changed the image of disk {disk} on {from} {times} times during \
         the move: each time Sterna compares both images again, so the move does not end"
    );
    let hint = format!(
        "find and stop the program that writes to the image (its guest does so through Sterna \
         alone), or cancel the move: `sterna migration cancel {id}`"
    );
    Warning { about: format!("migration {id}"), message, hint }
}

impl Moves {
    /// Why a move does not end whose source others change again and again, and what to do.
    pub fn source_changes(&self, record: &MigrationRecord) -> Option<Warning> {
        let job = self.job(record.id).filter(|job| job.running())?;
        let state = lock(&job.state);
        let to_compare = state.counters.progress().map_or(0, |it| it.to_compare.0);
        let is_at_it =
            matches!(record.step, Step::Copying | Step::Switching) && !record.cancel;
        let is_told = is_at_it && state.changed.is_told(to_compare > 0);
        is_told.then(|| changes(record, state.changed.times))
    }

    /// Tells that others have changed the sources of these.
    fn tell_written(&self, seen: &Seen) {
        for SourceSeen { record, .. } in
            seen.iter().filter(|one| one.look == SourceLook::Written)
        {
            if let Some(job) = self.job(record.id) {
                lock(&job.state).changed.once_more();
            }
            tracing::warn!(
                migration = record.id,
                disk = record.name,
                "another program has changed the disk's image: Sterna compares both images"
            );
        }
    }

    /// Looks at the sources of all migrations that have a mirror, also of those that stand
    /// still. Several datastores that hang take no longer than one.
    pub(super) fn look_at_sources(&self) {
        let mut by_datastore = BTreeMap::<String, Vec<MigrationRecord>>::new();
        for job in self.all_jobs().into_iter().filter(|job| job.running()) {
            let Ok(record) = self.migration_record(job.id) else { continue };
            if matches!(record.step, Step::Copying | Step::Switching) {
                by_datastore
                    .entry(record.from.datastore.clone())
                    .or_default()
                    .push(record);
            }
        }
        let asked =
            by_datastore.into_values().filter_map(|these| self.ask_sources(these));
        // All are asked before the first is waited for.
        let asked: Vec<_> = asked.collect();
        for seen in asked {
            let seen = seen.answer().unwrap_or_default();
            self.tell_written(&seen);
            for one in seen {
                if let Some(short) = one.short {
                    self.stop_copying_from(&one.record, &short);
                }
            }
        }
    }

    /// Has the mirror stand still of a source that has lost a part: what is not there cannot be
    /// copied, and would be searched for readable sectors for hours.
    fn stop_copying_from(&self, record: &MigrationRecord, short: &Astray) {
        let job = self.job_of(record);
        // Whoever has the turn may just be letting it go on: the next look sees to it then.
        let Ok(_turn) = job.turn.try_lock() else { return };
        if self.copies(&job).is_none() {
            return;
        }
        lock(&job.state).unsealed = Some(self.source_is_short(record, short));
        // If it has ended meanwhile, there is nothing to stop.
        let _ = self.storage.engine.control(job.engine_id(), Control::PauseSource);
    }

    /// The same of one that is about to go on, or to switch over. Says whether all that
    /// others write there is seen.
    pub(super) fn look_at_source(&self, record: &MigrationRecord) -> bool {
        let asked = self.ask_sources(vec![record.clone()]).and_then(Asked::answer);
        let seen = asked.unwrap_or_default();
        self.tell_written(&seen);
        let is_seen = |look| matches!(look, SourceLook::Unchanged | SourceLook::Written);
        seen.first().is_some_and(|one| is_seen(one.look))
    }

    /// Asks about the sources of these migrations, which are on one datastore.
    fn ask_sources(&self, records: Vec<MigrationRecord>) -> Option<Asked<Seen>> {
        let handle = self.storage.handle(&records.first()?.from.datastore).ok()?;
        let of = |record: MigrationRecord| {
            Some((handle.image(&record.from.image).ok()?, record))
        };
        let sources: Vec<_> = records.into_iter().filter_map(of).collect();
        let engine = self.storage.engine.clone();
        Some(handle.ask_files(move || {
            let look = |(image, record): (ImageSpec, MigrationRecord)| {
                // One that has ended meanwhile has nothing to compare.
                let look = engine.look_at_source(MigrationId(record.id), &image).ok()?;
                let file = engine.held(record.disk).ok().flatten();
                let short = file.and_then(|file| shortened(&file, record.size));
                Some(SourceSeen { record, look, short })
            };
            sources.into_iter().filter_map(look).collect()
        }))
    }
}

#[cfg(test)]
mod tests {
    use sterna_state::examples::{disk, migration};

    use super::*;

    #[test]
    fn a_source_that_others_change_again_and_again_is_told_and_one_change_is_not() {
        let mut changed = Changed::default();
        changed.once_more();
        assert!(!changed.is_told(true), "a backup that was put back");
        changed.once_more();
        assert!(changed.is_told(false));
        changed.last = Instant::now().checked_sub(FRESH);
        assert!(!changed.is_told(false), "it has stopped, and all is compared");
        assert!(changed.is_told(true), "the comparison goes on");
    }

    #[test]
    fn who_reads_it_learns_whose_image_it_is_and_what_to_stop() {
        let disk = disk("db", "here");
        let Warning { message, hint, .. } = changes(&migration(&disk, "there"), 3);
        assert!(message.contains("disk db on here 3 times"), "{message}");
        assert!(hint.starts_with("find and stop the program"), "{hint}");
    }
}
