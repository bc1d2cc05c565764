//! How a VM is reached, as the state keeps it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a VM is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// At a QMP socket of QEMU's.
    Qmp(PathBuf),
    /// Through libvirt.
    Libvirt {
        /// libvirt's URI.
        uri: String,
        /// The VM's name there.
        domain: String,
    },
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::Qmp(socket) => write!(f, "the QMP socket {}", socket.display()),
            Reach::Libvirt { uri, domain } => write!(f, "{domain} of libvirt {uri}"),
        }
    }
}
