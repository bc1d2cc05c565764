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

/// What was free in each room.
#[derive(Debug)]
pub(crate) struct Rooms {
    epoch: Instant,
    seen: Mutex<Seen>,
}

/// The rooms of the datastores. Those that share one fill up together, however long each of
/// them is known.
#[derive(Debug, Default)]
struct Seen {
    room_of: HashMap<String, Room>,
    fills: HashMap<Room, Filling>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Room {
    Shared(u64),
    Own(String),
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
        let seen = lock(&self.rooms.seen);
        let trend = seen.fills.get(seen.room_of.get(datastore)?)?.trend()?;
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
        let Seen { room_of, fills } = &mut *seen;
        room_of.retain(|name, _| found.iter().any(|(handle, _)| handle.name() == name));
        for (handle, space) in &found {
            // One that does not answer is as it was.
            let Ok(space) = space else { continue };
            let name = handle.name().to_owned();
            let room = space.room.map_or_else(|| Room::Own(name.clone()), Room::Shared);
            fills.entry(room.clone()).or_default().see(now, space.free);
            room_of.insert(name, room);
        }
        fills.retain(|room, _| room_of.values().any(|used| used == room));
        Ok(())
    }
}
