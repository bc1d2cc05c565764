//! `sterna lab`: experiments that show what Sterna does, with figures.
//!
//! An experiment runs for real: a daemon of its own in a directory that goes away
//! again (`site`), applications that load its disks, and a client's clock. What it
//! measures is a `record`; pure arithmetic (`judge`) makes verdicts of it, and the
//! `report` shows them. Nobody else's daemon or disk is touched.
//!
//! An experiment whose requirements are not met fails, like any command.

pub(crate) mod files;
mod judge;
mod machine;
mod nas250;
mod qos;
mod record;
pub(crate) mod report;
pub(crate) mod screen;
mod site;
mod svmotion;

use clap::Subcommand;
use sterna_api::ErrorCode;

use crate::connect::Failure;
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run a database, a backup and a load generator on one array
    Qos(qos::QosArgs),
    /// Move 250 VMs from an array to a NAS
    Nas250(nas250::Nas250Args),
    /// Move the disks of a guest with a busy database between arrays
    Svmotion(svmotion::SvmotionArgs),
}

/// Runs an experiment.
pub(crate) fn run(command: LabCommand, output: Output) -> anyhow::Result<()> {
    match command {
        LabCommand::Qos(args) => qos::run(&args, output),
        LabCommand::Nas250(args) => nas250::run(&args, output),
        LabCommand::Svmotion(args) => svmotion::run(&args, output),
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
