//! VMs that exist already, and whose disks QEMU serves itself.
//!
//! A *machine* is QEMU's word for a VM. Here it is only the name of this service: its code
//! and its comments say VM.
//!
//! Sterna has none of their bytes in its hands: QEMU's mirror does the copying, and
//! Sterna guards it: it makes the destination, says how fast the copy may be, has QEMU
//! switch over, and puts away what is left, in whatever way it ends. Such a move is a
//! migration like any other to whoever looks at it, with a number among theirs.
//!
//! A VM's disk can also become a disk of ours, and a file again: then one end of the copy
//! is an export of this daemon, and the rest is the same.
//!
//! A VM can also migrate from one QEMU to another, while its disks stay (`vm_migrations`).
//!
//! `vms` has what may be asked of VMs, `link` the connections, `moves` what may be asked of a move,
//! `stranded` has those without a thread, `adoptions` those to and from disks of ours
//! (`ours`), and `mover` carries out what `core::mover` decides of it. `last_seen` is
//! what VMs were last seen with, for warnings. `images` has what is known of the files of
//! a datastore, and removes old copies.
//!
//! **Who decides where the disk is.** QEMU does, from the moment it is told to switch
//! over; so it is asked, and never guessed. Until that moment (the step `switching`) the
//! source is the truth, and a destination of which nothing is known any more can go.
//!
//! **Failures.** A VM that dies or hangs ends its move within
//! [`sterna_qemu::qmp::ANSWER_WITHIN`] and a tick; a connection that breaks ends none. A
//! daemon that is killed leaves QEMU's job behind; the next one finds it by its name and
//! goes on. One that stops in good order has the jobs stand still until it is back, as
//! nobody would hold what was promised.
#![forbid(unsafe_code)]

mod adoptions;
mod away;
mod checks;
mod images;
mod last_seen;
mod link;
mod look;
mod memory;
mod mover;
mod moves;
mod ours;
mod pace;
mod processes;
#[cfg(test)]
mod sample;
mod stranded;
mod unclear;
mod under_way;
mod usage;
mod user;
mod users;
mod view;
mod vm_disks;
mod vm_migrations;
mod vms;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use sterna_api::{AskGuard, Datastore, Disk, ErrorCode, Migration, Result};
use sterna_core::DiskId;
use sterna_moves::{Mover, Moves};
use sterna_os::lock;
use sterna_runtime::users::Users;
use sterna_state::{DiskRecord, Ledger};
use sterna_storage::asker::Asker;
use sterna_storage::{DiskUser, Storage};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use self::last_seen::LastSeen;
pub use self::last_seen::{looking, looking_at_libvirt};
use self::link::Links;
pub use self::memory::{VmLook, VmProcess};
pub use self::processes::SeenProcess;
use self::under_way::Move;
pub use self::usage::VmMigrationFacts;
pub use self::user::VmUser;
pub use self::vm_disks::VmDisk;
use self::vm_migrations::Sessions;
pub use self::vm_migrations::{VmMigrationOptions, WantedVmMigration, socket_of};
pub use self::vms::claim_of;
pub use sterna_qemu::{BalloonLook, Process};

/// VMs whose disks QEMU serves itself.
pub struct Machines {
    /// Which VM is on which host, and which VMs migrate. It has a share of the state, which
    /// goes before the storage's: with that, the daemon counts as ended.
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) moves: Arc<Moves>,
    /// The VMs that are known, and the connections to them.
    pub(crate) vms: KnownVms,
    /// The VM migrations that have not ended.
    pub(crate) sessions: Sessions,
    /// The services above, which use VMs.
    pub users: Users<dyn VmUser>,
}

impl Machines {
    /// No VM is known yet. To be called where there is a runtime.
    pub fn new(
        storage: Arc<Storage>,
        moves: Arc<Moves>,
        ledger: Arc<dyn Ledger>,
    ) -> Self {
        Machines {
            ledger,
            storage,
            moves,
            vms: KnownVms::new(),
            sessions: Sessions::default(),
            users: Users::default(),
        }
    }
}

impl DiskUser for Machines {
    fn check_settled(&self, disk: &DiskRecord) -> Result<()> {
        self.check_not_given(disk)?;
        self.check_no_vm_migration_of_disk(disk.id)
    }

    fn check_unused(&self, disk: &DiskRecord) -> Result<()> {
        self.check_no_vm_uses(disk)
    }

    fn check_datastore_unused(&self, datastore: &str) -> Result<()> {
        self.check_no_vm_disk_on(datastore)
    }

    fn complete_datastore(&self, view: &mut Datastore) -> Result<()> {
        match self.vm_disks_on(&view.name) {
            Ok(disks) => {
                view.vm_disks = disks.iter().map(VmDisk::to_string).collect();
            }
            // It was removed meanwhile: the others of the list are still to be told of.
            Err(error) if error.code == ErrorCode::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn hides(&self, disk: DiskId) -> Result<bool> {
        self.is_adopted(disk)
    }

    fn complete(&self, disk: DiskId, view: &mut Disk) -> Result<()> {
        if let Some(one) = self.vm_move_of(disk)? {
            view.migration.get_or_insert(one.id);
        }
        Ok(())
    }
}

impl Mover for Machines {
    fn list(&self) -> Result<Vec<Migration>> {
        self.list_vm_moves()
    }

    fn show(&self, id: u64) -> Result<Option<Migration>> {
        self.show_vm_move(id)
    }

    fn is_under_way(&self, id: u64) -> bool {
        self.vms.has_move(id)
    }

    fn pause(&self, id: u64, paused: bool) -> Result<Option<Migration>> {
        self.pause_vm_move(id, paused)
    }

    fn cancel(&self, id: u64) -> Result<Option<Migration>> {
        self.cancel_vm_move(id)
    }

    fn set_rate(&self, id: u64, rate: Option<u64>) -> Result<Option<Migration>> {
        self.set_vm_move_rate(id, rate)
    }

    fn set_guard(&self, id: u64, asked: &AskGuard) -> Result<Option<Migration>> {
        self.set_vm_move_guard(id, asked)
    }
}

/// What this process knows of VMs, and of the moves of their disks.
#[derive(Debug)]
pub(crate) struct KnownVms {
    /// Where what waits for QEMU runs.
    runtime: Handle,
    links: Mutex<Links>,
    moves: Mutex<HashMap<u64, Arc<Move>>>,
    /// Those that have ended, and of which their VMs may still have something.
    tidying: Mutex<HashMap<u64, Arc<Move>>>,
    /// Those that have no thread, and are to have one.
    stranded: Mutex<BTreeSet<u64>>,
    /// Whoever adds a VM holds this.
    adding: Mutex<()>,
    /// How each VM was when it was last looked at.
    last_seen: Mutex<BTreeMap<String, LastSeen>>,
    /// The same of VMs of libvirt, which may be long ago.
    seen_of_libvirt: Mutex<BTreeMap<String, LastSeen>>,
    /// The process of each VM of which one was seen.
    processes: Mutex<BTreeMap<String, SeenProcess>>,
    /// The turns of those that ask libvirt for many VMs.
    of_libvirt: Arc<Semaphore>,
    /// Who looks at VMs' files, whose file systems may hang.
    files: Asker,
    /// The daemon is to stop: moves are left to the next one.
    stopping: AtomicBool,
}

impl KnownVms {
    /// Nothing yet. To be called where there is a runtime.
    pub(crate) fn new() -> KnownVms {
        KnownVms {
            runtime: Handle::current(),
            links: Mutex::default(),
            moves: Mutex::default(),
            tidying: Mutex::default(),
            stranded: Mutex::default(),
            adding: Mutex::default(),
            last_seen: Mutex::default(),
            seen_of_libvirt: Mutex::default(),
            processes: Mutex::default(),
            of_libvirt: Arc::new(Semaphore::new(link::OF_LIBVIRT_AT_ONCE)),
            files: Asker::default(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Nobody wants to know any more what a VM still has of moves that have ended.
    fn let_go(&self, vm: &str) {
        let tidying = lock(&self.tidying);
        let of_it = tidying.values().filter(|one| one.is_of_vm(vm));
        of_it.for_each(|one| one.asked.notify_one());
    }

    /// Whether a move of that number is under way.
    fn has_move(&self, id: u64) -> bool {
        lock(&self.moves).contains_key(&id)
    }
}
