//! `sterna lab svmotion`: the disks of a guest with a database move while it works.
//!
//! This is the experiment of VMware's study of storage migration under a database
//! (2012): one guest with a store that sells DVDs, with data, indexes and log on arrays
//! of their own. Each disk moves from an old array to a new one and back, in four states
//! of the guest: off, idle, under a low load and under a high one. What is asked is how
//! long a migration takes, what the customers notice of it, and what it costs.
//!
//! With `--virtual` the same happens in virtual time, at the study's size: `virtual_run` runs
//! it and compares, and `virtual_report` makes the report. For real, `plan` has the states,
//! the ways and the sizes, `stage` the arrays and the guest; `run` goes
//! through the states, with customers in the store and a `watch` on all of it, and has
//! QEMU's `mirror` move the disks, too, up to its `ending`. `outcome` says what follows of
//! each migration and `case` of its repeats, `verdicts` judges it, and `account` makes the
//! report, with what was `published` beside it.

mod account;
mod case;
mod ending;
mod mirror;
mod outcome;
mod plan;
mod published;
mod run;
mod stage;
mod verdicts;
mod virtual_report;
mod virtual_run;
mod watch;

use std::path::PathBuf;
use std::pin::pin;

use clap::Args;
use sterna_api::ErrorCode;
use sterna_console::connect::{Failure, block_on};
use sterna_console::interruption::{Heard, Interruption};
use sterna_console::output::Output;
use sterna_console::screen::Screen;
use sterna_report::Files;

use self::ending::Ending;
use self::plan::{Disk, Plan, State, Way};
use self::run::Run;
use self::stage::{Ground, Stage};
use super::guest::machine::Image;
use super::site::Site;

/// What the experiment can be told.
#[derive(Debug, Args)]
pub struct SvmotionArgs {
    /// Run in virtual time, at the study's size: takes minutes, and loads only
    /// processors
    #[arg(long = "virtual",
        conflicts_with_all = ["guest", "scale", "memory", "repeats", "disk", "state", "way"])]
    modelled: bool,
    /// The directory of the guest, made by tests/guest/build
    #[arg(long, value_name = "DIR", required_unless_present = "modelled")]
    guest: Option<PathBuf>,
    /// Run a short check: one small disk, two states; with --virtual, the first 4 GiB
    /// of each disk
    #[arg(long, conflicts_with = "scale")]
    quick: bool,
    /// Divide the published disk sizes (600, 320 and 50 GB) by this number
    #[arg(long, value_name = "N", default_value_t = SCALE,
        value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,
    /// The number of repetitions of each move, 1 to 50
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=REPEATS_MAX))]
    repeats: u32,
    /// Move only these disks
    #[arg(long, value_name = "DISKS", value_delimiter = ',', conflicts_with = "quick")]
    disk: Vec<Disk>,
    /// Move the disks only in these states of the guest
    #[arg(long, value_name = "STATES", value_delimiter = ',', conflicts_with = "quick")]
    state: Vec<State>,
    /// Move the disks only in these ways
    #[arg(long, value_name = "WAYS", value_delimiter = ',', conflicts_with = "quick")]
    way: Vec<Way>,
    /// The guest's memory; less memory means more disk requests
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    memory: String,
    /// The directory for svmotion.html and svmotion.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A data disk of 1 GiB: more than the guest's memory, and moved in seconds.
const SCALE: u32 = 600;
/// One that is moved in a second.
const QUICK_SCALE: u32 = 3200;
/// A day's worth.
const REPEATS_MAX: i64 = 50;

/// Runs the experiment.
pub(crate) fn run(args: &SvmotionArgs, output: Output) -> anyhow::Result<()> {
    // Nobody wants to learn after an hour that there is no place for it.
    let files = Files::prepare(&args.out, "svmotion")?;
    let Some(guest) = args.guest.as_ref().filter(|_| !args.modelled) else {
        return virtual_run::run(args, &files, output);
    };
    let image = Image::in_dir(guest)?;
    let mut plan = match args.quick {
        true => Plan::quick(QUICK_SCALE),
        false => Plan::full(args.scale).only(&args.disk, &args.state, &args.way),
    };
    plan.repeats = args.repeats;
    if plan.is_empty() {
        return Err(Failure {
            code: ErrorCode::Invalid,
            message: "nothing would move: the disks of a VM that is off move only with \
                      --way vhost-user"
                .into(),
            hint: "name another --state, or no --way".into(),
        }
        .into());
    }
    let ground = Ground { image, memory: args.memory.clone(), seed: args.seed };
    let screen = Screen::new(output, plan.seconds());
    let ending = Ending::new();
    screen.phase(0.0, "arrays and disks are made");
    let report = block_on(async {
        let mut experiment = pin!(async {
            let (site, status) = Site::start().await?;
            let stage = Stage::prepare(&site, &ground, &plan).await?;
            let run = Run::new(stage, site.pid(), &screen, &plan, args.seed, &ending);
            let outcome = run.go().await?;
            if outcome.trials.is_empty() {
                return Err(super::interrupted().into());
            }
            anyhow::Ok(account::report(&outcome, &plan, &ground, &status))
        });
        let mut wish = Interruption::listen()?;
        loop {
            tokio::select! {
                report = &mut experiment => break report,
                heard = wish.heard() => match (heard, ending.wish()) {
                    (Heard::Asked, Some(said)) => screen.say(said),
                    (Heard::HungUp, _) | (_, None) => {
                        break Err(super::interrupted().into());
                    }
                },
            }
        }
    })?;
    drop(screen);
    files.write(&report)?;
    super::verdicts::tell(
        &files,
        &report,
        &account::what_is_wrong(&report),
        false,
        output,
    )
}
