//! Datastores and disks: what is open, what is served, and to whom.
//!
//! [`Storage`] is the lowest service. It has the engine and the state; all other services
//! have a share of it. It never decides where a disk should be, and knows no move, class,
//! machine or plan: those that use disks register as [`DiskUser`]s and are asked.
//!
//! Begin with `disks` (how a disk comes to be), `removals` (how it goes) and `handle` (a
//! datastore, open or not).
//!
//! **Failures.** A datastore that cannot be reached is offline and tried again; its disks
//! are reported as not served. A datastore that hangs is asked with a time limit (`asker`),
//! on threads that others do not wait for.
#![forbid(unsafe_code)]

pub mod asker;
mod attachments;
pub mod claims;
pub mod commit_record;
pub mod datastores;
pub mod disks;
mod exchanged;
mod fingerprints;
pub(crate) mod gate;
pub mod handle;
mod hard_links;
pub mod hours;
mod imports;
pub mod lookout;
pub mod marks;
pub mod newer;
mod own_disk;
mod own_state;
mod placements;
pub mod places;
mod probes;
mod profile;
pub mod recovery;
pub(crate) mod refusals;
mod removals;
mod rivals;
mod sampler;
#[cfg(test)]
mod stage;
pub mod state_directory;
mod state_room;
mod tracers;
pub(crate) mod troubles;
mod twins;
mod unfinished;
mod user;
mod vouching;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use sterna_api::Io;
use sterna_core::DiskId;
use sterna_engine::Engine;
use sterna_engine::boot::BootId;
pub use sterna_engine::datastore::Space;
use sterna_os::Descriptors;
use sterna_os::sockets::Bound;
use sterna_runtime::users::Users;
use sterna_state::Store;
use sterna_telemetry::samples::Samples;

use self::claims::Claims;
use self::disks::Served;
use self::fingerprints::Fingerprints;
pub use self::fingerprints::taking as taking_fingerprints;
use self::gate::Gate;
use self::handle::DatastoreHandle;
use self::lookout::Lookout;
use self::placements::Placements;
use self::places::DaemonPlaces;
use self::rivals::Rivals;
pub use self::sampler::sampling;
use self::state_directory::StateDirectory;
pub use self::state_room::completing_accounts;
pub use self::unfinished::clearing_unfinished;
pub use self::user::DiskUser;

/// Datastores and disks.
pub struct Storage {
    /// The state.
    pub store: Store,
    /// The data path.
    pub engine: Engine,
    /// Which boot of the machine this is.
    pub boot: BootId,
    /// Where the state is, and where clients connect.
    pub places: DaemonPlaces,
    /// How many files may be open, and for what.
    pub descriptors: Descriptors,
    /// Names that a request works on, so that no other does.
    pub claims: Claims,
    /// Disks that clients cannot open yet.
    pub gate: Gate,
    /// Datastores, by name.
    pub handles: Mutex<BTreeMap<String, Arc<DatastoreHandle>>>,
    /// Disks that are served, and why others are not.
    pub served: Mutex<HashMap<DiskId, Served>>,
    /// The sockets of disks that are attached to one.
    pub(crate) sockets: Mutex<HashMap<DiskId, Bound>>,
    /// What disks, classes and datastores did.
    pub samples: Samples,
    /// Images that are looked at for changes by other programs.
    pub lookout: Lookout,
    /// What was last seen of the state directory.
    pub(crate) state_directory: StateDirectory,
    /// What disks are known by that fill their place.
    pub(crate) fingerprints: Fingerprints,
    /// Images that call themselves newer than disks that are served.
    pub(crate) rivals: Rivals,
    /// The services above, which use disks.
    pub users: Users<dyn DiskUser>,
    /// What was said of exports a moment ago, by their addresses (`vouching`).
    vouched: Mutex<vouching::Answers>,
    /// Whoever looks whether a device or a server is free holds this (`own_disk`).
    placing: Mutex<()>,
    /// Disks whose image is being made, and which are not recorded yet.
    placements: Placements,
    /// The daemon stops.
    ending: Arc<AtomicBool>,
    /// Dropped last, with the last share of the storage.
    _held: mpsc::Sender<StorageInUse>,
}

/// What is never sent: that its channel is closed says that nobody has a share of the
/// storage any more.
#[derive(Debug, PartialEq, Eq)]
pub enum StorageInUse {}

impl Storage {
    /// Storage of which nothing is open yet.
    pub fn new(
        store: Store,
        engine: Engine,
        boot: BootId,
        places: DaemonPlaces,
        descriptors: Descriptors,
        held: mpsc::Sender<StorageInUse>,
    ) -> Self {
        Storage {
            store,
            engine,
            boot,
            places,
            descriptors,
            claims: Claims::default(),
            gate: Gate::default(),
            handles: Mutex::default(),
            served: Mutex::default(),
            sockets: Mutex::default(),
            samples: Samples::default(),
            lookout: Lookout::new(),
            state_directory: StateDirectory::default(),
            fingerprints: Fingerprints::default(),
            rivals: Rivals::default(),
            users: Users::default(),
            vouched: Mutex::default(),
            placing: Mutex::default(),
            placements: Placements::default(),
            ending: Arc::default(),
            _held: held,
        }
    }

    /// The daemon stops: nobody waits for places to be compared any more.
    pub fn begin_to_end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether the daemon stops. What then stands in the way of something may be nothing but
    /// that.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// How the engine does I/O, and why so.
    pub fn io(&self) -> Io {
        let io = self.engine.io();
        Io { engine: io.name.to_string(), reason: io.reason.clone() }
    }

    /// How many NBD clients are there, and how many were turned away so far.
    pub fn guests(&self) -> (u64, u64) {
        let (refused, dropped) = self.engine.turned_away();
        (self.engine.clients() as u64, refused + dropped)
    }
}
