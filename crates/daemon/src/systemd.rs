//! What systemd is told, if it has started the daemon with `Type=notify`: that clients
//! can connect, that the daemon is stopping, and, for `WatchdogSec=`, that it answers.
//!
//! **Rule.** The watchdog hears of the daemon only when a request has been answered, the
//! whole way: the API's event loop, its router, a thread that may block, and the
//! state database. So a daemon that stands still is killed and started
//! anew, which its guests wait through.
//!
//! A refusal is an answer. While the *storage* of the state directory hangs, the API says
//! so in time, and the watchdog stays content: another daemon could not even start there,
//! and the guests of this one are served. For the same reason nothing here asks the
//! datastores or the I/O threads. The connections to the API are not counted either:
//! programs that keep all of them do not make the daemon dead.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use sd_notify::NotifyState;
use tokio::task::JoinHandle;

/// So many times the daemon answers within the watchdog's patience, if all is well: a
/// machine that is busy for a moment costs one of them.
const ANSWERS: u32 = 3;

/// What the daemon asks itself: it reads the state database, and asks no file system, no
/// datastore and no I/O thread, all of which may stand still while guests are served.
const QUESTION: &str = "/v1/rules";

/// Says that clients can connect.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// Says that the daemon is stopping.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Shows the watchdog that this router answers, if there is a watchdog.
pub(crate) fn show_answers(router: Router) -> Option<JoinHandle<()>> {
    let every = sd_notify::watchdog_enabled()? / ANSWERS;
    let alive = || tell(&[NotifyState::Watchdog]);
    Some(tokio::spawn(tell_of_answers(router, every, alive)))
}

/// Tells systemd, which is there or is not.
fn tell(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        tracing::warn!(%error, "cannot report the daemon's state to systemd");
    }
}

/// Asks the router again and again, and calls `alive` at each answer.
async fn tell_of_answers(router: Router, every: Duration, alive: impl Fn()) {
    let service = TowerToHyperService::new(router);
    let mut turns = tokio::time::interval(every);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let mut question = Request::new(Body::empty());
        *question.uri_mut() = axum::http::Uri::from_static(QUESTION);
        let mut answer = std::pin::pin!(service.call(question));
        if tokio::time::timeout(every, &mut answer).await.is_err() {
            tracing::warn!(waits = ?every, "the daemon's API does not answer the watchdog");
            // Whoever waits for ever is killed by the watchdog.
            let _ = answer.await;
        }
        alive();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::StatusCode;
    use axum::routing::get;
    use tokio::sync::Semaphore;

    use super::*;

    const EVERY: Duration = Duration::from_millis(100);

    /// Counts the signs of life of a router; time goes by at once.
    fn signs(router: Router) -> (Arc<AtomicUsize>, JoinHandle<()>) {
        let signs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&signs);
        let alive = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        (signs, tokio::spawn(tell_of_answers(router, EVERY, alive)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_shows_as_much_as_an_answer() {
        for status in [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE] {
            let router =
                Router::new().route(QUESTION, get(move || async move { status }));
            let (signs, task) = signs(router);
            tokio::time::sleep(EVERY * 5).await;
            assert!((4..=6).contains(&signs.load(Ordering::Relaxed)), "{signs:?}");
            task.abort();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_does_not_answer_shows_no_sign_of_life_until_it_does() {
        let gate = Arc::new(Semaphore::new(2));
        let held = Arc::clone(&gate);
        let answer = move || async move {
            let pass = held.acquire().await.expect("the gate is kept");
            pass.forget();
        };
        let (signs, task) = signs(Router::new().route(QUESTION, get(answer)));
        tokio::time::sleep(EVERY * 50).await;
        assert_eq!(signs.load(Ordering::Relaxed), 2);
        gate.add_permits(1000);
        tokio::time::sleep(EVERY * 5).await;
        assert!(signs.load(Ordering::Relaxed) >= 5, "{signs:?}");
        task.abort();
    }
}
