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

impl Moves {
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
            tell(&seen);
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
        tell(&seen);
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

fn tell(seen: &Seen) {
    for SourceSeen { record, .. } in
        seen.iter().filter(|one| one.look == SourceLook::Written)
    {
        tracing::warn!(
            migration = record.id,
            disk = record.name,
            "another program has changed the disk's image: Sterna compares both images"
        );
    }
}
