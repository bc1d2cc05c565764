//! What is usual for disks: shown, and kept in the history file.

use std::time::Duration;

use sterna_api::{Result, UsualDisk, UsualTime};
use sterna_core::Nanos;
use sterna_core::hurt::{Usual, UsualKind, Watch, Watches};
use sterna_os::lock;
use sterna_state::HistoryFile;

use crate::Planner;

/// How often it is kept: a daemon that is killed has to learn so much again, of hours.
pub(crate) const KEEP: Duration = Duration::from_secs(300);

impl Planner {
    /// Begins with what was kept, and keeps it there from now on.
    pub fn remember(&self, history: HistoryFile) {
        match history.usual() {
            Ok(kept) => *lock(&self.hurt.watches) = Watches::knowing(&kept),
            Err(error) => {
                tracing::warn!(%error, "what is usual for disks is learned anew");
            }
        }
        // It is called once.
        let _ = self.history.set(history);
    }

    /// Keeps what is usual now.
    pub fn keep_usual(&self) -> Result<()> {
        let Some(history) = self.history.get() else { return Ok(()) };
        let kept = lock(&self.hurt.watches).kept();
        Ok(history.keep_usual(&kept)?)
    }

    /// What is usual for a disk.
    pub fn usual_of(&self, disk: &str) -> Result<UsualDisk> {
        let record = self.storage.disk_record(disk)?;
        let watches = lock(&self.hurt.watches);
        let usual = watches.of(record.id).map(Watch::usual);
        let since = usual.and_then(Usual::since);
        Ok(UsualDisk {
            disk: record.name,
            since: since.map(|since| self.hurt.of_people(since)),
            needed_s: Usual::NEEDED.as_secs_f64(),
            times: usual.map(Usual::kinds).unwrap_or_default().iter().map(time).collect(),
            iops: usual.and_then(Usual::rate),
        })
    }
}

fn time(kind: &UsualKind) -> UsualTime {
    UsualTime {
        writes: kind.writes,
        longest: kind.longest,
        response_us: kind.response.map(|span: Nanos| span.0 as f64 / 1e3),
        learned_s: kind.learned.as_secs_f64(),
    }
}
