//! Who takes the samples: a thread that asks the engine every 100 ms.
//!
//! It asks with one letter to each reactor for all disks, and never the store, so that
//! a state directory that hangs does not blind those who hold service levels. A sample
//! that comes late is longer, and says so; it is not made up for.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::Pool;
use sterna_engine::{Budget, EngineError};
use sterna_os::lock;

use super::{EVERY, Sample, Tick};
use crate::daemon::Daemon;

/// How often what is too old is dropped.
const TIDY: Duration = Duration::from_secs(60);

/// Starts the thread. It ends with the daemon.
pub(crate) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let daemon = Arc::downgrade(daemon);
    let thread = thread::Builder::new().name("sterna-samples".into());
    thread.spawn(move || sample_for_ever(&daemon))?;
    Ok(())
}

fn sample_for_ever(daemon: &Weak<Daemon>) {
    let mut last = Instant::now();
    let (mut due, mut tidy_due) = (last + EVERY, last + TIDY);
    loop {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let Some(daemon) = daemon.upgrade() else { return };
        let now = Instant::now();
        let Ok(tick) = daemon.tick(Nanos::from(now - last)) else { return };
        daemon.samples.enter(&tick);
        if now >= tidy_due {
            tidy_due = now + TIDY;
            lock(&daemon.samples.table).tidy();
        }
        last = now;
        due = (due + EVERY).max(now);
    }
}

impl Daemon {
    /// What happened since the last call.
    fn tick(&self, span: Nanos) -> Result<Tick, EngineError> {
        let stores: Vec<(String, Arc<Budget>)> = self
            .all_shelves()
            .iter()
            .map(|shelf| (shelf.name().to_owned(), shelf.budget()))
            .collect();
        let name_of = |pool: &Arc<Pool>| {
            let found = stores.iter().find(|(_, budget)| budget.is(pool));
            found.map(|(name, _)| name.clone())
        };
        let book = self.book();
        let sampled = |one: sterna_engine::DiskWindow| Sample {
            disk: one.disk,
            datastore: name_of(&one.datastore),
            class: book.class_of(one.disk).map(|entry| entry.record.id),
            window: one.window,
        };
        let copied = |(pool, window): (Arc<Pool>, Window)| {
            // A datastore that has just had its first copy counts from long ago.
            Some((name_of(&pool)?, Window { span, ..window }))
        };
        Ok(Tick {
            span,
            disks: self.engine.take_windows()?.into_iter().map(sampled).collect(),
            copied: self.engine.take_copied()?.into_iter().filter_map(copied).collect(),
        })
    }
}
