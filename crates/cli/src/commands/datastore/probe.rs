//! `sterna datastore probe`: loads a datastore's device on purpose, and says what it can do.
//!
//! A probe is traffic as any other: random reads over NBD, of a disk that is made for it and
//! goes away again. How many at a time, and when that is enough, is decided in `core`. What
//! it saw is told to the daemon, which knows a device by its traffic, but not that a load
//! was made on purpose. A datastore that is all one disk's has no room for another: there
//! that disk is read.
//!
//! **Harm.** What is written beforehand goes slowly, and the probe leaves off when others
//! get less. Ctrl-C ends it in order. A probe that is killed leaves its disk behind; the
//! next one says so, and how to remove it.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use sterna_api::{
    Client, CreateDisk, Datastore, DatastoreKind, Device, ErrorCode, ImageFate,
    ProbeFound, ProbeStep, Provision, TopBy,
};
use sterna_console::connect::{Failure, Link};
use sterna_console::format::{iops, response};
use sterna_console::interruption::Interruption;
use sterna_console::output::{Output, WIDTH};
use sterna_console::screen::Screen;
use sterna_console::table::{Column, Table, wrap};
use sterna_core::measure::probe::{End, Next, Probe, STEP, Step};
use sterna_core::{Bytes, Nanos};
use sterna_workload::load::{Application, Lengths, Order, Pace, Profile};
use tokio::time::sleep;

/// What is read, if nothing else is said: more than a disk's own cache.
const SIZE: &str = "256M";
/// The smallest: fewer places are read again before they are forgotten.
const SIZE_LEAST: Bytes = Bytes(16 << 20);
/// What is written must be free so many times: machines go on writing.
const ROOM: u64 = 4;
/// How long requests are: those of databases.
const LENGTH: &str = "8K";
/// What is written at a time, and how often a second: 32 MiB/s, which a datastore that
/// serves machines has to spare.
const WRITTEN: u32 = 1 << 20;
const WRITES: f64 = 32.0;
/// The most that writing may take, as a multiple of its due time.
const LATE_MAX: f64 = 20.0;
/// How long others are looked at before: what they get then is what they have...
const BEFORE: Duration = Duration::from_secs(2);
/// ... once what was written is surely in no window of that.
const SETTLES: Duration = Duration::from_secs(1);
/// A window may begin a sample before what it is asked for: so much earlier a load begins.
const LEAD: Duration = Duration::from_millis(250);
/// How often it is asked what was done, until both answers are of one moment.
const ASKS: usize = 5;
/// Of a disk that others have too, so small a part of a load is no sign of them: the two
/// are not counted at the same moments.
const NOISE: f64 = 0.05;
/// How often it is looked whether enough is written.
const LOOK: Duration = Duration::from_millis(200);
/// Where a probe reads is all one to it, as long as it is not twice the same.
const SEED: u64 = 1;
/// Steps up to the deepest load.
const STEPS_MOST: f64 = 7.0;

/// What is probed, and with what.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// The datastore
    name: String,
    /// How much to write and then read, on a datastore of several disks; more than its
    /// cache
    #[arg(long, value_name = "SIZE", value_parser = parse_probed, default_value = SIZE)]
    size: Bytes,
    /// The length of each request
    #[arg(long, value_name = "SIZE", value_parser = parse_length, default_value = LENGTH)]
    length: Bytes,
}

fn parse_probed(text: &str) -> Result<Bytes, String> {
    let size = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    let whole = size.0 % u64::from(WRITTEN) == 0;
    if size < SIZE_LEAST || !whole {
        return Err(format!("it can be {SIZE_LEAST} and more, in whole MiB"));
    }
    Ok(size)
}

fn parse_length(text: &str) -> Result<Bytes, String> {
    let length = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    let fits = (512..=1 << 20).contains(&length.0) && length.0 % 512 == 0;
    fits.then_some(length)
        .ok_or_else(|| "it can be 512 to 1M, in multiples of 512".into())
}

/// What was seen.
#[derive(Debug, Serialize)]
struct Probed {
    datastore: String,
    length: u64,
    steps: Vec<ProbeStep>,
    /// `peak`, `deepest` or `others`.
    end: &'static str,
    /// The part of what they had that others got, if it ended for that.
    others_kept: Option<f64>,
    device: Device,
}

/// Carries out the command.
pub(crate) fn run(args: &ProbeArgs, link: &Link, output: Output) -> anyhow::Result<()> {
    let probed = link.ask(async |client| {
        let mut wish = Interruption::listen()?;
        let datastore = client.datastore(&args.name).await?;
        // A datastore that says how much is free can be read, whatever else is wrong with it.
        if let Some(problem) =
            datastore.problem.as_ref().filter(|_| datastore.free.is_none())
        {
            return Err(not_usable(&args.name, problem).into());
        }
        let Target { disk, ours } = target(client, &datastore, args.size).await?;
        let probed = tokio::select! {
            probed = probe(client, args, &disk, ours, output) => match probed {
                Ok(probed) => Ok(probed),
                Err(error) => Err(explained(client, &args.name, error).await),
            },
            _ = wish.heard() => Err(interrupted(&args.name).into()),
        };
        if ours {
            // Connections end a moment after whoever had them.
            let removed = client.remove_disk(&disk, ImageFate::Delete).await;
            removed.with_context(|| {
                format!("cannot remove {disk}, the disk of the probe")
            })?;
        }
        probed
    })?;
    output.answer(&probed, |probed| show(probed, output))
}

/// There is nothing to measure of a datastore that cannot be used.
fn not_usable(name: &str, problem: &str) -> Failure {
    Failure {
        code: ErrorCode::Unavailable,
        message: format!("datastore {name} cannot be probed: {problem}"),
        hint: format!(
            "repair this; `sterna datastore show {name}` shows when it is over"
        ),
    }
}

/// Why a probe has failed: for what is wrong with the datastore, if that is known by now.
async fn explained(client: &Client, name: &str, error: anyhow::Error) -> anyhow::Error {
    let seen = client.datastore(name).await.ok();
    match seen.and_then(|it| it.problem) {
        Some(problem) => not_usable(name, &problem).into(),
        None => error.context(format!("datastore {name} cannot be probed")),
    }
}

/// What is read.
struct Target {
    disk: String,
    /// Whether it was made for that.
    ours: bool,
}

async fn target(
    client: &Client,
    datastore: &Datastore,
    size: Bytes,
) -> anyhow::Result<Target> {
    let name = &datastore.name;
    let is_shared =
        matches!(datastore.kind, DatastoreKind::Directory | DatastoreKind::Array);
    if !is_shared {
        let found = client.disks().await?.into_iter().find(|it| it.datastore == *name);
        let Some(found) = found else {
            return Err(Failure {
                code: ErrorCode::NotFound,
                message: format!("datastore {name} has no disk to read"),
                hint: format!(
                    "create a disk: `sterna disk create NAME --size … --on {name}`"
                ),
            }
            .into());
        };
        return Ok(Target { disk: found.name, ours: false });
    }
    // What machines write there meanwhile must have room.
    if datastore.free.is_some_and(|free| free / ROOM < size.0) {
        return Err(Failure {
            code: ErrorCode::NoSpace,
            message: format!("datastore {name} has no room to spare for {size}"),
            hint: format!(
                "a probe needs {ROOM} times as much free space: choose a smaller --size"
            ),
        }
        .into());
    }
    let disk = format!("probe-of-{name}");
    if client.disks().await?.iter().any(|it| it.name == disk) {
        return Err(Failure {
            code: ErrorCode::Exists,
            message: format!(
                "disk {disk} exists: a probe of {name} is running, or was interrupted"
            ),
            hint: format!(
                "if no probe is running, remove the disk: `sterna disk remove {disk} \
                 --delete-image`"
            ),
        }
        .into());
    }
    let request = CreateDisk {
        name: disk.clone(),
        size: size.0,
        datastore: Some(name.clone()),
        provision: Provision::Thin,
    };
    client.create_disk(&request).await?;
    Ok(Target { disk, ours: true })
}

async fn probe(
    client: &Client,
    args: &ProbeArgs,
    disk: &str,
    ours: bool,
    output: Output,
) -> anyhow::Result<Probed> {
    let uri = client.disk(disk).await?.uris.into_iter().next();
    let uri = uri.with_context(|| format!("disk {disk} is not served"))?;
    let writing =
        if ours { args.size.0 as f64 / f64::from(WRITTEN) / WRITES } else { 0.0 };
    let reading = (LEAD + STEP.into()).as_secs_f64() * STEPS_MOST;
    let looking = (SETTLES + BEFORE).as_secs_f64();
    let screen = Screen::new(output, writing + looking + reading);
    if ours {
        screen.phase(0.0, "writing data to read");
        write(&uri, args.size, writing, &screen).await?;
    }
    screen.phase(writing, "measuring other load");
    sleep(SETTLES + BEFORE).await;
    let others = all(client, &args.name, BEFORE.as_secs_f64()).await?;
    let made = ours.then_some(disk);
    let mut probe = Probe::new(others);
    let mut at = writing + looking;
    let mut outstanding = probe.first();
    let end = loop {
        screen.phase(at, &format!("{outstanding} at a time"));
        let step = load(client, args, &uri, made, outstanding).await?;
        at += (LEAD + STEP.into()).as_secs_f64();
        screen.tick(at);
        match probe.next(step) {
            Next::Load(next) => outstanding = next,
            Next::Done(end) => break end,
        }
    };
    let (end, others_kept) = match end {
        End::Peak => ("peak", None),
        End::Deepest => ("deepest", None),
        End::Others(kept) => ("others", Some(kept)),
    };
    // Of a load under which nothing was answered there is nothing to learn.
    let answered = probe.steps().iter().filter(|step| step.response > Nanos(0));
    let seen = answered.map(|step| ProbeStep {
        outstanding: step.outstanding,
        iops: step.iops,
        response_us: step.response.0 as f64 / 1e3,
        others_iops: step.others,
    });
    let found = ProbeFound { steps: seen.collect() };
    let device = client.probed(&args.name, &found).await?;
    Ok(Probed {
        datastore: args.name.clone(),
        length: args.length.0,
        steps: found.steps,
        end,
        others_kept,
        device,
    })
}

/// Writes noise, as a device or file system could keep anything else from being read.
async fn write(uri: &str, size: Bytes, due: f64, screen: &Screen) -> anyhow::Result<()> {
    let profile = Profile {
        order: Order::Sequential,
        reads: 0,
        lengths: Lengths::always(WRITTEN),
        pace: Pace::Open { rate: WRITES },
        flush_every: None,
        bursts: None,
        span: None,
    };
    let mut writer = Application::start(uri, &profile, SEED)?;
    let mut written = 0;
    for _ in 0..(due * LATE_MAX / LOOK.as_secs_f64()).ceil() as u64 {
        sleep(LOOK).await;
        written += writer.take()?.write.bytes;
        screen.tick(due * (written as f64 / size.0 as f64).min(1.0));
        if written >= size.0 {
            writer.stop()?;
            return Ok(());
        }
    }
    bail!("{} of {size} were written in {:.0} s", Bytes(written), due * LATE_MAX)
}

/// One step, of a disk that was made for it or of another one.
async fn load(
    client: &Client,
    args: &ProbeArgs,
    uri: &str,
    made: Option<&str>,
    outstanding: u32,
) -> anyhow::Result<Step> {
    let profile = Profile {
        order: Order::Random,
        reads: 100,
        lengths: Lengths::always(args.length.0 as u32),
        pace: Pace::Closed { outstanding },
        flush_every: None,
        bursts: None,
        span: None,
    };
    let mut reader = Application::start(uri, &profile, SEED + u64::from(outstanding))?;
    sleep(LEAD).await;
    reader.take()?;
    sleep(Duration::from(STEP)).await;
    let window = reader.take()?;
    let own = window.iops();
    let others = match made {
        Some(disk) => others(client, &args.name, disk).await?,
        None => {
            let more = all(client, &args.name, STEP.as_secs_f64()).await? - own;
            if more > own * NOISE { more } else { 0.0 }
        }
    };
    reader.stop()?;
    let response = window.read.mean(window.read.response).unwrap_or(Nanos(0));
    Ok(Step { outstanding, iops: own, response, others })
}

/// What a datastore does for all but one disk during a step, in requests per second. Both
/// are counted by the daemon: of one moment, they differ by the others' alone.
async fn others(client: &Client, name: &str, disk: &str) -> anyhow::Result<f64> {
    let window = STEP.as_secs_f64();
    let own = async || rate_of(client, TopBy::Disk, disk, window).await;
    let mut more = 0.0;
    let mut before = own().await?;
    for _ in 0..ASKS {
        let all = all(client, name, window).await?;
        let after = own().await?;
        more = (all - after).max(0.0);
        if before == after {
            break;
        }
        before = after;
    }
    // What is left of fractions is nobody.
    Ok(if more < 0.5 { 0.0 } else { more })
}

/// What a datastore does for everybody, in requests per second.
async fn all(client: &Client, name: &str, window_s: f64) -> anyhow::Result<f64> {
    rate_of(client, TopBy::Datastore, name, window_s).await
}

/// What one row does, in requests per second.
async fn rate_of(
    client: &Client,
    by: TopBy,
    name: &str,
    window_s: f64,
) -> anyhow::Result<f64> {
    let top = client.top(by, window_s).await?;
    let row = top.rows.iter().find(|row| row.name == name);
    Ok(row.map_or(0.0, |row| row.load.iops()))
}

fn interrupted(name: &str) -> Failure {
    Failure {
        code: ErrorCode::Interrupted,
        message: format!("the probe of {name} was interrupted"),
        hint: "the daemon keeps the measurements so far: `sterna top --by datastore`"
            .into(),
    }
}

fn show(probed: &Probed, output: Output) -> String {
    let mut table = Table::new(&[
        ("UNDER WAY", Column::Right),
        ("IO/s", Column::Right),
        ("RESPONSE", Column::Right),
        ("OTHERS' IO/s", Column::Right),
    ]);
    for step in &probed.steps {
        table.row(vec![
            step.outstanding.to_string().into(),
            iops(step.iops).into(),
            response(Some(step.response_us)).into(),
            iops(step.others_iops).into(),
        ]);
    }
    let end = match (probed.end, probed.others_kept) {
        (_, Some(kept)) => format!(
            "Stopped: other disks fell to {:.0}% of their IO/s in the {} s before.",
            kept * 100.0,
            BEFORE.as_secs()
        ),
        ("peak", None) => "More requests at a time bring hardly more IO/s.".into(),
        _ => "The probe did not reach the limits of the device.".into(),
    };
    let device = wrap(&device(probed), WIDTH).join("\n");
    format!("{}{end}\n{device}\n", output.table(&table))
}

/// What one request more costs: on fast devices next to nothing in milliseconds.
fn more(us: f64) -> String {
    match us {
        100.0.. => response(Some(us)),
        10.0.. => format!("{us:.0} us"),
        _ => format!("{us:.2} us"),
    }
}

/// The line, in words.
fn device(probed: &Probed) -> String {
    let name = &probed.datastore;
    match &probed.device {
        Device::Line { unloaded_us, slope_us, peak_iops, .. } => format!(
            "{name}: {} for a single request, {} more for each further request; {} IO/s \
             at most.",
            response(Some(*unloaded_us)),
            more(*slope_us),
            iops(*peak_iops)
        ),
        Device::Flat { service_us, .. } => {
            format!(
                "{name}: {} for a request, whatever the load.",
                response(Some(*service_us))
            )
        }
        Device::TooFew { .. } | Device::NoVariation { .. } => {
            format!("{name}: too few measurements to tell what its device can do.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_probed_fits_on_a_screen() {
        let probed = Probed {
            datastore: "slow".into(),
            length: 8192,
            steps: vec![ProbeStep {
                outstanding: 64,
                iops: 1234.5,
                response_us: 51_800.0,
                others_iops: 17.0,
            }],
            end: "others",
            others_kept: Some(0.71),
            device: Device::Line {
                unloaded_us: 4900.0,
                slope_us: 720.0,
                slope_error_us: 30.0,
                peak_iops: 1388.0,
                points: 28,
                seen_from: 1.0,
                seen_to: 64.0,
            },
        };
        let text = show(&probed, Output::new(false));
        for part in
            ["51.8 ms", "71% of their IO/s in the 2 s before", "0.72 ms more", "1388"]
        {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn what_one_more_costs_is_seen_on_fast_devices() {
        let said = [720.0, 42.0, 3.456, 0.02].map(more);
        assert_eq!(said, ["0.72 ms", "42 us", "3.46 us", "0.02 us"]);
    }

    #[test]
    fn sizes_that_make_no_probe_are_refused() {
        assert!(parse_probed("1M").is_err() && parse_probed("100001K").is_err());
        assert_eq!(parse_probed("64M"), Ok(Bytes(64 << 20)));
        assert!(parse_length("100").is_err() && parse_length("2M").is_err());
        assert_eq!(parse_length("64K"), Ok(Bytes(64 << 10)));
    }
}
