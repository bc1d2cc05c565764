//! A run: users who shop until its time is over.
//!
//! Each user has a connection. One that is lost is made again, for as long as the run
//! lasts: the server may be killed, or its machine. What failed is counted and named,
//! and the next order is another one. An order whose commit was not answered is not
//! acknowledged, whether it is there or not.
//!
//! At the end orders under way are waited for, a while. Those that are acknowledged
//! then are noted like all others, but not measured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_postgres::Client;

use super::cpu::{CpuCost, LocalServer, processors};
use super::error::StoreError;
use super::ledger::{Acknowledged, Ledger};
use super::pace::{Arrivals, Pace};
use super::report::{Report, RunFacts, ServerFacts};
use super::server::{Server, Store};
use super::session::{Kind, Outcome, Session};
use super::shopper::{Shopper, Visit};
use super::tally::{Tally, Window};
use crate::random::scatter;

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(1);
/// How long orders under way are waited for at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long a user waits after an error: a server that refuses everything is not asked
/// as quickly as it can refuse.
const AFTER_ERROR: Duration = Duration::from_millis(100);
/// How long a user waits before asking anew for a connection, at most.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Connections that make orders.
    pub users: usize,
    /// What decides when.
    pub pace: Pace,
    /// How long is run before anything is measured.
    pub warm_up: Duration,
    /// How long is measured.
    pub length: Duration,
    /// What all chance comes from. The store's own numbers go into it, so that another
    /// run on the same store does other things.
    pub seed: u64,
    /// Where acknowledged orders are noted.
    pub acknowledged: Option<PathBuf>,
}

/// What the users share.
struct Shared {
    server: Server,
    pace: Pace,
    began: Instant,
    tally: Mutex<Tally>,
    arrivals: Option<Mutex<Arrivals>>,
    ledger: Option<Ledger>,
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        // Counts are whole after each call, whoever panicked.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// When the next order is due.
    fn due(&self) -> Duration {
        match &self.arrivals {
            Some(arrivals) => {
                arrivals.lock().unwrap_or_else(PoisonError::into_inner).next()
            }
            None => self.now(),
        }
    }

    /// Notes what was acknowledged.
    fn note(&self, order: i32, customer: i32, visit: &Visit) -> Result<(), StoreError> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        ledger.note(Acknowledged {
            order,
            customer,
            total_cents: visit.cost.total().cast_signed(),
            lines: i64::try_from(visit.cart.len()).unwrap_or(i64::MAX),
            unix_ms: Acknowledged::now(),
        })
    }
}

/// Users who are connected, and have not begun.
pub struct Ready {
    server: Server,
    store: Store,
    options: RunOptions,
    facts: ServerFacts,
    local: Option<LocalServer>,
    seed: u64,
    sessions: Vec<Session>,
}

/// Connects all users.
pub async fn ready(
    server: &Server,
    store: Store,
    options: &RunOptions,
) -> Result<Ready, StoreError> {
    let client = server.connect().await?;
    let facts = facts(&client).await?;
    let local = LocalServer::find(&client).await;
    let seed = scatter(options.seed ^ orders_so_far(&client).await?);
    drop(client);
    let mut sessions = Vec::new();
    for _ in 0..options.users {
        sessions.push(Session::open(server).await?);
    }
    let (server, options) = (server.clone(), options.clone());
    Ok(Ready { server, store, options, facts, local, seed, sessions })
}

/// Runs, until its time is over or `stop` ends; `told` is called for each line of
/// figures.
pub async fn run(
    server: &Server,
    store: Store,
    options: &RunOptions,
    stop: impl Future<Output = ()>,
    told: &mut dyn FnMut(&Window),
) -> Result<Report, StoreError> {
    ready(server, store, options).await?.run(stop, told).await
}

impl Ready {
    /// Runs, as [`run`] does.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        told: &mut dyn FnMut(&Window),
    ) -> Result<Report, StoreError> {
        let Ready { server, store, options, facts, local, seed, sessions } = self;
        let shared = Arc::new(Shared {
            server,
            pace: options.pace,
            began: Instant::now(),
            tally: Mutex::new(Tally::new(options.users, options.warm_up)),
            arrivals: match options.pace {
                Pace::Open { rate } => Some(Mutex::new(Arrivals::new(rate, !seed))),
                Pace::Closed { .. } => None,
            },
            ledger: options.acknowledged.as_deref().map(Ledger::open).transpose()?,
        });
        let (ended, end) = watch::channel(false);
        let mut waiting = Vec::new();
        for (number, session) in sessions.into_iter().enumerate() {
            let shopper = Shopper::new(store, seed, number as u64);
            let user =
                User { number, shopper, shared: Arc::clone(&shared), end: end.clone() };
            waiting.push(user.shop(session));
        }
        let mut users = JoinSet::new();
        let used = || local.as_ref().and_then(LocalServer::used);
        let course =
            measure(&shared, waiting, &mut users, used, &options, stop, told).await?;
        // First the users: what they begin from now on would be made, but not counted.
        ended.send_replace(true);
        let figures = shared.tally().end(shared.now());
        let cpu = course.used_before.zip(used()).and_then(|(before, after)| {
            let (cores, clock) = processors();
            let orders = figures.times[Kind::Order as usize].count;
            CpuCost::new(after - before, figures.seconds, orders, cores, clock)
        });
        leave(users).await?;
        let run = RunFacts::new(store, &options, course.warmed_up);
        Ok(Report::new(facts, run, figures, cpu, course.interrupted))
    }
}

/// How a run went.
#[derive(Default)]
struct Course {
    /// How long it warmed up: less than it should if it was ended meanwhile.
    warmed_up: Duration,
    /// What the server had used when the measurement began, if that is known.
    used_before: Option<f64>,
    /// Whether it was ended before its time.
    interrupted: bool,
}

/// Starts the users that wait, and closes windows while they shop. A run that is ended
/// while it warms up measures nothing. Fails if a user does.
async fn measure(
    shared: &Shared,
    mut waiting: Vec<impl Future<Output = Result<(), StoreError>> + Send + 'static>,
    users: &mut JoinSet<Result<(), StoreError>>,
    used: impl Fn() -> Option<f64>,
    options: &RunOptions,
    stop: impl Future<Output = ()>,
    told: &mut dyn FnMut(&Window),
) -> Result<Course, StoreError> {
    let mut stop = pin!(stop);
    let mut course = Course::default();
    let phases = [(options.warm_up, false), (options.length, true)];
    // Users begin with the first phase, so that none of their orders is before it.
    for (length, measures) in phases.into_iter().filter(|it| it.1 || !it.0.is_zero()) {
        let from = Instant::now();
        if measures {
            course.used_before = used();
            shared.tally().begin(shared.now());
        }
        for user in waiting.drain(..) {
            users.spawn(user);
        }
        let mut windows = interval_at(from + WINDOW, WINDOW);
        windows.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut over = pin!(tokio::time::sleep_until(from + length));
        while !course.interrupted {
            tokio::select! {
                biased;
                Some(ended) = users.join_next() => ended.expect("a user does not panic")?,
                () = &mut stop => course.interrupted = true,
                _ = windows.tick() => {
                    let line = shared.tally().tick(shared.now());
                    line.iter().for_each(&mut *told);
                }
                () = &mut over => break,
            }
        }
        if !measures {
            course.warmed_up = from.elapsed().min(length);
        }
        if course.interrupted {
            break;
        }
    }
    Ok(course)
}

/// Lets users end what they are at. Those that do not are left alone: their
/// connections end with them, and what they had begun is rolled back.
async fn leave(mut users: JoinSet<Result<(), StoreError>>) -> Result<(), StoreError> {
    let all = async {
        while let Some(ended) = users.join_next().await {
            ended.expect("a user does not panic")?;
        }
        Ok(())
    };
    timeout(LAST_ANSWERS, all).await.unwrap_or(Ok(()))
}

/// Settings that decide what the server asks of its disks.
async fn facts(client: &Client) -> Result<ServerFacts, StoreError> {
    let sql = "SELECT name, current_setting(name) FROM pg_settings
        WHERE name IN ('fsync', 'full_page_writes', 'max_wal_size', 'server_version',
            'shared_buffers', 'synchronous_commit')";
    let rows = client.query(sql, &[]).await?;
    let settings: BTreeMap<String, String> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let value = |name: &str| settings.get(name).map_or("", String::as_str);
    let durable = value("fsync") == "on" && value("synchronous_commit") != "off";
    let version = value("server_version").to_owned();
    Ok(ServerFacts { version, durable, settings })
}

/// How many orders were begun in this store, ever.
async fn orders_so_far(client: &Client) -> Result<u64, StoreError> {
    let sql = "SELECT last_value FROM dvdstore.orders_orderid_seq";
    let orders: i64 = client.query_one(sql, &[]).await?.get(0);
    Ok(orders.cast_unsigned())
}

/// A user at work.
struct User {
    number: usize,
    shopper: Shopper,
    shared: Arc<Shared>,
    end: watch::Receiver<bool>,
}

impl User {
    /// Shops until the end. Fails only if an acknowledged order cannot be noted.
    async fn shop(mut self, session: Session) -> Result<(), StoreError> {
        self.shared.tally().connected(self.number, true);
        let mut session = Some(session);
        loop {
            let due = self.shared.due();
            let wait = due.saturating_sub(self.shared.now());
            if !self.pause(wait).await {
                return Ok(());
            }
            self.shared.tally().started(self.number, due);
            let Some(mut inside) = self.inside(session.take()).await else {
                return Ok(());
            };
            let went_well = self.order(&mut inside, due).await?;
            let closed = inside.is_closed();
            session = (!closed).then_some(inside);
            self.shared.tally().connected(self.number, !closed);
            let rest = match (went_well, self.shared.pace) {
                (false, _) => AFTER_ERROR,
                (true, Pace::Closed { think }) => self.shopper.think(think),
                (true, Pace::Open { .. }) => Duration::ZERO,
            };
            if !self.pause(rest).await {
                return Ok(());
            }
        }
    }

    /// One visit; says whether it ended as visits should.
    async fn order(
        &mut self,
        session: &mut Session,
        due: Duration,
    ) -> Result<bool, StoreError> {
        let (shared, number) = (Arc::clone(&self.shared), self.number);
        let visit = self.shopper.visit();
        let mut took = |kind, time| shared.tally().took(kind, time);
        match session.visit(&visit, &mut self.shopper, &mut took).await {
            Ok(Outcome::Order(order, customer)) => {
                shared.note(order, customer, &visit)?;
                shared.tally().ordered(number, due, shared.now());
            }
            Ok(Outcome::RolledBack) => shared.tally().rolled_back(number),
            Err(trouble) => {
                shared.tally().failed(number, &trouble.kind, &trouble.text);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A session: the one that there is, or else a new one, however long that takes.
    /// Nothing at the end of the run.
    async fn inside(&mut self, session: Option<Session>) -> Option<Session> {
        if let Some(session) = session.filter(|session| !session.is_closed()) {
            return Some(session);
        }
        self.shared.tally().connected(self.number, false);
        let mut between = AFTER_ERROR;
        loop {
            let opened = tokio::select! {
                opened = Session::open(&self.shared.server) => opened,
                _ = self.end.wait_for(|end| *end) => return None,
            };
            if let Ok(session) = opened {
                let mut tally = self.shared.tally();
                tally.connected(self.number, true);
                tally.reconnected();
                return Some(session);
            }
            if !self.pause(between).await {
                return None;
            }
            between = (2 * between).min(BETWEEN_TRIES);
        }
    }

    /// Waits; says whether the run goes on.
    async fn pause(&mut self, time: Duration) -> bool {
        if time.is_zero() {
            return !*self.end.borrow();
        }
        tokio::select! {
            () = sleep(time) => true,
            _ = self.end.wait_for(|end| *end) => false,
        }
    }
}
