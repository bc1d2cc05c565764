//! The store's customers: a load on the guest's database, on a thread of its own.
//!
//! What they saw, second by second, is known when they have left. Each order that was
//! acknowledged is noted in a file.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use sterna_console::connect::block_on;
use sterna_workload::dvdstore::{self, Pace, Report, RunOptions, Server, Store};
use tokio::sync::oneshot;

/// Customers at a time: enough to keep two processors busy, however long a disk takes.
const USERS: usize = 6;
/// Longer than any experiment: they leave when they are told to.
const FOR_EVER: Duration = Duration::from_secs(7 * 24 * 3600);

/// Customers who shop, or wait at the door.
pub(crate) struct Customers {
    open: Option<oneshot::Sender<()>>,
    leave: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<Report>>>,
}

/// What they saw.
pub(crate) struct Seen {
    /// When the first window of the report began.
    pub(crate) from: Instant,
    /// The report.
    pub(crate) report: Report,
}

impl Customers {
    /// Lets them in: as many orders as come at this rate, or as many as can be made.
    pub(crate) fn enter(
        server: &Server,
        store: Store,
        rate: Option<f64>,
        seed: u64,
        orders: &Path,
    ) -> Customers {
        let (mut customers, _) = Customers::come(server, store, rate, seed, orders);
        customers.open();
        customers
    }

    /// The same, but they wait at the door: they are connected, and have asked for nothing.
    pub(crate) async fn gather(
        server: &Server,
        store: Store,
        rate: Option<f64>,
        seed: u64,
        orders: &Path,
    ) -> anyhow::Result<Customers> {
        let (customers, connected) = Customers::come(server, store, rate, seed, orders);
        if connected.await.is_err() {
            customers.leave().await.context("the customers cannot come")?;
            bail!("the customers have left");
        }
        Ok(customers)
    }

    /// Opens the door.
    pub(crate) fn open(&mut self) {
        if let Some(open) = self.open.take() {
            let _ = open.send(());
        }
    }

    /// They come to the door; tells when they are connected.
    fn come(
        server: &Server,
        store: Store,
        rate: Option<f64>,
        seed: u64,
        orders: &Path,
    ) -> (Customers, oneshot::Receiver<()>) {
        let options = RunOptions {
            users: USERS,
            pace: match rate {
                Some(rate) => Pace::Open { rate },
                None => Pace::Closed { think: Duration::ZERO },
            },
            warm_up: Duration::ZERO,
            length: FOR_EVER,
            seed,
            acknowledged: Some(orders.to_owned()),
        };
        let (open, opened) = oneshot::channel();
        let (leave, told) = oneshot::channel();
        let (tell, connected) = oneshot::channel();
        let server = server.clone();
        let thread = std::thread::spawn(move || {
            // Told, or nobody is there any more who could tell.
            let stop = async { told.await.unwrap_or(()) };
            block_on(async {
                let ready = dvdstore::ready(&server, store, &options).await?;
                let _ = tell.send(());
                opened.await.context("the door was not opened")?;
                Ok(ready.run(stop, &mut |_| {}).await?)
            })
        });
        let customers =
            Customers { open: Some(open), leave: Some(leave), thread: Some(thread) };
        (customers, connected)
    }

    /// Whether they have left by themselves, which they do only if they cannot go on.
    pub(crate) fn have_left(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Sends them away, and gives what they saw.
    pub(crate) async fn leave(mut self) -> anyhow::Result<Seen> {
        (self.open, self.leave) = (None, None);
        let now = Instant::now();
        let thread = self.thread.take().context("the customers have left already")?;
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        let report = joined
            .context("cannot wait for the customers")?
            .map_err(|_| anyhow!("the customers' thread panicked"))?
            .context("cannot shop in the guest's store")?;
        let span = Duration::from_secs_f64(report.seconds);
        Ok(Seen { from: now.checked_sub(span).unwrap_or(now), report })
    }
}

impl Drop for Customers {
    fn drop(&mut self) {
        (self.open, self.leave) = (None, None);
        if let Some(thread) = self.thread.take() {
            // The experiment has failed or was interrupted; they have nothing to add.
            let _ = thread.join();
        }
    }
}
