//! What a migration has found out about its two images: sectors of the source that cannot
//! be read, and what goes on to differ.
//!
//! The mirror has it while it runs. It is recorded when the migration pauses, and before
//! each switch-over, so that the commit is never durable without the list of what it has
//! left behind. A sector that a write heals between the two is on that list although
//! nothing was lost of it, if the daemon is killed before the end is recorded.

use sterna_api::{Places, Result, Span};
use sterna_core::mirror::{Findings, Listed};
use sterna_engine::mirror::MigrationId;
use sterna_state::{FoundInImages, MigrationRecord};

use super::Job;
use crate::Moves;

impl Moves {
    /// Records what the mirror has found, if that is not what is recorded.
    pub(super) fn note_findings(&self, job: &Job) -> Result<()> {
        match self.storage.engine.findings(job.engine_id()) {
            Ok(findings) => self.record_findings(job.id, &findings),
            Err(_) => Ok(()), // Its end is told with the last of it.
        }
    }

    pub(super) fn record_findings(&self, id: u64, findings: &Findings) -> Result<()> {
        let found = found(findings);
        if self.migration_record(id)?.found != found {
            self.storage.store.set_found(id, &found)?;
        }
        Ok(())
    }

    /// What is known of a migration's images now. What stands still may have a mirror that
    /// has not looked yet.
    pub(super) fn found_of(
        &self,
        record: &MigrationRecord,
        running: bool,
    ) -> FoundInImages {
        let live = running.then(|| self.storage.engine.findings(MigrationId(record.id)));
        match live {
            Some(Ok(findings)) => {
                let live = found(&findings);
                let unknown = record.pause.is_some() && live == FoundInImages::default();
                if unknown { record.found.clone() } else { live }
            }
            _ => record.found.clone(),
        }
    }
}

fn found(findings: &Findings) -> FoundInImages {
    FoundInImages { bad: places(&findings.bad), differing: places(&findings.differing) }
}

fn places(listed: &Listed) -> Option<Places> {
    let span =
        |range: &sterna_core::ByteRange| Span { offset: range.offset, length: range.len };
    (listed.places.count > 0).then(|| Places {
        places: listed.places.count,
        bytes: listed.places.bytes,
        listed: listed.ranges.iter().map(span).collect(),
    })
}
