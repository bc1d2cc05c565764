//! `sterna lab nas250`: 250 virtual machines leave an array's block storage for a NAS.
//!
//! This is the experiment of Hitachi's paper on moving virtual machines from block
//! storage to a NAS (2015): ten tiles of 25 machines, which work for twelve hours and move
//! in four waves.
//!
//! With `--virtual` it has its size, 17 TB with the single machine (`model`); the scenario
//! and what was published is `sterna_sim::fluid::nas250`. A requirement is that each
//! published time comes out within 15 %, and that every machine that is at work holds its
//! target. For real (`real`) the disks are smaller: `cast` says who is in it, `stage` has
//! the disks and the loads, `run` goes from wave to wave. What is shown of it is the same.

mod cast;
mod model;
mod real;
mod run;
mod stage;

use std::path::PathBuf;

use clap::{Args, value_parser};
use sterna_console::output::Output;
use sterna_report::Files;

use super::verdicts;
use crate::told;

/// What the experiment can be told.
#[derive(Debug, Args)]
pub struct Nas250Args {
    /// Run in virtual time, at the paper's size: takes seconds, without load
    #[arg(long = "virtual", conflicts_with_all = ["tiles", "scale", "seconds", "seed"])]
    modelled: bool,
    /// The number of tiles of 25 VMs, 1 to 10
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u8).range(1..=10))]
    tiles: u8,
    /// Divide the paper's disk sizes by this number, 100 to 100000
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u64).range(100..=100_000))]
    scale: u64,
    /// Seconds of load before the first wave, 2 to 3600
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u32).range(2..=3600))]
    seconds: u32,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The directory for nas250.html and nas250.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Runs the experiment.
pub(crate) fn run(args: &Nas250Args, output: Output) -> anyhow::Result<()> {
    let files = Files::prepare(&args.out, "nas250")?;
    if args.modelled {
        return model::run(&files, output);
    }
    let (cast, outcome) = real::run(args, output)?;
    let report = real::report(args, &cast, &outcome);
    files.write(&report)?;
    let told = told::words(&cast.scenario, &outcome, output);
    verdicts::tell(&files, &report, &told, false, output)
}
