//! What disks' applications do in each hour, for predictions of moves that begin later.
//!
//! At the end of each hour that the daemon has seen half of, what each disk did is written
//! to the state. Nothing waits for it; an hour that could not be written is not known.

use std::sync::Arc;
use std::time::Duration;

use sterna_core::Nanos;
use sterna_core::predict::Work;
use sterna_os::clock;
use sterna_runtime::tasks::Task;

use crate::Storage;

/// Seconds of an hour.
const HOUR: u64 = 3600;

/// How often it is looked whether an hour is over: so much of one may be lacking.
const LOOK: Duration = Duration::from_secs(20);

/// An hour of which less was seen says little.
const SEEN_LEAST: Nanos = Nanos::from_secs(HOUR / 2);

/// Records hours.
pub fn recording(storage: &Arc<Storage>) -> Task {
    let mut hour = clock::now() / HOUR;
    let record = move |storage: &Arc<Storage>| {
        let (now, before) = (clock::now() / HOUR, hour);
        hour = now;
        // A clock that was set makes an hour that nobody has seen.
        match now == before + 1 {
            true => Ok(storage.record_hour(before * HOUR)?),
            false => Ok(()),
        }
    };
    Task::every("hours", "record what disks did in the last hour", LOOK, storage, record)
}

impl Storage {
    /// Records what disks have done in the hour that began then and is just over.
    fn record_hour(&self, at: u64) -> Result<(), sterna_state::StoreError> {
        let did = self.store.disks()?.into_iter().filter_map(|disk| {
            let summary = self.samples.of_disk(disk.id, Nanos::from_secs(HOUR));
            let seen = summary.span >= SEEN_LEAST;
            (seen && self.problem_of(disk.id).is_none())
                .then(|| (disk.id, Work::of(&summary)))
        });
        let did: Vec<_> = did.collect();
        if did.is_empty() { Ok(()) } else { self.store.add_hours(at, did) }
    }
}
