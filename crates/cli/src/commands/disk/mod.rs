//! `sterna disk`: virtual disks.

mod qemu;
pub(crate) mod recovery;
mod stats;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use sterna_api::{
    AttachDisk, CreateDisk, CreatedDisk, Disk, DiskActivity, ErrorCode, ImageFate,
    ImportDisk, Provision, RemovedDisk,
};
use sterna_console::connect::{Failure, Link};
use sterna_console::format::{bytes, count, iops, rate, response};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Cell, Column, Pairs, Style, Table, wrap};
use sterna_console::terms::binding;
use sterna_core::Bytes;

use crate::commands::datastore::is_path;
use crate::common::NameArg;

#[derive(Debug, Subcommand)]
pub(crate) enum DiskCommand {
    /// Create an empty disk
    Create {
        /// The disk's name, which is also the name of its NBD export
        name: String,
        /// The disk's size (10G, 512M); a multiple of 512 bytes
        #[arg(long)]
        size: Bytes,
        /// The datastore for the disk [default: Storage DRS chooses one]
        #[arg(long, value_name = "DATASTORE")]
        on: Option<String>,
        /// How much space the image takes from the start
        #[arg(long, value_enum, default_value_t)]
        provision: ProvisionArg,
    },
    /// Import an existing raw image in place
    Import {
        /// The disk's name
        name: String,
        /// The datastore that the image is on
        #[arg(long, value_name = "DATASTORE")]
        on: String,
        /// The image file: its path, or its name in the datastore's directory
        file: String,
    },
    /// List the disks
    #[command(visible_alias = "ls")]
    List,
    /// Show one disk
    Show(NameArg),
    /// Recover disks from their images after the state directory was lost
    ///
    /// Before: make sure that no other Sterna serves these images, and add all datastores.
    /// Sterna makes the newest active image of each disk a disk again, with its old name,
    /// and copies and deletes nothing. For every other image Sterna prints the reason.
    Recover {
        /// Recover only disks whose image is on this datastore; Sterna still reads all
        /// datastores, because another one may have a newer image
        #[arg(long, value_name = "DATASTORE")]
        on: Option<String>,
        /// Print what Sterna would do, and change nothing: try this first
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove an unused disk, and its image unless the image was imported
    #[command(visible_alias = "rm")]
    Remove {
        /// Its name
        name: String,
        /// Keep the image; the default for an imported image
        #[arg(long, conflicts_with = "delete_image")]
        keep_image: bool,
        /// Remove the image, even if it was imported
        #[arg(long)]
        delete_image: bool,
    },
    /// Show times and patterns of a disk's requests
    ///
    /// The figures count reads and writes since the daemon began to serve the disk.
    Stats {
        /// Its name
        name: String,
        /// Show histograms of length, seek distance, outstanding requests, interval and
        /// response time, as vscsiStats does
        #[arg(long)]
        histogram: bool,
    },
    /// Print the URIs of a disk's NBD export
    Uri(NameArg),
    /// Create a vhost-user-blk socket for a disk
    Attach {
        /// Its name
        name: String,
        /// The path of the socket, for QEMU or cloud-hypervisor
        #[arg(long, value_name = "PATH")]
        vhost_user: PathBuf,
    },
    /// Remove a disk's vhost-user-blk socket
    Detach(NameArg),
    /// Print the QEMU arguments for a disk
    QemuArgs(NameArg),
}

/// What is said of an image that was imported.
const YOURS: &str = "\
`sterna disk remove` keeps this file. A migration deletes it once the disk has
moved, unless you give --keep-source.";

/// What is said of one that was allocated in full.
const THICK: &str = "\
All of it is allocated, so it is a thick disk: its image keeps that room, and
has it wherever the disk is moved (`sterna migrate --provision thin` gives it
up).
";

/// How much room an image takes before anything is written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProvisionArg {
    /// The image takes space only for data that was written
    #[default]
    Thin,
    /// The whole image is allocated
    Thick,
    /// The whole image is allocated and written with zeroes
    ThickZeroed,
}

impl From<ProvisionArg> for Provision {
    fn from(arg: ProvisionArg) -> Self {
        match arg {
            ProvisionArg::Thin => Provision::Thin,
            ProvisionArg::Thick => Provision::Thick,
            ProvisionArg::ThickZeroed => Provision::ThickZeroed,
        }
    }
}

/// A provisioning in words.
pub(crate) fn provision(provision: Provision) -> &'static str {
    match provision {
        Provision::Thin => "thin",
        Provision::Thick => "thick",
        Provision::ThickZeroed => "thick-zeroed",
    }
}

/// Carries out a command.
pub(crate) fn run(
    command: DiskCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    match command {
        DiskCommand::Create { name, size, on, provision } => {
            let request = CreateDisk {
                name,
                size: size.0,
                datastore: on,
                provision: provision.into(),
            };
            let disk =
                link.ask(async |client| Ok(client.create_disk(&request).await?))?;
            output.answer(&disk, created)
        }
        DiskCommand::Import { name, on, file } => {
            let request = ImportDisk { name, datastore: on, file: found(file) };
            let disk =
                link.ask(async |client| Ok(client.import_disk(&request).await?))?;
            output.answer(&disk, imported)
        }
        DiskCommand::Recover { on, dry_run } => recovery::run(on, dry_run, link, output),
        DiskCommand::List => {
            let all = link.ask(async |client| Ok(client.disks().await?))?;
            output.answer(&all, |all| list(all, output))
        }
        DiskCommand::Show(NameArg { name }) => {
            let one = link.ask(async |client| Ok(client.disk(&name).await?))?;
            output.answer(&one, |one| show(one, output))
        }
        DiskCommand::Remove { name, keep_image, delete_image } => {
            let image = match (keep_image, delete_image) {
                (true, _) => ImageFate::Keep,
                (_, true) => ImageFate::Delete,
                _ => ImageFate::Auto,
            };
            let gone =
                link.ask(async |client| Ok(client.remove_disk(&name, image).await?))?;
            output.answer(&gone, removed)
        }
        DiskCommand::Stats { name, histogram } => {
            let one = link.ask(async |client| Ok(client.disk_stats(&name).await?))?;
            output.answer(&one, |one| stats::show(one, histogram, output))
        }
        DiskCommand::Uri(NameArg { name }) => uri(&name, link, output),
        DiskCommand::Attach { name, vhost_user } => {
            let path = std::path::absolute(&vhost_user)?;
            let request = AttachDisk { vhost_user: path.display().to_string() };
            let disk =
                link.ask(async |client| Ok(client.attach_disk(&name, &request).await?))?;
            output.answer(&disk, |disk| attached(disk, &request.vhost_user))
        }
        DiskCommand::Detach(NameArg { name }) => {
            let disk = link.ask(async |client| Ok(client.detach_disk(&name).await?))?;
            output.answer(&disk, |disk| format!("Disk {} is detached.", disk.name))
        }
        DiskCommand::QemuArgs(NameArg { name }) => {
            let (disk, device) = with_device(link, &name)?;
            let ways = qemu::ways(&disk, device.as_deref());
            output.to_paste(&ways, |ways| qemu::show(ways))
        }
    }
}

/// A disk, and what a VM calls it that has it.
fn with_device(link: &Link, name: &str) -> anyhow::Result<(Disk, Option<String>)> {
    link.ask(async |client| {
        let disk = client.disk(name).await?;
        // What VMs there are is good to know, and no more.
        let vms = client.vms().await.unwrap_or_default();
        let all = vms.into_iter().flat_map(|vm| vm.disks);
        let mut ours = all.filter(|it| it.disk.as_deref() == Some(name));
        Ok((disk, ours.next().map(|it| it.device)))
    })
}

fn attached(disk: &Disk, socket: &str) -> String {
    format!(
        "Disk {} is attached to {socket}.\nQEMU's arguments: sterna disk qemu-args {}",
        disk.name, disk.name
    )
}

fn uri(name: &str, link: &Link, output: Output) -> anyhow::Result<()> {
    let disk = link.ask(async |client| Ok(client.disk(name).await?))?;
    if !disk.served {
        let problem = disk.problem.unwrap_or_default();
        return Err(Failure {
            code: ErrorCode::Unavailable,
            message: format!("disk {name} is not served: {problem}"),
            hint: disk.hint.unwrap_or(format!("see `sterna disk show {name}`")),
        }
        .into());
    }
    output.answer(&disk.uris, |uris| uris.join("\n"))
}

/// A path that is there from here is made whole for the daemon; anything else
/// is left to it as a name in the datastore's directory. The command does not ask the file
/// system, which may hang, about an absolute path.
fn found(file: String) -> String {
    let path = Path::new(&file);
    if !is_path(&file) || path.is_absolute() || !path.exists() {
        return file;
    }
    match std::path::absolute(path) {
        Ok(whole) => whole.to_str().map_or(file, Into::into),
        Err(_) => file,
    }
}

fn made(how: &str, disk: &Disk) -> String {
    let mut text = format!(
        "Disk {} ({}, {}) {how} on {}.\n",
        disk.name,
        bytes(disk.size),
        provision(disk.provision),
        disk.datastore
    );
    for uri in &disk.uris {
        text.push_str(&format!("  {uri}\n"));
    }
    text
}

/// What was imported.
fn imported(disk: &Disk) -> String {
    let thick = if disk.provision == Provision::Thin { "" } else { THICK };
    format!("{}{thick}{YOURS}", made("imported", disk))
}

/// What was created, and why it is where it is.
fn created(one: &CreatedDisk) -> String {
    let mut text = made("created", &one.disk);
    let Some(chosen) = &one.chosen else { return text };
    let mut say = |name: &str, reason: &str| {
        let line = format!("{name}: {reason}");
        for (at, line) in wrap(&line, WIDTH - 4).iter().enumerate() {
            let indent = if at == 0 { "  " } else { "    " };
            text.push_str(&format!("{indent}{line}\n"));
        }
    };
    say(&format!("chosen {}", one.disk.datastore), &chosen.reason);
    chosen.others.iter().for_each(|other| say(&other.datastore, &other.reason));
    text
}

fn removed(gone: &RemovedDisk) -> String {
    let Disk { name, image, .. } = &gone.disk;
    let became = match (gone.image_kept, gone.image_missing) {
        (true, _) => "image kept",
        (_, true) => "there was no image any more",
        _ => "image removed",
    };
    format!("Disk {name} is removed.\n  {became}: {image}")
}

fn state(disk: &Disk) -> Cell {
    match (disk.served, disk.migration) {
        (false, _) => Cell::styled("not served", Style::Bad),
        (true, Some(id)) => Cell::styled(format!("migrating ({id})"), Style::Warn),
        (true, None) => Cell::styled("served", Style::Good),
    }
}

fn list(all: &[Disk], output: Output) -> String {
    if all.is_empty() {
        return "No disks yet. Create one: sterna disk create NAME --size 10G".into();
    }
    let mut table = Table::new(&[
        ("NAME", Column::Flexible),
        ("SIZE", Column::Right),
        ("USED", Column::Right),
        ("DATASTORE", Column::Flexible),
        ("STATE", Column::Left),
        ("CLIENTS", Column::Right),
        ("IO/S", Column::Right),
        ("P99", Column::Right),
    ]);
    for disk in all {
        let recent = disk.activity.as_ref().and_then(|activity| activity.recent);
        let clients = disk.activity.as_ref().map(|it| it.connections.to_string());
        table.row(vec![
            disk.name.as_str().into(),
            bytes(disk.size).into(),
            disk.allocated.map_or("-".into(), bytes).into(),
            disk.datastore.as_str().into(),
            state(disk),
            clients.unwrap_or("-".into()).into(),
            recent.map_or("-".into(), |recent| iops(recent.iops)).into(),
            response(recent.and_then(|recent| recent.p99_us)).into(),
        ]);
    }
    output.table(&table)
}

fn show(disk: &Disk, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("name", disk.name.as_str());
    pairs.add("id", disk.id.as_str());
    pairs.add("size", format!("{} ({} bytes)", bytes(disk.size), disk.size));
    pairs.add("datastore", disk.datastore.as_str());
    let imported = if disk.imported { " (imported)" } else { "" };
    pairs.add("image", format!("{}{imported}", disk.image));
    pairs.add("provision", provision(disk.provision));
    pairs.maybe("allocated", disk.allocated.map(bytes));
    pairs.add("generation", disk.generation.to_string());
    pairs.add("class", class_of(disk));
    pairs.maybe("held", disk.binds.as_ref().map(binding));
    pairs.add("state", state(disk));
    pairs.maybe("problem", disk.problem.as_deref());
    pairs.maybe("what to do", disk.hint.as_deref());
    for uri in &disk.uris {
        pairs.add("uri", uri.as_str());
    }
    pairs.maybe("vhost-user", disk.vhost_user.as_deref());
    if let Some(activity) = &disk.activity {
        add_activity(&mut pairs, activity);
    }
    output.pairs(&pairs)
}

/// The class of a disk, or how it gets one.
fn class_of(disk: &Disk) -> String {
    disk.class.clone().unwrap_or_else(|| {
        format!(
            "none: nothing is promised or limited\n`sterna class add CLASS {}` adds the disk \
             to a class",
            disk.name
        )
    })
}

fn add_activity(pairs: &mut Pairs, activity: &DiskActivity) {
    let clients = count(activity.connections, "client");
    let flying = count(activity.in_flight, "request");
    pairs.add("in use by", format!("{clients}, {flying} in flight"));
    let moved = |requests, sum| format!("{}, {}", count(requests, "request"), bytes(sum));
    pairs.add("read", moved(activity.reads, activity.read_bytes));
    pairs.add("written", moved(activity.writes, activity.written_bytes));
    if let Some(recent) = &activity.recent {
        let (service, p99) = (rate(recent.bytes_per_second), response(recent.p99_us));
        pairs.add("now", format!("{} IO/s, {service}, p99 {p99}", iops(recent.iops)));
    }
}
