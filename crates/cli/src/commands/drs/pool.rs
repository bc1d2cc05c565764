//! `sterna drs pool`: what sets of VMs are promised of all hosts together.

use clap::{ArgGroup, Args, Subcommand};
use sterna_api::{AskTerms, ChangePool, CreatePool, Pool, PoolTerms};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, moment_ago};
use sterna_console::output::Output;
use sterna_console::table::{Column, Pairs, Table};
use sterna_console::terms::NOTHING;
use sterna_core::Bytes;

use crate::commands::host::{parse_processors, processors};
use crate::common::NameArg;

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Create a resource pool
    Create {
        /// The pool's name
        name: String,
        /// The parent pool
        #[arg(long, value_name = "POOL")]
        parent: Option<String>,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// Change a pool's reservations, limits and shares
    #[command(override_usage = "sterna drs pool set <NAME> [OPTIONS]",
        group(ArgGroup::new("what").required(true).multiple(true).args([
        "cpu_reservation", "cpu_limit", "cpu_shares", "memory_reservation",
        "memory_limit", "memory_shares", "shares",
    ])))]
    Set {
        /// The pool's name
        name: String,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// List the pools
    #[command(visible_alias = "ls")]
    List,
    /// Show one pool
    Show(NameArg),
    /// Delete a pool; its VMs are in no pool then
    #[command(visible_alias = "rm")]
    Delete(NameArg),
    /// Add a VM to a pool
    Add {
        /// The pool
        name: String,
        /// The VM
        vm: String,
    },
    /// Remove a VM from a pool
    RemoveVm {
        /// The pool
        name: String,
        /// The VM
        vm: String,
    },
}

/// What a pool is promised of all hosts, and held to.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TermsArgs {
    /// Reserved processors: the pool gets them whenever it needs them
    #[arg(long, value_name = "NUMBER", value_parser = parse_processors)]
    cpu_reservation: Option<f64>,
    /// Limit of processors, or `none`
    #[arg(long, value_name = "NUMBER", value_parser = parse_cpu_limit)]
    cpu_limit: Option<Limit>,
    /// Processor shares: they divide what is left after the reservations [default:
    /// 1000]
    #[arg(long, value_name = "NUMBER")]
    cpu_shares: Option<u32>,
    /// Reserved memory: the pool gets it whenever it needs it (8G)
    #[arg(long, value_name = "BYTES")]
    memory_reservation: Option<Bytes>,
    /// Limit of memory, or `none`
    #[arg(long, value_name = "BYTES", value_parser = parse_memory_limit)]
    memory_limit: Option<Limit>,
    /// Memory shares: they divide what is left after the reservations [default: 1000]
    #[arg(long, value_name = "NUMBER")]
    memory_shares: Option<u32>,
    /// Processor shares and memory shares
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["cpu_shares", "memory_shares"])]
    shares: Option<u32>,
}

/// A limit, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(Option<f64>);

fn parse_cpu_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => parse_processors(text).map(|number| Limit(Some(number))),
    }
}

fn parse_memory_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => {
            let parsed = text.parse::<Bytes>().map_err(|error| error.to_string());
            parsed.map(|bytes| Limit(Some(bytes.0 as f64)))
        }
    }
}

impl TermsArgs {
    /// In the API's form: processors and memory.
    fn request(&self) -> (AskTerms, AskTerms) {
        let cpu = AskTerms {
            reservation: self.cpu_reservation,
            limit: self.cpu_limit.map(|Limit(limit)| limit),
            shares: self.cpu_shares.or(self.shares),
        };
        let memory = AskTerms {
            reservation: self.memory_reservation.map(|bytes| bytes.0 as f64),
            limit: self.memory_limit.map(|Limit(limit)| limit),
            shares: self.memory_shares.or(self.shares),
        };
        (cpu, memory)
    }
}

/// Carries out a command.
pub(crate) fn run(
    command: PoolCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    link.ask(async move |client| match command {
        PoolCommand::Create { name, parent, terms } => {
            let (cpu, memory) = terms.request();
            let request = CreatePool { name, parent, cpu, memory };
            let made = client.create_pool(&request).await?;
            output.answer(&made, |made| {
                format!("Pool {} created.\n{}", made.name, show(made, output))
            })
        }
        PoolCommand::Set { name, terms } => {
            let (cpu, memory) = terms.request();
            let change = ChangePool { cpu, memory, ..ChangePool::default() };
            let changed = client.change_pool(&name, &change).await?;
            output.answer(&changed, |changed| {
                format!("Pool {} changed.\n{}", changed.name, show(changed, output))
            })
        }
        PoolCommand::List => {
            let all = client.pools().await?;
            output.answer(&all, |all| list(all, output))
        }
        PoolCommand::Show(NameArg { name }) => {
            let one = client.pool(&name).await?;
            output.answer(&one, |one| show(one, output))
        }
        PoolCommand::Delete(NameArg { name }) => {
            let gone = client.delete_pool(&name).await?;
            output.answer(&gone, |gone| {
                let left = vms(gone);
                format!("Pool {} is deleted. In no pool now: {left}.", gone.name)
            })
        }
        PoolCommand::Add { name, vm } => {
            let change = ChangePool { add: Some(vm), ..ChangePool::default() };
            let changed = client.change_pool(&name, &change).await?;
            output.answer(&changed, members)
        }
        PoolCommand::RemoveVm { name, vm } => {
            let change = ChangePool { remove: Some(vm), ..ChangePool::default() };
            let changed = client.change_pool(&name, &change).await?;
            output.answer(&changed, members)
        }
    })
}

fn vms(pool: &Pool) -> String {
    if pool.vms.is_empty() { "none".into() } else { pool.vms.join(", ") }
}

fn members(pool: &Pool) -> String {
    format!("Pool {} now has these VMs: {}.", pool.name, vms(pool))
}

fn memory(amount: f64) -> String {
    bytes(amount.max(0.0) as u64)
}

/// `4, at most 8, 1000 shares`.
fn terms(terms: &PoolTerms, amount: fn(f64) -> String) -> String {
    let limit = terms.limit.map(|limit| format!(", at most {}", amount(limit)));
    let reserved = match terms.reservation > 0.0 {
        true => format!("{} reserved", amount(terms.reservation)),
        false => "nothing reserved".into(),
    };
    format!("{reserved}{}, {} shares", limit.unwrap_or_default(), terms.shares)
}

fn list(all: &[Pool], output: Output) -> String {
    if all.is_empty() {
        return "No pools yet. Make one: sterna drs pool create NAME --shares 2000"
            .into();
    }
    let mut table = Table::new(&[
        ("POOL", Column::Flexible),
        ("IN", Column::Flexible),
        ("VMS", Column::Right),
        ("CPU", Column::Right),
        ("SHARES", Column::Right),
        ("GETS", Column::Right),
        ("MEMORY", Column::Right),
        ("SHARES", Column::Right),
        ("GETS", Column::Right),
    ]);
    for one in all {
        let reserved = |terms: &PoolTerms, amount: fn(f64) -> String| {
            let some = terms.reservation > 0.0;
            if some { amount(terms.reservation) } else { NOTHING.into() }
        };
        table.row(vec![
            one.name.as_str().into(),
            one.parent.as_deref().unwrap_or(NOTHING).into(),
            one.vms.len().to_string().into(),
            reserved(&one.cpu, processors).into(),
            one.cpu.shares.to_string().into(),
            processors(one.entitled.cpu).into(),
            reserved(&one.memory, memory).into(),
            one.memory.shares.to_string().into(),
            memory(one.entitled.memory).into(),
        ]);
    }
    output.table(&table)
}

fn show(one: &Pool, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("pool", one.name.as_str());
    pairs.maybe("in", one.parent.as_deref());
    pairs.add("processors", terms(&one.cpu, processors));
    pairs.add("", format!("entitled to {}", processors(one.entitled.cpu)));
    pairs.add("memory", terms(&one.memory, memory));
    pairs.add("", format!("entitled to {}", memory(one.entitled.memory)));
    pairs.add("VMs", vms(one));
    pairs.add("created", moment_ago(one.created));
    output.pairs(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_console::output::WIDTH;

    #[test]
    fn a_list_fits_and_terms_are_told_in_words() {
        let cpu = PoolTerms { reservation: 4.0, limit: Some(8.0), shares: 2000 };
        let pool = Pool {
            name: "production-with-a-long-name".into(),
            parent: Some("all-that-the-customer-has".into()),
            cpu,
            memory: PoolTerms::default(),
            vms: vec!["db".into()],
            entitled: sterna_api::Amounts { cpu: 6.5, memory: 9e9 },
            created: 0,
        };
        let text = list(std::slice::from_ref(&pool), Output::new(false));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(terms(&cpu, processors), "4 reserved, at most 8, 2000 shares");
        assert_eq!(terms(&pool.memory, memory), "nothing reserved, 1000 shares");
        assert!(show(&pool, Output::new(false)).contains("entitled to 6.5"));
    }
}
