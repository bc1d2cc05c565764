//! `/v1/events`: the stream of live figures (server-sent events).
//!
//! Each second a stream gets the rows that it asked for, and what changed of the migrations;
//! the daemon's status when it changed; and a tick with the daemon's clock, by which figures
//! age. Parts that may wait for storage (the status asks all datastores) have a thread of
//! their own, so that a datastore that hangs holds up no figure.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, Sse};
use futures_util::Stream;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use sterna_api::{Error, Hello, Migration, Status, Tick, TopBy};
use sterna_os::clock::{self, now_ms};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use utoipa::IntoParams;

use super::Refusal;
use super::extract::Parameters;
use super::visitors::Visit;
use crate::Server;
use crate::live::{AskedRows, Place, ROWS_MOST};
use crate::top::span;

/// How often figures come.
const EVERY: Duration = Duration::from_secs(1);
/// How often the status is looked at.
const STATUS_EVERY: Duration = Duration::from_secs(2);
/// How long a migration is shown after its end, in seconds.
const ENDED_S: u64 = 60;
/// Events that wait for a reader: some ten seconds of them.
const QUEUE: usize = 40;
/// How soon a browser comes back, in milliseconds.
const RETRY: Duration = Duration::from_secs(1);
/// The most activities that a stream begins with.
const CAUGHT_UP: usize = 200;

/// What the stream is to have.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// `status`, `top`, `migrations` and `activity`, separated by commas.
    #[serde(default = "all")]
    #[param(default = "status,top,migrations")]
    topics: String,
    /// What the rows of `top` are.
    #[serde(default)]
    #[param(inline)]
    by: TopBy,
    /// The rows are of the last so many seconds, 0.1 to 3600.
    #[serde(default = "second")]
    #[param(default = 1.0, minimum = 0.1, maximum = 3600.0)]
    window_s: f64,
    /// `name`, `iops`, `rate`, `p99`, `max`, `queue` or `outstanding`; with `-` before it the
    /// highest come first.
    #[serde(default = "by_name")]
    #[param(default = "name")]
    sort: String,
    /// Which rows: a part of the name, `on:DATASTORE`, `class:CLASS`, `slow:5ms`,
    /// `busy:100`, separated by spaces; all must hold.
    #[serde(default)]
    filter: String,
    /// The first row, counted from 0.
    #[serde(default)]
    #[param(default = 0)]
    from: usize,
    /// How many rows at most, up to 1000.
    #[serde(default = "rows")]
    #[param(default = 60, maximum = 1000)]
    count: usize,
}

fn all() -> String {
    "status,top,migrations".into()
}

fn second() -> f64 {
    1.0
}

fn by_name() -> String {
    "name".into()
}

fn rows() -> usize {
    60
}

/// The topics of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Topics {
    status: bool,
    top: bool,
    migrations: bool,
    activity: bool,
}

impl Topics {
    fn read(text: &str) -> Result<Topics, Error> {
        let mut topics = Topics::default();
        for topic in text.split(',').filter(|topic| !topic.is_empty()) {
            match topic {
                "status" => topics.status = true,
                "top" => topics.top = true,
                "migrations" => topics.migrations = true,
                "activity" => topics.activity = true,
                _ => {
                    return Err(Error::invalid(format!("`{topic}` is no topic"))
                        .hint("give status, top, migrations or activity"));
                }
            }
        }
        Ok(topics)
    }
}

impl Asked {
    fn rows(&self) -> Result<AskedRows, Error> {
        let invalid = |why: String| {
            Error::invalid(why).hint("see `/v1/events` in /v1/openapi.json")
        };
        span(self.window_s)?;
        Ok(AskedRows {
            by: self.by,
            window_s: self.window_s,
            order: self.sort.parse().map_err(invalid)?,
            filter: self.filter.parse().map_err(invalid)?,
            from: self.from,
            count: self.count.min(ROWS_MOST),
        })
    }
}

/// Live figures, second by second, as server-sent events: `hello`, `status`, `top`,
/// `migrations`, `activity` and `tick`. Whoever reads too slowly loses the stream.
#[utoipa::path(
    get, path = "/v1/events", tag = "status", operation_id = "events",
    params(Asked),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = "default", body = Error),
    ),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    visit: Option<Extension<Visit>>,
    headers: HeaderMap,
    Parameters(asked): Parameters<Asked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let topics = Topics::read(&asked.topics)?;
    let rows = asked.rows()?;
    let place = server.live.enter()?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let (sender, receiver) = mpsc::channel(QUEUE);
    let told = Told { sender, server };
    if topics.status {
        tokio::spawn(told.clone().statuses());
    }
    tokio::spawn(told.figures(topics, rows, last));
    // The connection is busy for as long as the stream is open.
    let held = (receiver, place, visit.map(|Extension(visit)| visit.busy()));
    let next = |mut held: (mpsc::Receiver<Event>, Place, _)| async move {
        held.0.recv().await.map(|event| (Ok(event), held))
    };
    Ok(Sse::new(stream::unfold(held, next)))
}

/// Somebody who is told.
#[derive(Clone)]
struct Told {
    sender: mpsc::Sender<Event>,
    server: Arc<Server>,
}

/// The stream is over.
struct Over;

impl Told {
    /// Says something, unless nobody listens or the reader is too slow.
    fn say<T: Serialize>(&self, name: &str, what: &T) -> Result<(), Over> {
        let event = Event::default().event(name).json_data(what).map_err(|_| Over)?;
        self.sender.try_send(event).map_err(|_| Over)
    }

    /// Asks the daemon something on a thread that may block.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Server) -> sterna_api::Result<T> + Send + 'static,
    ) -> Option<T> {
        let server = self.server.clone();
        let asked = tokio::task::spawn_blocking(move || question(&server));
        // What cannot be told now is told when it can.
        asked.await.ok()?.ok()
    }

    /// Waits for the next turn; over if the daemon stops.
    async fn turn(&self, turns: &mut tokio::time::Interval) -> Result<(), Over> {
        let mut ends = self.server.live.ends();
        tokio::select! {
            _ = turns.tick() => Ok(()),
            () = self.sender.closed() => Err(Over),
            _ = ends.wait_for(|ended| *ended) => Err(Over),
        }
    }

    /// Tells the status when it has changed.
    async fn statuses(self) {
        let mut turns = interval(STATUS_EVERY);
        let mut before: Option<Status> = None;
        while self.turn(&mut turns).await.is_ok() {
            let Some(status) = self.ask(Server::status).await else { continue };
            // What changes all the time is no news.
            let open_files = status.open_files;
            let same = |it: Status| Status { open_files, ..it } == status;
            if before.is_some_and(same) {
                before = Some(status);
                continue;
            }
            if self.say("status", &status).is_err() {
                return;
            }
            before = Some(status);
        }
    }

    /// Tells figures, each second.
    async fn figures(self, topics: Topics, rows: AskedRows, last: Option<u64>) {
        // Whoever does not listen any more, or is too slow, is not told any more.
        drop(self.each_second(topics, rows, last).await);
    }

    async fn each_second(
        &self,
        topics: Topics,
        rows: AskedRows,
        last: Option<u64>,
    ) -> Result<(), Over> {
        let hello = Hello {
            now_ms: now_ms(),
            daemon: self.server.live.daemon.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            interval_ms: EVERY.as_millis() as u64,
        };
        let first = Event::default().event("hello").retry(RETRY);
        let first = first.json_data(&hello).map_err(|_| Over)?;
        self.sender.try_send(first).map_err(|_| Over)?;
        let mut turns = interval(EVERY);
        let mut moves: Option<Vec<Migration>> = None;
        let mut told = last;
        loop {
            self.turn(&mut turns).await?;
            if topics.top {
                let rows = rows.clone();
                if let Some(top) = self.ask(move |server| server.top_rows(&rows)).await {
                    self.say("top", &top)?;
                }
            }
            if topics.migrations {
                let since = clock::now().saturating_sub(ENDED_S);
                let now = self.ask(move |it| it.moves.list_recent(since)).await;
                if now.is_some() && now != moves {
                    self.say("migrations", &now)?;
                    moves = now;
                }
            }
            if topics.activity {
                told = self.tell_activity(told).await?.or(told);
            }
            self.say("tick", &Tick { now_ms: now_ms() })?;
        }
    }

    /// Tells what was done since; gives the number of the last.
    async fn tell_activity(&self, since: Option<u64>) -> Result<Option<u64>, Over> {
        let asked = move |server: &Server| server.activities_since(since, CAUGHT_UP);
        let Some(new) = self.ask(asked).await else { return Ok(None) };
        let Some(last) = new.last().map(|activity| activity.seq) else { return Ok(None) };
        let event = Event::default().event("activity").id(last.to_string());
        let event = event.json_data(&new).map_err(|_| Over)?;
        self.sender.try_send(event).map_err(|_| Over)?;
        Ok(Some(last))
    }
}

fn interval(every: Duration) -> tokio::time::Interval {
    let mut turns = tokio::time::interval(every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    turns
}
