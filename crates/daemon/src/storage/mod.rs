//! Datastores and disks: what is open, what is served, and to whom.
//!
//! [`Storage`] is the lowest service. It has the engine and the state; all other services
//! have a share of it. It never decides where a disk should be, and knows no move, class,
//! machine or plan: those that use disks register as [`DiskUser`]s and are asked.
//!
//! Begin with `disks` (how a disk comes to be), `removals` (how it goes) and `shelf` (a
//! datastore, open or not).
//!
//! **Failures.** A datastore that cannot be reached is offline and tried again; its disks
//! are reported as not served. A datastore that hangs is asked with patience (`patience`),
//! on threads that others do not wait for.

mod attachments;
pub(crate) mod claims;
pub(crate) mod commits;
pub(crate) mod datastores;
pub(crate) mod disks;
pub(crate) mod gate;
pub(crate) mod hours;
mod imports;
mod itself;
pub(crate) mod lookout;
pub(crate) mod marks;
pub(crate) mod patience;
pub(crate) mod places;
mod probes;
mod profile;
pub(crate) mod recovery;
pub(crate) mod refusals;
mod removals;
mod sampler;
pub(crate) mod shelf;
pub(crate) mod troubles;
mod user;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, mpsc};

use sterna_core::DiskId;
use sterna_engine::Engine;
use sterna_engine::boot::BootId;
use sterna_os::Descriptors;
use sterna_os::sockets::Bound;
use sterna_state::Store;

use self::claims::Claims;
use self::disks::Served;
use self::gate::Gate;
use self::lookout::Lookout;
use self::places::Places;
pub(crate) use self::sampler::sampling;
use self::shelf::Shelf;
pub(crate) use self::user::DiskUser;
use crate::samples::Samples;
use crate::users::Users;

/// Datastores and disks.
pub(crate) struct Storage {
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) boot: BootId,
    pub(crate) places: Places,
    pub(crate) descriptors: Descriptors,
    pub(crate) claims: Claims,
    pub(crate) gate: Gate,
    pub(crate) shelves: Mutex<BTreeMap<String, Arc<Shelf>>>,
    pub(crate) served: Mutex<HashMap<DiskId, Served>>,
    /// The sockets of disks that are attached to one.
    pub(crate) sockets: Mutex<HashMap<DiskId, Bound>>,
    pub(crate) samples: Samples,
    pub(crate) lookout: Lookout,
    pub(crate) users: Users<dyn DiskUser>,
    /// Whoever looks whether a device or a server is free holds this (`itself`).
    placing: Mutex<()>,
    /// Dropped last, with the last share of the storage.
    _held: mpsc::Sender<Held>,
}

/// What is never sent: that its channel is closed says that nobody has a share of the
/// storage any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Held {}

impl Storage {
    /// Storage of which nothing is open yet.
    pub(crate) fn new(
        store: Store,
        engine: Engine,
        boot: BootId,
        places: Places,
        descriptors: Descriptors,
        held: mpsc::Sender<Held>,
    ) -> Self {
        Storage {
            store,
            engine,
            boot,
            places,
            descriptors,
            claims: Claims::default(),
            gate: Gate::default(),
            shelves: Mutex::default(),
            served: Mutex::default(),
            sockets: Mutex::default(),
            samples: Samples::default(),
            lookout: Lookout::new(),
            users: Users::default(),
            placing: Mutex::default(),
            _held: held,
        }
    }
}
