//! Memory of VMs: swap tiers, VMs that sleep, and VMs that wake.
//!
//! `core::memory` decides what goes out and in which order it comes back; this service has it
//! done. The kernel writes and reads the memory: no content passes through Sterna.
//!
//! `tiers` are the swap devices that Sterna has added, `tier_file` makes and measures one,
//! `guest_memory` finds a VM's memory in its process, `sleep` takes it out, `wake` brings it
//! back (`own_memory` first what QEMU needs itself), `neighbours` says whether others use the same
//! storage, and `watch` sees that a guest that sleeps needs its memory. `reclaim` looks whether the
//! host is short of memory and has VMs give some, `balloons` asks their balloons, `standing` is
//! what is known of them from look to look, `terms` what people have said of them, and `view` and
//! `explain` are what people see. `counting` reads what the kernel counts, for metrics and `top`,
//! and `warnings` says what is out of order.
//!
//! **Failures.** Nothing is held here but a guest at the beginning of a wake, for
//! [`sterna_core::memory::HOLD_MOST`] at most, and the kernel lets go of it if the daemon ends. If
//! the daemon is killed, the kernel brings back page by page what guests need.
#![forbid(unsafe_code)]

mod balloons;
mod counting;
mod counts;
mod explain;
mod guest_memory;
mod neighbours;
mod own_memory;
mod reclaim;
mod sleep;
mod standing;
mod terms;
mod tier_file;
mod tiers;
mod view;
mod wake;
mod warnings;
mod watch;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sterna_api::{Error, Result, Vm, VmState, WakeReport};
use sterna_machines::{Machines, SeenProcess, VmUser};
use sterna_os::lock;
use sterna_os::wake::Waker;
use sterna_storage::{DiskUser, Storage};

use self::balloons::Balloons;
pub use self::balloons::RELEASES_WITHIN;
use self::counting::Counting;
pub use self::counting::WakeTotals;
use self::guest_memory::Signs;
use self::standing::Standing;
pub use self::watch::watching;
use self::work::Work;

/// Memory of VMs that share this host.
pub struct Memory {
    pub(crate) storage: Arc<Storage>,
    pub(crate) machines: Arc<Machines>,
    /// Whoever adds or removes a tier holds this.
    pub(crate) tiers_turn: Mutex<()>,
    /// VMs that go to sleep or wake now, by name.
    work: Mutex<BTreeMap<String, Arc<Work>>>,
    /// The signs of each VM when it had fallen asleep, until that is seen.
    asleep: Mutex<BTreeMap<String, Signs>>,
    /// VMs whose guest was idle though its quiet disk was asked: it writes now and then.
    pub(crate) idle_writers: Mutex<BTreeSet<String>>,
    /// Wakes who watches.
    pub(crate) waker: Waker,
    /// Why memory of a VM that was to go out stayed, the last time.
    pub(crate) failures: Mutex<BTreeMap<String, String>>,
    /// How the last wake of each went.
    reports: Mutex<BTreeMap<String, WakeReport>>,
    /// What is known of the host and its VMs from look to look.
    pub(crate) standing: Mutex<Standing>,
    /// Balloons that have something.
    pub(crate) balloons: Balloons,
    /// What the kernel counts of them.
    pub(crate) counting: Mutex<Counting>,
    /// Why the kernel does not swap to a tier, by its name.
    pub(crate) tier_problems: Mutex<BTreeMap<String, String>>,
    /// Whoever changes what people have said of them holds this.
    pub(crate) terms_turn: Mutex<()>,
    /// Whoever looks at all of them holds this.
    pub(crate) round: Mutex<()>,
    /// When the last round was begun.
    pub(crate) round_begun: Mutex<Option<Instant>>,
}

impl Memory {
    /// No VM sleeps or wakes yet.
    pub fn new(storage: Arc<Storage>, machines: Arc<Machines>) -> Memory {
        Memory {
            storage,
            machines,
            tiers_turn: Mutex::default(),
            work: Mutex::default(),
            asleep: Mutex::default(),
            idle_writers: Mutex::default(),
            waker: Waker::default(),
            failures: Mutex::default(),
            reports: Mutex::default(),
            standing: Mutex::new(Standing::new()),
            balloons: Balloons::default(),
            counting: Mutex::default(),
            tier_problems: Mutex::default(),
            terms_turn: Mutex::default(),
            round: Mutex::default(),
            round_begun: Mutex::default(),
        }
    }

    /// What a VM does, if it goes to sleep or wakes.
    pub(crate) fn work_of(&self, vm: &str) -> Option<Arc<Work>> {
        lock(&self.work).get(vm).cloned()
    }

    /// How many bytes of VMs are on their way out.
    pub(crate) fn going_out(&self) -> u64 {
        let all = lock(&self.work);
        all.values().filter(|one| one.is_sleep()).map(|one| one.left()).sum()
    }

    /// Enters that a VM begins something. Refused while it does something else, and if `check`
    /// refuses, which is told how many bytes others are still to take out.
    pub(crate) fn begin(
        &self,
        vm: &str,
        work: Arc<Work>,
        check: impl FnOnce(u64) -> Result<()>,
    ) -> Result<()> {
        let mut all = lock(&self.work);
        let promised = all.values().filter(|one| one.is_sleep()).map(|one| one.left());
        check(promised.sum())?;
        if let Some(other) = all.get(vm) {
            let message = format!("VM {vm} {}", other.what());
            let hint = format!("see `sterna memory show {vm}`");
            return Err(Error::in_use(message).hint(hint));
        }
        all.insert(vm.to_owned(), work);
        lock(&self.failures).remove(vm);
        Ok(())
    }

    /// It has ended.
    pub(crate) fn end(&self, vm: &str) {
        lock(&self.work).remove(vm);
    }
}

impl VmUser for Memory {
    fn may_leave(&self, vm: &str) -> Result<()> {
        let Err(error) = self.release_balloon(vm) else { return Ok(()) };
        let seen = self.machines.seen_processes();
        let has_ended =
            |(name, seen): &(String, SeenProcess)| name == vm && !seen.process.is_there();
        let is_off = |vm: Vm| vm.state == VmState::Off;
        if seen.iter().any(has_ended) || self.machines.show_vm(vm).is_ok_and(is_off) {
            // Its balloon has ended with it.
            return Ok(());
        }
        let message =
            format!("the balloon of VM {vm} does not give back what it has: {error}");
        Err(Error::unavailable(message)
            .hint("wait until QEMU's monitor answers, or end the VM, and try again"))
    }

    fn leaves(&self, vm: &str) {
        self.stop_work(vm);
        lock(&self.standing).known.remove(vm);
        self.forget_balloons_but(|one| one != vm);
        lock(&self.asleep).remove(vm);
        lock(&self.idle_writers).remove(vm);
        lock(&self.failures).remove(vm);
        lock(&self.reports).remove(vm);
    }
}

impl DiskUser for Memory {
    fn check_datastore_unused(&self, datastore: &str) -> Result<()> {
        self.check_no_tier_on(datastore)
    }
}
