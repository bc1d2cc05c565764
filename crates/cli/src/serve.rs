//! `sterna serve`: the daemon in the foreground.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;

use anyhow::Context;
use clap::{Args, ValueEnum};
use sterna_api::Status;
use sterna_daemon::{IoChoice, LAST_LINES, Log, Settings};
use tracing_subscriber::EnvFilter;

use crate::connect::{Link, Said, caller, explain};
use crate::output::{Output, takes_colour};
use crate::{experiment, log};

/// What the daemon needs to know.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The state directory [default: /var/lib/sterna for root, else
    /// $XDG_STATE_HOME/sterna]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Also serve NBD over TCP, without login or encryption: choose a trusted network
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    listen: Vec<SocketAddr>,
    /// The unix socket for NBD [default: nbd.sock beside the API socket]
    #[arg(long, value_name = "PATH")]
    nbd_socket: Option<PathBuf>,
    /// The method of I/O
    #[arg(long, value_enum, default_value_t)]
    io: IoArg,
    /// It belongs to an experiment: it ends when its stdin does, and removes DIR then
    #[arg(long, value_name = "DIR", hide = true)]
    experiment: Vec<PathBuf>,
}

/// Tells whoever waits for it that it is ready, if that is asked for. Who reads that may
/// stand still, or be gone; nobody else waits for them.
fn tell(status: &Status, output: Output) {
    if !output.is_json() {
        return;
    }
    let status = status.clone();
    let tell = move || drop(output.line(&status));
    // Without it somebody waits in vain, who sees the log.
    if let Err(error) = thread::Builder::new().name("sterna-ready".into()).spawn(tell) {
        tracing::warn!(%error, "cannot say that it is ready");
    }
}

/// Reads where to listen. A name may mean several addresses, or others tomorrow.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "give an IP address and a port (127.0.0.1:10809 or [::1]:10809)".into()
    })
}

/// How to do I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum IoArg {
    /// io_uring if the kernel permits it, else threads
    #[default]
    Auto,
    /// io_uring, or fail
    #[value(name = "io_uring")]
    Uring,
    /// A pool of threads
    Threads,
}

impl From<IoArg> for IoChoice {
    fn from(arg: IoArg) -> Self {
        match arg {
            IoArg::Auto => IoChoice::Auto,
            IoArg::Uring => IoChoice::Uring,
            IoArg::Threads => IoChoice::Threads,
        }
    }
}

/// Runs the daemon until it is told to stop. With `--json` its status is
/// printed on one line once it is ready.
pub(crate) fn run(args: ServeArgs, link: &Link, output: Output) -> anyhow::Result<()> {
    let log = begin_log()?;
    let ended = run_with(args, link, output, &log);
    if let Err(error) = ended {
        // By the log's way, which does not hang: whoever starts it anew waits for its end.
        log.say(output.failure_text(&explain(&error)).as_bytes());
        log.settle(LAST_LINES);
        return Err(Said.into());
    }
    log.settle(LAST_LINES);
    Ok(())
}

/// Has the log, and what threads say as they panic, go to stderr.
fn begin_log() -> anyhow::Result<Log> {
    let log = Log::to_stderr().context("cannot start the log's thread")?;
    log.take_panics();
    let filter = EnvFilter::try_from_env("STERNA_LOG").unwrap_or(EnvFilter::new("info"));
    let lines = log.clone();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(log::fields())
        .with_writer(move || lines.clone())
        // It would print what goes wrong itself, and panic if that goes wrong.
        .log_internal_errors(false)
        .with_ansi(takes_colour(&io::stderr()))
        .with_target(false)
        .init();
    Ok(log)
}

fn run_with(
    args: ServeArgs,
    link: &Link,
    output: Output,
    log: &Log,
) -> anyhow::Result<()> {
    let socket = link.client().socket().to_owned();
    let beside = socket.with_file_name("nbd.sock");
    let state = args.state.unwrap_or_else(|| caller().state());
    // What others are told (an export's URI) must hold wherever they are.
    let settings = Settings {
        state: std::path::absolute(state).context("cannot find the state directory")?,
        nbd_socket: std::path::absolute(args.nbd_socket.unwrap_or(beside))
            .context("cannot find the NBD socket")?,
        socket: std::path::absolute(socket).context("cannot find the API socket")?,
        listen: args.listen,
        io: args.io.into(),
        log: log.clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The control plane is quiet; the guests' I/O has threads of its own.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let served = runtime.block_on(async {
        let over = experiment::ends(!args.experiment.is_empty());
        sterna_daemon::serve(settings, |status| tell(status, output), over).await
    });
    // What still hangs with a datastore hangs alone.
    runtime.shutdown_background();
    experiment::clean_up(&args.experiment);
    Ok(served?)
}
