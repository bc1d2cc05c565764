//! Connections to the API: no more than so many, and none that does nothing for long.
//!
//! **Rule.** A connection counts as idle while no request of it is being carried out. One
//! that is idle for [`IDLE`], or takes longer than that to send the head of a request, is
//! closed. If there are as many as there may be, a new one takes the place of the one that
//! has been idle for the longest time; so clients that forget their connections, and those
//! that open them to keep others out, lose them. If all of them wait for an answer, the new
//! one is closed: the daemon then has more to do than it can, and says so in the log.
//!
//! A body that does not come is given up by whoever reads it (`extract`). A client that
//! takes no answers counts as idle from when the answer is ready, and so has that long to
//! take all of it: over a socket of this machine it is there in no time.
//!
//! Guests are elsewhere: they have connections, and descriptors, of their own.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use sterna_os::lock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::Refusal;
use super::changes::{Changes, carry_out};
use crate::access::Caller;

/// How long a connection may do nothing: longer than monitors pause that ask every minute.
const IDLE: Duration = Duration::from_secs(75);

/// If none can be accepted (there are too many open files), the next try is after this.
const PAUSE: Duration = Duration::from_millis(100);

/// Who is connected.
#[derive(Debug)]
pub struct Visitors {
    most: usize,
    /// How long each may do nothing.
    patience: Duration,
    changes: Changes,
    there: Mutex<There>,
    /// So many were closed for others.
    closed: AtomicU64,
}

#[derive(Debug, Default)]
struct There {
    next: u64,
    all: HashMap<u64, Visitor>,
}

#[derive(Debug)]
struct Visitor {
    /// So many requests of it are being carried out, or answers being sent.
    busy: usize,
    /// Since when nothing is being done for it, if that is so.
    since: Instant,
    /// Dropped, it closes the connection.
    _stays: oneshot::Sender<Infallible>,
}

impl Visitors {
    /// Nobody, of so many at most.
    pub fn at_most(most: usize) -> Visitors {
        Visitors::with(most, IDLE)
    }

    fn with(most: usize, patience: Duration) -> Visitors {
        let (there, closed) = (Mutex::default(), AtomicU64::new(0));
        let changes = Changes::of(most);
        Visitors { most, patience, changes, there, closed }
    }

    /// How many there are, and how many were closed for others.
    pub(crate) fn counted(&self) -> (u64, u64) {
        let there = lock(&self.there).all.len() as u64;
        (there, self.closed.load(Ordering::Relaxed))
    }

    /// Lets somebody in, in another's place if need be: its number, and what ends when it
    /// has to go. Nothing if there is no place.
    fn enter(&self, now: Instant) -> Option<(u64, oneshot::Receiver<Infallible>)> {
        let mut there = lock(&self.there);
        if there.all.len() >= self.most {
            self.closed.fetch_add(1, Ordering::Relaxed);
            let idle =
                there.all.iter().filter_map(|(key, one)| Some((one.idle()?, *key)));
            let (_, oldest) = idle.min()?;
            there.all.remove(&oldest);
        }
        let (stays, goes) = oneshot::channel();
        let key = there.next;
        there.next += 1;
        there.all.insert(key, Visitor { busy: 0, since: now, _stays: stays });
        Some((key, goes))
    }

    fn leave(&self, key: u64) {
        lock(&self.there).all.remove(&key);
    }

    /// How long nothing has been done for one.
    fn idle_for(&self, key: u64) -> Duration {
        let there = lock(&self.there);
        let idle = there.all.get(&key).and_then(Visitor::idle);
        idle.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits until one has been idle for too long.
    async fn idles_out(&self, key: u64) {
        loop {
            let left = self.patience.saturating_sub(self.idle_for(key));
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// Something is done for it from now on.
    fn begins(&self, key: u64) {
        if let Some(visitor) = lock(&self.there).all.get_mut(&key) {
            visitor.busy += 1;
        }
    }

    /// One thing is done for it no more.
    fn ends(&self, key: u64, now: Instant) {
        if let Some(visitor) = lock(&self.there).all.get_mut(&key) {
            visitor.busy = visitor.busy.saturating_sub(1);
            visitor.since = now;
        }
    }
}

impl Visitor {
    /// Since when nothing is being done for it, if that is so.
    fn idle(&self) -> Option<Instant> {
        (self.busy == 0).then_some(self.since)
    }
}

/// Whose request it is: an answer that takes long to send keeps the connection busy with
/// this.
#[derive(Clone, Debug)]
pub(super) struct Visit(Arc<Visitors>, u64);

impl Visit {
    /// Something is done for the connection until this is dropped.
    pub(super) fn busy(&self) -> Busy {
        Busy::new(&self.0, self.1)
    }
}

/// A request that is being carried out; over when it is dropped.
pub(super) struct Busy(Arc<Visitors>, u64);

impl Busy {
    fn new(visitors: &Arc<Visitors>, key: u64) -> Busy {
        visitors.begins(key);
        Busy(visitors.clone(), key)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.ends(self.1, Instant::now());
    }
}

/// Where clients come in.
pub(super) trait Door: Send + 'static {
    /// What they come on.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next one, and says whether that is known to be somebody of this host.
    fn next(
        &self,
    ) -> impl Future<Output = io::Result<(Self::Stream, Option<Caller>)>> + Send;
}

impl Door for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Option<Caller>)> {
        let (stream, _) = self.accept().await?;
        let user = stream.peer_cred().ok().map(|peer| peer.uid());
        Ok((stream, Some(Caller::Local(user))))
    }
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Option<Caller>)> {
        let (stream, _) = self.accept().await?;
        Ok((stream, None))
    }
}

/// Serves the API until `stopping` says true, and then what is under way.
pub async fn serve(
    listener: UnixListener,
    router: Router,
    visitors: Arc<Visitors>,
    stopping: watch::Receiver<bool>,
) {
    serve_at(listener, router, visitors, stopping).await;
}

/// The same, wherever clients come in.
pub(super) async fn serve_at(
    door: impl Door,
    router: Router,
    visitors: Arc<Visitors>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = door.next() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopping.wait_for(|stopping| *stopping) => break,
        };
        let Ok((stream, caller)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some((key, goes)) = visitors.enter(Instant::now()) else { continue };
        let (router, visitors) = (router.clone(), visitors.clone());
        let stopping = stopping.clone();
        connections.spawn(async move {
            talk(stream, router, caller, &visitors, key, goes, stopping).await;
            visitors.leave(key);
        });
    }
    drop(door);
    while connections.join_next().await.is_some() {}
}

/// One connection, until its client has had enough, has to go, or the daemon stops.
async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    caller: Option<Caller>,
    visitors: &Arc<Visitors>,
    key: u64,
    goes: oneshot::Receiver<Infallible>,
    mut stopping: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let answer = |mut request: hyper::Request<Incoming>| {
        let busy = Busy::new(visitors, key);
        request.extensions_mut().insert(Visit(visitors.clone(), key));
        // Not as a layer of the router's: that makes all its routes anew.
        if let Some(caller) = caller.clone() {
            request.extensions_mut().insert(caller);
        }
        let change = visitors.changes.begin(request.method(), request.uri().path());
        let answer = change.map(|change| carry_out(change, router.call(request)));
        async move {
            let answer = match answer {
                Ok(answer) => answer,
                Err(refused) => return Ok(Refusal(refused).into_response()),
            };
            let answer: Result<Response, Infallible> = answer.await;
            drop(busy);
            answer
        }
    };
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE);
    let talk = server.serve_connection(TokioIo::new(stream), service_fn(answer));
    let (mut talk, mut goes) = (pin!(talk), pin!(goes));
    let mut idles_out = pin!(visitors.idles_out(key));
    let stops = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
    tokio::select! {
        // Whatever broke it, broke it for its client.
        _ = &mut talk => return,
        _ = &mut goes => return,
        () = &mut idles_out => return,
        () = stops => talk.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = talk => {}
        _ = goes => {}
        () = idles_out => {}
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Longer than anything here takes on a busy machine.
    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn who_takes_no_answer_has_to_go_and_who_waits_for_one_has_not() {
        let patience = Duration::from_millis(100);
        let visitors = Arc::new(Visitors::with(2, patience));
        // No socket takes so much at once.
        let much = || async { vec![0u8; 16 << 20] };
        let slow = move || async move { tokio::time::sleep(3 * patience).await };
        let router = Router::new().route("/much", get(much)).route("/slow", get(slow));
        let (_runs, stopping) = watch::channel(false);
        for path in ["much", "slow"] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let (key, goes) = visitors.enter(Instant::now()).unwrap();
            let request = format!("GET /{path} HTTP/1.1\r\nhost: here\r\n\r\n");
            theirs.write_all(request.as_bytes()).await.unwrap();
            let (router, stopping) = (router.clone(), stopping.clone());
            let talk = talk(ours, router, None, &visitors, key, goes, stopping);
            tokio::time::timeout(LONG, talk).await.expect("it is closed");
            visitors.leave(key);
            let mut answer = Vec::new();
            theirs.read_to_end(&mut answer).await.unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{path}");
            assert!(answer.len() < 16 << 20);
        }
    }

    #[test]
    fn the_one_that_is_idle_for_the_longest_time_makes_room() {
        let visitors = Visitors::at_most(3);
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let mut all: Vec<_> = (0..3).map(|it| visitors.enter(at(it)).unwrap()).collect();
        // The first asks for something; the second has had its answer lately.
        visitors.begins(all[0].0);
        visitors.begins(all[1].0);
        visitors.ends(all[1].0, at(10));
        assert!(visitors.enter(at(11)).is_some());
        let has_to_go = |(_, goes): &mut (u64, oneshot::Receiver<_>)| {
            matches!(goes.try_recv(), Err(oneshot::error::TryRecvError::Closed))
        };
        let gone: Vec<bool> = all.iter_mut().map(has_to_go).collect();
        assert_eq!((gone, visitors.counted()), (vec![false, false, true], (3, 1)));
    }

    #[test]
    fn nobody_who_waits_for_an_answer_has_to_go() {
        let visitors = Visitors::at_most(2);
        let now = Instant::now();
        let all = [visitors.enter(now).unwrap(), visitors.enter(now).unwrap()];
        for (key, _) in &all {
            visitors.begins(*key);
        }
        assert!(visitors.enter(now).is_none());
        visitors.leave(all[0].0);
        assert!(visitors.enter(now).is_some());
        assert_eq!(visitors.counted(), (2, 1));
    }
}
