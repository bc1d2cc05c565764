//! Requests that change something, and may wait for storage.
//!
//! **Rule.** They hold at most [`PART`] of the API's connections; one more is refused. Those
//! that only stop what goes on ([`only_stops`]) have a part of their own ([`STOPS`]), and so have
//! the dashboard's sessions ([`SESSIONS`]): anybody on this host may ask for one. So commands
//! that wait for a datastore that hangs keep nobody from asking what is the matter, or from
//! stopping the daemon's moves elsewhere.
//!
//! A request counts for as long as its thread goes on, also if its client has gone: a client
//! that gives up and asks again leaves a thread behind each time.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::Method;
use sterna_api::Error;
use tokio::task::JoinHandle;

/// Three of four: the others are for those who only ask, or stop something.
const PART: (usize, usize) = (3, 4);
/// One of eight for those who stop something.
const STOPS: (usize, usize) = (1, 8);
/// One of sixteen for sessions; the rest is for those who only ask.
const SESSIONS: (usize, usize) = (1, 16);

tokio::task_local! {
    /// The change that a task carries out.
    static CARRIED_OUT: Arc<Change>;
}

/// Those that are being carried out.
#[derive(Debug)]
pub(super) struct Changes {
    stops: Arc<Part>,
    sessions: Arc<Part>,
    others: Arc<Part>,
}

/// Those of one kind.
#[derive(Debug)]
struct Part {
    most: usize,
    now: AtomicUsize,
}

/// One that is. Over when it is dropped.
#[derive(Debug)]
pub(super) struct Change(Arc<Part>);

impl Part {
    fn of(connections: usize, (part, whole): (usize, usize)) -> Arc<Part> {
        let most = (connections * part / whole).max(1);
        Arc::new(Part { most, now: AtomicUsize::new(0) })
    }
}

impl Changes {
    /// Of an API with so many connections.
    pub(super) fn of(connections: usize) -> Changes {
        let part = |part| Part::of(connections, part);
        Changes { stops: part(STOPS), sessions: part(SESSIONS), others: part(PART) }
    }

    /// What that request changes begins, if it changes something and there are not too many.
    pub(super) fn begin(
        &self,
        method: &Method,
        path: &str,
    ) -> Result<Option<Change>, Error> {
        if method.is_safe() {
            return Ok(None);
        }
        let part = match path {
            "/v1/session" | "/v1/dashboard/links" => &self.sessions,
            _ if only_stops(method, path) => &self.stops,
            _ => &self.others,
        };
        let most = part.most;
        let one_more = |now: usize| (now < most).then_some(now + 1);
        match part.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Some(Change(Arc::clone(part)))),
            Err(_) => Err(Error::unavailable(format!(
                "{most} commands wait for their end already"
            ))
            .hint(
                "try again in a moment; if a datastore hangs (`sterna datastore list`), \
                 repair it",
            )),
        }
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a request stops or slows what goes on: what people need while datastores hang.
fn only_stops(method: &Method, path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    match (method, last) {
        (&Method::POST, "cancel" | "pause") | (&Method::PUT, "guard" | "maintenance") => {
            true
        }
        (&Method::PATCH, _) => path.starts_with("/v1/migrations/"),
        _ => false,
    }
}

/// Carries out a request, which changes something or not.
pub(super) async fn carry_out<F: Future>(change: Option<Change>, work: F) -> F::Output {
    match change {
        Some(change) => CARRIED_OUT.scope(Arc::new(change), work).await,
        None => work.await,
    }
}

/// Does what may block on a thread that may. The change that it is a part of lasts for as long
/// as the thread.
pub(super) fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let change = CARRIED_OUT.try_with(Arc::clone).ok();
    tokio::task::spawn_blocking(move || {
        let done = work();
        drop(change);
        done
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::super::activity::OPERATIONS;
    use super::*;

    const DISKS: &str = "/v1/disks";

    #[test]
    fn a_quarter_of_the_connections_is_left_for_those_who_ask_or_stop_something() {
        let changes = Changes::of(8);
        let begin = |path| changes.begin(&Method::POST, path);
        let mut under_way: Vec<_> = (0..6).map(|_| begin(DISKS).unwrap()).collect();
        assert!(begin(DISKS).is_err());
        assert!(changes.begin(&Method::GET, DISKS).unwrap().is_none());
        let stops = begin("/v1/migrations/7/cancel").unwrap();
        assert!(begin("/v1/plans/7/pause").is_err(), "one of eight");
        under_way.pop();
        assert!(begin(DISKS).is_ok());
        drop(stops);
        assert!(begin("/v1/plans/7/pause").is_ok());
    }

    #[test]
    fn one_of_each_kind_is_always_let_in() {
        let changes = Changes::of(1);
        let first = changes.begin(&Method::POST, DISKS);
        assert!(first.is_ok() && changes.begin(&Method::DELETE, "/v1/session").is_ok());
    }

    #[test]
    fn sessions_take_no_place_of_what_stops_something() {
        let changes = Changes::of(16);
        let begin = |path| changes.begin(&Method::POST, path);
        let session = begin("/v1/session").unwrap();
        assert!(begin("/v1/dashboard/links").is_err(), "one of sixteen");
        assert!(begin("/v1/migrations/7/cancel").is_ok() && begin(DISKS).is_ok());
        drop(session);
        assert!(begin("/v1/dashboard/links").is_ok());
    }

    #[test]
    fn what_stops_something_has_a_part_of_its_own() {
        let mut stops: Vec<&str> = OPERATIONS
            .iter()
            .filter(|(method, path, _)| only_stops(method, path))
            .map(|(.., operation)| &**operation)
            .collect();
        stops.sort_unstable();
        assert_eq!(
            stops,
            [
                "cancel_migration",
                "cancel_plan",
                "cancel_transfer",
                "change_migration",
                "guard_migration",
                "pause_migration",
                "pause_plan",
                "set_maintenance",
            ]
        );
    }

    #[tokio::test]
    async fn a_change_counts_for_as_long_as_it_hangs_also_if_its_client_has_gone() {
        let changes = Changes::of(1);
        let begin = || changes.begin(&Method::POST, DISKS);
        let (release, held) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel::<()>();
        let hang = move || {
            drop(begun);
            held.recv().is_err()
        };
        let request = carry_out(begin().unwrap(), async { on_a_thread(hang).await });
        let request = tokio::spawn(request);
        while has_begun.try_recv() == Err(mpsc::TryRecvError::Empty) {
            tokio::task::yield_now().await;
        }
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert!(begin().is_err());
        drop(release);
        let until = Instant::now() + Duration::from_secs(30);
        while begin().is_err() {
            assert!(Instant::now() < until, "it has ended");
            tokio::task::yield_now().await;
        }
    }
}
