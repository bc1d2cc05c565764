//! `sterna serve`: the daemon in the foreground.
//!
//! What it is told ([`options`]) comes from flags, the environment and a file ([`file`]);
//! `--check` only looks at that ([`check`]).

mod check;
mod experiment;
mod file;
mod log;
mod options;

use std::io;
use std::thread;

use anyhow::Context;
use sterna_api::Status;
use sterna_console::connect::{Said, caller, explain};
use sterna_console::output::{Output, takes_colour};
use sterna_daemon::{LAST_LINES, Log, Notes, RUNTIME_WORKERS, Settings, check_start};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

pub(crate) use options::ServeArgs;

use crate::common::SocketArg;

/// With `--json`, prints the daemon's status once clients can connect. A thread of its own
/// does so: if the reader hangs, the daemon does not wait for it.
fn tell(status: &Status, output: Output) {
    if !output.is_json() {
        return;
    }
    let status = status.clone();
    let tell = move || drop(output.line(&status));
    // Without it somebody waits in vain, who sees the log.
    if let Err(error) = thread::Builder::new().name("sterna-ready".into()).spawn(tell) {
        tracing::warn!(%error, "cannot report that the daemon is ready");
    }
}

/// Runs the daemon until it is told to stop. With `--json` its status is
/// printed on one line once it is ready.
pub(crate) fn run(
    args: ServeArgs,
    socket: SocketArg,
    output: Output,
) -> anyhow::Result<()> {
    if args.check {
        return check::run(&args.resolve(socket, &caller())?, output);
    }
    // The log has the first.
    let is_scarce = check_start()?;
    let (log, notes) = begin_log()?;
    if let Some(warning) = is_scarce {
        tracing::warn!("{warning}");
    }
    let ended = run_with(args, socket, output, &log, notes);
    if let Err(error) = ended {
        // The log's thread prints the error: if stderr hangs, the daemon still ends, and
        // its supervisor can start it again.
        log.say(output.failure_text(&explain(&error)).as_bytes());
        log.settle(LAST_LINES);
        return Err(Said.into());
    }
    log.settle(LAST_LINES);
    Ok(())
}

/// Has the log, and what threads say as they panic, go to stderr; and what operators want
/// to find later go to the list of activities.
fn begin_log() -> anyhow::Result<(Log, Notes)> {
    let log = Log::to_stderr().context("cannot start the log's thread")?;
    log.take_panics();
    let filter = EnvFilter::try_from_env("STERNA_LOG").unwrap_or(EnvFilter::new("info"));
    let lines = log.clone();
    let shown = tracing_subscriber::fmt::layer()
        .fmt_fields(log::fields())
        .with_writer(move || lines.clone())
        // It would print what goes wrong itself, and panic if that goes wrong.
        .log_internal_errors(false)
        .with_ansi(takes_colour(&io::stderr()))
        .with_target(false)
        .with_filter(filter);
    let notes = Notes::default();
    tracing_subscriber::registry().with(shown).with(notes.clone()).init();
    Ok((log, notes))
}

fn run_with(
    args: ServeArgs,
    socket: SocketArg,
    output: Output,
    log: &Log,
    notes: Notes,
) -> anyhow::Result<()> {
    let experiment = args.experiment.clone();
    let resolved = args.resolve(socket, &caller())?;
    if let Some(file) = &resolved.config {
        tracing::info!(file = %file.display(), "configuration read");
    }
    let settings = Settings {
        state: resolved.state,
        nbd_socket: resolved.nbd_socket,
        socket: resolved.socket,
        listen: resolved.listen,
        io: resolved.io.into(),
        dashboard: resolved.dashboard,
        notes,
        log: log.clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_WORKERS)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let served = runtime.block_on(async {
        let over = experiment::ends(!experiment.is_empty());
        sterna_daemon::serve(settings, |status| tell(status, output), over).await
    });
    // What still hangs with a datastore hangs alone.
    runtime.shutdown_background();
    experiment::clean_up(&experiment);
    Ok(served?)
}
