//! A VM, however it is reached.

use std::path::PathBuf;

use crate::direct::Direct;
use crate::managed::Managed;
use crate::qmp::Stats;
use crate::{Copy, CopyState, Drive, GivenUp, Identity, Process, QemuError, Usage};

/// How a VM is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// How it goes with a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whether it is there at all.
    pub on: bool,
    /// Whether its processors run.
    pub running: bool,
    /// In the words of QEMU or libvirt.
    pub word: String,
}

/// A VM that can be asked. Cheap to clone.
#[derive(Clone, Debug)]
pub enum VmHandle {
    /// QEMU itself is asked.
    Direct(Direct),
    /// libvirt is asked.
    Managed(Managed),
}

/// Has one kind of VM or the other do it.
macro_rules! either {
    ($vm:expr, $one:ident => $do:expr) => {
        match $vm {
            VmHandle::Direct($one) => Ok($do.await?),
            VmHandle::Managed($one) => Ok($do.await?),
        }
    };
}

impl VmHandle {
    /// Reaches a VM.
    pub async fn reach(how: &Reach) -> Result<VmHandle, QemuError> {
        VmHandle::reach_again(how, None).await
    }

    /// Reaches a VM of which is known who has listened for it last: as long as that one
    /// does, it has not ended.
    pub async fn reach_again(
        how: &Reach,
        last: Option<Process>,
    ) -> Result<VmHandle, QemuError> {
        match how {
            Reach::Qmp(socket) => {
                Ok(VmHandle::Direct(Direct::connect(socket, last).await?))
            }
            Reach::Libvirt { uri, domain } => {
                Ok(VmHandle::Managed(Managed::find(uri, domain).await?))
            }
        }
    }

    /// QEMU itself, where that is asked.
    pub fn direct(&self) -> Option<&Direct> {
        match self {
            VmHandle::Direct(one) => Some(one),
            VmHandle::Managed(_) => None,
        }
    }

    /// The process that QEMU is, where that can be seen.
    pub async fn process(&self) -> Result<Option<Process>, QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(one.process().await?),
            VmHandle::Managed(one) => Ok(one.process().await?),
        }
    }

    /// The threads of this process of its that run the guest's processors.
    pub async fn processor_threads(
        &self,
        process: Process,
    ) -> Result<Vec<i64>, QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(one.processor_threads().await?),
            VmHandle::Managed(_) => Ok(process.named_processors()),
        }
    }

    /// How much memory it has, whatever its balloon has of it, in bytes; nothing where nobody says
    /// so.
    pub async fn memory_size(&self) -> Result<Option<u64>, QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(Some(one.memory_size().await?)),
            VmHandle::Managed(one) => Ok(one.memory_size().await?),
        }
    }

    /// Who listens for it, where that can be seen.
    pub fn listener(&self) -> Option<Process> {
        self.direct().and_then(|one| one.monitor().listener())
    }

    /// Whether a connection to it is over, so that it must be reached anew.
    pub fn is_over(&self) -> bool {
        match self {
            VmHandle::Direct(one) => one.monitor().is_over(),
            VmHandle::Managed(_) => false,
        }
    }

    /// QEMU's version, where it says so.
    pub fn version(&self) -> Option<String> {
        match self {
            VmHandle::Direct(one) => {
                let version = one.monitor().version();
                Some(format!("{}.{}.{}", version.major, version.minor, version.micro))
            }
            VmHandle::Managed(_) => None,
        }
    }

    /// As whom QEMU runs, and so opens files, where that can be seen.
    pub fn owner(&self) -> Option<(u32, u32)> {
        match self {
            VmHandle::Direct(one) => one.monitor().owner(),
            VmHandle::Managed(_) => None,
        }
    }

    /// Whether it would stay connected to an NBD server that is restarted. QEMU can, if
    /// it is told to.
    pub async fn reconnects(&self) -> Result<bool, QemuError> {
        match self {
            VmHandle::Direct(_) => Ok(true),
            VmHandle::Managed(one) => Ok(one.reconnects().await?),
        }
    }

    /// Whether whoever owns it makes the destination's file; else we do.
    pub fn makes_files(&self) -> bool {
        matches!(self, VmHandle::Managed(_))
    }

    /// How it goes with it.
    pub async fn run(&self) -> Result<Run, QemuError> {
        either!(self, one => one.run())
    }

    /// Which QEMU it is; nothing where that cannot be told.
    pub async fn identity(&self) -> Result<Option<Identity>, QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(one.identity().await?),
            VmHandle::Managed(_) => Ok(None),
        }
    }

    /// What it takes of its host; nothing where that cannot be seen.
    pub async fn usage(&self) -> Result<Option<Usage>, QemuError> {
        either!(self, one => one.usage())
    }

    /// Its disks.
    pub async fn drives(&self) -> Result<Vec<Drive>, QemuError> {
        either!(self, one => one.drives())
    }

    /// The files of its disks, those included on which an image is based, and those of a
    /// copy: by their paths, or in QEMU's words. Of a VM that is off, which libvirt
    /// keeps, those that it is to start with.
    pub async fn files(&self) -> Result<Vec<String>, QemuError> {
        either!(self, one => one.files())
    }

    /// One of its disks.
    pub async fn drive(&self, device: &str) -> Result<Drive, QemuError> {
        let all = self.drives().await?;
        let names: Vec<&str> = all.iter().map(|drive| drive.device.as_str()).collect();
        let has = if names.is_empty() { "none".into() } else { names.join(", ") };
        let found = all.into_iter().find(|drive| drive.device == device);
        found.ok_or_else(|| QemuError::NoDrive { device: device.into(), has })
    }

    /// What its disks did so far, by device.
    pub async fn stats(&self) -> Result<Vec<(String, Stats)>, QemuError> {
        either!(self, one => one.stats())
    }

    /// Has a disk count how long its requests take, if it can and does not yet. Says
    /// whether that was begun here, so that it is to be ended.
    pub async fn count_times(&self, drive: &Drive) -> Result<bool, QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(one.count_times(drive).await?),
            VmHandle::Managed(_) => Ok(false),
        }
    }

    /// Ends that.
    pub async fn stop_counting_times(&self, drive: &Drive) -> Result<(), QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(one.stop_counting_times(drive).await?),
            VmHandle::Managed(_) => Ok(()),
        }
    }

    /// Begins a copy, at so many bytes per second.
    pub async fn begin(
        &self,
        copy: &Copy,
        drive: &Drive,
        speed: u64,
    ) -> Result<(), QemuError> {
        either!(self, one => one.begin(copy, drive, speed))
    }

    /// Where a copy is.
    pub async fn look(&self, copy: &Copy) -> Result<CopyState, QemuError> {
        either!(self, one => one.look(copy))
    }

    /// Limits a copy; 0 lifts the limit.
    pub async fn set_speed(&self, copy: &Copy, speed: u64) -> Result<(), QemuError> {
        either!(self, one => one.set_speed(copy, speed))
    }

    /// Has a copy that is ready switch over.
    pub async fn complete(&self, copy: &Copy) -> Result<(), QemuError> {
        either!(self, one => one.complete(copy))
    }

    /// Tells a copy that is to switch over not to, if it still can. Whether it could is
    /// then to be looked at.
    pub async fn call_off(&self, copy: &Copy) -> Result<(), QemuError> {
        either!(self, one => one.call_off(copy))
    }

    /// Gives a copy up, and has QEMU forget all of it but the source. One that is not
    /// there is given up already. Says what there was of it.
    ///
    /// QEMU flushes what it forgets, and its guest stands still until that is answered: an
    /// export that is not `served` is not forgotten ([`QemuError::Unserved`]).
    pub async fn give_up(&self, copy: &Copy, served: bool) -> Result<GivenUp, QemuError> {
        either!(self, one => one.give_up(copy, served))
    }

    /// After the switch-over: has QEMU forget the copy and the source, unless that is an
    /// export that is not `served`; and whoever owns the VM remember the destination.
    pub async fn put_away(&self, copy: &Copy, served: bool) -> Result<(), QemuError> {
        match self {
            VmHandle::Direct(one) => one.put_away(copy, served).await,
            VmHandle::Managed(one) => Ok(one.put_away(copy).await?),
        }
    }
}
