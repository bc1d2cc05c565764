//! The daemon in one page.

use sterna_api::{Connections, OpenFiles, Result, Status};
use sterna_os::Descriptors;

use super::Server;

impl Server {
    /// The daemon in one page.
    pub fn status(&self) -> Result<Status> {
        let places = &self.storage.places;
        let (mut counts, warnings) = self.survey()?;
        let found = self.planner.hurt_disks();
        (counts.disks_hurt, counts.disks_slower) = (found.count, found.count_slower);
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started: self.started,
            state: places.state.display().to_string(),
            socket: places.socket.display().to_string(),
            nbd: places.nbd.iter().map(|place| place.uri("")).collect(),
            io: self.storage.io(),
            counts,
            open_files: OpenFiles {
                open: Descriptors::open(),
                limit: self.storage.descriptors.limit(),
            },
            connections: self.connections(),
            lost_log_lines: self.log.state().lost,
            predictions: self.moves.prediction_scores()?,
            hurt: found.hurt,
            slower: found.slower,
            slowed: found.slowed,
            warnings,
        })
    }

    /// Who is connected, and how many were not let in.
    pub fn connections(&self) -> Connections {
        let (guests, guests_refused) = self.storage.guests();
        let (api, api_closed) = self.visitors.counted();
        Connections { guests, guests_refused, api, api_closed }
    }
}
