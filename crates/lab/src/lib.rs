//! Experiments that show what Sterna does, with figures; and scenarios, told.
//!
//! **What it is.** `sterna lab` runs an experiment for real: a daemon of its own in a
//! directory that goes away again (`site`), applications that load its disks, and a
//! client's clock. What it measures is a `record`; pure arithmetic (`judge`) makes verdicts
//! of it, and a report (`sterna_report`) shows them. An experiment whose requirements are
//! not met fails, like any command. Each experiment has a virtual twin in `sterna_sim`.
//! What happens to a scenario there is told for people and for a report by [`tell`].
//!
//! **What it never does.** Nobody else's daemon or disk is touched. The daemon is a child,
//! the same program as this one: nothing of the daemon's code is used here.
//!
//! **Where to begin.** [`LabCommand`] lists the experiments, and [`run`] runs one. `qos`,
//! `nas250`, `svmotion` and `overcommit` each begin with the paper or the question that they
//! answer.
#![forbid(unsafe_code)]
// They panic where nobody reads; `sterna_console::output` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod guest;
mod judge;
mod machine;
mod nas250;
mod overcommit;
mod qos;
mod record;
mod site;
mod svmotion;
mod told;
mod verdicts;

use clap::Subcommand;
use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_console::output::Output;

pub use told::tell;

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run a database, a backup and a load generator on one array
    Qos(qos::QosArgs),
    /// Move 250 VMs from an array to a NAS
    Nas250(nas250::Nas250Args),
    /// Move the disks of a guest with a busy database between arrays
    Svmotion(svmotion::SvmotionArgs),
    /// Bring the memory of a guest with a database back from swap
    Overcommit(overcommit::OvercommitArgs),
}

/// Runs an experiment.
pub fn run(command: LabCommand, output: Output) -> anyhow::Result<()> {
    match command {
        LabCommand::Qos(args) => qos::run(&args, output),
        LabCommand::Nas250(args) => nas250::run(&args, output),
        LabCommand::Svmotion(args) => svmotion::run(&args, output),
        LabCommand::Overcommit(args) => overcommit::run(&args, output),
    }
}

fn interrupted() -> Failure {
    Failure {
        code: ErrorCode::Interrupted,
        message: "the experiment was interrupted; Sterna has removed its daemon and its \
                  disks, and has written no report"
            .into(),
        hint: String::new(),
    }
}
