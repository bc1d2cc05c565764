//! Why libvirt does not do what it is asked.

use std::time::Duration;

/// Why something could not be had from libvirt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VirshError {
    /// The program cannot be started.
    #[error("cannot start virsh: {0} (it is in the package libvirt-clients)")]
    NoVirsh(String),
    /// It does not end.
    #[error("libvirt does not answer: `virsh {command}` took longer than {after:?}")]
    Silent {
        /// What was asked.
        command: String,
        /// How long was waited.
        after: Duration,
    },
    /// libvirt refused, or failed.
    #[error("libvirt refuses `virsh {command}`: {said}")]
    Refused {
        /// What was asked.
        command: String,
        /// What it said.
        said: String,
    },
    /// The answer lacks what we need.
    #[error("libvirt's answer to `virsh {command}` is not understood: {reason}")]
    NotUnderstood {
        /// What was asked.
        command: String,
        /// What is missing or wrong.
        reason: String,
    },
}

impl VirshError {
    /// Whether the machine is off, or unknown to libvirt. (It says so in words alone.)
    pub fn is_off(&self) -> bool {
        let VirshError::Refused { said, .. } = self else { return false };
        ["domain is not running", "failed to get domain", "Domain not found"]
            .iter()
            .any(|words| said.contains(words))
    }
}
