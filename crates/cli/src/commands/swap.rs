//! `sterna swap`: the swap tiers of this host.

use clap::{ArgGroup, Subcommand};
use sterna_api::{AddSwapTier, SwapTier};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, rate, response};
use sterna_console::output::Output;
use sterna_console::table::{Column, Pairs, Table};
use sterna_core::Bytes;

use crate::common::NameArg;

#[derive(Debug, Subcommand)]
pub(crate) enum SwapCommand {
    /// Add a swap tier: Sterna makes and measures it, and the kernel swaps to it
    #[command(group(ArgGroup::new("place").required(true).args(["on", "device"])))]
    Add {
        /// The tier's name
        name: String,
        /// The datastore, a directory, for a swap file
        #[arg(long, value_name = "DATASTORE", requires = "size")]
        on: Option<String>,
        /// The size of the file (32G)
        #[arg(long, value_name = "BYTES", requires = "on")]
        size: Option<Bytes>,
        /// A block device; Sterna uses all of it
        #[arg(long, value_name = "PATH")]
        device: Option<String>,
    },
    /// List the swap tiers, the fastest first
    #[command(visible_alias = "ls")]
    List,
    /// Remove a swap tier; the kernel first reads all of it back into memory
    #[command(visible_alias = "rm")]
    Remove(NameArg),
}

/// Carries out a command.
pub(crate) fn run(
    command: SwapCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    link.ask(async move |client| match command {
        SwapCommand::Add { name, on, size, device } => {
            let size = size.map(|size| size.0);
            let request = AddSwapTier { name, datastore: on, size, device };
            let added = client.add_swap_tier(&request).await?;
            output.answer(&added, |added| {
                format!("Swap tier {} added.\n{}", added.name, show(added, output))
            })
        }
        SwapCommand::List => {
            let all = client.swap_tiers().await?;
            output.answer(&all, |all| list(all, output))
        }
        SwapCommand::Remove(NameArg { name }) => {
            let gone = client.remove_swap_tier(&name).await?;
            output.answer(&gone, |gone| format!("Swap tier {} removed.", gone.name))
        }
    })
}

/// Swap tiers, the fastest first.
pub(crate) fn list(all: &[SwapTier], output: Output) -> String {
    if all.is_empty() {
        return "No swap tiers yet. Add one: sterna swap add NAME --on DATASTORE --size 32G"
            .into();
    }
    let mut table = Table::new(&[
        ("TIER", Column::Flexible),
        ("ON", Column::Flexible),
        ("SIZE", Column::Right),
        ("USED", Column::Right),
        ("PRIORITY", Column::Right),
        ("64 KiB", Column::Right),
        ("IN ORDER", Column::Right),
    ]);
    for one in all {
        let priority = one.priority.map_or("not used".into(), |it| it.to_string());
        table.row(vec![
            one.name.as_str().into(),
            one.datastore.as_deref().unwrap_or(&one.path).into(),
            bytes(one.size).into(),
            bytes(one.used).into(),
            priority.into(),
            response(Some(one.access_us)).into(),
            rate(one.bytes_per_s as f64).into(),
        ]);
    }
    output.table(&table)
}

fn show(one: &SwapTier, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("path", one.path.as_str());
    pairs.add("size", bytes(one.size));
    pairs.add("64 KiB at random", response(Some(one.access_us)));
    pairs.add("in order", rate(one.bytes_per_s as f64));
    pairs.maybe("priority", one.priority.map(|it| it.to_string()));
    output.pairs_below(&pairs)
}
