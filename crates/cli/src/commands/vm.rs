//! `sterna vm`: VMs that exist already, and whose disks QEMU serves.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use sterna_api::{
    AddVm, AdoptVmDisk, Client, Migration, MoveVmDisk, ReleaseVmDisk, Vm, VmDisk,
    VmFigures, VmState,
};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, iops, rate, response};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Pairs, Style, Table};
use sterna_core::Bytes;

use crate::commands::migrate::detached;
use crate::commands::migration::watch;
use crate::common::NameArg;
use crate::common::guard::GuardArgs;
use crate::common::rate::parse_rate;

#[derive(Debug, Subcommand)]
pub(crate) enum VmCommand {
    /// Add a running VM, by its QMP socket or through libvirt
    #[command(group(ArgGroup::new("reach").required(true).args(["qmp", "libvirt"])))]
    Add {
        /// The VM's name in Sterna
        name: String,
        /// A QMP socket of QEMU that no other program uses
        /// (-qmp unix:PATH,server=on,wait=off)
        #[arg(long, value_name = "PATH")]
        qmp: Option<PathBuf>,
        /// libvirt's URI (qemu:///system)
        #[arg(long, value_name = "URI")]
        libvirt: Option<String>,
        /// The VM's name in libvirt [default: as in Sterna]
        #[arg(conflicts_with = "qmp")]
        domain: Option<String>,
    },
    /// List the VMs
    #[command(visible_alias = "ls")]
    List,
    /// Show one VM and its disks
    Show(NameArg),
    /// Remove a VM from Sterna; Sterna does nothing to the VM
    #[command(visible_alias = "rm")]
    Remove(NameArg),
    /// Move a disk that QEMU serves to another datastore while the disk is in use
    ///
    /// QEMU's mirror copies the disk under Sterna's guard. Sterna keeps the old image.
    Move {
        #[command(flatten)]
        which: WhichArgs,
        /// The destination: a datastore of kind directory
        #[arg(long, value_name = "DATASTORE")]
        to: String,
        #[command(flatten)]
        how: HowArgs,
    },
    /// Turn a disk that QEMU serves into a Sterna disk while the disk is in use
    ///
    /// QEMU's mirror copies to a new disk that Sterna serves, and the VM continues with
    /// the new disk, without a reboot. Sterna keeps the old image.
    Adopt {
        #[command(flatten)]
        which: WhichArgs,
        /// The datastore for the Sterna disk
        #[arg(long, value_name = "DATASTORE")]
        on: String,
        /// The name of the Sterna disk [default: NAME-DEVICE]
        #[arg(long = "name", value_name = "DISK")]
        disk: Option<String>,
        #[command(flatten)]
        how: HowArgs,
    },
    /// Turn a Sterna disk into a file that QEMU serves while the disk is in use
    ///
    /// The opposite of `adopt`. Sterna keeps its disk, and the VM no longer uses it.
    Release {
        #[command(flatten)]
        which: WhichArgs,
        /// The new file: NAME.raw (or .img), or NAME.qcow2
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        #[command(flatten)]
        how: HowArgs,
    },
}

/// A disk of a VM.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// The VM
    name: String,
    /// The disk's device name in `sterna vm show` (vda)
    device: String,
}

/// How QEMU is to copy it.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Limit copying to this many bytes per second (200M)
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    rate: Option<Bytes>,
    #[command(flatten)]
    guard: GuardArgs,
    /// Return as soon as the copy has begun
    #[arg(long)]
    detach: bool,
}

/// Carries out a command.
pub(crate) fn run(command: VmCommand, link: &Link, output: Output) -> anyhow::Result<()> {
    match command {
        VmCommand::Add { name, qmp, libvirt, domain } => {
            let request = AddVm { name, qmp: qmp.map(absolute), libvirt, domain };
            let added = link.ask(async |client| Ok(client.add_vm(&request).await?))?;
            output.answer(&added, |added| {
                format!("VM {} added.\n{}", added.name, show(added, output))
            })
        }
        VmCommand::List => {
            let all = link.ask(async |client| Ok(client.vms().await?))?;
            output.answer(&all, |all| list(all, output))
        }
        VmCommand::Show(NameArg { name }) => {
            let one = link.ask(async |client| Ok(client.vm(&name).await?))?;
            output.answer(&one, |one| show(one, output))
        }
        VmCommand::Remove(NameArg { name }) => {
            let gone = link.ask(async |client| Ok(client.remove_vm(&name).await?))?;
            output.answer(&gone, |gone| {
                let name = &gone.name;
                format!("VM {name} is removed from Sterna. Sterna did nothing to the VM.")
            })
        }
        VmCommand::Move { which: WhichArgs { name, device }, to, how } => {
            let (rate, guard) = (how.rate(), how.guard.request());
            let request = MoveVmDisk { device, to, rate, guard };
            link.ask(async |client| {
                let started = client.move_vm_disk(&name, &request).await?;
                how.see(client, started, output).await
            })
        }
        VmCommand::Adopt { which: WhichArgs { name: vm, device }, on, disk, how } => {
            let (rate, guard) = (how.rate(), how.guard.request());
            let request = AdoptVmDisk { device, on, name: disk, rate, guard };
            link.ask(async |client| {
                let started = client.adopt_vm_disk(&vm, &request).await?;
                how.see(client, started, output).await
            })
        }
        VmCommand::Release { which: WhichArgs { name, device }, to, how } => {
            let (rate, guard) = (how.rate(), how.guard.request());
            let request = ReleaseVmDisk { device, to: absolute(to), rate, guard };
            link.ask(async |client| {
                let started = client.release_vm_disk(&name, &request).await?;
                how.see(client, started, output).await
            })
        }
    }
}

impl HowArgs {
    fn rate(&self) -> Option<u64> {
        self.rate.map(|rate| rate.0)
    }

    /// Follows what was started, unless that is not wanted.
    async fn see(
        &self,
        client: &Client,
        started: Migration,
        output: Output,
    ) -> anyhow::Result<()> {
        match self.detach {
            true => output.answer(&started, detached),
            false => watch::to_the_end(client, started, output, watch::Show::End).await,
        }
    }
}

/// The daemon has another working directory: paths must be whole.
fn absolute(path: PathBuf) -> String {
    let whole = std::path::absolute(&path).unwrap_or(path);
    whole.to_string_lossy().into_owned()
}

fn state(vm: &Vm) -> Cell {
    let style = match vm.state {
        VmState::Running => Style::Good,
        VmState::Paused => Style::Warn,
        VmState::Off => Style::Plain,
        VmState::Unreachable => Style::Bad,
    };
    Cell::styled(vm.state.to_string(), style)
}

/// How it is reached, in a line.
fn reach(vm: &Vm) -> String {
    match (&vm.qmp, &vm.libvirt, &vm.domain) {
        (Some(socket), _, _) => format!("qmp {socket}"),
        (_, Some(uri), Some(domain)) => format!("libvirt {uri} {domain}"),
        _ => "-".into(),
    }
}

/// The datastore that a disk is on, or where else it is.
fn place(disk: &VmDisk) -> String {
    disk.datastore.clone().unwrap_or_else(|| image(disk))
}

/// A disk's image, for people: QEMU's words for one can fill a page.
fn image(disk: &VmDisk) -> String {
    sterna_qemu::file_of(&disk.image).unwrap_or_else(|| disk.image.clone())
}

fn doing(now: Option<VmFigures>) -> (String, String) {
    match now {
        Some(now) => (iops(now.iops), response(now.latency_us)),
        None => ("-".into(), "-".into()),
    }
}

/// The same in words. A disk without requests has no response times.
fn now_words(now: VmFigures) -> String {
    let (ios, latency) = doing(Some(now));
    let speed = rate(now.bytes_per_second);
    match now.latency_us {
        Some(_) => format!("{ios} IO/s, {speed}, {latency} on average"),
        None => "no requests".into(),
    }
}

fn list(all: &[Vm], output: Output) -> String {
    if all.is_empty() {
        return "No VMs yet. Add one: sterna vm add NAME --qmp PATH, or --libvirt URI"
            .into();
    }
    let mut table = Table::new(&[
        ("NAME", Column::Flexible),
        ("STATE", Column::Left),
        ("DISK", Column::Flexible),
        ("SIZE", Column::Right),
        ("FORMAT", Column::Left),
        ("IO/s", Column::Right),
        ("LATENCY", Column::Right),
        ("ON", Column::Flexible),
    ]);
    for vm in all {
        if vm.disks.is_empty() {
            let mut row: Vec<Cell> = vec![vm.name.as_str().into(), state(vm)];
            row.extend((0..6).map(|_| Cell::from("-")));
            table.row(row);
        }
        for (at, disk) in vm.disks.iter().enumerate() {
            let (ios, latency) = doing(disk.now);
            let first = at == 0;
            table.row(vec![
                if first { vm.name.as_str().into() } else { Cell::default() },
                if first { state(vm) } else { Cell::default() },
                disk.device.as_str().into(),
                bytes(disk.size).into(),
                disk.format.as_str().into(),
                ios.into(),
                latency.into(),
                place(disk).into(),
            ]);
        }
    }
    output.table(&table)
}

fn show(vm: &Vm, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("name", vm.name.as_str());
    pairs.add("reached at", reach(vm));
    pairs.add("state", state(vm));
    pairs.maybe("", vm.detail.as_deref().filter(|detail| !is_said(vm.state, detail)));
    pairs.maybe("QEMU", vm.qemu.as_deref());
    for disk in &vm.disks {
        let taken = disk.allocated.map(|taken| format!(", takes {}", bytes(taken)));
        let only = if disk.read_only { ", read-only" } else { "" };
        let taken = taken.unwrap_or_default();
        let what = format!("{} ({}{taken}{only})", bytes(disk.size), disk.format);
        pairs.add(&format!("disk {}", disk.device), what);
        pairs.add("  image", image(disk));
        let served = disk.disk.as_deref().map(|disk| format!("Sterna, as disk {disk}"));
        pairs.maybe("  served by", served);
        pairs.maybe("  datastore", disk.datastore.as_deref());
        if let Some(now) = disk.now {
            pairs.add("  now", now_words(now));
        }
        let moved = disk.migration.map(|id| format!("sterna migration watch {id}"));
        pairs.maybe("  moves", moved);
    }
    output.pairs(&pairs)
}

/// Whether the state says what a detail does.
fn is_said(state: VmState, detail: &str) -> bool {
    // What libvirt calls a VM that is off.
    detail == state.to_string() || state == VmState::Off && detail == "shut off"
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    fn vm(name: &str) -> Vm {
        let disk = VmDisk {
            device: "vda".into(),
            image: "/var/lib/libvirt/images/a-machine-with-a-long-name.qcow2".into(),
            format: "qcow2".into(),
            disk: None,
            size: 100 << 30,
            allocated: Some(31 << 30),
            datastore: None,
            read_only: false,
            unmovable: None,
            migration: Some(7),
            now: Some(VmFigures {
                window_s: 0.25,
                iops: 12_345.0,
                bytes_per_second: 4e8,
                latency_us: Some(850.0),
            }),
        };
        Vm {
            name: name.into(),
            qmp: Some("/run/vm.qmp".into()),
            libvirt: None,
            domain: None,
            state: VmState::Running,
            detail: Some("running".into()),
            qemu: Some("7.2.22".into()),
            disks: vec![disk.clone(), VmDisk { device: "vdb".into(), ..disk }],
            added: 0,
        }
    }

    #[test]
    fn a_list_fits_and_names_a_machine_once() {
        let off = Vm { state: VmState::Off, disks: Vec::new(), ..vm("off") };
        let text = list(&[vm("database"), off], Output::new(false));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches("database").count(), 1, "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn a_disk_without_requests_has_no_response_time() {
        let mut quiet = vm("a");
        let none = VmFigures {
            window_s: 0.25,
            iops: 0.0,
            bytes_per_second: 0.0,
            latency_us: None,
        };
        quiet.disks[0].now = Some(none);
        quiet.disks.truncate(1);
        let text = show(&quiet, Output::new(false));
        assert!(text.contains("no requests") && !text.contains("on average"), "{text}");
    }

    #[test]
    fn what_is_said_twice_is_said_once() {
        let text = show(&vm("a"), Output::new(false));
        assert_eq!(text.matches("running").count(), 1, "{text}");
        let off = |detail: &str| {
            let detail = Some(detail.into());
            let off = Vm { state: VmState::Off, detail, ..vm("a") };
            show(&off, Output::new(false))
        };
        assert!(!off("shut off").contains("shut off"), "{}", off("shut off"));
        assert!(off("crashed").contains("crashed"), "{}", off("crashed"));
        assert!(text.contains("12.3k IO/s, 381 MiB/s, 0.85 ms"), "{text}");
    }
}
