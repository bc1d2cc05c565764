//! What the daemon is told when it is started.

use std::net::SocketAddr;
use std::path::PathBuf;

pub use sterna_engine::IoChoice;
use sterna_runtime::log::Log;
use sterna_runtime::notes::Notes;

/// What `sterna serve` says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The state directory; made (0700) if it is not there.
    pub state: PathBuf,
    /// The API's socket. Sockets that systemd hands over go before this.
    pub socket: PathBuf,
    /// The unix socket for NBD.
    pub nbd_socket: PathBuf,
    /// TCP addresses for NBD.
    pub listen: Vec<SocketAddr>,
    /// How to do I/O.
    pub io: IoChoice,
    /// Where the dashboard is served: an address of this host. Without it a port is chosen
    /// when the first link is asked for.
    pub dashboard: Option<SocketAddr>,
    /// What the log says, for those who keep it.
    pub notes: Notes,
    /// The log, as far as the daemon is to say how it fares.
    pub log: Log,
}
