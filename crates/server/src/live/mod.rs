//! The live figures: what everybody who looks is told, second by second.
//!
//! **Rule.** There are [`STREAMS_MOST`] streams at most, and each has a queue of a few
//! events. Whoever does not take them in time loses the stream, and begins anew: nothing is
//! kept for slow readers, and no figure that is shown is older than the queue is long. No
//! stream holds up the daemon: figures come from the samples, which no disk is asked for.

mod rows;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sterna_api::{Error, Result, Top, TopBy};
use sterna_os::random;
use tokio::sync::watch;

pub(crate) use self::rows::{Filter, Order};
use crate::Server;

/// So many may look at the same time.
pub(crate) const STREAMS_MOST: usize = 32;

/// The most rows that a stream has: more than a screen shows.
pub(crate) const ROWS_MOST: usize = 1000;

/// Who is told, and until when.
pub struct Live {
    /// Another one after each start of the daemon.
    pub(crate) daemon: String,
    streams: Arc<AtomicUsize>,
    ended: watch::Sender<bool>,
}

impl Live {
    /// Nobody yet.
    pub fn new() -> Result<Live> {
        Ok(Live {
            daemon: format!("{:032x}", random::number()?),
            streams: Arc::default(),
            ended: watch::channel(false).0,
        })
    }

    /// Ends all streams: the daemon stops.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Says when streams are to end.
    pub(crate) fn ends(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// A place for one more stream, which is free again when it is dropped.
    pub(crate) fn enter(&self) -> Result<Place> {
        let place = Place(self.streams.clone());
        if self.streams.fetch_add(1, Ordering::Relaxed) < STREAMS_MOST {
            return Ok(place);
        }
        let message = format!("{STREAMS_MOST} streams of live figures are open already");
        Err(Error::unavailable(message).hint("close pages of the dashboard"))
    }
}

/// The place of a stream.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which rows a stream has.
#[derive(Clone, Debug)]
pub(crate) struct AskedRows {
    pub(crate) by: TopBy,
    pub(crate) window_s: f64,
    pub(crate) order: Order,
    pub(crate) filter: Filter,
    pub(crate) from: usize,
    pub(crate) count: usize,
}

impl Server {
    /// The rows that were asked for, and how many the filter lets through.
    pub(crate) fn top_rows(&self, asked: &AskedRows) -> Result<Top> {
        let mut top = self.top(asked.by, asked.window_s)?;
        if asked.filter.needs_disks() && asked.by == TopBy::Disk {
            let disks = self.storage.store.disks()?;
            let snapshot = self.levels.snapshot();
            let mut of = std::collections::HashMap::new();
            for disk in disks {
                let class = snapshot.class_of(disk.id).map(|it| it.record.name.clone());
                of.insert(disk.name, (disk.datastore, class));
            }
            top.rows.retain(|row| {
                let (datastore, class) = of.get(&row.name).cloned().unwrap_or_default();
                asked.filter.is_there(&datastore, class.as_deref())
            });
        }
        top.rows.retain(|row| asked.filter.lets_through(row));
        top.matched = Some(top.rows.len() as u64);
        asked.order.sort(&mut top.rows);
        top.rows = top.rows.into_iter().skip(asked.from).take(asked.count).collect();
        Ok(top)
    }
}
