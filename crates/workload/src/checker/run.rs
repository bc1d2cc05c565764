//! The run: keep so many requests outstanding, remember what was promised,
//! compare what is read, survive the server.
//!
//! One thread and one `poll` for all connections. The order within a turn
//! matters: requests are entered in the ledger before a byte of them is sent,
//! and acknowledgements before the next request on those blocks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sterna_nbd::{Command, Uri};

use super::content::Version;
use super::ledger::{Entry, Header, Ledger, Mark};
use super::mix::{Effect, Generator, Intent, Mix, Pick};
use super::model::{Model, Wrong};
use super::stats::{Interval, Stats, Summary};
use crate::connection::{self, Answer, Connection, Reads};

/// How long to wait between two tries to connect.
const RETRY: Duration = Duration::from_millis(10);
/// The longest sleep: the stop signal and the rate are looked at this often.
const TURN: Duration = Duration::from_millis(20);

/// What to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The export.
    pub uri: Uri,
    /// The ledger's file; continued if it is there.
    pub log: PathBuf,
    /// How long; without an end if `None`, until `stop`.
    pub duration: Option<Duration>,
    /// Outstanding requests over all connections.
    pub depth: usize,
    /// How many connections.
    pub connections: usize,
    /// What kinds of requests.
    pub mix: Mix,
    /// Bytes in a block: 512 or 4096. (A continued ledger has its own.)
    pub block: u32,
    /// The seed. (A continued ledger has its own contents' seed; the requests
    /// follow from this one.)
    pub seed: u64,
    /// Stay within so many bytes from the disk's start.
    pub span: Option<u64>,
    /// First write the whole span, once.
    pub fill: bool,
    /// The disk reads as zeroes now, and that is checked.
    pub blank: bool,
    /// At most so many requests per second.
    pub rate: Option<u64>,
    /// How often figures are given.
    pub report: Duration,
    /// How long to try to reach a server that is gone.
    pub reconnect: Duration,
    /// Set from elsewhere to end the run in good order.
    pub stop: Arc<AtomicBool>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The figures.
    pub summary: Summary,
    /// The first wrong blocks (all are counted in the summary).
    pub wrong: Vec<Wrong>,
}

/// A request under way.
struct Flight {
    pick: Pick,
    version: Version,
    began: Instant,
    connection: usize,
}

/// A place for a connection, and when to try again if it is empty.
struct Seat {
    connection: Option<Connection>,
    retry: Instant,
    lost: Option<Instant>,
}

/// Something that happened, for whoever prints it.
pub enum Event<'a> {
    /// An interval has ended.
    Interval(&'a Interval),
    /// A block does not hold what it must.
    Wrong(&'a Wrong),
    /// The server answered with an error.
    Error(String),
    /// A connection broke or stands again.
    Connection(String),
}

/// How many wrong blocks are kept and shown.
const SHOWN: usize = 20;

/// Runs the workload.
pub fn run(
    options: &RunOptions,
    tell: &mut dyn FnMut(Event<'_>),
) -> anyhow::Result<Outcome> {
    let first = connection::connect(&options.uri, Reads::Kept)
        .with_context(|| format!("connect to {}", options.uri))?;
    let mut run = Run::new(options, first)?;
    run.go(tell)?;
    Ok(Outcome { summary: run.stats.finish(), wrong: run.wrong })
}

struct Run<'o> {
    options: &'o RunOptions,
    ledger: Ledger,
    model: Model,
    generator: Generator,
    seats: Vec<Seat>,
    flights: HashMap<u64, Flight>,
    cookie: u64,
    number: u32,
    began: Instant,
    mixed_from: Option<Instant>,
    started: u64,
    stats: Stats,
    wrong: Vec<Wrong>,
}

impl<'o> Run<'o> {
    fn new(options: &'o RunOptions, first: Connection) -> anyhow::Result<Run<'o>> {
        let size = first.size();
        let (ledger, model, number) = open_ledger(options, size)?;
        let block = model.block_size();
        let span = options.span.map_or(model.blocks(), |span| span / block);
        let span = span.min(model.blocks());
        if span == 0 {
            bail!("the disk is smaller than one block of {block} bytes");
        }
        let generator = Generator::new(
            options.mix.fit(first.flags()),
            options.seed,
            block,
            span,
            options.fill,
        );
        let now = Instant::now();
        let mut seats = vec![Seat { connection: Some(first), retry: now, lost: None }];
        seats.resize_with(options.connections.max(1), || Seat {
            connection: None,
            retry: now,
            lost: Some(now),
        });
        Ok(Run {
            options,
            ledger,
            model,
            generator,
            seats,
            flights: HashMap::new(),
            cookie: 0,
            number,
            began: now,
            mixed_from: None,
            started: 0,
            stats: Stats::new(now, options.seed),
            wrong: Vec::new(),
        })
    }

    fn go(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> anyhow::Result<()> {
        let mut answers = Vec::new();
        let mut report = self.began + self.options.report;
        loop {
            let ending = self.ending();
            if ending && self.flights.is_empty() {
                break;
            }
            self.seat(tell)?;
            if !ending {
                self.generate()?;
            }
            self.ledger.commit()?;
            self.pump(&mut answers, tell);
            for (seat, answer) in answers.drain(..) {
                self.answered(seat, answer, tell);
            }
            if Instant::now() >= report {
                report += self.options.report;
                self.report(tell);
            }
        }
        self.ledger.commit()?;
        self.report(tell);
        Ok(())
    }

    /// Whether no new requests are to be made. The initial fill does not
    /// count towards the duration.
    fn ending(&mut self) -> bool {
        if self.mixed_from.is_none() && !self.generator.filling() {
            self.mixed_from = Some(Instant::now());
        }
        let over = match (self.options.duration, self.mixed_from) {
            (Some(duration), Some(from)) => from.elapsed() >= duration,
            _ => false,
        };
        over || self.options.stop.load(Ordering::Relaxed)
    }

    /// Connects what is not connected, and sends again what was not answered.
    fn seat(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> anyhow::Result<()> {
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            if seat.connection.is_some() || Instant::now() < seat.retry {
                continue;
            }
            let mut connection = match connection::connect(&self.options.uri, Reads::Kept)
            {
                Ok(connection) => connection,
                Err(error) => {
                    seat.retry = Instant::now() + RETRY;
                    let lost = seat.lost.get_or_insert_with(Instant::now);
                    if lost.elapsed() > self.options.reconnect {
                        return Err(error.context("the server does not come back"));
                    }
                    continue;
                }
            };
            for (&cookie, flight) in &self.flights {
                if flight.connection == index {
                    send(&mut connection, cookie, flight, &self.model);
                }
            }
            seat.connection = Some(connection);
            if seat.lost.take().is_some_and(|lost| lost > self.began) {
                self.stats.summary.reconnects += 1;
                tell(Event::Connection(format!("connection {index} stands again")));
            }
        }
        Ok(())
    }

    /// Fills every connection up to its depth.
    fn generate(&mut self) -> anyhow::Result<()> {
        let depth = self.options.depth.div_ceil(self.seats.len()).max(1);
        for index in 0..self.seats.len() {
            while self.flights.len() < self.options.depth && self.within_rate() {
                let Some(connection) = &mut self.seats[index].connection else { break };
                if connection.outstanding() >= depth {
                    break;
                }
                let model = &mut self.model;
                let Some(pick) = self.generator.next(|blocks| model.reserve(blocks))
                else {
                    break;
                };
                let version = match pick.intent {
                    Intent::Write { effect, .. } => {
                        self.number += 1;
                        if self.number >= u32::MAX >> 1 {
                            bail!("the ledger is full: too many writes for one log");
                        }
                        Version::new(self.number, effect != Effect::Data)
                    }
                    _ => Version::NONE,
                };
                let began = Instant::now();
                let flight = Flight { pick, version, began, connection: index };
                if let Some(entry) = self.entry(&flight, Mark::Sent) {
                    self.ledger.note(entry);
                }
                self.cookie += 1;
                self.started += 1;
                let connection = self.seats[index].connection.as_mut();
                let connection = connection.expect("it was there a moment ago");
                send(connection, self.cookie, &flight, &self.model);
                self.flights.insert(self.cookie, flight);
            }
        }
        Ok(())
    }

    fn within_rate(&self) -> bool {
        match (self.options.rate, self.mixed_from) {
            (Some(rate), Some(from)) => {
                (self.started as f64) < from.elapsed().as_secs_f64() * rate as f64 + 1.0
            }
            _ => true,
        }
    }

    /// Moves bytes both ways, waiting for the first that can be moved.
    fn pump(
        &mut self,
        answers: &mut Vec<(usize, Answer)>,
        tell: &mut dyn FnMut(Event<'_>),
    ) {
        let pause = match self.options.rate {
            Some(rate) => Duration::from_secs_f64(0.5 / rate as f64).min(TURN),
            None => TURN,
        };
        let connections = self.seats.iter_mut().enumerate();
        let mut live: Vec<(usize, &mut Connection)> = connections
            .filter_map(|(index, seat)| Some((index, seat.connection.as_mut()?)))
            .collect();
        let broken = connection::pump(&mut live, pause, answers);
        for (index, error) in broken {
            let seat = &mut self.seats[index];
            seat.connection = None;
            seat.lost = Some(Instant::now());
            seat.retry = Instant::now();
            tell(Event::Connection(format!("connection {index} broke: {error}")));
        }
    }

    fn answered(&mut self, seat: usize, answer: Answer, tell: &mut dyn FnMut(Event<'_>)) {
        let Some(flight) = self.flights.remove(&answer.cookie) else {
            self.stats.summary.errors += 1;
            tell(Event::Error(format!("an answer to nothing on connection {seat}")));
            return;
        };
        let pick = flight.pick;
        let bytes = pick.count * self.model.block_size();
        self.stats.answered(flight.began.elapsed(), bytes);
        self.model.release(pick.first..pick.first + pick.count);
        let done = answer.result.is_ok();
        if let Some(entry) =
            self.entry(&flight, if done { Mark::Done } else { Mark::Failed })
        {
            entry.settle(&mut self.model, done);
            self.ledger.note(entry);
        }
        match answer.result {
            Err(error) => {
                self.stats.summary.errors += 1;
                tell(Event::Error(format!("{pick:?} was answered with {error}")));
            }
            Ok(data) => match pick.intent {
                Intent::Read => {
                    self.stats.summary.reads += 1;
                    self.judge(pick.first, &data, tell);
                }
                Intent::Write { .. } => self.stats.summary.writes += 1,
                Intent::Flush => self.stats.summary.flushes += 1,
            },
        }
    }

    fn judge(&mut self, first: u64, data: &[u8], tell: &mut dyn FnMut(Event<'_>)) {
        let mut wrong = Vec::new();
        self.model.judge(first, data, &mut wrong);
        self.stats.summary.wrong += wrong.len() as u64;
        for one in wrong {
            if self.wrong.len() < SHOWN {
                tell(Event::Wrong(&one));
                self.wrong.push(one);
            }
        }
    }

    fn report(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        let oldest = self.flights.values().map(|flight| flight.began.elapsed()).max();
        let connected =
            self.seats.iter().filter(|seat| seat.connection.is_some()).count();
        let interval = self.stats.interval(oldest.unwrap_or_default(), connected);
        tell(Event::Interval(&interval));
    }

    /// The ledger's entry for a write.
    fn entry(&self, flight: &Flight, mark: Mark) -> Option<Entry> {
        let Intent::Write { effect, .. } = flight.pick.intent else { return None };
        let block = self.model.block_size();
        Some(Entry {
            mark,
            effect,
            version: flight.version,
            offset: flight.pick.first * block,
            length: (flight.pick.count * block) as u32,
            ms: self.began.elapsed().as_millis() as u32,
        })
    }
}

/// Continues the ledger if there is one, else begins it.
fn open_ledger(options: &RunOptions, size: u64) -> anyhow::Result<(Ledger, Model, u32)> {
    if !options.log.exists() {
        let (block, seed, blank) = (options.block, options.seed, options.blank);
        let header = Header { block, seed, size, blank };
        let ledger = Ledger::create(&options.log, header)?;
        return Ok((ledger, Model::new(seed, size, block, blank), 0));
    }
    let (mut ledger, header, model, number) = Ledger::open(&options.log)?;
    if header.size != size {
        bail!(
            "{} is about a disk of {} bytes, this one has {size}",
            options.log.display(),
            header.size
        );
    }
    ledger.note(Entry::begin());
    Ok((ledger, model, number))
}

/// Puts a request on a connection.
fn send(connection: &mut Connection, cookie: u64, flight: &Flight, model: &Model) {
    let block = model.block_size();
    let Pick { intent, first, count } = flight.pick;
    let (offset, len) = (first * block, (count * block) as u32);
    let command = match intent {
        Intent::Read => Command::Read { offset, len, df: false },
        Intent::Flush => Command::Flush,
        Intent::Write { effect: Effect::Data, fua } => {
            Command::Write { offset, len, fua }
        }
        Intent::Write { effect: Effect::Trim, fua } => Command::Trim { offset, len, fua },
        Intent::Write { effect: Effect::Zeroes, fua } => {
            let (no_hole, fast_zero) = (false, false);
            Command::WriteZeroes { offset, len, fua, no_hole, fast_zero }
        }
    };
    let payload = |bytes: &mut [u8]| model.fill(first, flight.version, bytes);
    connection.send(cookie, command, payload);
}
