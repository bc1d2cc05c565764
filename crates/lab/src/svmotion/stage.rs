//! What the experiment stands on: a daemon with an old and a new array for each disk,
//! and a guest with a database on them.
//!
//! The disks' images are full of noise before the guest makes its file systems, so that
//! all of a disk has to be moved, as with one that has been used for years.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use sterna_api::{AddDatastore, AttachDisk, Client, CreateDisk, ImportDisk, Provision};
use sterna_qemu::Export;
use sterna_workload::dvdstore::{self, LoadOptions, Server, Size, Store, Tablespaces};
use sterna_workload::random::Random;

use super::mirror::Mirror;
use super::plan::{Disk, Plan, Way};
use crate::guest::Link;
use crate::guest::machine::{self, Image, Machine, Memory};
use crate::guest::orders::Orders;
use crate::site::{NBD_SOCKET, Site};

impl Disk {
    /// The datastore on the array that it leaves.
    pub(super) fn old_store(self) -> String {
        format!("old-{self}")
    }

    /// The one on the array that it goes to.
    pub(super) fn new_store(self) -> String {
        format!("new-{self}")
    }

    /// The disk there that QEMU's mirror copies it to.
    pub(super) fn twin(self) -> String {
        format!("{self}-twin")
    }
}

/// What the guest is.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// What it boots.
    pub(super) image: Image,
    /// Its memory, as QEMU takes it.
    pub(super) memory: String,
    /// What all chance comes from.
    pub(super) seed: u64,
}

/// The guest and its disks.
pub(super) struct Stage<'s> {
    site: &'s Site,
    ground: Ground,
    machine: Option<Machine>,
    /// The store, when it is loaded.
    pub(super) store: Option<Store>,
    /// The acknowledged orders.
    orders: Orders,
    /// What kernel and server complained of, boot by boot.
    complaints: Vec<String>,
}

impl<'s> Stage<'s> {
    /// Makes arrays and disks. The guest is off.
    pub(super) async fn prepare(
        site: &'s Site,
        ground: &Ground,
        plan: &Plan,
    ) -> anyhow::Result<Stage<'s>> {
        for disk in Disk::ALL {
            let [old, new] = disk.arrays();
            let place = add(site, &disk.old_store(), old).await?;
            add(site, &disk.new_store(), new).await?;
            let file = place.join(format!("{disk}.raw"));
            let (size, seed) = (plan.size(disk), ground.seed ^ disk as u64);
            let path = file.clone();
            let made = tokio::task::spawn_blocking(move || noise(&path, size, seed));
            made.await
                .context("cannot wait for an image")?
                .context("cannot make an image")?;
            let request = ImportDisk {
                name: disk.name().into(),
                datastore: disk.old_store(),
                file: file.display().to_string(),
            };
            site.client().import_disk(&request).await?;
            let socket = machine::socket(site.dir(), disk.name());
            let vhost_user = socket.display().to_string();
            site.client().attach_disk(disk.name(), &AttachDisk { vhost_user }).await?;
            if plan.ways.contains(&Way::Mirror) {
                let twin = CreateDisk {
                    name: disk.twin(),
                    size,
                    datastore: Some(disk.new_store()),
                    provision: Provision::default(),
                };
                site.client().create_disk(&twin).await?;
            }
        }
        let ground = ground.clone();
        Ok(Stage {
            site,
            ground,
            machine: None,
            store: None,
            orders: Orders::default(),
            complaints: Vec::new(),
        })
    }

    /// The way to the daemon.
    pub(super) fn client(&self) -> &Client {
        self.site.client()
    }

    /// QEMU's process, if the guest is on.
    pub(super) fn guest(&self) -> Option<u32> {
        self.machine.as_ref()?.pid()
    }

    /// Makes the server and loads the store; then the guest is off.
    pub(super) async fn furnish(&mut self, plan: &Plan) -> anyhow::Result<()> {
        self.boot(Link::VhostUser).await?.run("database make").await?;
        let spaces = Tablespaces { data: Some("data".into()), index: Some("idx".into()) };
        let size = Size::new(plan.store()).context("the store's size")?;
        let options = LoadOptions { size, seed: self.ground.seed, spaces, reload: false };
        let loaded = dvdstore::load(&self.server()?, &options, &mut |_| {}).await;
        self.store = Some(loaded.context("cannot load the store")?);
        self.off().await
    }

    /// Turns the guest on, with its database, and with this link to its disks.
    pub(super) async fn on(&mut self, link: Link) -> anyhow::Result<()> {
        if self.machine.as_ref().is_some_and(|machine| machine.link() != link) {
            self.off().await?;
        }
        if self.machine.is_none() {
            self.boot(link).await?.run("database start").await?;
        }
        Ok(())
    }

    /// Turns the guest off in good order.
    pub(super) async fn off(&mut self) -> anyhow::Result<()> {
        let Some(mut machine) = self.machine.take() else { return Ok(()) };
        machine.run("database stop").await?;
        // They are of this boot, and go with it.
        let (well, said) = machine.attempt("database complaints").await?;
        if !well {
            self.complaints.push(said);
        }
        machine.power_off().await
    }

    async fn boot(&mut self, link: Link) -> anyhow::Result<&mut Machine> {
        let (disks, dir) = (Disk::ALL.map(Disk::name), self.site.dir());
        let Ground { image, memory, .. } = &self.ground;
        let memory = Memory { size: memory.clone(), group: None };
        let machine = Machine::boot(image, dir, &memory, link, &disks).await?;
        Ok(self.machine.insert(machine))
    }

    /// Has QEMU's mirror copy a disk to its twin on the new array, or back, and switch
    /// over.
    pub(super) async fn mirror(&self, disk: Disk, forth: bool) -> anyhow::Result<Mirror> {
        let machine = self.machine.as_ref().context("the guest is off")?;
        let to = if forth { disk.twin() } else { disk.name().to_owned() };
        let socket = self.site.dir().join(NBD_SOCKET).display().to_string();
        Mirror::begin(machine.qmp(), disk.name(), Export { name: to, socket }).await
    }

    /// The guest's server.
    pub(super) fn server(&self) -> anyhow::Result<Server> {
        let machine = self.machine.as_ref().context("the guest is off")?;
        Server::new(&machine.uri(), None).context("the guest's database")
    }

    /// A new file for acknowledged orders.
    pub(super) fn orders(&mut self) -> PathBuf {
        self.orders.file(self.site.dir())
    }

    /// Looks for each order that was acknowledged: how many there were, and how many of
    /// them are missing. The guest is started anew for that: what it had in its memory would
    /// not be read from its disks.
    pub(super) async fn check(&mut self) -> anyhow::Result<(u64, u64)> {
        self.off().await?;
        self.on(Link::VhostUser).await?;
        let server = self.server()?;
        self.orders.check(&server).await
    }

    /// What the guest finds wrong with its disks and its database, and whatever kernel and
    /// server complained of in all its boots: nothing, or what.
    /// The server is stopped by that, and the guest is then turned off.
    pub(super) async fn complaints(&mut self) -> anyhow::Result<Option<String>> {
        let mut machine = self.machine.take().context("the guest is off")?;
        let (well, said) = machine.attempt("database verdict").await?;
        machine.power_off().await?;
        if !well {
            self.complaints.push(said);
        }
        let all = std::mem::take(&mut self.complaints);
        Ok((!all.is_empty()).then(|| all.join("\n")))
    }
}

/// Adds an array with a directory of its own; gives that.
async fn add(site: &Site, name: &str, array: &str) -> anyhow::Result<PathBuf> {
    let place = site.dir().join(name);
    fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let with = if array.contains('?') { '&' } else { '?' };
    let location = format!("array://{array}{with}path={}", place.display());
    let store = AddDatastore { name: name.into(), location, shape: None };
    site.client().add_datastore(&store).await?;
    Ok(place)
}

/// Makes a file of so many bytes of noise.
fn noise(path: &Path, size: u64, seed: u64) -> anyhow::Result<()> {
    ensure!(size.is_multiple_of(8), "an image is made of whole words");
    let file =
        File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut random = Random::new(seed);
    for _ in 0..size / 8 {
        file.write_all(&random.bits().to_ne_bytes())?;
    }
    file.into_inner().context("cannot write an image")?.sync_all()?;
    Ok(())
}
