//! The daemon: its services, each with what it needs.
//!
//! The daemon decides nothing. Each service has its own state; a service has shares of the
//! ones below it, asks those, and is asked by them as a user (`users`):
//!
//! ```text
//!   server           the API, and what people see of several services at once
//!   planner          plans, Storage DRS, DRS
//!   service levels   classes, policies, cruise control
//!   memory           memory of VMs: swap tiers, sleep and wake
//!   machines         VMs, disks that QEMU serves itself, VM migrations
//!   moves            moves of disks, and their guards
//!   storage          datastores, disks, the engine, the state
//! ```
//!
//! The services' calls block, and run on threads that may: those of the API's requests, one
//! for each move's events, and those of tasks (`tasks`).

use std::sync::Arc;

use sterna_machines::{Machines, VmUser};
use sterna_memory::Memory;
use sterna_moves::{MoveUser, Mover, Moves};
use sterna_os::clock;
use sterna_planner::Planner;
use sterna_runtime::log::Log;
use sterna_runtime::tasks::Tasks;
use sterna_server::http::Visitors;
use sterna_server::{Dashboard, Live, Metrics, Server};
use sterna_service_levels::ServiceLevels;
use sterna_state::{ActivityLog, Ledger, LocalLedger};
use sterna_storage::{DiskUser, Storage};

/// The daemon.
pub(crate) struct Daemon {
    pub(crate) storage: Arc<Storage>,
    pub(crate) moves: Arc<Moves>,
    pub(crate) machines: Arc<Machines>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) levels: Arc<ServiceLevels>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) server: Arc<Server>,
    pub(crate) tasks: Arc<Tasks>,
}

/// What people see of the daemon besides its services.
pub(crate) struct Seen {
    pub(crate) log: Log,
    pub(crate) visitors: Arc<Visitors>,
    pub(crate) activity: ActivityLog,
    pub(crate) live: Live,
}

impl Daemon {
    /// The services, which know each other, over storage of which nothing is open yet. To
    /// be called where there is a runtime.
    pub(crate) fn new(storage: Storage, seen: Seen) -> Self {
        let storage = Arc::new(storage);
        let moves = Arc::new(Moves::new(storage.clone()));
        let ledger: Arc<dyn Ledger> = Arc::new(LocalLedger::new(storage.store.clone()));
        let machines =
            Arc::new(Machines::new(storage.clone(), moves.clone(), ledger.clone()));
        let memory = Arc::new(Memory::new(storage.clone(), machines.clone()));
        let levels = Arc::new(ServiceLevels::new(storage.clone(), moves.clone()));
        let planner = Arc::new(Planner::new(
            storage.clone(),
            moves.clone(),
            machines.clone(),
            levels.clone(),
            ledger,
        ));
        let disk_users: [Arc<dyn DiskUser>; 5] = [
            moves.clone(),
            machines.clone(),
            memory.clone(),
            levels.clone(),
            planner.clone(),
        ];
        disk_users.iter().for_each(|user| storage.users.add(user));
        let move_users: [Arc<dyn MoveUser>; 2] = [levels.clone(), planner.clone()];
        move_users.iter().for_each(|user| moves.users.add(user));
        let mover: Arc<dyn Mover> = machines.clone();
        moves.movers.add(&mover);
        let vm_users: [Arc<dyn VmUser>; 2] = [memory.clone(), planner.clone()];
        vm_users.iter().for_each(|user| machines.users.add(user));
        let tasks = Arc::new(Tasks::default());
        let server = Arc::new(Server {
            storage: storage.clone(),
            moves: moves.clone(),
            machines: machines.clone(),
            memory: memory.clone(),
            levels: levels.clone(),
            planner: planner.clone(),
            tasks: tasks.clone(),
            log: seen.log,
            metrics: Metrics::default(),
            visitors: seen.visitors,
            activity: seen.activity,
            live: seen.live,
            dashboard: Dashboard::default(),
            started: clock::now(),
        });
        Daemon { storage, moves, machines, memory, levels, planner, server, tasks }
    }
}
