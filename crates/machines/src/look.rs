//! A look at a VM: how it goes with it, and what its disks are and do.
//!
//! What the disks do is the difference of two looks, as QEMU only counts. Where a VM
//! cannot be asked, that is what is said of it.

use std::path::Path;
use std::time::Duration;

use sterna_api::{Vm, VmDisk, VmFigures, VmState};
use sterna_core::Nanos;
use sterna_engine::datastore::Location;
use sterna_os::{clock, lock};
use sterna_qemu::{Drive, QemuError, Run, Stats, VmHandle};
use sterna_state::{Reach, VmRecord};
use sterna_storage::marks::DatastoreRecord;
use tokio::time::{Instant, sleep};

use super::KnownVms;
use super::last_seen::LastSeen;
use super::link::Link;
use crate::Machines;

/// How long what disks do is watched: long enough to count a few requests of a disk
/// that is little used, and short enough for somebody who waits.
const GLANCE: Duration = Duration::from_millis(250);

/// What a look has found.
#[derive(Debug)]
pub(super) struct Seen {
    run: Run,
    version: Option<String>,
    drives: Vec<(Drive, Option<VmFigures>)>,
}

/// A look at a VM.
#[derive(Debug)]
pub(super) struct Look {
    /// When it began (seconds since 1970).
    at: u64,
    pub(super) seen: Result<Seen, QemuError>,
}

impl Look {
    /// What is remembered of it.
    pub(super) fn last_seen(&self) -> LastSeen {
        let seen = self.seen.as_ref();
        let seen =
            seen.map(|seen| (seen.run.on, seen.drives.iter().map(|(drive, _)| drive)));
        LastSeen::of(self.at, seen)
    }
}

/// Looks at a VM.
pub(super) async fn look(link: &Link) -> Look {
    Look { at: clock::now(), seen: see(link).await }
}

async fn see(link: &Link) -> Result<Seen, QemuError> {
    let vm = link.vm().await?;
    let run = vm.run().await?;
    let drives = vm.drives().await?;
    let figures = if run.running { glance(&vm).await? } else { Vec::new() };
    let drives = drives.into_iter().map(|drive| {
        let found = figures.iter().find(|(device, _)| *device == drive.device);
        let now = found.map(|(_, figures)| *figures);
        (drive, now)
    });
    Ok(Seen { run, version: vm.version(), drives: drives.collect() })
}

/// What the disks do at the moment.
async fn glance(vm: &VmHandle) -> Result<Vec<(String, VmFigures)>, QemuError> {
    let (before, began) = (vm.stats().await?, Instant::now());
    sleep(GLANCE).await;
    let (after, span) = (vm.stats().await?, began.elapsed());
    let figures = after.into_iter().filter_map(|(device, now)| {
        let (_, before) = before.iter().find(|(name, _)| *name == device)?;
        let figures = figures(before, &now, span.into());
        Some((device, figures))
    });
    Ok(figures.collect())
}

fn figures(before: &Stats, now: &Stats, span: Nanos) -> VmFigures {
    let window = now.since(before, span);
    let total = window.total();
    VmFigures {
        window_s: span.as_secs_f64(),
        iops: window.iops(),
        bytes_per_second: window.bytes_per_second(),
        latency_us: total.mean(total.response).map(|mean| mean.0 as f64 / 1e3),
    }
}

impl KnownVms {
    /// The migration that moves this disk, if one does.
    pub(super) fn mover_of(&self, vm: &str, device: &str) -> Option<u64> {
        let moves = lock(&self.moves);
        moves.values().find(|one| one.is_of(vm, device)).map(|one| one.id())
    }
}

impl Machines {
    /// A VM as the API shows it.
    pub(super) fn view_vm(
        &self,
        record: VmRecord,
        seen: Result<Seen, QemuError>,
        datastores: &[DatastoreRecord],
    ) -> Vm {
        let (qmp, libvirt, domain) = match record.reach {
            Reach::Qmp(socket) => (Some(socket.display().to_string()), None, None),
            Reach::Libvirt { uri, domain } => (None, Some(uri), Some(domain)),
        };
        let mut vm = Vm {
            name: record.name,
            qmp,
            libvirt,
            domain,
            state: VmState::Unreachable,
            detail: None,
            qemu: None,
            disks: Vec::new(),
            added: record.added,
        };
        let Seen { run, version, drives } = match seen {
            Ok(seen) => seen,
            Err(error) => {
                vm.detail = Some(error.to_string());
                return vm;
            }
        };
        vm.state = match (run.on, run.running) {
            (false, _) => VmState::Off,
            (true, true) => VmState::Running,
            (true, false) => VmState::Paused,
        };
        vm.detail = Some(run.word);
        vm.qemu = version;
        let disk = |(drive, now): (Drive, Option<VmFigures>)| {
            // A state that cannot be read is said elsewhere.
            let ours = self.disk_behind(&drive.image).unwrap_or_default();
            let (disk, on) = ours.map(|disk| (disk.name, disk.datastore)).unzip();
            VmDisk {
                disk,
                datastore: on.or_else(|| datastore_of(datastores, &drive.image)),
                migration: self.vms.mover_of(&vm.name, &drive.device),
                device: drive.device,
                image: drive.image,
                format: drive.format,
                size: drive.size,
                allocated: drive.allocated,
                read_only: drive.read_only,
                unmovable: drive.unmovable.map(|why| why.to_string()),
                now,
            }
        };
        vm.disks = drives.into_iter().map(disk).collect();
        vm
    }
}

/// The datastore that a file is on, if it is on one that is known.
pub(super) fn datastore_of(all: &[DatastoreRecord], image: &str) -> Option<String> {
    let on = |one: &&DatastoreRecord| match &one.location {
        Location::Directory(directory) => Path::new(image).parent() == Some(directory),
        Location::Device(device) => Path::new(image) == device,
        Location::Nbd(_) | Location::Array(_) => false,
    };
    all.iter().find(on).map(|one| one.name.clone())
}
