//! Who does what, as the API shows it.

use sterna_api::{Device, NO_CLASS, Result, Top, TopBy, TopRow};
use sterna_core::Nanos;
use sterna_core::measure::Summary;
use sterna_core::qos::ClassId;
use sterna_os::clock;
use sterna_telemetry::samples::{load, window};

use crate::Server;

/// The longest span that can be asked for, in seconds: what is kept.
const LONGEST_S: f64 = 3600.0;
/// The shortest: a sample.
const SHORTEST_S: f64 = 0.1;

/// The span that somebody asks about; refused if it is not kept.
pub(crate) fn span(window_s: f64) -> Result<Nanos> {
    window(window_s, SHORTEST_S, LONGEST_S)
}

impl Server {
    /// Who did what in the last `window_s` seconds.
    pub(crate) fn top(&self, by: TopBy, window_s: f64) -> Result<Top> {
        let span = span(window_s)?;
        let disks = self.storage.store.disk_names()?;
        let snapshot = self.levels.snapshot();
        let handles = self.storage.all_handles();
        let served =
            disks.iter().filter(|(disk, _)| self.storage.problem_of(*disk).is_none());
        let served: Vec<_> = served.collect();
        let look = self.storage.samples.look(span);
        let row = |name: &str, summary: &Summary, device: Option<Device>| TopRow {
            name: name.into(),
            load: load(summary),
            device,
        };
        let mut rows: Vec<TopRow> = match by {
            TopBy::Disk => served
                .iter()
                .map(|(disk, name)| row(name, &look.disk(*disk), None))
                .collect(),
            TopBy::Class => {
                let records = snapshot.entries().map(|entry| &entry.record);
                let classes = records.map(|it| row(&it.name, &look.class(it.id), None));
                let others = row(NO_CLASS, &look.class(ClassId::OTHERS), None);
                classes.chain([others]).collect()
            }
            TopBy::Datastore => {
                let names = handles.iter().map(|handle| handle.name());
                names
                    .map(|name| {
                        let (did, device) = look.datastore(name);
                        row(name, &did, device)
                    })
                    .collect()
            }
        };
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Top {
            by,
            at_ms: clock::now_ms(),
            disks: served.len() as u64,
            migrations: self.moves.count(),
            total: load(&look.all()),
            rows,
            matched: None,
        })
    }
}
