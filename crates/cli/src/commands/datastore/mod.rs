//! `sterna datastore`: places that hold disk images.

mod images;
mod probe;

use std::path::{Component, Path};

use clap::Subcommand;
use sterna_api::{AddDatastore, Datastore, DatastoreKind};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, count};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Pairs, Style, Table};
use sterna_core::Shape;

use self::probe::ProbeArgs;
use crate::commands::disk::recovery;
use crate::common::NameArg;

#[derive(Debug, Subcommand)]
pub(crate) enum DatastoreCommand {
    /// Add a datastore: a directory, a block device, an NBD export or an emulated
    /// array
    Add {
        /// The datastore's name
        name: String,
        /// A directory, a block device, nbd://HOST[:PORT]/EXPORT,
        /// nbd+unix:///EXPORT?socket=PATH or array://MODEL[?KEY=VALUE&…]
        location: String,
        /// Emulate a slower device: mbps=300,iops=5000,latency=1ms
        #[arg(long, value_parser = parse_shape)]
        shape: Option<String>,
    },
    /// List the datastores
    #[command(visible_alias = "ls")]
    List,
    /// Show one datastore
    Show(NameArg),
    /// List the images in a datastore's directory, and what is known of each
    Images(NameArg),
    /// Remove an old copy that a migration has left, and no other file
    RemoveImage {
        /// The datastore
        name: String,
        /// The image's file name in the datastore
        image: String,
    },
    /// Load a datastore's device to measure its limits
    Probe(ProbeArgs),
    /// Keep new disks and moves away from a datastore
    Maintenance {
        #[command(flatten)]
        name: NameArg,
        /// End the maintenance
        #[arg(long)]
        off: bool,
    },
    /// Remove a datastore without disks from Sterna; its data stays
    #[command(visible_alias = "rm")]
    Remove(NameArg),
}

/// Checks the text here, so that a wrong one is a usage error.
fn parse_shape(text: &str) -> Result<String, String> {
    text.parse::<Shape>().map(|_| text.into()).map_err(|error| error.to_string())
}

/// Carries out a command.
pub(crate) fn run(
    command: DatastoreCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    match command {
        DatastoreCommand::Add { name, location, shape } => {
            let request = AddDatastore { name, location: absolute(location), shape };
            let added =
                link.ask(async |client| Ok(client.add_datastore(&request).await?))?;
            output.answer(&added, |added| {
                let (title, shown) = (title(added), show(added, output));
                let found = recovery::invitation(&added.name, link);
                format!("{title} added.\n{shown}{found}")
            })
        }
        DatastoreCommand::List => {
            let all = link.ask(async |client| Ok(client.datastores().await?))?;
            output.answer(&all, |all| list(all, output))
        }
        DatastoreCommand::Show(NameArg { name }) => {
            let one = link.ask(async |client| Ok(client.datastore(&name).await?))?;
            output.answer(&one, |one| show(one, output))
        }
        DatastoreCommand::Images(NameArg { name }) => {
            let all =
                link.ask(async |client| Ok(client.datastore_images(&name).await?))?;
            output.answer(&all, |all| images::list(all, output))
        }
        DatastoreCommand::RemoveImage { name, image } => {
            let gone =
                link.ask(async |client| Ok(client.remove_image(&name, &image).await?))?;
            output.answer(&gone, images::removed)
        }
        DatastoreCommand::Probe(args) => probe::run(&args, link, output),
        DatastoreCommand::Maintenance { name: NameArg { name }, off } => {
            let one =
                link.ask(async |client| Ok(client.set_maintenance(&name, !off).await?))?;
            output.answer(&one, maintained)
        }
        DatastoreCommand::Remove(NameArg { name }) => {
            let gone =
                link.ask(async |client| Ok(client.remove_datastore(&name).await?))?;
            output.answer(&gone, |gone| {
                format!("{} is removed.\n  data stays at: {}", title(gone), gone.location)
            })
        }
    }
}

/// Whether it is a path, and not the address of a server: QEMU's spelling of one has no
/// `://`.
pub(crate) fn is_path(text: &str) -> bool {
    let qemu = text.starts_with("unix:") || text.starts_with("nbd:");
    text.starts_with('/') || !(qemu || text.contains("://"))
}

/// The daemon has another working directory: paths must be whole. Links stay
/// what they are (/dev/disk/by-id), except where `..` has to be resolved: only then is the
/// file system asked, which may hang.
fn absolute(location: String) -> String {
    if !is_path(&location) {
        return location;
    }
    let path = Path::new(&location);
    let upwards = path.components().any(|part| part == Component::ParentDir);
    let resolved = if upwards { path.canonicalize().ok() } else { None };
    let whole = resolved.map_or_else(|| std::path::absolute(path), Ok);
    match whole {
        Ok(path) => path.to_str().map_or(location, Into::into),
        Err(_) => location,
    }
}

fn maintained(one: &Datastore) -> String {
    let title = title(one);
    if !one.maintenance {
        return format!("{title} takes disks again.");
    }
    let plan = format!("; to move them away:\n  sterna plan evacuate {}", one.name);
    let holds = match (one.disks, one.vm_disks.is_empty()) {
        (0, true) => "The datastore holds no disks.".into(),
        (0, false) => format!("The datastore holds {}.", held(one)),
        _ => format!("The datastore holds {}{plan}", held(one)),
    };
    format!("{title} is in maintenance: it takes no new disks or moves.\n{holds}")
}

/// What a datastore holds: disks of VMs are no disks of Sterna, and their files are there all
/// the same.
fn held(one: &Datastore) -> String {
    let of_vms = &one.vm_disks;
    if of_vms.is_empty() {
        return count(one.disks, "disk");
    }
    let (ours, theirs) = (count(one.disks, "disk"), count(of_vms.len() as u64, "disk"));
    format!("{ours} of Sterna, {theirs} of VMs: {}", of_vms.join(", "))
}

fn title(datastore: &Datastore) -> String {
    format!("Datastore {}", datastore.name)
}

fn kind(kind: DatastoreKind) -> &'static str {
    match kind {
        DatastoreKind::Directory => "directory",
        DatastoreKind::Device => "device",
        DatastoreKind::Nbd => "nbd",
        DatastoreKind::Array => "array",
    }
}

fn state(datastore: &Datastore) -> Cell {
    match (&datastore.problem, datastore.maintenance) {
        (Some(_), _) => Cell::styled("offline", Style::Bad),
        (None, true) => Cell::styled("maintenance", Style::Warn),
        (None, false) => Cell::styled("online", Style::Good),
    }
}

fn size(size: Option<u64>) -> String {
    size.map_or("-".into(), bytes)
}

fn list(all: &[Datastore], output: Output) -> String {
    if all.is_empty() {
        return "No datastores yet. Add one: sterna datastore add NAME LOCATION".into();
    }
    let mut table = Table::new(&[
        ("NAME", Column::Flexible),
        ("KIND", Column::Left),
        ("CAPACITY", Column::Right),
        ("FREE", Column::Right),
        ("DISKS", Column::Right),
        ("STATE", Column::Left),
        ("LOCATION", Column::Flexible),
    ]);
    for one in all {
        table.row(vec![
            one.name.as_str().into(),
            kind(one.kind).into(),
            size(one.capacity).into(),
            size(one.free).into(),
            (one.disks + one.vm_disks.len() as u64).to_string().into(),
            state(one),
            one.location.as_str().into(),
        ]);
    }
    output.table(&table)
}

fn show(one: &Datastore, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("name", one.name.as_str());
    pairs.add("kind", kind(one.kind));
    pairs.add("location", one.location.as_str());
    pairs.maybe("shape", one.shape.as_deref());
    pairs.maybe("is on", one.backing.as_deref());
    pairs.add("capacity", size(one.capacity));
    pairs.add("free", size(one.free));
    pairs.add("holds", held(one));
    pairs.add("state", state(one));
    if one.maintenance {
        pairs.add("maintenance", "no new disks or moves");
    }
    pairs.maybe("problem", one.problem.as_deref());
    output.pairs(&pairs)
}
