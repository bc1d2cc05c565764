//! The one binary, `sterna`.
//!
//! `sterna serve` is the daemon; nearly every other command asks a daemon over its
//! unix socket (`commands`). `args` is the command line as a whole; `completion` and `names`
//! say of it what shells and `man` want to know, and `usage` what is wrong with a line. With
//! `--json` the answer is printed as the API gave it; without, people get tables that fit 80
//! columns.
//!
//! Exit codes: 0 done, 1 it failed (stderr says what, to what, and what to do
//! next), 2 the command line was wrong.
//!
//! If nobody reads the output, the exit code is the same (`sterna_console::output`).
#![forbid(unsafe_code)]
// They panic where nobody reads; `sterna_console::output` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod args;
mod commands;
mod common;
mod completion;
mod names;
mod old_spelling;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use sterna_console::connect::{Link, Said, explain};
use sterna_console::output::Output;

use crate::args::{Cli, Command};
use crate::commands::{
    activity, advise, class, dashboard, datastore, disk, drs, host, memory, migrate,
    migration, plan, policy, predict, serve, status, storage_drs, swap, top, vm,
};

fn main() -> ExitCode {
    let line = old_spelling::today(std::env::args_os());
    let words: Vec<String> =
        line.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(error) => {
            return usage::tell(error, &words, Output::new(json_asked())).into();
        }
    };
    let output = Output::new(cli.json);
    match run(cli, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<Said>() {
                output.failure(&explain(&error));
            }
            ExitCode::FAILURE
        }
    }
}

/// Whether JSON is asked for on a command line that cannot be read as a whole.
fn json_asked() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

fn run(cli: Cli, output: Output) -> anyhow::Result<()> {
    let link = Link::new(cli.socket.socket.clone(), output);
    match cli.command {
        Command::Serve(args) => serve::run(args, cli.socket, output),
        Command::Datastore(command) => datastore::run(command, &link, output),
        Command::Disk(command) => disk::run(command, &link, output),
        Command::Activity(args) => activity::run(&args, &link, output),
        Command::Dashboard(args) => dashboard::run(args, &link, output),
        Command::Advise(args) => advise::run(&args, &link, output),
        Command::Predict(args) => predict::run(args, &link, output),
        Command::Migrate(args) => migrate::run(args, &link, output),
        Command::Migration(command) => migration::run(command, &link, output),
        Command::Plan(command) => plan::run(command, &link, output),
        Command::Class(command) => class::run(command, &link, output),
        Command::Policy(command) => policy::run(command, &link, output),
        Command::StorageDrs(command) => storage_drs::run(command, &link, output),
        Command::Vm(command) => vm::run(command, &link, output),
        Command::Memory(command) => memory::run(command, &link, output),
        Command::Swap(command) => swap::run(command, &link, output),
        Command::Host(command) => host::run(command, &link, output),
        Command::Drs(command) => drs::run(command, &link, output),
        Command::Status(args) => status::run(args, &link, output),
        Command::Top(args) => top::run(&args, &link, output),
        #[cfg(feature = "lab")]
        Command::Lab(command) => sterna_lab::run(command, output),
        #[cfg(feature = "sim")]
        Command::Sim(command) => commands::sim::run(command, output),
        #[cfg(feature = "bench")]
        Command::Bench(command) => commands::bench::run(command, output),
        Command::Completion(args) => {
            completion::completion(&args, Cli::command(), &link, output)
        }
        Command::Man(args) => completion::man(&args, Cli::command(), output),
    }
}
