//! `sterna lab qos`: three applications share an array, and one of them matters.
//!
//! This is the experiment of EMC's white paper on quality of service for virtual
//! machines (Navisphere QoS Manager and VMware DRS, 2008): a database, a backup and a
//! load generator on one set of spindles. Alone, the database gets all it wants; with
//! the others beside it, a fraction. Then service levels are put on it and lifted
//! again, one after the other, and each is judged by what the database got.
//!
//! With `--virtual` the same happens in virtual time, at the paper's size.
//!
//! `plan` has the phases and `wish` what is asked for in them; `run` goes through them
//! with the disks and applications of a `stage`, `model` in virtual time; `verdicts`
//! judges what was recorded, and `account` makes the report.

mod account;
mod model;
mod plan;
mod run;
mod stage;
mod verdicts;
mod wish;

use std::path::PathBuf;

use clap::Args;
use sterna_console::connect::block_on;
use sterna_console::interruption::Interruption;
use sterna_console::output::Output;
use sterna_console::screen::Screen;
use sterna_core::Shape;
use sterna_report::{Files, Report};

use self::account::Facing;
use self::plan::{Length, MINUTES, Phase, plan};
use self::run::Run;
use self::stage::{Ground, Stage};
use super::site::Site;

/// The array unless told otherwise: the paper's, emulated. Its caches are as small
/// against the three disks of 1 GiB as the paper's were against its volumes: in larger
/// ones all of what is written would stay, and the array would get quicker and quicker.
/// Its files are in the state directory of the experiment's daemon.
const ARRAY: &str = "array://e4-fc?cache=16M&write-cache=32M";

/// What the experiment can be told.
#[derive(Debug, Args)]
pub struct QosArgs {
    /// The total time in minutes, up to 240 [default: 20]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "quick",
        value_parser = clap::value_parser!(u32).range(i64::from(MINUTES)..=240)
    )]
    minutes: Option<u32>,
    /// Run a short check, in two and a half minutes
    #[arg(long)]
    quick: bool,
    /// Run in virtual time, at the paper's size: takes seconds, without load
    #[arg(long = "virtual", conflicts_with_all = ["datastore", "shape"])]
    modelled: bool,
    /// The datastore for the three disks: a place as `sterna datastore add` takes it,
    /// not quicker than this machine can work
    #[arg(long, value_name = "LOCATION", default_value = ARRAY)]
    datastore: String,
    /// Emulate a slower device: mbps=300,iops=5000,latency=1ms
    #[arg(long, value_parser = shape)]
    shape: Option<String>,
    /// The directory for qos.html and qos.json
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Refuses what is no shape; the daemon reads it.
fn shape(text: &str) -> Result<String, String> {
    text.parse::<Shape>().map(|_| text.into()).map_err(|error| error.to_string())
}

impl QosArgs {
    fn length(&self) -> Length {
        match (self.quick, self.minutes) {
            (true, _) => Length::Quick,
            (false, minutes) => Length::Minutes(minutes.unwrap_or(20)),
        }
    }

    fn ground(&self) -> Ground {
        let (location, shape) = (self.datastore.clone(), self.shape.clone());
        Ground { location, shape, seed: self.seed }
    }
}

/// Runs the experiment.
pub(crate) fn run(args: &QosArgs, output: Output) -> anyhow::Result<()> {
    // Nobody wants to learn after twenty minutes that there is no place for it.
    let files = Files::prepare(&args.out, "qos")?;
    let phases = plan(args.length());
    let report = match args.modelled {
        true => model::run(&phases, args.seed)?,
        false => real(args, &phases, output)?,
    };
    files.write(&report)?;
    super::verdicts::tell(&files, &report, "", args.modelled, output)
}

/// The experiment with a daemon, on a real clock.
fn real(args: &QosArgs, phases: &[Phase], output: Output) -> anyhow::Result<Report> {
    let total = phases.iter().map(|phase| phase.seconds).sum();
    let screen = Screen::new(output, total);
    block_on(async {
        let experiment = async {
            let (site, status) = Site::start().await?;
            let ground = args.ground();
            let stage = Stage::prepare(site.client(), &ground).await?;
            let outcome = Run::new(stage, &site, &screen).go(phases).await?;
            anyhow::Ok(account::report(&outcome, Facing::real(&ground, &status)))
        };
        let mut wish = Interruption::listen()?;
        tokio::select! {
            report = experiment => report,
            _ = wish.heard() => Err(super::interrupted().into()),
        }
    })
}
