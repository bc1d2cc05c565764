//! What the experiment stands on: a guest with a database, whose memory can go out.
//!
//! The guest's disks are disks of the experiment's daemon on a plain directory. QEMU runs in a
//! control group of its own, so that the kernel's copy of what is out can be freed.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sterna_api::{
    AddDatastore, AddVm, CreateDisk, Provision, SleepVm, VmMemory, VmMemoryState,
};
use sterna_core::Bytes;
use sterna_workload::dvdstore::{self, LoadOptions, Server, Size, Store, Tablespaces};
use tokio::time::{Instant, sleep};

use super::group::Group;
use super::outcome::Sleep;
use super::plan::{IDLE, MEMORY_TEXT, STORE};
use super::swappiness::Swappiness;
use crate::guest::Link;
use crate::guest::machine::{Image, Machine, Memory};
use crate::guest::monitor::Monitor;
use crate::guest::orders::Orders;
use crate::site::Site;

/// The VM, as the daemon knows it.
pub(super) const VM: &str = "db";

/// The guest's disks, and their sizes: room for the store, and for what it writes.
const DISKS: [(&str, u64); 3] =
    [("data", 1 << 30), ("index", 512 << 20), ("wal", 256 << 20)];

/// What the guest keeps in its memory, to see whether it comes back as it was: noise in a file
/// system in memory.
const NOISE: &str = "head -c 32M /dev/urandom >/dev/shm/noise";
const SUM: &str = "sha256sum /dev/shm/noise";

/// How long a sleep or a wake may take: a slow disk writes 1 GiB in a minute.
const WORK: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(200);

/// So much of what is out must be on the tier that is measured, or the figures are another's.
const ON_TIER: f64 = 0.95;

/// The guest.
pub(super) struct Stage<'s> {
    site: &'s Site,
    machine: Machine,
    monitor: Monitor,
    store: Store,
    /// The sum of the noise.
    sum: String,
    /// The acknowledged orders.
    orders: Orders,
    // Last: QEMU must have left it.
    group: Group,
    _others: Swappiness,
}

impl<'s> Stage<'s> {
    /// Boots the guest, and fills its store.
    pub(super) async fn prepare(
        site: &'s Site,
        image: &Image,
        seed: u64,
    ) -> anyhow::Result<Stage<'s>> {
        let place = site.dir().join("disks");
        std::fs::create_dir(&place).context("cannot make a directory for disks")?;
        let location = place.display().to_string();
        let store = AddDatastore { name: "disks".into(), location, shape: None };
        site.client().add_datastore(&store).await?;
        for (name, size) in DISKS {
            let disk = CreateDisk {
                name: name.into(),
                size,
                datastore: Some(store.name.clone()),
                provision: Provision::default(),
            };
            site.client().create_disk(&disk).await?;
        }
        let (others, group) = (Swappiness::none()?, Group::new()?);
        let memory =
            Memory { size: MEMORY_TEXT.into(), group: Some(group.path().to_owned()) };
        let names = DISKS.map(|(name, _)| name);
        let mut machine =
            Machine::boot(image, site.dir(), &memory, Link::Nbd, &names).await?;
        machine.run("database make").await?;
        let server = Server::new(&machine.uri(), None).context("the guest's database")?;
        let spaces = Tablespaces { data: Some("data".into()), index: Some("idx".into()) };
        let size = Size::new(STORE).context("the store's size")?;
        let options = LoadOptions { size, seed, spaces, reload: false };
        let store = dvdstore::load(&server, &options, &mut |_| {}).await;
        let store = store.context("cannot load the store")?;
        machine.run(NOISE).await?;
        let sum = machine.run(SUM).await?;
        let monitor = machine.monitor().await?;
        let orders = Orders::default();
        let stage =
            Stage { site, machine, monitor, store, sum, orders, group, _others: others };
        stage.known().await?;
        Ok(stage)
    }

    /// The guest's store, and its server.
    pub(super) fn shop(&self) -> anyhow::Result<(Store, Server)> {
        let server = Server::new(&self.machine.uri(), None);
        Ok((self.store, server.context("the guest's database")?))
    }

    /// A new file for acknowledged orders.
    pub(super) fn orders(&mut self) -> PathBuf {
        self.orders.file(self.site.dir())
    }

    /// Has the daemon know the VM.
    pub(super) async fn known(&self) -> anyhow::Result<()> {
        let qmp = Some(self.machine.qmp().display().to_string());
        let vm = AddVm { name: VM.into(), qmp, libvirt: None, domain: None };
        self.site.client().add_vm(&vm).await?;
        Ok(())
    }

    /// Has the daemon forget the VM: nobody but the kernel brings its memory back from then on.
    pub(super) async fn forgotten(&self) -> anyhow::Result<()> {
        self.site.client().remove_vm(VM).await?;
        Ok(())
    }

    /// All of the guest's memory goes out to a tier, and the kernel's copy with it. The guest
    /// stands still until its customers come: the timers of an idle guest touch enough for Sterna
    /// to wake it. Gives what is out then, and how it went out.
    pub(super) async fn sleep(
        &mut self,
        tier: &str,
    ) -> anyhow::Result<(VmMemory, Sleep)> {
        self.monitor.stop().await?;
        let client = self.site.client();
        let began = Instant::now();
        client.sleep_vm(VM, &SleepVm { all: true }).await?;
        let is_asleep = |memory: &VmMemory| memory.state == VmMemoryState::Asleep;
        let slept = self.until("to sleep", is_asleep).await?;
        let took_s = began.elapsed().as_secs_f64();
        let out = slept.out.unwrap_or_default();
        let runs = slept.out_on.iter().map(|on| on.runs).sum();
        let there = slept.out_on.iter().filter(|on| on.tier.as_deref() == Some(tier));
        let there: u64 = there.map(|on| on.bytes).sum();
        let (found, all) = (Bytes(there), Bytes(out));
        ensure!(
            there as f64 >= ON_TIER * out as f64,
            "only {found} of {all} went to the tier {tier}: the host swaps elsewhere, too"
        );
        self.group.free()?;
        sleep(Duration::from_secs(IDLE)).await;
        Ok((client.vm_memory(VM).await?, Sleep { bytes: out, took_s, runs }))
    }

    /// The guest goes on.
    pub(super) async fn go_on(&mut self) -> anyhow::Result<()> {
        self.monitor.go_on().await
    }

    /// Waits until the VM is awake, and all that it needs is noted.
    pub(super) async fn awake(&self) -> anyhow::Result<VmMemory> {
        self.until("to wake", |memory| memory.state == VmMemoryState::Awake).await
    }

    async fn until(
        &self,
        what: &str,
        is_there: impl Fn(&VmMemory) -> bool,
    ) -> anyhow::Result<VmMemory> {
        let end = Instant::now() + WORK;
        while Instant::now() < end {
            let memory = self.site.client().vm_memory(VM).await?;
            if is_there(&memory) {
                return Ok(memory);
            }
            if let Some(problem) = memory.problem {
                bail!("the VM is {what}: {problem}");
            }
            sleep(LOOK).await;
        }
        bail!("the VM should have begun {what} by now")
    }

    /// Whether the guest's memory is what it was.
    pub(super) async fn is_whole(&mut self) -> anyhow::Result<bool> {
        Ok(self.machine.run(SUM).await? == self.sum)
    }

    /// Looks for each order that was acknowledged: how many there were, and how many are missing.
    pub(super) async fn check(&self) -> anyhow::Result<(u64, u64)> {
        let (_, server) = self.shop()?;
        self.orders.check(&server).await
    }
}
