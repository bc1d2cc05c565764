//! `sterna-checker`: writes to an NBD export, remembers every acknowledged
//! write in a log, and says later whether each of them is still there.
//!
//! Figures come as lines of JSON on stdout, words on stderr. The exit code is 1
//! if anything was wrong or answered with an error.
#![forbid(unsafe_code)]

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Parser};
use sterna_nbd::Uri;
use sterna_workload::checker::{
    Event, Mix, RunOptions, Sizes, VerifyOptions, Wrong, run, verify,
};

/// Writes, remembers what was acknowledged, and asks for it later.
#[derive(Parser)]
#[command(name = "sterna-checker", version, max_term_width = 80)]
enum Cli {
    /// Run the workload; with a log that exists, go on from it
    Run(RunArgs),
    /// Read everything back and compare it with the log
    Verify(Common),
}

#[derive(Args)]
struct Common {
    /// The export: nbd+unix:///NAME?socket=PATH or nbd://HOST:PORT/NAME
    #[arg(long)]
    uri: String,
    /// The log of acknowledged writes
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    common: Common,
    /// How long; without it, until stdin is closed
    #[arg(long)]
    seconds: Option<f64>,
    /// Requests outstanding, over all connections
    #[arg(long, default_value_t = 16)]
    depth: usize,
    /// Connections
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// The unit of memory: 512 or 4096
    #[arg(long, default_value_t = 4096, value_parser = block)]
    block: u32,
    /// Bytes of a request; mixed if left out
    #[arg(long)]
    size: Option<u32>,
    /// Percent of requests that read
    #[arg(long, default_value_t = Mix::default().reads)]
    reads: u32,
    /// Percent of requests that trim
    #[arg(long, default_value_t = Mix::default().trims)]
    trims: u32,
    /// Percent of requests that write zeroes
    #[arg(long, default_value_t = Mix::default().zeroes)]
    zeroes: u32,
    /// Percent of requests that flush
    #[arg(long, default_value_t = Mix::default().flushes)]
    flushes: u32,
    /// Percent of writes that are durable when acknowledged
    #[arg(long, default_value_t = Mix::default().fua)]
    fua: u32,
    /// Percent of requests in a small hot range
    #[arg(long, default_value_t = Mix::default().hot)]
    hot: u32,
    /// Percent of requests of a sequential stream
    #[arg(long, default_value_t = Mix::default().sequential)]
    sequential: u32,
    /// Where the randomness comes from; printed
    #[arg(long)]
    seed: Option<u64>,
    /// Use only so many bytes from the start
    #[arg(long)]
    span: Option<u64>,
    /// First write everything once (this time does not count)
    #[arg(long)]
    fill: bool,
    /// The disk reads as zeroes where nothing was written: check that too
    #[arg(long)]
    blank: bool,
    /// At most so many requests per second
    #[arg(long)]
    rate: Option<u64>,
    /// Milliseconds between lines of figures
    #[arg(long, default_value_t = 1000)]
    report_ms: u64,
    /// Seconds to wait for a server that is gone
    #[arg(long, default_value_t = 60)]
    reconnect: u64,
}

fn block(text: &str) -> Result<u32, String> {
    match text {
        "512" => Ok(512),
        "4096" => Ok(4096),
        _ => Err("512 or 4096".into()),
    }
}

impl RunArgs {
    fn options(&self) -> anyhow::Result<RunOptions> {
        let sizes = self.size.map_or(Sizes::Mixed, Sizes::Fixed);
        let mix = Mix {
            reads: self.reads,
            trims: self.trims,
            zeroes: self.zeroes,
            flushes: self.flushes,
            fua: self.fua,
            hot: self.hot,
            sequential: self.sequential,
            sizes,
        };
        Ok(RunOptions {
            uri: self.common.uri.parse::<Uri>()?,
            log: self.common.log.clone(),
            duration: self.seconds.map(Duration::from_secs_f64),
            depth: self.depth.max(1),
            connections: self.connections.max(1),
            mix,
            block: self.block,
            seed: self.seed.unwrap_or_else(any_seed),
            span: self.span,
            fill: self.fill,
            blank: self.blank,
            rate: self.rate,
            report: Duration::from_millis(self.report_ms.max(1)),
            reconnect: Duration::from_secs(self.reconnect),
            stop: Arc::new(AtomicBool::new(false)),
        })
    }
}

/// A seed from the clock, for a run that nobody repeats (yet).
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 & 0xffff_ffff
}

/// Ends the run when whoever started us closes our stdin.
fn stop_at_end_of_stdin(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut sink = [0; 64];
        while matches!(std::io::stdin().read(&mut sink), Ok(read) if read > 0) {}
        stop.store(true, Ordering::Relaxed);
    });
}

fn show_wrong(wrong: &Wrong) {
    let expected: Vec<String> = wrong.expected.iter().map(ToString::to_string).collect();
    println!(
        "{{\"wrong\":{{\"block\":{},\"expected\":\"{}\",\"found\":\"{}\"}}}}",
        wrong.block,
        expected.join(" or "),
        wrong.found
    );
}

fn run_workload(args: &RunArgs) -> anyhow::Result<bool> {
    let options = args.options()?;
    eprintln!("seed {}", options.seed);
    if options.duration.is_none() {
        stop_at_end_of_stdin(Arc::clone(&options.stop));
    }
    let outcome = run(&options, &mut |event| match event {
        Event::Interval(interval) => println!("{}", interval.json()),
        Event::Wrong(wrong) => show_wrong(wrong),
        Event::Error(text) => eprintln!("error: {text}"),
        Event::Connection(text) => eprintln!("{text}"),
    })?;
    println!("{{\"summary\":{}}}", outcome.summary.json());
    Ok(outcome.summary.wrong == 0 && outcome.summary.errors == 0)
}

fn verify_disk(args: &Common) -> anyhow::Result<bool> {
    let (uri, log) = (args.uri.parse::<Uri>()?, args.log.clone());
    let verdict = verify(&VerifyOptions { uri, log }, &mut show_wrong)?;
    println!("{{\"verdict\":{}}}", verdict.json());
    Ok(verdict.wrong == 0)
}

fn main() -> ExitCode {
    let result = match Cli::parse() {
        Cli::Run(args) => run_workload(&args),
        Cli::Verify(args) => verify_disk(&args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
