//! `sterna bench dvdstore`: orders per second of a database.
//!
//! The first run on a database loads the store; later ones use it as it is. While
//! users shop there is a line of figures every ten seconds, beside it the time left, and
//! a report at the end. Ctrl-C ends a run in good order, with its report.
//!
//! With `--check` nothing is loaded and nothing is run: the database is asked for each
//! order that a run has noted as acknowledged.

mod screen;
mod words;

use std::cell::RefCell;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_console::interruption::Interruption;
use sterna_console::output::Output;
use sterna_console::screen::Screen;
use sterna_workload::dvdstore::{
    self, LoadOptions, Pace, RunOptions, Server, Size, Store, StoreError, Tablespaces,
    Window,
};
use tokio::time::{Instant, interval};

use self::screen::Loader;

/// Where the password is looked for if the URI has none, as PostgreSQL's own clients
/// do: command lines can be read by everybody on the machine.
pub(crate) const PASSWORD_VARIABLE: &str = "PGPASSWORD";
/// How often the time left is shown anew.
const SHOWN: Duration = Duration::from_secs(1);
/// The most users: more than any server has connections.
const USERS_MOST: i64 = 10_000;

/// What is behind the options.
pub(crate) const NOTES: &str = "\
Data, indexes and log on separate disks:
  Make the server with its log elsewhere: initdb -D DATA --waldir LOG
  In it, as a superuser: CREATE TABLESPACE idx LOCATION '/index/space'
  Then load with --data-tablespace and --index-tablespace.

Examples:
  sterna bench dvdstore --uri postgres://me@localhost/shop --size medium
  sterna bench dvdstore --uri postgres://me@localhost/shop --rate 50 \\
      --acknowledged orders
  sterna bench dvdstore --uri postgres://me@localhost/shop --check orders";

/// What the store can be told.
#[derive(Debug, Args)]
pub(crate) struct DvdstoreArgs {
    /// The database: postgres://USER@HOST:PORT/DATABASE, or with a unix socket
    /// postgres:///DATABASE?host=DIRECTORY&user=USER
    #[arg(long)]
    uri: String,
    /// The size of the store: small (10 MB), medium (1 GB), large (100 GB), or a size
    #[arg(long, default_value = "small")]
    size: Size,
    /// Connections that make orders, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=USERS_MOST))]
    users: u32,
    /// Mean think time of a user after an order, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    think: Duration,
    /// Open loop: this many orders per second, whatever the server's response time
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "think", value_parser = rate)]
    rate: Option<f64>,
    /// Minutes to measure; 0 only loads the store
    #[arg(long, default_value = "5", value_parser = minutes)]
    minutes: Duration,
    /// Minutes of warm-up before the measurement
    #[arg(long, value_name = "MINUTES", default_value = "1", value_parser = minutes)]
    warm_up: Duration,
    /// Remove an existing store, and load a new one
    #[arg(long)]
    reload: bool,
    /// The tablespace for tables, when the command loads the store
    #[arg(long, value_name = "NAME")]
    data_tablespace: Option<String>,
    /// The tablespace for indexes, when the command loads the store
    #[arg(long, value_name = "NAME")]
    index_tablespace: Option<String>,
    /// Write every order that the server acknowledges to this file
    #[arg(long, value_name = "FILE")]
    acknowledged: Option<PathBuf>,
    /// Only check that every order in this file is in the database
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reload", "acknowledged"])]
    check: Option<PathBuf>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    // A year in minutes, as good a bound as any.
    if (0.0..=525_600.0).contains(&number) {
        Ok(number)
    } else {
        Err("from 0 to 525600".into())
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    number(text).map(Duration::from_secs_f64)
}

fn minutes(text: &str) -> Result<Duration, String> {
    number(text).map(|minutes| Duration::from_secs_f64(60.0 * minutes))
}

fn rate(text: &str) -> Result<f64, String> {
    number(text).and_then(
        |rate| {
            if rate > 0.0 { Ok(rate) } else { Err("more than 0".into()) }
        },
    )
}

impl DvdstoreArgs {
    fn spaces(&self) -> Tablespaces {
        let (data, index) = (self.data_tablespace.clone(), self.index_tablespace.clone());
        Tablespaces { data, index }
    }

    fn run_options(&self) -> RunOptions {
        RunOptions {
            users: self.users as usize,
            pace: match self.rate {
                Some(rate) => Pace::Open { rate },
                None => Pace::Closed { think: self.think },
            },
            warm_up: self.warm_up,
            length: self.minutes,
            seed: self.seed,
            acknowledged: self.acknowledged.clone(),
        }
    }
}

/// Loads, runs, or checks.
pub(crate) fn run(args: &DvdstoreArgs, output: Output) -> anyhow::Result<()> {
    let password = std::env::var(PASSWORD_VARIABLE).ok();
    let server = Server::new(&args.uri, password).map_err(|error| failure(&error))?;
    // Users answer each other's waiting on as many threads as there are processors.
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime =
        builder.enable_all().build().context("cannot start the async runtime")?;
    runtime.block_on(async {
        match &args.check {
            Some(path) => {
                let verdict = dvdstore::check(&server, path)
                    .await
                    .map_err(|error| failure(&error))?;
                words::tell_verdict(&verdict, path, output)
            }
            None => shop(args, &server, output).await,
        }
    })
}

async fn shop(
    args: &DvdstoreArgs,
    server: &Server,
    output: Output,
) -> anyhow::Result<()> {
    // Heard from the beginning, so that none is missed between load and run.
    let mut wish = Interruption::listen()?;
    let store = tokio::select! {
        store = store(args, server, output) => store?,
        _ = wish.heard() => return Err(interrupted().into()),
    };
    if args.minutes.is_zero() {
        return words::tell_store(store, output);
    }
    let options = args.run_options();
    let stop = async {
        // Nothing is said with it, and it does not end before this program does.
        let _ = wish.heard().await;
    };
    let mut lines = words::Lines::new(output);
    let screen = RefCell::new(None);
    let mut told = |window: &Window| match &*screen.borrow() {
        Some(screen) => Screen::beside(screen, || lines.tell(window)),
        None => lines.tell(window),
    };
    let report = tokio::select! {
        report = dvdstore::run(server, store, &options, stop, &mut told) => report,
        never = show(&screen, &options, output) => match never {},
    };
    drop(screen.take());
    words::tell_report(&report.map_err(|error| failure(&error))?, output)
}

/// Shows for how long a run still warms up, and then, for how long it is measured.
async fn show(
    screen: &RefCell<Option<Screen>>,
    options: &RunOptions,
    output: Output,
) -> Infallible {
    let phases = [
        (options.warm_up, "warming up; nothing is measured yet"),
        (options.length, "measuring; a line of figures every 10 s"),
    ];
    for (length, what) in phases.into_iter().filter(|(length, _)| !length.is_zero()) {
        let begin = Instant::now();
        let new = Screen::new(output, length.as_secs_f64());
        new.phase(0.0, what);
        *screen.borrow_mut() = Some(new);
        let mut ticks = interval(SHOWN);
        while begin.elapsed() < length {
            ticks.tick().await;
            if let Some(screen) = &*screen.borrow() {
                screen.tick(begin.elapsed().as_secs_f64());
            }
        }
    }
    // The users are waited for.
    std::future::pending().await
}

/// The store that is asked for: the one that is there, or a new one.
async fn store(
    args: &DvdstoreArgs,
    server: &Server,
    output: Output,
) -> anyhow::Result<Store> {
    let spaces = args.spaces();
    if !args.reload
        && let Some(store) = server
            .store_like(args.size, &spaces)
            .await
            .map_err(|error| failure(&error))?
    {
        return Ok(store);
    }
    let options =
        LoadOptions { size: args.size, seed: args.seed, spaces, reload: args.reload };
    let mut screen = Loader::new(output);
    let mut told = |news| screen.tell(news);
    Ok(dvdstore::load(server, &options, &mut told)
        .await
        .map_err(|error| failure(&error))?)
}

fn interrupted() -> Failure {
    Failure {
        code: ErrorCode::Interrupted,
        message: "the load was interrupted, so the store is incomplete".into(),
        hint: "load the store anew: --reload".into(),
    }
}

/// What went wrong with the store, as the command line tells it.
fn failure(error: &StoreError) -> Failure {
    let code = match error {
        StoreError::Uri(_) | StoreError::NoOrder { .. } => ErrorCode::Invalid,
        StoreError::NoServer { .. }
        | StoreError::Crowded(_)
        | StoreError::Refused { .. }
        | StoreError::Forbidden(_)
        | StoreError::Lost(_)
        | StoreError::Unfinished => ErrorCode::Unavailable,
        StoreError::NoDatabase { .. }
        | StoreError::NoStore
        | StoreError::NoTablespace { .. } => ErrorCode::NotFound,
        StoreError::Exists(_)
        | StoreError::Foreign
        | StoreError::OtherSize { .. }
        | StoreError::OtherTablespace { .. } => ErrorCode::Exists,
        StoreError::Full(_) => ErrorCode::NoSpace,
        StoreError::Server(_) | StoreError::File { .. } => ErrorCode::Internal,
    };
    Failure { code, message: error.to_string(), hint: error.hint().into() }
}
