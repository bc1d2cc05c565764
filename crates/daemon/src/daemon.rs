//! The daemon: its services, each with what it needs, and what it says of itself.
//!
//! The daemon decides nothing. Each service has its own state; a service has shares of the
//! ones below it, asks those, and is asked by them as a user (`users`):
//!
//! ```text
//!   planner          plans, Storage DRS, DRS
//!   service levels   classes, policies, cruise control
//!   machines         VMs whose disks QEMU serves itself
//!   moves            moves of disks, and their guards
//!   storage          datastores, disks, the engine, the state
//! ```
//!
//! The services' calls block, and run on threads that may: those of the API's requests, one
//! for each move's events, and those of tasks (`tasks`).

use std::sync::Arc;

use sterna_api::{Connections, Io, OpenFiles, Result, Status};
use sterna_os::{Descriptors, clock};

use crate::log::Log;
use crate::machines::{Machines, VmUser};
use crate::moves::{MoveUser, Mover, Moves};
use crate::planner::Planner;
use crate::server::http::Visitors;
use crate::service_levels::ServiceLevels;
use crate::storage::{DiskUser, Storage};
use crate::tasks::Tasks;

/// The daemon.
pub(crate) struct Daemon {
    pub(crate) storage: Arc<Storage>,
    pub(crate) moves: Arc<Moves>,
    pub(crate) machines: Arc<Machines>,
    pub(crate) levels: Arc<ServiceLevels>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) tasks: Tasks,
    pub(crate) log: Log,
    /// Who is connected to the API.
    pub(crate) visitors: Arc<Visitors>,
    pub(crate) started: u64,
}

impl Daemon {
    /// The services, which know each other, over storage of which nothing is open yet. To
    /// be called where there is a runtime.
    pub(crate) fn new(storage: Storage, log: Log, visitors: Arc<Visitors>) -> Self {
        let storage = Arc::new(storage);
        let moves = Arc::new(Moves::new(storage.clone()));
        let machines = Arc::new(Machines::new(storage.clone(), moves.clone()));
        let levels = Arc::new(ServiceLevels::new(storage.clone(), moves.clone()));
        let planner = Arc::new(Planner::new(
            storage.clone(),
            moves.clone(),
            machines.clone(),
            levels.clone(),
        ));
        let disk_users: [Arc<dyn DiskUser>; 4] =
            [moves.clone(), machines.clone(), levels.clone(), planner.clone()];
        disk_users.iter().for_each(|user| storage.users.add(user));
        let move_users: [Arc<dyn MoveUser>; 2] = [levels.clone(), planner.clone()];
        move_users.iter().for_each(|user| moves.users.add(user));
        let mover: Arc<dyn Mover> = machines.clone();
        moves.movers.add(&mover);
        let vm_user: Arc<dyn VmUser> = planner.clone();
        machines.users.add(&vm_user);
        let (tasks, started) = (Tasks::default(), clock::now());
        Daemon {
            storage,
            moves,
            machines,
            levels,
            planner,
            tasks,
            log,
            visitors,
            started,
        }
    }

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
