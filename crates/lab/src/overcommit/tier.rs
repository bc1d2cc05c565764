//! A swap tier that is as slow as an array: a disk of the experiment's own daemon on an emulated
//! array, which the kernel sees as a block device.
//!
//! ```text
//! array:// datastore → disk → NBD → nbdfuse → file → loop device → swap
//! ```
//!
//! Swap through a program is for experiments only: a host that is short of memory would wait for a
//! program that needs some. Here the host has enough, and only the experiment's guest goes out.
//!
//! Dropping a tier ends it in the order of its making, so QEMU must have ended before: the kernel
//! would read all of the guest's memory back.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sterna_api::{AddDatastore, AddSwapTier, CreateDisk, Provision, SwapTier};
use sterna_sim::overcommit::Medium;
use tokio::time::sleep;

use crate::site::{NBD_SOCKET, Site};

/// How much larger than the guest's memory: the kernel keeps the place of a page that is back.
const TIMES: f64 = 2.5;

/// How long nbdfuse may take to show its file, looked at so often.
const SHOWS: u32 = 100;
const LOOK: Duration = Duration::from_millis(100);

/// A swap tier.
pub(super) struct Tier {
    /// What Sterna has measured of it.
    pub(super) facts: SwapTier,
    _device: Device,
}

/// A disk of the daemon as a block device.
struct Device {
    nbdfuse: Child,
    mount: PathBuf,
    /// Once there is one.
    path: Option<String>,
}

/// What the tier on a medium is called.
pub(super) fn name(medium: Medium) -> String {
    medium.to_string().to_lowercase()
}

impl Tier {
    /// Makes one on such a medium, for a guest with so much memory.
    pub(super) async fn add(
        site: &Site,
        medium: Medium,
        memory: u64,
    ) -> anyhow::Result<Tier> {
        let name = name(medium);
        let place = site.dir().join(format!("array-{name}"));
        std::fs::create_dir(&place).context("cannot make a directory for an array")?;
        let array = medium.array();
        let with = if array.contains('?') { '&' } else { '?' };
        let location = format!("array://{array}{with}path={}", place.display());
        let client = site.client();
        let store = AddDatastore { name: name.clone(), location, shape: None };
        client.add_datastore(&store).await?;
        let disk = CreateDisk {
            name: format!("swap-{name}"),
            size: (memory as f64 * TIMES) as u64,
            datastore: Some(name.clone()),
            provision: Provision::default(),
        };
        client.create_disk(&disk).await?;
        let device = Device::show(site.dir(), &disk.name).await?;
        let tier = AddSwapTier {
            name,
            datastore: None,
            size: None,
            device: device.path.clone(),
        };
        let facts = client.add_swap_tier(&tier).await?;
        Ok(Tier { facts, _device: device })
    }

    /// Ends it while the guest runs.
    pub(super) async fn remove(self, site: &Site) -> anyhow::Result<()> {
        site.client().remove_swap_tier(&self.facts.name).await?;
        Ok(())
    }
}

impl Device {
    /// Shows a disk of the daemon whose directory this is.
    async fn show(dir: &Path, disk: &str) -> anyhow::Result<Device> {
        let mount = dir.join(format!("show-{disk}"));
        std::fs::create_dir(&mount).context("cannot make a directory to mount on")?;
        let socket = dir.join(NBD_SOCKET);
        // One connection: a request that follows the last one shall not be overtaken.
        let nbdfuse = Command::new("nbdfuse")
            .args(["-C", "1"])
            .arg(mount.join("disk"))
            .arg(format!("nbd+unix:///{disk}?socket={}", socket.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C on the terminal is for the experiment.
            .process_group(0)
            .spawn()
            .context("cannot start nbdfuse")?;
        let file = mount.join("disk");
        let mut device = Device { nbdfuse, mount, path: None };
        for _ in 0..SHOWS {
            if file.is_file() {
                device.path = Some(attach(&file)?);
                return Ok(device);
            }
            if let Some(ended) = device.nbdfuse.try_wait()? {
                bail!("nbdfuse ended at its start ({ended})");
            }
            sleep(LOOK).await;
        }
        bail!("nbdfuse does not show the disk {disk}")
    }
}

/// A loop device of a file, past the page cache: what was written there would else be read from
/// memory.
fn attach(file: &Path) -> anyhow::Result<String> {
    let made = Command::new("losetup")
        .args(["--direct-io=on", "--find", "--show"])
        .arg(file)
        .output()
        .context("cannot start losetup")?;
    let said = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "losetup failed: {}", said.trim());
    Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
}

impl Drop for Device {
    fn drop(&mut self) {
        let run = |program: &str, argument: &str| {
            let silent = || Stdio::null();
            let mut command = Command::new(program);
            command.arg(argument).stdout(silent()).stderr(silent());
            // What has ended already cannot be ended.
            let _ = command.status();
        };
        if let Some(path) = &self.path {
            run("swapoff", path);
            let _ = Command::new("losetup").args(["--detach", path]).status();
        }
        run("umount", &self.mount.display().to_string());
        let _ = self.nbdfuse.kill();
        let _ = self.nbdfuse.wait();
    }
}
