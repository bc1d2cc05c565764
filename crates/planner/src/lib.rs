//! Plans, Storage DRS and DRS: what should move, and when.
//!
//! The planner reads what there is into plain data (`site`, and a scene for each kind of
//! decision), has `core` decide from that alone, and carries the decision out with the
//! services below. It copies nothing and holds no service level itself.
//!
//! Begin with `site`; then `plans` (moves of many disks in waves), `storage_drs` (disks
//! among datastores), `drs` (VMs among hosts) or `hurt` (disks that are slower than usual).
//! `room` and `hours` look at what there is again and again, for whoever asks how it was.
#![forbid(unsafe_code)]

mod advice;
pub mod drs;
pub mod hours;
pub mod hurt;
pub mod plans;
pub mod room;
pub(crate) mod site;
pub mod storage_drs;

use std::sync::{Arc, OnceLock};

use sterna_api::{Error, Migration, Result};
use sterna_machines::{Machines, VmUser};
use sterna_moves::{MoveUser, Moves};
use sterna_service_levels::ServiceLevels;
use sterna_state::{HistoryFile, Ledger};
use sterna_storage::{DiskUser, Storage};

use self::drs::Drs;
use self::hurt::Lookout;
use self::plans::Plans;
use self::room::Rooms;
use self::storage_drs::Balancer;

/// What should move, and when.
pub struct Planner {
    // It has a share of the state, by its ledger, which goes before the storage's: with that,
    // the daemon counts as ended.
    pub(crate) drs: Drs,
    pub(crate) storage: Arc<Storage>,
    pub(crate) moves: Arc<Moves>,
    pub(crate) machines: Arc<Machines>,
    pub(crate) levels: Arc<ServiceLevels>,
    pub(crate) plans: Plans,
    pub(crate) balancer: Balancer,
    pub(crate) hurt: Lookout,
    pub(crate) rooms: Rooms,
    pub(crate) history: OnceLock<HistoryFile>,
}

impl Planner {
    /// Nothing is planned yet.
    pub fn new(
        storage: Arc<Storage>,
        moves: Arc<Moves>,
        machines: Arc<Machines>,
        levels: Arc<ServiceLevels>,
        ledger: Arc<dyn Ledger>,
    ) -> Self {
        Planner {
            plans: Plans::new(),
            balancer: Balancer::default(),
            hurt: Lookout::default(),
            rooms: Rooms::default(),
            history: OnceLock::new(),
            drs: Drs::new(ledger),
            storage,
            moves,
            machines,
            levels,
        }
    }

    /// The history file, for whoever stops the daemon.
    pub fn history(&self) -> Option<HistoryFile> {
        self.history.get().cloned()
    }
}

impl DiskUser for Planner {
    fn check_datastore_unused(&self, datastore: &str) -> Result<()> {
        let Some(id) = self.plan_that_uses(datastore) else { return Ok(()) };
        let message = format!("datastore {datastore} is used by plan {id}");
        let hint = format!("wait for the plan, or `sterna plan cancel {id}`");
        Err(Error::in_use(message).hint(hint))
    }
}

impl MoveUser for Planner {
    /// A plan may begin the next move, or send a disk elsewhere.
    fn changed(&self) {
        self.plans.waker.wake();
    }

    fn complete(&self, view: &mut Migration) {
        view.balanced = self.balancer.balanced(view.id);
    }
}

impl VmUser for Planner {
    fn migration_failed(&self, vm: &str, why: &str) {
        self.drs.note_failed(vm, why);
    }
}
