//! Why a VM does not do what it is asked.

use crate::qmp::QmpError;
use crate::virsh::VirshError;

/// Why something could not be had from a VM.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QemuError {
    /// QEMU's monitor.
    #[error(transparent)]
    Qmp(#[from] QmpError),
    /// libvirt.
    #[error(transparent)]
    Virsh(#[from] VirshError),
    /// There is no such disk.
    #[error("the VM has no disk {device}; it has {has}")]
    NoDrive {
        /// What was asked for.
        device: String,
        /// What there is.
        has: String,
    },
    /// A job that should not take long does.
    #[error("QEMU's job {job} does not end")]
    Unending {
        /// The job.
        job: String,
    },
    /// QEMU would forget it only once its server has answered, and stand still until then.
    #[error(
        "QEMU still has {what} open, and no server answers for it: to close it would \
         stop the guest"
    )]
    Unserved {
        /// A node, an image or a disk.
        what: String,
    },
    /// A job failed.
    #[error("QEMU's job {job} failed: {reason}")]
    Job {
        /// The job.
        job: String,
        /// What QEMU says.
        reason: String,
    },
}

impl QemuError {
    /// What to install or to start on this host, where it is that which is missing.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            QemuError::Virsh(error) => error.remedy(),
            _ => None,
        }
    }

    /// Whether it is libvirt that does not know the VM.
    pub fn is_unknown(&self) -> bool {
        matches!(self, QemuError::Virsh(error) if error.is_unknown())
    }

    /// Whether the VM is not there any more: it was shut down, or it died.
    pub fn is_gone(&self) -> bool {
        match self {
            QemuError::Qmp(
                QmpError::Gone
                | QmpError::Connect { nobody: true, .. }
                | QmpError::Another { is_there: false },
            ) => true,
            QemuError::Virsh(error) => error.is_off(),
            _ => false,
        }
    }

    /// Whether the VM is there, and does not do it.
    pub fn is_refusal(&self) -> bool {
        match self {
            QemuError::Qmp(error) => error.is_refusal(),
            QemuError::Virsh(error @ VirshError::Refused { .. }) => {
                !error.is_off() && !error.is_silent()
            }
            _ => false,
        }
    }

    /// Whether the VM could not be asked, or did not answer: it may be there.
    pub fn is_silent(&self) -> bool {
        match self {
            QemuError::Qmp(
                QmpError::Silent { .. }
                | QmpError::Broken
                | QmpError::NoGreeting { .. }
                | QmpError::Connect { nobody: false, .. }
                | QmpError::Another { is_there: true },
            ) => true,
            QemuError::Virsh(error) => error.is_silent(),
            _ => false,
        }
    }
}
