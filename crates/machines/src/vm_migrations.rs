//! VM migrations: running VMs that go from one QEMU to another, on another host.
//!
//! `fit` says whether a VM can go to a QEMU, `program` starts one, `stream` is the socket
//! over which the guest goes there. `driver` carries out what `core::transfer` decides: it
//! asks both QEMUs (`asking`, `qemu`), makes steps durable (`ends`) and has the words for
//! people (`words`); `stranded` has the migrations without a thread; `session` is what is
//! known of a migration meanwhile, and `view` what people see of it. The API and the state
//! call a VM migration a transfer.
//!
//! Which VM should go where is not decided here: that is asked for ([`WantedVmMigration`]).
//!
//! **Never two.** A migration is entered in the registry before anything is done, and a VM
//! has one at most: so is said to all who would migrate the VM or move its disks. From the
//! commit on the VM is reached at the other QEMU; before that, only the old one may run it,
//! and after that, only the new one. QEMU itself starts nothing
//! ([`sterna_qemu::Direct::receive`]).

mod asking;
mod driver;
mod ends;
mod fit;
mod program;
mod qemu;
mod session;
mod stranded;
mod stream;
mod view;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sterna_api::{Error, Result, Transfer};
use sterna_core::DiskId;
use sterna_os::clock;
use sterna_state::{Entry, TransferDesign, TransferRecord, TransferStep};

pub use self::fit::socket_of;
pub(crate) use self::session::Sessions;
use self::stream::Stream;
use super::vms::claim_of;
use crate::Machines;

/// How fast memory is copied unless somebody says otherwise: what moves are weighed with.
const RATE: u64 = 1_100_000_000;

/// A VM that is to go from one host to another, and why.
#[derive(Clone, Debug)]
pub struct WantedVmMigration {
    /// The VM.
    pub vm: String,
    /// The host that it leaves.
    pub from: String,
    /// The host that it goes to.
    pub to: String,
    /// What it is for, in words.
    pub reason: String,
    /// How much that matters.
    pub priority: u8,
}

/// How VM migrations are to be carried out.
#[derive(Clone, Debug, Default)]
pub struct VmMigrationOptions {
    /// The socket of the QEMU that waits, if somebody has started it.
    pub qmp: Option<PathBuf>,
    /// Bytes per second at most.
    pub rate: Option<u64>,
    /// Whether nobody has asked for it.
    pub automatic: bool,
}

impl Machines {
    /// Enters the migrations of all these VMs, or of none, and has them begin.
    pub fn start_vm_migrations(
        self: &Arc<Self>,
        wanted: &[WantedVmMigration],
        options: &VmMigrationOptions,
    ) -> Result<Vec<Transfer>> {
        let claim =
            |one: &WantedVmMigration| self.storage.claims.alone(claim_of(&one.vm));
        let _claims = wanted.iter().map(claim).collect::<Result<Vec<_>>>()?;
        let record = |one: &WantedVmMigration| {
            Ok(TransferRecord {
                id: 0,
                vm: one.vm.clone(),
                step: TransferStep::Created,
                design: self.design(one, options)?,
                cancel: false,
                started: clock::now(),
                end: None,
            })
        };
        let records = wanted.iter().map(record).collect::<Result<Vec<_>>>()?;
        let registry = self.ledger.change(&mut |registry| {
            for one in &records {
                no_vm_migration(&registry.transfers, &one.vm)?;
            }
            Ok(records.iter().cloned().map(Entry::Transfer).collect())
        })?;
        let mut entered = registry.transfers;
        entered.retain(|one| wanted.iter().any(|it| it.vm == one.vm));
        self.start_entered(&entered)?;
        Ok(entered.iter().map(|one| self.view_vm_migration(one)).collect())
    }

    /// What is to be done, if it can be.
    fn design(
        &self,
        wanted: &WantedVmMigration,
        options: &VmMigrationOptions,
    ) -> Result<TransferDesign> {
        let (source, disks) = self.sendable(&wanted.vm)?;
        let (destination, program) = match &options.qmp {
            Some(socket) => {
                self.check_receiver(&wanted.vm, &source, socket)?;
                (socket.clone(), None)
            }
            None => {
                let program = self.program_of(&wanted.to, &wanted.vm)?;
                let name = format!("{}-{:x}.qmp", wanted.vm, clock::now());
                (source.with_file_name(name), Some(program))
            }
        };
        Stream::to(&destination, false).check()?;
        Ok(TransferDesign {
            from: wanted.from.clone(),
            to: wanted.to.clone(),
            source,
            destination,
            program,
            disks: disks.iter().map(DiskId::to_string).collect(),
            rate: options.rate,
            reason: wanted.reason.clone(),
            priority: wanted.priority,
            automatic: options.automatic,
            receiver: None,
        })
    }

    /// All VM migrations, oldest first.
    pub fn list_vm_migrations(&self) -> Result<Vec<Transfer>> {
        let all = self.storage.store.transfers()?;
        Ok(all.iter().map(|one| self.view_vm_migration(one)).collect())
    }

    /// One VM migration.
    pub fn show_vm_migration(&self, id: u64) -> Result<Transfer> {
        let found = self.storage.store.transfers()?.into_iter().find(|one| one.id == id);
        let known = found.map(|one| self.view_vm_migration(&one));
        known.ok_or_else(|| no_such(id))
    }

    /// Gives a VM migration up, while the guest runs where it was.
    pub fn cancel_vm_migration(&self, id: u64) -> Result<Transfer> {
        let ended = self.show_vm_migration(id)?;
        self.ledger.change(&mut |registry| {
            let Some(one) = registry.transfers.iter().find(|one| one.id == id) else {
                let message = format!("transfer {id} of {} has ended", ended.vm);
                return Err(
                    Error::invalid(message).hint("see `sterna drs migration list`")
                );
            };
            if one.step == TransferStep::Committed {
                let message = format!("transfer {id} of {} is switching over", one.vm);
                return Err(
                    Error::in_use(message).hint("see `sterna drs migration list`")
                );
            }
            Ok(vec![Entry::Transfer(TransferRecord { cancel: true, ..one.clone() })])
        })?;
        if let Some(session) = self.sessions.get(id) {
            session.cancel();
        }
        self.show_vm_migration(id)
    }

    /// Gives up what is under way: nobody would have the guest run at its end.
    pub fn leave_vm_migrations(&self) {
        self.sessions.stopping.store(true, Ordering::SeqCst);
        self.sessions.all().iter().for_each(|session| session.wake());
    }

    /// Refuses a VM that migrates.
    pub fn check_no_vm_migration(&self, vm: &str) -> Result<()> {
        no_vm_migration(&self.ledger.read()?.transfers, vm)
    }

    /// Refuses a disk whose VM migrates.
    pub(crate) fn check_no_vm_migration_of_disk(&self, disk: DiskId) -> Result<()> {
        let id = disk.to_string();
        let registry = self.ledger.read()?;
        let of_it = |one: &&TransferRecord| one.design.disks.contains(&id);
        match registry.transfers.iter().find(of_it) {
            Some(one) => no_vm_migration(&registry.transfers, &one.vm),
            None => Ok(()),
        }
    }
}

fn no_such(id: u64) -> Error {
    Error::not_found("transfer", id).hint("see `sterna drs migration list`")
}

/// Refuses a VM that migrates.
fn no_vm_migration(open: &[TransferRecord], vm: &str) -> Result<()> {
    let Some(one) = open.iter().find(|one| one.vm == vm) else { return Ok(()) };
    let (id, to) = (one.id, &one.design.to);
    let message = format!("VM {vm} is being migrated to host {to}: transfer {id}");
    let hint =
        format!("wait for the VM migration, or `sterna drs migration cancel {id}`");
    Err(Error::in_use(message).hint(hint))
}
