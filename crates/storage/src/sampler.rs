//! Who takes the samples: a thread that asks the engine every 100 ms.
//!
//! It asks with one letter to each reactor for all disks, and never the store, so that
//! a state directory that hangs does not blind those who hold service levels. A sample
//! that comes late is longer, and says so; it is not made up for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_api::Error;
use sterna_core::measure::Window;
use sterna_core::qos::{ClassId, Pool};
use sterna_core::{DiskId, Nanos};
use sterna_engine::{Budget, EngineError};
use sterna_os::wake::Sleeper;
use sterna_runtime::tasks::Task;
use sterna_telemetry::samples::{EVERY, Sample, Tick};

use crate::Storage;

/// How often what is too old is dropped.
const TIDY: Duration = Duration::from_secs(60);

/// Takes samples. Which class a disk is in is asked of `classes`, anew for each sample.
pub fn sampling<C>(
    storage: &Arc<Storage>,
    classes: impl Fn() -> C + Send + 'static,
) -> Task
where
    C: Fn(DiskId) -> Option<ClassId>,
{
    let mut last = Instant::now();
    let (mut due, mut tidy_due) = (last + EVERY, last + TIDY);
    let sample = move |storage: &Arc<Storage>| {
        let now = Instant::now();
        let tick =
            storage.tick(Nanos::from(now - last), classes()).map_err(Error::internal)?;
        storage.samples.enter(&tick);
        if now >= tidy_due {
            tidy_due = now + TIDY;
            storage.samples.tidy();
        }
        last = now;
        due = (due + EVERY).max(now);
        Ok(due.saturating_duration_since(Instant::now()))
    };
    let sleeper = Arc::new(Sleeper::default());
    let does = "measure disks and datastores";
    Task::when_due("samples", does, EVERY, sleeper, storage, sample).after(EVERY)
}

impl Storage {
    /// What happened since the last call.
    fn tick(
        &self,
        span: Nanos,
        class_of: impl Fn(DiskId) -> Option<ClassId>,
    ) -> Result<Tick, EngineError> {
        let stores: Vec<(String, Arc<Budget>)> = self
            .all_handles()
            .iter()
            .map(|handle| (handle.name().to_owned(), handle.budget()))
            .collect();
        let name_of = |pool: &Arc<Pool>| {
            let found = stores.iter().find(|(_, budget)| budget.is(pool));
            found.map(|(name, _)| name.clone())
        };
        let sampled = |one: sterna_engine::DiskWindow| Sample {
            disk: one.disk,
            datastore: name_of(&one.datastore),
            class: class_of(one.disk),
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
