//! The one binary, `sterna`.
//!
//! `sterna serve` is the daemon; every other command asks a daemon over its
//! unix socket. Each command group has a file of its own: what it can be told
//! (clap), what it asks for, and how the answer is shown. With `--json` the
//! answer is printed as the API gave it; without, people get tables that fit 80
//! columns.
//!
//! Exit codes: 0 done, 1 it failed (stderr says what, to what, and what to do
//! next), 2 the command line was wrong.
#![forbid(unsafe_code)]

mod args;
mod completion;
mod connect;
mod datastore;
mod disk;
mod format;
mod migrate;
mod migration;
mod output;
mod recovery;
mod report;
mod serve;
mod status;
mod table;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::connect::explain;
use crate::output::{Output, WIDTH};
use crate::table::wrap;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let output = Output::new(cli.json);
    match run(cli, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.failure(&explain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong with the command line, or prints the help asked for. clap
/// wraps help, but not errors.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.render().to_string();
    eprintln!("{}", wrap(text.trim_end(), WIDTH).join("\n"));
    // The code that clap promises is small.
    ExitCode::from(error.exit_code() as u8)
}

fn run(cli: Cli, output: Output) -> anyhow::Result<()> {
    let link = connect::Link::new(cli.socket);
    match cli.command {
        Command::Serve(args) => serve::run(args, &link, output),
        Command::Datastore(command) => datastore::run(command, &link, output),
        Command::Disk(command) => disk::run(command, &link, output),
        Command::Migrate(args) => migrate::run(args, &link, output),
        Command::Migration(command) => migration::run(command, &link, output),
        Command::Status => status::run(&link, output),
        Command::Completion(args) => completion::completion(&args, output),
        Command::Man(args) => completion::man(&args, output),
        Command::Openapi => serve::openapi(),
    }
}
