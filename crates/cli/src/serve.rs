//! `sterna serve`: the daemon in the foreground.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use sterna_daemon::{IoChoice, Settings};
use tracing_subscriber::EnvFilter;

use crate::connect::{Link, caller};
use crate::log;
use crate::output::Output;

/// What the daemon needs to know.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where state is kept [default: /var/lib/sterna for root, else
    /// $XDG_STATE_HOME/sterna]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Serve NBD over TCP as well; without login or encryption, so choose a
    /// network that you trust
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    listen: Vec<SocketAddr>,
    /// The unix socket for NBD [default: nbd.sock beside the API socket]
    #[arg(long, value_name = "PATH")]
    nbd_socket: Option<PathBuf>,
    /// How to do I/O
    #[arg(long, value_enum, default_value_t)]
    io: IoArg,
}

/// Reads where to listen. A name may mean several addresses, or others tomorrow.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "an IP address and a port are needed, as in 127.0.0.1:10809 or [::1]:10809".into()
    })
}

/// How to do I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum IoArg {
    /// io_uring if the kernel lets us, else threads
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
    let filter = EnvFilter::try_from_env("STERNA_LOG").unwrap_or(EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(log::fields())
        .with_writer(io::stderr)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .with_target(false)
        .init();
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
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The control plane is quiet; the guests' I/O has threads of its own.
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let served = runtime.block_on(sterna_daemon::serve(settings, move |status| {
        if output.is_json() {
            // Nobody is left to tell if stdout is gone.
            let _ = output.line(status);
        }
    }));
    // A request that waits for storage that hangs may never end.
    runtime.shutdown_background();
    Ok(served?)
}
