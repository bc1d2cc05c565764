//! What may be asked of a move of a VM's disk, and what is known of it.
//!
//! A wish is made durable first, and then the mover is woken: it looks at the record.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sterna_api::{Application, AskGuard, Error, Guard, Migration, MoveVmDisk, Result};
use sterna_moves::{check_rate, wanted};
use sterna_os::{clock, lock};
use sterna_qemu::Drive;
use sterna_state::{Reach, Step, VmMoveKind, VmMoveRecord, VmRecord};

use super::checks::{check_guard, check_room, directory_of, place_of, plain};
use super::look::datastore_of;
use super::mover;
use super::under_way::Move;
use super::vms::claim_of;
use crate::Machines;

/// What is wished of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// That it be given up.
    Cancel,
    /// Anything else.
    Other,
}

impl Machines {
    /// Starts a move.
    pub fn move_vm_disk(
        self: &Arc<Self>,
        vm: &str,
        request: &MoveVmDisk,
    ) -> Result<Migration> {
        check_rate(request.rate)?;
        let guard = wanted(&request.guard)?;
        let known = self.vm_record(vm)?;
        let _claim = self.storage.claims.shared(claim_of(vm))?;
        let handle = self.storage.handle(&request.to)?;
        handle.check_takes_new()?;
        let directory = directory_of(&handle)?;
        let drive = self.movable(&known, &request.device)?;
        check_guard(&known.reach, &guard)?;
        let (device, format) = (plain(&drive.device), drive.format.clone());
        let from = datastore_of(&self.storage.store.datastores()?, &drive.image);
        if from.as_ref() == Some(&request.to) {
            let message = format!(
                "disk {} of {vm} is on datastore {} already",
                drive.device, request.to
            );
            return Err(Error::invalid(message).hint("there is nothing to do"));
        }
        check_room(&handle, &drive)?;
        let record = VmMoveRecord {
            from: from.unwrap_or_else(|| place_of(&drive.image)),
            to: request.to.clone(),
            ..new_move(vm, drive, request.rate, guard)
        };
        let stem = format!("{vm}-{device}");
        let name = move |id: u64| {
            let file = format!("{stem}-{id}.{format}");
            directory.join(file).display().to_string()
        };
        self.begin_vm_move(&known, record, name)
    }

    /// Records a move, whose destination is named by its number, and starts it.
    pub fn begin_vm_move(
        self: &Arc<Self>,
        known: &VmRecord,
        record: VmMoveRecord,
        name: impl FnOnce(u64) -> String + Send + 'static,
    ) -> Result<Migration> {
        let source_file = self.look_at_source(&record.source);
        let record = VmMoveRecord { source_file, ..record };
        let id = self.add_vm_move(record, name)?;
        if let Err(error) = self.start_mover(id, &known.reach, false) {
            self.has_not_begun(id, &error);
            return Err(error);
        }
        self.moves.show_migration(id)
    }

    fn add_vm_move(
        &self,
        record: VmMoveRecord,
        name: impl FnOnce(u64) -> String + Send + 'static,
    ) -> Result<u64> {
        let (vm, device) = (record.vm.clone(), record.device.clone());
        self.check_no_vm_migration(&vm)?;
        let moved = self
            .storage
            .store
            .open_vm_moves()?
            .into_iter()
            .find(|one| one.vm == vm && one.device == device);
        if let Some(one) = moved {
            let message =
                format!("disk {device} of {vm} is being moved by migration {}", one.id);
            let hint = format!("see `sterna migration watch {}`", one.id);
            return Err(Error::in_use(message).hint(hint));
        }
        Ok(self.storage.store.add_vm_move(record, name)?)
    }

    /// The disk, if it is QEMU's and can be moved.
    pub(super) fn movable(&self, known: &VmRecord, device: &str) -> Result<Drive> {
        let drive = self.drive_of(known, device)?;
        let name = &known.name;
        if let Some(disk) = self.disk_behind(&drive.image)? {
            let disk = disk.name;
            let message = format!("disk {device} of {name} is Sterna disk {disk}");
            return Err(Error::invalid(message).hint(format!(
                "move the disk with `sterna migrate {disk} --to DATASTORE`"
            )));
        }
        if let Some(why) = drive.unmovable {
            let message = format!("disk {device} of {name} cannot be moved: {why}");
            return Err(Error::invalid(message));
        }
        self.check_latest(known, &drive)?;
        Ok(drive)
    }

    /// A disk of a VM that is on.
    pub(super) fn drive_of(&self, known: &VmRecord, device: &str) -> Result<Drive> {
        let link = self.vms.link(&known.reach);
        let found = self.vms.runtime.block_on(async {
            let vm = link.vm().await?;
            Ok((vm.run().await?, vm.drive(device).await?))
        });
        let (run, drive) = found.map_err(|error: sterna_qemu::QemuError| {
            Error::unavailable(error).hint(format!("see `sterna vm show {}`", known.name))
        })?;
        let name = &known.name;
        if !run.on {
            let message =
                format!("{name} is off: no QEMU runs that could copy its disks");
            return Err(Error::unavailable(message)
                .hint("start the VM, or copy the image with `qemu-img convert`"));
        }
        Ok(drive)
    }

    /// Gives the move its mover; a resumed one may find what the last has left.
    pub(super) fn start_mover(
        self: &Arc<Self>,
        id: u64,
        reach: &Reach,
        resumed: bool,
    ) -> Result<()> {
        let Some(record) = self.storage.store.vm_move(id)? else {
            return Err(Error::not_found("migration", id));
        };
        let one = Arc::new(Move::of(&record));
        lock(&self.vms.moves).insert(id, one.clone());
        tracing::info!(
            migration = id,
            vm = record.vm,
            device = record.device,
            to = record.to,
            "QEMU moves a disk"
        );
        mover::start(self, one, record, reach, resumed).inspect_err(|_| {
            lock(&self.vms.moves).remove(&id);
        })
    }

    /// Leaves the moves to the next daemon.
    pub fn leave_vm_moves(&self) {
        self.vms.stopping.store(true, Ordering::SeqCst);
        lock(&self.vms.moves).values().for_each(|one| one.asked.notify_one());
    }

    /// All moves, as migrations.
    pub(crate) fn list_vm_moves(&self) -> Result<Vec<Migration>> {
        let all = self.storage.store.vm_moves()?;
        Ok(all.into_iter().map(|record| self.view_vm_move(record)).collect())
    }

    /// The moves that are under way, as migrations.
    pub fn open_vm_moves(&self) -> Result<Vec<Migration>> {
        let open = self.storage.store.open_vm_moves()?;
        Ok(open.into_iter().map(|record| self.view_vm_move(record)).collect())
    }

    /// A move as a migration, if that number is one.
    pub(crate) fn show_vm_move(&self, id: u64) -> Result<Option<Migration>> {
        let record = self.storage.store.vm_move(id)?;
        Ok(record.map(|record| self.view_vm_move(record)))
    }

    /// Changes a move, if that number is one: `change` makes the wish durable.
    fn change_vm_move(
        &self,
        id: u64,
        wish: Wish,
        change: impl FnOnce() -> Result<()>,
    ) -> Result<Option<Migration>> {
        let Some(record) = self.storage.store.vm_move(id)? else { return Ok(None) };
        let disk = format!("{} of {}", record.device, record.vm);
        if record.step.ended() {
            let message = format!("migration {id} of disk {disk} has ended");
            return Err(
                Error::invalid(message).hint(format!("see `sterna migration show {id}`"))
            );
        }
        // QEMU can be told not to switch over until the moment at which it does; libvirt
        // cannot.
        let is_late = match record.step {
            Step::Switching if wish == Wish::Cancel => {
                matches!(self.vm_record(&record.vm)?.reach, Reach::Libvirt { .. })
            }
            step => matches!(step, Step::Switching | Step::Committed),
        };
        if record.cancel || is_late {
            let what = if record.cancel { "being cancelled" } else { "switching over" };
            let message = format!("migration {id} of disk {disk} is {what}");
            let hint = format!(
                "the QEMU of {} decides how the migration ends: `sterna migration watch \
                 {id}`",
                record.vm
            );
            return Err(Error::in_use(message).hint(hint));
        }
        change()?;
        if let Some(one) = lock(&self.vms.moves).get(&id) {
            one.asked.notify_one();
        }
        self.show_vm_move(id)
    }

    /// Gives a move up, if that number is one.
    pub(crate) fn cancel_vm_move(&self, id: u64) -> Result<Option<Migration>> {
        self.change_vm_move(id, Wish::Cancel, || {
            Ok(self.storage.store.vm_move_cancel(id)?)
        })
    }

    /// Has a move stand still or go on, if that number is one.
    pub(crate) fn pause_vm_move(
        &self,
        id: u64,
        paused: bool,
    ) -> Result<Option<Migration>> {
        let pause = || Ok(self.storage.store.vm_move_pause(id, paused)?);
        self.change_vm_move(id, Wish::Other, pause)
    }

    /// Limits a move, if that number is one.
    pub(crate) fn set_vm_move_rate(
        &self,
        id: u64,
        rate: Option<u64>,
    ) -> Result<Option<Migration>> {
        self.change_vm_move(id, Wish::Other, || {
            Ok(self.storage.store.vm_move_rate(id, rate)?)
        })
    }

    /// Guards a move, if that number is one.
    pub(crate) fn set_vm_move_guard(
        &self,
        id: u64,
        asked: &AskGuard,
    ) -> Result<Option<Migration>> {
        let Some(record) = self.storage.store.vm_move(id)? else { return Ok(None) };
        let guard = wanted(asked)?;
        check_guard(&self.vm_record(&record.vm)?.reach, &guard)?;
        let change = || Ok(self.storage.store.vm_move_guard(id, &guard)?);
        self.change_vm_move(id, Wish::Other, change)
    }
}

/// A move of this disk from file to file, to places that are yet to be said.
pub(super) fn new_move(
    vm: &str,
    drive: Drive,
    rate: Option<u64>,
    guard: Guard,
) -> VmMoveRecord {
    VmMoveRecord {
        id: 0,
        kind: VmMoveKind::Move,
        vm: vm.into(),
        device: drive.device,
        size: drive.size,
        format: drive.format,
        from: String::new(),
        source: drive.image,
        source_file: None,
        to: String::new(),
        destination: String::new(),
        destination_file: None,
        rate,
        guard,
        step: Step::Created,
        paused: false,
        cancel: false,
        started: clock::now(),
        ended: None,
        note: None,
        application: Application::default(),
        report: None,
        unclear: false,
    }
}
