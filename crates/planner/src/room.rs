//! How fast datastores fill up: they are looked at each minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::{Result, SpaceTrend};
use sterna_core::Nanos;
use sterna_core::measure::Filling;
use sterna_os::lock;
use sterna_runtime::tasks::Task;

use crate::Planner;

/// How often datastores are looked at.
const LOOK: Duration = Duration::from_secs(60);

/// What was free on each datastore.
#[derive(Debug)]
pub(crate) struct Rooms {
    epoch: Instant,
    seen: Mutex<HashMap<String, Filling>>,
}

impl Default for Rooms {
    fn default() -> Self {
        Rooms { epoch: Instant::now(), seen: Mutex::default() }
    }
}

/// Looks how fast datastores fill up.
pub fn watching(planner: &Arc<Planner>) -> Task {
    let look = |planner: &Arc<Planner>| planner.look_at_rooms();
    Task::every("room", "see how fast datastores fill up", LOOK, planner, look)
}

impl Planner {
    /// How fast a datastore fills up, once that is known.
    pub(crate) fn space_trend(&self, datastore: &str) -> Option<SpaceTrend> {
        let trend = lock(&self.rooms.seen).get(datastore)?.trend()?;
        Some(SpaceTrend {
            bytes_per_second: trend.bytes_per_second,
            over_s: trend.over.as_secs_f64(),
            full_in_s: trend.full_in.map(Nanos::as_secs_f64),
        })
    }

    fn look_at_rooms(&self) -> Result<()> {
        let found = self.storage.look_at_handles();
        let now = Nanos::from(self.rooms.epoch.elapsed());
        let mut seen = lock(&self.rooms.seen);
        seen.retain(|name, _| found.iter().any(|(handle, _)| handle.name() == name));
        for (handle, space) in &found {
            // One that does not answer is as it was.
            let Ok(space) = space else { continue };
            seen.entry(handle.name().to_owned()).or_default().see(now, space.free);
        }
        Ok(())
    }
}
