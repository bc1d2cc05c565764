//! `sterna lab overcommit`: the memory of a guest with a database comes back from swap.
//!
//! This is the experiment of VMware's study of swap on flash under memory overcommit (2009): a VM
//! with a store that sells DVDs was idle, and its memory is out. What is asked is how many orders
//! it takes in the two minutes after its customers come back, with swap on flash, on Fibre
//! Channel disks and on SATA disks.
//!
//! `bars` has what a wake must keep, and judges. With `--virtual`, `virtual_run` runs the
//! experiment in virtual time (`sim::overcommit`) and tells it on the terminal, and
//! `virtual_report` makes its report. For real, `needs` looks at the host, `plan` has what is run,
//! and `stage` the guest, in a control `group`; each `tier` is swap on an emulated array, and
//! `swappiness` keeps the memory of others in place. `run` has the guest sleep and wake in each
//! way, `outcome` says what follows of that, and `report` tells it; `swapping`
//! compares what Sterna did with what the device can do.

mod bars;
mod group;
mod needs;
mod outcome;
mod plan;
mod report;
mod run;
mod stage;
mod swappiness;
mod swapping;
mod tier;
mod virtual_report;
mod virtual_run;

use std::path::PathBuf;
use std::pin::pin;

use clap::Args;
use sterna_console::connect::block_on;
use sterna_console::interruption::Interruption;
use sterna_console::output::Output;
use sterna_console::screen::Screen;
use sterna_report::Files;
use tokio::time::Instant;

use self::plan::{MEMORY, MediumArg, Plan};
use self::run::Run;
use self::stage::Stage;
use super::guest::machine::Image;
use super::site::Site;

/// What the experiment can be told.
#[derive(Debug, Args)]
pub struct OvercommitArgs {
    /// Run in virtual time, at the study's size: takes seconds
    #[arg(long = "virtual", conflicts_with_all = ["guest", "quick", "repeats", "medium"])]
    modelled: bool,
    /// The directory of the guest, made by tests/guest/build
    #[arg(long, value_name = "DIR", required_unless_present = "modelled")]
    guest: Option<PathBuf>,
    /// Run a short check: 30 s of each wake instead of 120 s
    #[arg(long)]
    quick: bool,
    /// The number of repetitions of each way to wake, 1 to 20
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=REPEATS_MAX))]
    repeats: u32,
    /// Swap only to these media
    #[arg(long, value_name = "MEDIA", value_delimiter = ',')]
    medium: Vec<MediumArg>,
    /// The directory for overcommit.html and overcommit.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A day's worth.
const REPEATS_MAX: i64 = 20;

/// Runs the experiment.
pub(crate) fn run(args: &OvercommitArgs, output: Output) -> anyhow::Result<()> {
    let files = Files::prepare(&args.out, "overcommit")?;
    let Some(guest) = args.guest.as_ref().filter(|_| !args.modelled) else {
        return virtual_run::run(args.seed, &files, output);
    };
    let image = Image::in_dir(guest)?;
    needs::check(MEMORY)?;
    let plan = Plan::new(&args.medium, args.quick, args.repeats, args.seed);
    let screen = Screen::new(output, plan.all_seconds());
    screen.phase(0.0, "the guest makes its database");
    let (report, words) = block_on(async {
        let mut experiment = pin!(async {
            let began = Instant::now();
            let (site, status) = Site::start().await?;
            let stage = Stage::prepare(&site, &image, args.seed).await?;
            let outcome = Run::new(stage, &site, &screen, &plan, began).go().await?;
            let report = report::report(&outcome, &plan, !args.quick, &status);
            anyhow::Ok((report, report::words(&outcome, output)))
        });
        let mut wish = Interruption::listen()?;
        tokio::select! {
            told = &mut experiment => told,
            _ = wish.heard() => Err(super::interrupted().into()),
        }
    })?;
    drop(screen);
    files.write(&report)?;
    super::verdicts::tell(&files, &report, &words, false, output)
}
