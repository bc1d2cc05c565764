//! The daemon: what it holds, and what it says of itself.
//!
//! The rest of the daemon is methods of [`Daemon`], a file for each noun:
//! `datastores`, `disks`, `jobs` (migrations). They block, and run on threads
//! that may: those of the API's requests, one for each migration's events, the
//! keeper's (`keeper`), which records and retries, and the sampler's (`samples`).
//!
//! What is true is in the store; what is here is what this process has opened.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use sterna_api::{Connections, Io, OpenFiles, Result, Status};
use sterna_core::DiskId;
use sterna_engine::Engine;
use sterna_engine::boot::BootId;
use sterna_engine::datastore::Location;
use sterna_os::sockets::Bound;
use sterna_os::{Descriptors, clock};
use sterna_state::Store;

use crate::log::Log;
use crate::machines::Vms;
use crate::moves::Job;
use crate::planner::drs::Drs;
use crate::planner::plans::Plans;
use crate::planner::storage_drs::Balancer;
use crate::samples::Samples;
use crate::server::http::Visitors;
use crate::service_levels::Service;
use crate::storage::claims::Claims;
use crate::storage::disks::Served;
use crate::storage::gate::Gate;
use crate::storage::lookout::Lookout;
use crate::storage::shelf::Shelf;
use crate::tasks::Tasks;

/// Where the daemon's things are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The state directory.
    pub(crate) state: PathBuf,
    /// The API's socket.
    pub(crate) socket: PathBuf,
    /// NBD URIs without an export.
    pub(crate) nbd: Vec<NbdPlace>,
}

/// Where NBD clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NbdPlace {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(std::net::SocketAddr),
}

impl NbdPlace {
    /// The URI of an export here; of the place itself if the name is empty.
    pub(crate) fn uri(&self, export: &str) -> String {
        match self {
            NbdPlace::Unix(path) => {
                format!("nbd+unix:///{export}?socket={}", escape(&path.to_string_lossy()))
            }
            NbdPlace::Tcp(address) => format!("nbd://{address}/{export}"),
        }
    }

    /// Whether a location is an export here.
    pub(crate) fn serves(&self, location: &Location) -> bool {
        match self {
            NbdPlace::Unix(path) => location.is_at_socket(path),
            NbdPlace::Tcp(address) => location.is_at_address(*address),
        }
    }
}

/// What is not plain in a path, escaped for a URI.
fn escape(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'/'
            | b'.'
            | b'_'
            | b'-'
            | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// What the daemon has of the process that it is.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) descriptors: Descriptors,
    pub(crate) log: Log,
    /// Who is connected to the API.
    pub(crate) visitors: Arc<Visitors>,
}

/// The daemon.
pub(crate) struct Daemon {
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) boot: BootId,
    pub(crate) places: Places,
    pub(crate) means: Means,
    pub(crate) started: u64,
    pub(crate) claims: Claims,
    pub(crate) gate: Gate,
    pub(crate) shelves: Mutex<BTreeMap<String, Arc<Shelf>>>,
    pub(crate) served: Mutex<HashMap<DiskId, Served>>,
    /// The sockets of disks that are attached to one.
    pub(crate) sockets: Mutex<HashMap<DiskId, Bound>>,
    pub(crate) samples: Samples,
    pub(crate) jobs: Mutex<HashMap<u64, Arc<Job>>>,
    pub(crate) lookout: Lookout,
    pub(crate) service: Service,
    pub(crate) plans: Plans,
    pub(crate) vms: Vms,
    pub(crate) balancer: Balancer,
    pub(crate) drs: Drs,
    pub(crate) tasks: Tasks,
    /// Dropped last, with the daemon.
    _held: mpsc::Sender<Held>,
}

/// What is never sent: that its channel is closed says that the daemon has gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Held {}

impl Daemon {
    /// A daemon that has opened nothing yet.
    pub(crate) fn new(
        store: Store,
        engine: Engine,
        boot: BootId,
        places: Places,
        means: Means,
        held: mpsc::Sender<Held>,
    ) -> Self {
        Daemon {
            drs: Drs::new(store.clone()),
            store,
            engine,
            boot,
            places,
            means,
            started: clock::now(),
            claims: Claims::default(),
            gate: Gate::default(),
            shelves: Mutex::default(),
            served: Mutex::default(),
            sockets: Mutex::default(),
            samples: Samples::default(),
            jobs: Mutex::default(),
            lookout: Lookout::new(),
            service: Service::default(),
            plans: Plans::new(),
            vms: Vms::new(),
            balancer: Balancer::default(),
            tasks: Tasks::default(),
            _held: held,
        }
    }

    /// The daemon in one page.
    pub(crate) fn status(&self) -> Result<Status> {
        let io = self.engine.io();
        let (counts, warnings) = self.survey()?;
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started: self.started,
            state: self.places.state.display().to_string(),
            socket: self.places.socket.display().to_string(),
            nbd: self.places.nbd.iter().map(|place| place.uri("")).collect(),
            io: Io { engine: io.name.to_string(), reason: io.reason.clone() },
            counts,
            open_files: OpenFiles {
                open: Descriptors::open(),
                limit: self.means.descriptors.limit(),
            },
            connections: self.connections(),
            lost_log_lines: self.means.log.state().lost,
            predictions: self.prediction_scores()?,
            warnings,
        })
    }
}

impl Daemon {
    /// Who is connected, and how many were not let in.
    pub(crate) fn connections(&self) -> Connections {
        let (refused, dropped) = self.engine.turned_away();
        let (api, api_closed) = self.means.visitors.counted();
        Connections {
            guests: self.engine.clients() as u64,
            guests_refused: refused + dropped,
            api,
            api_closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_what_nbd_clients_take() {
        let unix = NbdPlace::Unix("/run/a b/nbd.sock".into());
        assert_eq!(unix.uri("db"), "nbd+unix:///db?socket=/run/a%20b/nbd.sock");
        let tcp = NbdPlace::Tcp("[::1]:10809".parse().unwrap());
        assert_eq!(tcp.uri("db"), "nbd://[::1]:10809/db");
    }
}
