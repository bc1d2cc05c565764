//! `sterna lab svmotion`: a database's disks move to another array, one after the other.
//!
//! This is the experiment of VMware's study on Storage vMotion of a virtualized SQL
//! Server database (2012), in virtual time: `virtual_run` runs it and compares, and
//! `virtual_report` makes the report.

mod virtual_report;
mod virtual_run;

use std::path::PathBuf;

use clap::Args;

use super::files::Files;
use crate::output::Output;

/// What the experiment can be told.
#[derive(Debug, Args)]
pub(crate) struct SvmotionArgs {
    /// In virtual time, at the study's size: takes minutes, and loads only processors
    #[arg(long = "virtual", required = true)]
    modelled: bool,
    /// Move only the first 4 GiB of each disk, which takes seconds
    #[arg(long)]
    quick: bool,
    /// Where svmotion.html and svmotion.json are written
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// What all chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the experiment.
pub(crate) fn run(args: &SvmotionArgs, output: Output) -> anyhow::Result<()> {
    let files = Files::prepare(&args.out, "svmotion")?;
    virtual_run::run(args, &files, output)
}
