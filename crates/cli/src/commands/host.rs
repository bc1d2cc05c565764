//! `sterna host`: where VMs run.

use clap::{ArgGroup, Subcommand};
use sterna_api::{AddHost, Amounts, Host, HostProgram, PlaceVm, Placement};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, count, moment_ago};
use sterna_console::output::Output;
use sterna_console::table::{Column, Pairs, Table};
use sterna_core::Bytes;

use crate::common::NameArg;
use crate::common::guard::percent;

#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Add a host with its processors and memory
    Add {
        /// The host's name
        name: String,
        /// The number of processors for VMs
        #[arg(long, value_name = "NUMBER", value_parser = parse_processors)]
        cpu: f64,
        /// The memory for VMs (64G)
        #[arg(long, value_name = "BYTES")]
        memory: Bytes,
    },
    /// List the hosts
    #[command(visible_alias = "ls")]
    List,
    /// Show one host
    Show(NameArg),
    /// Remove a host without VMs
    #[command(visible_alias = "rm")]
    Remove(NameArg),
    /// Set the program that starts VMs on a host, for `drs apply`
    #[command(override_usage = "sterna host program NAME PATH\n       sterna host program NAME --none",
        group(ArgGroup::new("what").required(true).args(["path", "none"])))]
    Program {
        /// The host
        name: String,
        /// The program; Sterna runs PATH VM HOST SOCKET
        path: Option<String>,
        /// Remove the program
        #[arg(long)]
        none: bool,
    },
    /// Record that a VM runs on a host; Sterna moves nothing
    Assign {
        /// The host
        host: String,
        /// The VM
        vm: String,
    },
    /// Remove the record of a VM's host
    Unassign {
        /// The VM
        vm: String,
    },
}

/// A number of processors, or of parts of one.
pub(crate) fn parse_processors(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "give a number".to_owned())?;
    let good = number.is_finite() && (0.0..=1e6).contains(&number);
    good.then_some(number).ok_or_else(|| "give a number from 0 to 1000000".into())
}

/// Carries out a command.
pub(crate) fn run(
    command: HostCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    link.ask(async move |client| match command {
        HostCommand::Add { name, cpu, memory } => {
            let request = AddHost { name, cpu, memory: memory.0 };
            let added = client.add_host(&request).await?;
            output.answer(&added, |added| {
                format!("Host {} added.\n{}", added.name, show(added, output))
            })
        }
        HostCommand::List => {
            let all = client.hosts().await?;
            output.answer(&all, |all| list(all, output))
        }
        HostCommand::Show(NameArg { name }) => {
            let one = client.host(&name).await?;
            output.answer(&one, |one| show(one, output))
        }
        HostCommand::Remove(NameArg { name }) => {
            let gone = client.remove_host(&name).await?;
            output.answer(&gone, |gone| format!("Host {} is removed.", gone.name))
        }
        HostCommand::Program { name, path, none: _ } => {
            let host =
                client.set_host_program(&name, &HostProgram { program: path }).await?;
            output.answer(&host, |host| show(host, output))
        }
        HostCommand::Assign { host, vm } => {
            let placed = client.place_vm(&vm, &PlaceVm { host: Some(host) }).await?;
            output.answer(&placed, placement)
        }
        HostCommand::Unassign { vm } => {
            let placed = client.place_vm(&vm, &PlaceVm { host: None }).await?;
            output.answer(&placed, placement)
        }
    })
}

fn placement(placed: &Placement) -> String {
    let vm = &placed.vm;
    match (&placed.host, placed.recommended) {
        (None, _) => format!("VM {vm} is on no known host now."),
        (Some(host), true) => format!("VM {vm} is on {host}, as recommended."),
        (Some(host), false) => format!("VM {vm} is on {host}."),
    }
}

/// A number of processors: `4`, `1.5`.
pub(crate) fn processors(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A load: processors and memory.
pub(crate) fn load(load: Amounts) -> [String; 2] {
    [percent(load.cpu), percent(load.memory)]
}

/// Hosts, with their loads.
pub(crate) fn list(all: &[Host], output: Output) -> String {
    if all.is_empty() {
        return "No hosts yet. Add one: sterna host add NAME --cpu 16 --memory 64G"
            .into();
    }
    let mut table = Table::new(&[
        ("HOST", Column::Flexible),
        ("CPU", Column::Right),
        ("MEMORY", Column::Right),
        ("VMS", Column::Right),
        ("CPU LOAD", Column::Right),
        ("MEMORY LOAD", Column::Right),
    ]);
    for one in all {
        let [cpu, memory] = load(one.load);
        table.row(vec![
            one.name.as_str().into(),
            processors(one.cpu).into(),
            bytes(one.memory).into(),
            one.vms.len().to_string().into(),
            cpu.into(),
            memory.into(),
        ]);
    }
    output.table(&table)
}

fn show(one: &Host, output: Output) -> String {
    let [cpu, memory] = load(one.load);
    let mut pairs = Pairs::new();
    pairs.add("host", one.name.as_str());
    pairs.add("processors", format!("{}, load {cpu}", processors(one.cpu)));
    pairs.add("memory", format!("{}, load {memory}", bytes(one.memory)));
    match one.vms.len() {
        0 => pairs.add("VMs", "none"),
        some => pairs.add(&count(some as u64, "VM"), one.vms.join(", ")),
    }
    pairs.maybe("program", one.program.as_deref());
    pairs.add("added", moment_ago(one.added));
    output.pairs(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    #[test]
    fn a_list_fits_and_tells_loads() {
        let host = Host {
            name: "a-host-with-quite-a-long-name-that-does-not-fit-into-the-table".into(),
            cpu: 16.0,
            memory: 64 << 30,
            load: Amounts { cpu: 1.25, memory: 0.5 },
            vms: vec!["db".into(), "web".into()],
            program: None,
            added: 0,
        };
        let text = list(std::slice::from_ref(&host), Output::new(false));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("125%") && text.contains("64.0 GiB"), "{text}");
        assert!(show(&host, Output::new(false)).contains("db, web"));
        assert_eq!([16.0, 1.5, 0.25].map(processors), ["16", "1.5", "0.25"]);
    }
}
