//! The daemon in one page.

use sterna_api::{Connections, Io, OpenFiles, Result, Status};
use sterna_os::Descriptors;

use super::Server;

impl Server {
    /// The daemon in one page.
    pub(crate) fn status(&self) -> Result<Status> {
        let (engine, places) = (&self.storage.engine, &self.storage.places);
        let io = engine.io();
        let (counts, warnings) = self.survey()?;
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started: self.started,
            state: places.state.display().to_string(),
            socket: places.socket.display().to_string(),
            nbd: places.nbd.iter().map(|place| place.uri("")).collect(),
            io: Io { engine: io.name.to_string(), reason: io.reason.clone() },
            counts,
            open_files: OpenFiles {
                open: Descriptors::open(),
                limit: self.storage.descriptors.limit(),
            },
            connections: self.connections(),
            lost_log_lines: self.log.state().lost,
            predictions: self.moves.prediction_scores()?,
            warnings,
        })
    }

    /// Who is connected, and how many were not let in.
    pub(crate) fn connections(&self) -> Connections {
        let engine = &self.storage.engine;
        let (refused, dropped) = engine.turned_away();
        let (api, api_closed) = self.visitors.counted();
        Connections {
            guests: engine.clients() as u64,
            guests_refused: refused + dropped,
            api,
            api_closed,
        }
    }
}
