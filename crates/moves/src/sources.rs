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

/// Looks come every 3 s: changes with less than this between them are one spell of changes.
const CALM: Duration = Duration::from_secs(15);

/// A spell that lasts so long is told: a backup that is put back may take as long, and meanwhile
/// it is true of it, too.
const LONG: Duration = Duration::from_secs(30);

/// A spell is told at once if the last one ended less than this ago: it comes again and again.
const AGAIN: Duration = Duration::from_secs(600);

/// So long after the last change people are told of it.
const FRESH: Duration = Duration::from_secs(60);

/// How others have changed the source of a migration, since this daemon runs it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    /// The last spell of changes, from the first to the last.
    spell: Option<[Instant; 2]>,
    /// When the spell before it ended.
    before: Option<Instant>,
}

impl Changed {
    fn once_more(&mut self, now: Instant) {
        let lasts = self.spell.filter(|[_, last]| now.duration_since(*last) < CALM);
        if lasts.is_none() {
            self.before = self.spell.map(|[_, last]| last);
        }
        self.spell = Some([lasts.map_or(now, |[first, _]| first), now]);
    }

    /// How long ago the last change was, if changes are why the migration does not end.
    fn told(&self, now: Instant) -> Option<Duration> {
        let [first, last] = self.spell?;
        let is_long = last.duration_since(first) >= LONG;
        let comes_again =
            self.before.is_some_and(|end| first.duration_since(end) < AGAIN);
        let since = now.duration_since(last);
        (since < FRESH && (is_long || comes_again)).then_some(since)
    }
}

fn changes(record: &MigrationRecord, since: Duration) -> Warning {
    let (id, disk, from) = (record.id, &record.name, &record.from.datastore);
    let message = format!(
        "another program changes the image of disk {disk} on {from}, or its owner or rights, \
         again and again (last {} s ago): each time Sterna compares both images again, so the \
         move does not end meanwhile",
        since.as_secs()
    );
    let hint = format!(
        "find and stop the program that writes to the image or changes its owner or rights (its \
         guest writes through Sterna alone), or cancel the move: `sterna migration cancel {id}`"
    );
    Warning { about: format!("migration {id}"), message, hint }
}

impl Moves {
    /// Why a move does not end whose source others change again and again, and what to do.
    pub fn source_changes(&self, record: &MigrationRecord) -> Option<Warning> {
        let job = self.job(record.id).filter(|job| job.running())?;
        let is_at_it =
            matches!(record.step, Step::Copying | Step::Switching) && !record.cancel;
        let told = lock(&job.state).changed.told(Instant::now());
        told.filter(|_| is_at_it).map(|since| changes(record, since))
    }

    /// Tells that others have changed the sources of these.
    fn tell_written(&self, seen: &Seen) {
        for SourceSeen { record, .. } in
            seen.iter().filter(|one| one.look == SourceLook::Written)
        {
            if let Some(job) = self.job(record.id) {
                lock(&job.state).changed.once_more(Instant::now());
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

    /// Changes at these seconds, and what is told of them at another.
    fn told(changes: &[u64], at: u64) -> Option<u64> {
        let begun = Instant::now();
        let moment = |seconds| begun + Duration::from_secs(seconds);
        let mut changed = Changed::default();
        changes.iter().for_each(|at| changed.once_more(moment(*at)));
        changed.told(moment(at)).map(|since| since.as_secs())
    }

    #[test]
    fn a_source_that_others_change_again_and_again_is_told_for_a_minute_after_the_last() {
        assert_eq!(told(&[0, 3, 6], 6), None, "once, for a moment");
        assert_eq!(told(&[0, 3, 100], 103), Some(3), "it comes again");
        assert_eq!(told(&[0, 3, 100], 161), None, "it has stopped");
        assert_eq!(told(&[0, 900], 901), None, "it did so long ago");
        let lasts: Vec<u64> = (0..20).map(|look| look * 3).collect();
        assert_eq!(told(&lasts, 57), Some(0), "it goes on and on");
    }

    #[test]
    fn who_reads_it_learns_whose_image_it_is_and_what_to_stop() {
        let disk = disk("db", "here");
        let last = Duration::from_secs(3);
        let Warning { message, hint, .. } = changes(&migration(&disk, "there"), last);
        assert!(message.contains("disk db on here, or its owner"), "{message}");
        assert!(message.contains("(last 3 s ago)"), "{message}");
        assert!(hint.starts_with("find and stop the program"), "{hint}");
    }
}
