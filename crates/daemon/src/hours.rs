//! What disks' applications do in each hour, for predictions of moves that begin later.
//!
//! At the end of each hour that the daemon has seen half of, what each disk did is written
//! to the state. Nothing waits for it; an hour that could not be written is not known.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sterna_core::Nanos;
use sterna_core::predict::Work;
use sterna_os::clock;

use crate::daemon::Daemon;

/// Seconds of an hour.
const HOUR: u64 = 3600;

/// How often it is looked whether an hour is over: so much of one may be lacking.
const LOOK: Duration = Duration::from_secs(20);

/// An hour of which less was seen says little.
const SEEN_LEAST: Nanos = Nanos::from_secs(HOUR / 2);

/// Starts the recorder of hours. It ends with the daemon.
pub(crate) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let daemon = Arc::downgrade(daemon);
    let thread = thread::Builder::new().name("sterna-hours".into());
    thread.spawn(move || record_for_ever(&daemon)).map(drop)
}

fn record_for_ever(daemon: &Weak<Daemon>) {
    let mut hour = clock::now() / HOUR;
    loop {
        thread::sleep(LOOK);
        let Some(daemon) = daemon.upgrade() else { return };
        let now = clock::now() / HOUR;
        // A clock that was set makes an hour that nobody has seen.
        if now == hour + 1
            && let Err(error) = daemon.record_hour(hour * HOUR)
        {
            tracing::warn!(error = error.with_cause(), "cannot record what disks did");
        }
        hour = now;
    }
}

impl Daemon {
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
