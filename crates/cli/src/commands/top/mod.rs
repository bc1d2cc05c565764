//! `sterna top`: who does what, second by second.
//!
//! On a terminal it is a screen that draws itself anew (`screen`); elsewhere, and with
//! `--batch`, it prints rows (`batch`), with `--json` an object a line. What the
//! columns are and how numbers are shown is in `column`, what keys do in `view`.

mod batch;
mod column;
mod memory;
mod screen;
mod source;
mod view;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::{Args, ValueEnum};
use sterna_api::TopBy;
use sterna_console::connect::Link;
use sterna_console::output::{Output, is_screen};
use sterna_core::Nanos;

use self::view::Rows;
use crate::common::guard::parse_short;

/// The shortest interval: a sample of the daemon.
const SHORTEST: Nanos = Nanos::from_millis(100);
/// The longest: what the daemon keeps.
const LONGEST: Nanos = Nanos::from_secs(3600);

const KEYS: &str = "\
Keys:
  q        quit
  d c s v  disks, classes, datastores, the memory of VMs
  left     sort by the column to the left
  right    sort by the column to the right
  r        reverse the order
  up down  scroll; Page Up and Page Down by a screen, Home and End to the ends
  /        show only names with what is typed; Enter keeps it, Esc drops it
  space    pause, go on";

#[derive(Debug, Args)]
#[command(after_help = KEYS)]
pub(crate) struct TopArgs {
    /// The kind of rows
    #[arg(long, value_enum, default_value_t)]
    by: ByArg,
    /// Print rows instead of a screen; the default without a terminal
    #[arg(long)]
    batch: bool,
    /// The refresh interval and the span of the figures, 100ms to 3600s
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = interval)]
    interval: Nanos,
    /// End after this many rows of output; only without a screen
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// The kind of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArg {
    /// One row per disk
    #[default]
    Disk,
    /// One row per class, and one row for disks without a class
    Class,
    /// One row per datastore: its disks, and copies from and to it
    Datastore,
    /// One row per VM: its memory
    Vm,
}

impl From<ByArg> for Rows {
    fn from(arg: ByArg) -> Self {
        match arg {
            ByArg::Disk => Rows::Loads(TopBy::Disk),
            ByArg::Class => Rows::Loads(TopBy::Class),
            ByArg::Datastore => Rows::Loads(TopBy::Datastore),
            ByArg::Vm => Rows::Vms,
        }
    }
}

fn interval(text: &str) -> Result<Nanos, String> {
    let span = parse_short(text)?;
    match (SHORTEST..=LONGEST).contains(&span) {
        true => Ok(span),
        false => Err(format!("`{text}` is not between 100ms and 3600s")),
    }
}

/// Carries out the command.
pub(crate) fn run(args: &TopArgs, link: &Link, output: Output) -> anyhow::Result<()> {
    let (by, every) = (args.by.into(), Duration::from(args.interval));
    let rows = args.batch || args.count.is_some() || output.is_json();
    if rows || !(is_screen(&io::stdout()) && io::stdin().is_terminal()) {
        return batch::run(by, every, args.count, link, output);
    }
    screen::run(by, every, link)
}
