//! The command line as a whole. Manual pages and completions come from here.

use clap::{Parser, Subcommand};
use sterna_console::output::WIDTH;
#[cfg(feature = "lab")]
use sterna_lab::LabCommand;

use crate::commands::activity::ActivityArgs;
use crate::commands::advise::AdviseArgs;
#[cfg(feature = "bench")]
use crate::commands::bench::BenchCommand;
use crate::commands::class::ClassCommand;
use crate::commands::dashboard::DashboardArgs;
use crate::commands::datastore::DatastoreCommand;
use crate::commands::disk::DiskCommand;
use crate::commands::drs::DrsCommand;
use crate::commands::host::HostCommand;
use crate::commands::memory::MemoryCommand;
use crate::commands::migrate::MigrateArgs;
use crate::commands::migration::MigrationCommand;
use crate::commands::plan::PlanCommand;
use crate::commands::policy::PolicyCommand;
use crate::commands::predict::PredictArgs;
use crate::commands::serve::ServeArgs;
#[cfg(feature = "sim")]
use crate::commands::sim::SimCommand;
use crate::commands::status::StatusArgs;
use crate::commands::storage_drs::StorageDrsCommand;
use crate::commands::swap::SwapCommand;
use crate::commands::top::TopArgs;
use crate::commands::vm::VmCommand;
use crate::common::{GLOBAL, SocketArg};
use crate::completion::{CompletionArgs, ManArgs};

const EXAMPLES: &str = "\
Examples:
  sterna serve &
  sterna datastore add fast /mnt/nvme
  sterna datastore add slow /mnt/hdd
  sterna disk create db --size 10G --on fast
  sterna disk uri db
  sterna predict db --to slow
  sterna migrate db --to slow
  sterna migrate db --to fast --keep 97%
  sterna class create oltp db --shares 2000
  sterna policy limit migration 50M --schedule \"Mon-Fri 08:00-18:00\"
  sterna policy cruise oltp 1000iops --tolerance 10%
  sterna storage-drs recommend --space 75%
  sterna plan evacuate slow --to fast --by \"Sun 06:00\" --keep 97%
  sterna storage-drs set --automation full
  sterna drs recommend
  sterna top --by class
  sterna dashboard --print";

/// Moves disks of running VMs between storage systems.
#[derive(Debug, Parser)]
#[command(name = "sterna", version, term_width = WIDTH, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Print JSON, as the API returns it
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) socket: SocketArg,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon in the foreground
    Serve(ServeArgs),
    /// Datastores: places that hold disk images
    #[command(subcommand)]
    Datastore(DatastoreCommand),
    /// Virtual disks
    #[command(subcommand)]
    Disk(DiskCommand),
    /// Predict how long a disk move would take
    Predict(PredictArgs),
    /// Move a disk to another datastore while it is in use
    Migrate(MigrateArgs),
    /// Disk moves: running and ended
    #[command(subcommand)]
    Migration(MigrationCommand),
    /// Plans that move many disks, in waves
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Service classes of disks
    #[command(subcommand)]
    Class(ClassCommand),
    /// Limits, cruise controls and queue depths of classes
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Balance disks over datastores
    #[command(subcommand)]
    StorageDrs(StorageDrsCommand),
    /// Advice on disks and datastores, from measured load
    Advise(AdviseArgs),
    /// Existing VMs whose disks QEMU serves
    #[command(subcommand)]
    Vm(VmCommand),
    /// Memory of VMs: what is out on swap, sleep and wake
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Swap tiers of this host
    #[command(subcommand)]
    Swap(SwapCommand),
    /// Hosts that run VMs
    #[command(subcommand)]
    Host(HostCommand),
    /// Balance VMs over hosts: pools, rules, recommendations and VM migrations
    #[command(subcommand)]
    Drs(DrsCommand),
    /// Show the state of the daemon
    Status(StatusArgs),
    /// Show the load of disks, classes or datastores live
    Top(TopArgs),
    /// Open the dashboard in a browser on this host
    Dashboard(DashboardArgs),
    /// List what was done, by whom, and what the daemon decided
    Activity(ActivityArgs),
    /// Run experiments with a separate daemon
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(LabCommand),
    /// Simulate scenarios in virtual time, without a daemon
    #[cfg(feature = "sim")]
    #[command(subcommand)]
    Sim(SimCommand),
    /// Measure an application on its disks
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Write the manual pages to a directory
    Man(ManArgs),
}

#[cfg(test)]
mod tests;
