//! An application on a real disk: a thread with an NBD connection.
//!
//! The thread sends what its [`Demand`] gives, takes the answers, and counts them in
//! a [`Window`] that others can take at any time. A flush counts as a write of no
//! bytes. Of a response time, *queue* is what a request waited before it was sent
//! (in an open loop that is behind), *service* what it was at the server.
//!
//! An application ends with the first request that fails, and when its connection
//! breaks: it is there to measure, and such figures would mean nothing. The next
//! [`Application::take`] says what happened.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use sterna_core::measure::Window;
use sterna_core::{Bytes, Nanos};
use sterna_nbd::{Command, TransmissionFlags, Uri};

use super::demand::{Demand, Kind, Next, Request};
use super::profile::Profile;
use crate::connection::{self, Answer, Connection, Reads};
use crate::random::Random;

/// The longest sleep: the wish to stop is looked at this often.
const TURN: Duration = Duration::from_millis(20);
/// How long the last answers are waited for: past it the server is taken for dead.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    asked: AtomicU64,
    window: Mutex<Window>,
}

impl Shared {
    fn window(&self) -> MutexGuard<'_, Window> {
        // A window is whole after every count, whoever panicked.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An application at work. Dropping it stops it.
pub struct Application {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
    taken: Instant,
}

impl Application {
    /// Connects to an NBD URI, and begins. Fails if the disk cannot be reached, or the
    /// profile makes no sense on it.
    pub fn start(uri: &str, profile: &Profile, seed: u64) -> anyhow::Result<Application> {
        let parsed: Uri = uri.parse().with_context(|| format!("read {uri}"))?;
        let connection = connection::connect(&parsed, Reads::Dropped)
            .with_context(|| format!("connect to {uri}"))?;
        check(&connection, profile).with_context(|| format!("use {uri}"))?;
        let demand = Demand::new(profile, Bytes(connection.size()), seed)
            .with_context(|| format!("use {uri}"))?;
        let shared = Arc::new(Shared::default());
        let begin = Instant::now();
        let driver = Driver {
            connection,
            demand,
            shared: Arc::clone(&shared),
            begin,
            flights: HashMap::new(),
            cookie: 0,
            noise: noise(profile.lengths.most, seed),
        };
        let thread = thread::Builder::new()
            .name("application".into())
            .spawn(move || driver.go())
            .context("start a thread")?;
        Ok(Application { shared, thread: Some(thread), taken: begin })
    }

    /// What was answered since the last time, or since the start. Fails once the
    /// application has ended by itself, and says why.
    pub fn take(&mut self) -> anyhow::Result<Window> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            self.join()?;
            bail!("the application has ended");
        }
        Ok(self.cut())
    }

    /// How many requests it has made since the start. (In an open loop that is more than
    /// a queue's length behind, those that wait are not made yet.)
    pub fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Waits for the answers that are under way, ends it, and gives what was answered
    /// since the last time.
    pub fn stop(mut self) -> anyhow::Result<Window> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.join()?;
        Ok(self.cut())
    }

    fn cut(&mut self) -> Window {
        let mut window = self.shared.window();
        let now = Instant::now();
        let mut taken = std::mem::take(&mut *window);
        taken.span = (now - self.taken).into();
        self.taken = now;
        taken
    }

    fn join(&mut self) -> anyhow::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(anyhow!("the application panicked")),
        }
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Whoever wants to know how it ended has asked.
        let _ = self.join();
    }
}

/// Whether the server can do what the profile needs.
fn check(connection: &Connection, profile: &Profile) -> anyhow::Result<()> {
    let flags = connection.flags();
    let writes = profile.reads < 100;
    if writes && flags.has(TransmissionFlags::READ_ONLY) {
        bail!("it is read-only, and the application writes");
    }
    if profile.flush_every.is_some() && !flags.has(TransmissionFlags::SEND_FLUSH) {
        bail!("it has no flush, and the application makes its writes durable");
    }
    let (least, most) = (profile.lengths.least, profile.lengths.most);
    let (block, longest) = (connection.block(), connection.longest());
    if !least.is_multiple_of(block) || most > longest {
        bail!(
            "requests of {least} to {most} bytes; it takes multiples of {block} up to \
             {longest}"
        );
    }
    Ok(())
}

/// So many bytes that no storage can compress.
fn noise(len: u32, seed: u64) -> Vec<u8> {
    let mut random = Random::new(!seed);
    let words = (0..len.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes());
    words.take(len as usize).collect()
}

struct Flight {
    request: Request,
    sent: Nanos,
}

/// What the thread has.
struct Driver {
    connection: Connection,
    demand: Demand,
    shared: Arc<Shared>,
    begin: Instant,
    flights: HashMap<u64, Flight>,
    cookie: u64,
    /// What is written, as long as the longest request.
    noise: Vec<u8>,
}

impl Driver {
    fn go(mut self) -> anyhow::Result<()> {
        let mut answers = Vec::new();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let pause = self.ask();
            self.pump(pause, &mut answers)?;
        }
        let end = Instant::now() + LAST_ANSWERS;
        while !self.flights.is_empty() {
            if Instant::now() > end {
                bail!("{} requests were never answered", self.flights.len());
            }
            self.pump(TURN, &mut answers)?;
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.begin.elapsed().into()
    }

    /// Makes all requests that are due; gives how long there is nothing to do.
    fn ask(&mut self) -> Duration {
        let now = self.now();
        loop {
            match self.demand.next(now) {
                Next::Start(request) => self.send(request, now),
                Next::At(moment) => return Duration::from(moment.since(now)).min(TURN),
                Next::Answer => return TURN,
            }
        }
    }

    fn send(&mut self, request: Request, sent: Nanos) {
        let Request { kind, offset, len, .. } = request;
        let command = match kind {
            Kind::Read => Command::Read { offset, len, df: false },
            Kind::Write => Command::Write { offset, len, fua: false },
            Kind::Flush => Command::Flush,
        };
        self.cookie += 1;
        self.shared.asked.fetch_add(1, Ordering::Relaxed);
        let noise = &self.noise;
        self.connection.send(self.cookie, command, |payload| {
            payload.copy_from_slice(&noise[..payload.len()]);
        });
        self.flights.insert(self.cookie, Flight { request, sent });
    }

    /// Moves bytes both ways, after waiting at most `pause` for the first, and counts
    /// what was answered.
    fn pump(
        &mut self,
        pause: Duration,
        answers: &mut Vec<(usize, Answer)>,
    ) -> anyhow::Result<()> {
        let broken =
            connection::pump(&mut [(0, &mut self.connection)], pause, answers).pop();
        let now = self.now();
        let mut window = self.shared.window();
        for (_, answer) in answers.drain(..) {
            let flight = self.flights.remove(&answer.cookie);
            let Flight { request, sent } = flight.context("an answer to nothing")?;
            let Request { kind, offset, len, due } = request;
            if let Err(error) = answer.result {
                bail!("a {kind:?} of {len} bytes at {offset} was answered with {error}");
            }
            self.demand.answered();
            let traffic = match kind {
                Kind::Read => &mut window.read,
                Kind::Write | Kind::Flush => &mut window.write,
            };
            let (queue, service) = (sent.since(due), now.since(sent));
            traffic.record(u64::from(len), now.since(due), queue, service);
            window.response.record(now.since(due));
        }
        match broken {
            Some((_, error)) => Err(error.context("the disk is lost")),
            None => Ok(()),
        }
    }
}
