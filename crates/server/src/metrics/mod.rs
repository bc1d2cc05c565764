//! Metrics: all services in figures, for a monitor that reads them again and again.
//!
//! A counter never shrinks while the daemon runs. Everything comes from memory: the last
//! sample, and what services have added up. Neither a reactor nor the state database is
//! waited for, and a datastore that hangs is given up on after less than a second.
//!
//! A page each has disks, datastores, classes, migrations, memory and the daemon. Labels are names
//! that operators give, and words from short lists; never what there is no end of, as the
//! numbers of migrations.

mod classes;
mod daemon;
mod datastores;
mod disks;
mod known;
mod memory;
mod moves;
mod ops;
pub(crate) mod requests;
mod rows;

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;
use sterna_api::{Error, NO_CLASS, Result};
use sterna_core::qos::ClassId;
use sterna_storage::Space;
use sterna_telemetry::samples::Totals;

use self::classes::Classes;
use self::daemon::Daemon;
use self::datastores::{DatastoreRow, Datastores};
use self::disks::{DiskRow, Disks};
use self::known::{Known, LastKnown};
use self::memory::Memory;
use self::moves::Migrations;
use self::requests::Requests;
use crate::Server;

/// What all metrics' names begin with.
const PREFIX: &str = "sterna";

/// What the text of metrics is.
pub(crate) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// What metrics need that no service has.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(crate) requests: Requests,
    state: LastKnown,
}

impl Server {
    /// All metrics, in Prometheus's text format.
    pub(crate) fn metrics(self: &Arc<Server>) -> Result<String> {
        let known = self.metrics.state.look(self);
        let totals = self.storage.samples.totals();
        let disks = Arc::new(self.disks_page(&known, &totals));
        let mut registry = Registry::with_prefix(PREFIX);
        let pages: [Box<dyn Collector>; 6] = [
            Box::new(self.daemon_page()),
            Box::new(disks.clone()),
            Box::new(self.datastores_page(&totals)),
            Box::new(self.classes_page(&totals)),
            Box::new(self.migrations_page(&known)),
            Box::new(self.memory_page()),
        ];
        pages.into_iter().for_each(|page| registry.register_collector(page));
        let mut text = String::new();
        let written: fmt::Result = prometheus_text::encode(&mut text, &registry)
            .and_then(|()| disks.write_times(&mut text));
        written.map_err(|_| Error::internal("the metrics cannot be written"))?;
        Ok(text)
    }

    fn daemon_page(&self) -> Daemon {
        let commits = self.storage.store.changes();
        Daemon { commits, requests: self.metrics.requests.all() }
    }

    fn disks_page(&self, known: &Known, totals: &Totals) -> Disks {
        let hurt = self.planner.hurt_ids();
        let rows = known.disks.iter().map(|(id, name)| DiskRow {
            name: name.clone(),
            is_hurt: hurt.contains(id),
            is_served: self.storage.problem_of(*id).is_none(),
            total: totals.disks.get(id).copied().unwrap_or_default(),
        });
        Disks(rows.collect())
    }

    fn datastores_page(&self, totals: &Totals) -> Datastores {
        let looked = self.storage.look_at_handles();
        let rows = looked.into_iter().map(|(handle, found)| DatastoreRow {
            name: handle.name().to_owned(),
            is_online: found.is_ok(),
            // That of a device or an export is its image's, and does not fill up.
            space: found
                .ok()
                .filter(|_| handle.is_shared())
                .map(|Space { free, capacity, .. }| (free, capacity)),
            total: totals.datastores.get(handle.name()).copied().unwrap_or_default(),
        });
        Datastores(rows.collect())
    }

    fn classes_page(&self, totals: &Totals) -> Classes {
        let snapshot = self.levels.snapshot();
        let classes = snapshot.entries().map(|it| (it.record.id, it.record.name.clone()));
        let all = classes.chain([(ClassId::OTHERS, NO_CLASS.to_owned())]);
        let total = |id| totals.classes.get(&id).copied().unwrap_or_default();
        let rows = all.map(|(id, name)| (name, total(id))).collect();
        Classes { rows, promises: self.levels.kept() }
    }

    fn memory_page(&self) -> Memory {
        Memory { top: self.memory.top().ok(), wakes: self.memory.wake_totals() }
    }

    fn migrations_page(&self, known: &Known) -> Migrations {
        let totals = &self.moves.totals;
        let name = |disk| {
            let found = known.disks.iter().find(|(id, _)| *id == disk);
            found.map(|(_, name)| name.clone())
        };
        let guards = self.moves.kept_by_guards().into_iter();
        let guards = guards.filter_map(|(disk, kept)| Some((name(disk)?, kept)));
        Migrations {
            states: known.states.clone(),
            copied: totals.copied(),
            stood: totals.stood_still().to_vec(),
            holds: totals.holds(),
            guards: guards.collect(),
        }
    }
}
