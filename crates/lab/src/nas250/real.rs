//! The experiment for real: a daemon of its own, disks in its directory, and a report.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use rustix::fs::statvfs;
use sterna_api::ErrorCode;
use sterna_console::connect::{Failure, block_on};
use sterna_console::format::{bytes, moment};
use sterna_console::interruption::Interruption;
use sterna_console::output::{Output, note};
use sterna_report::{Facts, Report};
use sterna_sim::fluid::Outcome;

use super::Nas250Args;
use super::cast::Cast;
use super::run::Run;
use super::stage::Stage;
use crate::site::Site;
use crate::{interrupted, machine, told};

/// What each datastore is: the published array, emulated.
const ARRAY: &str = "array://sas-10k?raid=6:6+2x13&hits=12&link=8000M";

const ABOUT: &str = "Machines stop, move from an array to a NAS in waves, and work again, \
                     while the others work: a published experiment, with smaller disks, \
                     for real.";

/// Runs it. Gives what it was to be, and how it went.
pub(super) fn run(args: &Nas250Args, output: Output) -> anyhow::Result<(Cast, Outcome)> {
    let cast = Cast::of(usize::from(args.tiles), args.scale);
    let experiment = async {
        let (site, _status) = Site::start().await?;
        check_room(&site, &cast)?;
        if !output.is_json() {
            let machines = cast.machines.len();
            let size = bytes(cast.scenario.bytes());
            note(&format!("making {machines} disks, {size} in all"));
        }
        let (client, dir) = (site.client(), site.dir());
        let stage = Stage::prepare(client, dir, &cast, ARRAY, args.seed).await?;
        Run::new(stage, &cast, client, f64::from(args.seconds)).go(output).await
    };
    let outcome = block_on(async {
        let mut wish = Interruption::listen()?;
        tokio::select! {
            outcome = experiment => outcome,
            _ = wish.heard() => Err(interrupted().into()),
        }
    })?;
    Ok((cast, outcome))
}

/// Nobody wants to learn in the third wave that the disk is full.
fn check_room(site: &Site, cast: &Cast) -> anyhow::Result<()> {
    let dir = site.dir();
    let found =
        statvfs(dir).with_context(|| format!("cannot look at {}", dir.display()))?;
    let (free, wanted) = (found.f_bavail * found.f_frsize, cast.room());
    if free >= wanted {
        return Ok(());
    }
    Err(Failure {
        code: ErrorCode::NoSpace,
        message: format!(
            "the disks would take up to {}, and {} has {} free",
            bytes(wanted),
            dir.display(),
            bytes(free)
        ),
        hint: "take fewer --tiles or a larger --scale, or set TMPDIR to another \
               directory"
            .into(),
    }
    .into())
}

/// Tells the experiment.
pub(super) fn report(args: &Nas250Args, cast: &Cast, outcome: &Outcome) -> Report {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let verdicts = told::verdicts(&cast.scenario, outcome);
    let pairs = vec![
        ("disks".into(), format!("1/{} of the published size", args.scale)),
        ("tiles".into(), format!("{} of 10", args.tiles)),
        ("each datastore".into(), ARRAY.into()),
        ("copies".into(), "both images of each disk compared".into()),
        ("seed".into(), args.seed.to_string()),
    ];
    Report {
        title: cast.scenario.title.clone(),
        about: ABOUT.into(),
        made: format!("Sterna {}, {}", env!("CARGO_PKG_VERSION"), moment(now)),
        passed: verdicts.iter().all(|verdict| verdict.passed),
        verdicts,
        charts: told::charts(&cast.scenario, &outcome.samples),
        events: told::events(outcome),
        sheets: told::sheets(&cast.scenario, outcome),
        facts: vec![
            Facts { title: "Parameters".into(), pairs },
            Facts { title: "Machine".into(), pairs: machine::facts() },
        ],
    }
}
