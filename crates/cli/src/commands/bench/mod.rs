//! `sterna bench`: what an application gets from its disks.
//!
//! The load is an ordinary client of an ordinary server. It needs no daemon: the disks
//! under the server may be Sterna's, or anybody's.

mod dvdstore;

use clap::Subcommand;
use sterna_console::output::Output;

pub(crate) use self::dvdstore::PASSWORD_VARIABLE;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Run the DVD Store on PostgreSQL: orders per second and response times
    #[command(after_help = dvdstore::NOTES)]
    Dvdstore(dvdstore::DvdstoreArgs),
}

/// Runs a benchmark.
pub(crate) fn run(command: BenchCommand, output: Output) -> anyhow::Result<()> {
    match command {
        BenchCommand::Dvdstore(args) => dvdstore::run(&args, output),
    }
}
