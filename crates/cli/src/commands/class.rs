//! `sterna class`: sets of disks that service levels speak of.

use clap::{ArgGroup, Subcommand};
use sterna_api::{ChangeClass, Class, CreateClass, Rate};
use sterna_console::connect::Link;
use sterna_console::format::{count, moment_ago};
use sterna_console::output::Output;
use sterna_console::table::{Column, Pairs, Table};
use sterna_console::terms::{
    attained, attainment, depth, held, limit, policies, rate, reservation,
};
use sterna_core::qos;

use crate::common::NameArg;

#[derive(Debug, Subcommand)]
pub(crate) enum ClassCommand {
    /// Create a class
    Create {
        /// Its name
        name: String,
        /// The disks of the class; a disk can be in one class only
        #[arg(value_name = "DISK")]
        disks: Vec<String>,
        /// Shares: they divide what is left after the reservations [default: 1000]
        #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
        shares: Option<u32>,
        /// Reservation: served before other classes exceed theirs (500iops, 20M)
        #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
        reservation: Option<qos::Rate>,
    },
    /// Add disks to a class
    Add {
        /// Its name
        name: String,
        /// The disks
        #[arg(required = true, value_name = "DISK")]
        disks: Vec<String>,
    },
    /// Remove disks from a class
    RemoveDisk {
        /// Its name
        name: String,
        /// The disks
        #[arg(required = true, value_name = "DISK")]
        disks: Vec<String>,
    },
    /// Change a class's shares, its reservation, or both
    #[command(override_usage = "sterna class set <NAME> [--shares <NUMBER>] \
                                [--reservation <RATE>]",
        group(ArgGroup::new("what").required(true).multiple(true)
        .args(["shares", "reservation"])))]
    Set {
        /// Its name
        name: String,
        /// Shares: they divide what is left after the reservations
        #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
        shares: Option<u32>,
        /// Reservation: served before other classes exceed theirs (500iops, 20M), or
        /// `none`
        #[arg(long, value_name = "RATE", value_parser = parse_reservation,
            allow_hyphen_values = true)]
        reservation: Option<Reservation>,
    },
    /// List the classes
    #[command(visible_alias = "ls")]
    List,
    /// Show one class
    Show(NameArg),
    /// Delete a class; its disks are in no class then
    #[command(visible_alias = "rm")]
    Delete {
        /// Its name
        name: String,
        /// Also delete the policies of the class
        #[arg(long)]
        with_policies: bool,
    },
}

/// A reservation, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reservation(Option<qos::Rate>);

fn parse_reservation(text: &str) -> Result<Reservation, qos::ParseRateError> {
    match text {
        "none" => Ok(Reservation(None)),
        _ => text.parse().map(|rate| Reservation(Some(rate))),
    }
}

/// Carries out a command.
pub(crate) fn run(
    command: ClassCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    link.ask(async move |client| match command {
        ClassCommand::Create { name, disks, shares, reservation } => {
            let reservation = reservation.map(Rate::from);
            let request = CreateClass { name, disks, shares, reservation };
            let made = client.create_class(&request).await?;
            output.answer(&made, |made| {
                format!("Class {} created.\n{}", made.name, show(made, output))
            })
        }
        ClassCommand::Add { name, disks } => {
            let change = ChangeClass { add: disks, ..ChangeClass::default() };
            let changed = client.change_class(&name, &change).await?;
            output.answer(&changed, members)
        }
        ClassCommand::RemoveDisk { name, disks } => {
            let change = ChangeClass { remove: disks, ..ChangeClass::default() };
            let changed = client.change_class(&name, &change).await?;
            output.answer(&changed, members)
        }
        ClassCommand::Set { name, shares, reservation } => {
            let reservation = reservation.map(|Reservation(rate)| rate.map(Rate::from));
            let change = ChangeClass { shares, reservation, ..ChangeClass::default() };
            let changed = client.change_class(&name, &change).await?;
            output.answer(&changed, |changed| {
                format!("Class {} changed.\n{}", changed.name, show(changed, output))
            })
        }
        ClassCommand::List => {
            let all = client.classes().await?;
            output.answer(&all, |all| list(all, output))
        }
        ClassCommand::Show(NameArg { name }) => {
            let one = client.class(&name).await?;
            output.answer(&one, |one| show(one, output))
        }
        ClassCommand::Delete { name, with_policies } => {
            let gone = client.delete_class(&name, with_policies).await?;
            output.answer(&gone, deleted)
        }
    })
}

fn disks(class: &Class) -> String {
    match (class.built_in, class.disks.is_empty()) {
        (true, _) => "the copies of all migrations".into(),
        (false, true) => "none".into(),
        (false, false) => class.disks.join(", "),
    }
}

fn members(class: &Class) -> String {
    format!("Class {} now has these disks: {}.", class.name, disks(class))
}

fn deleted(class: &Class) -> String {
    let policies = policies(class.policies.len() as u64);
    let disks = count(class.disks.len() as u64, "disk");
    format!("Class {} is deleted, with {policies}; {disks} left it.", class.name)
}

fn list(all: &[Class], output: Output) -> String {
    let mut table = Table::new(&[
        ("CLASS", Column::Flexible),
        ("DISKS", Column::Right),
        ("SHARES", Column::Right),
        ("RESERVED", Column::Right),
        ("ATTAINED", Column::Left),
        ("LIMIT", Column::Sentence),
        ("DEPTH", Column::Right),
        ("POLICIES", Column::Right),
    ]);
    for one in all {
        let disks = match one.built_in {
            true => "copies".into(),
            false => one.disks.len().to_string(),
        };
        table.row(vec![
            one.name.as_str().into(),
            disks.into(),
            one.in_force.shares.to_string().into(),
            reservation(one.in_force.reservation).into(),
            attainment(one).into(),
            limit(&one.in_force).into(),
            depth(&one.in_force).into(),
            one.policies.len().to_string().into(),
        ]);
    }
    output.table(&table)
}

fn show(one: &Class, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("class", one.name.as_str());
    pairs.add("disks", disks(one));
    pairs.add("shares", one.shares.to_string());
    pairs.add("reserved", reserved(one));
    attained(one, &mut pairs);
    pairs.add("limit", limit(&one.in_force));
    pairs.add("depth", depth(&one.in_force));
    if let Some(by) = &one.held {
        pairs.add("held", held(by));
    }
    let policies: Vec<_> = one.policies.iter().map(ToString::to_string).collect();
    let policies = if policies.is_empty() { "none".into() } else { policies.join(", ") };
    pairs.add("policies", policies);
    pairs.add("created", moment_ago(one.created));
    for note in &one.notes {
        pairs.add("note", note.as_str());
    }
    output.pairs(&pairs)
}

/// What is in force, and the class's own if that is another.
fn reserved(one: &Class) -> String {
    let now = reservation(one.in_force.reservation);
    match one.reservation {
        own if own == one.in_force.reservation => now,
        Some(own) => format!("{now} (its own: {})", rate(own)),
        None => format!("{now} (by a policy)"),
    }
}
