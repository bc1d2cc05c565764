//! What disks did, hour by hour, for ninety days: kept in the history file.
//!
//! At the end of each hour, what the timeline of each disk has of it is joined in one point.
//! An hour that could not be written is not known.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_api::{Columns, Error, Result, Timeline};
use sterna_core::DiskId;
use sterna_os::clock;
use sterna_runtime::tasks::Task;
use sterna_state::DiskHour;
use sterna_telemetry::samples::Subject;

use crate::Planner;
use crate::hurt::KEEP;

const HOUR_S: u64 = 3600;
/// How often it is looked whether an hour is over.
const LOOK: Duration = Duration::from_secs(20);
/// The longest that can be asked for: what is kept.
const LONGEST_S: u64 = 90 * 24 * HOUR_S;

/// Records hours, and what is usual for disks: both are in one file.
pub fn recording(planner: &Arc<Planner>) -> Task {
    let mut hour = clock::now() / HOUR_S;
    let mut kept = Instant::now();
    let record = move |planner: &Arc<Planner>| {
        let usual = match kept.elapsed() >= KEEP {
            true => {
                kept = Instant::now();
                planner.keep_usual()
            }
            false => Ok(()),
        };
        let (now, before) = (clock::now() / HOUR_S, hour);
        hour = now;
        // A clock that was set makes an hour that nobody has seen.
        let recorded = match now == before + 1 {
            true => planner.record_disk_hours(before * HOUR_S),
            false => Ok(()),
        };
        recorded.and(usual)
    };
    Task::every(
        "history",
        "record what disks did, and what is usual for them",
        LOOK,
        planner,
        record,
    )
}

impl Planner {
    /// Records what disks did in the hour that began then.
    fn record_disk_hours(&self, at: u64) -> Result<()> {
        let Some(history) = self.history.get() else { return Ok(()) };
        let disks = self.storage.store.disks()?;
        let did = |id: DiskId| {
            let (from_ms, to_ms) = (at * 1000, (at + HOUR_S) * 1000);
            let columns =
                self.storage.samples.chart(&Subject::Disk(id), from_ms, to_ms, 1);
            hour_of(at, &columns)
        };
        let these: Vec<_> =
            disks.iter().filter_map(|disk| Some((disk.id, did(disk.id)?))).collect();
        Ok(history.add_hours(&these)?)
    }

    /// What a disk did hour by hour, from one moment to another (seconds since 1970): in the
    /// form of a timeline.
    pub fn disk_hours(
        &self,
        disk: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<Timeline> {
        let record = self.storage.disk_record(disk)?;
        let now_ms = clock::now_ms();
        let to = to.unwrap_or(now_ms / 1000);
        let from = from.unwrap_or_else(|| to.saturating_sub(LONGEST_S));
        if from >= to || to - from > LONGEST_S {
            let message =
                "the first moment must be before the last one, by 90 days at most";
            return Err(Error::invalid(message).hint("give `from` before `to`"));
        }
        let hours = match self.history.get() {
            Some(history) => history.hours(record.id, from / HOUR_S * HOUR_S, to)?,
            None => Vec::new(),
        };
        let mut columns = Columns::default();
        hours.iter().for_each(|one| push(&mut columns, one));
        let (from_ms, to_ms) = (from * 1000, to * 1000);
        Ok(Timeline { of: format!("disk:{disk}"), from_ms, to_ms, now_ms, columns })
    }
}

/// The hour of the one point that these columns have.
fn hour_of(hour: u64, all: &Columns) -> Option<DiskHour> {
    // The point's rates are those of its own time, and the hour may have more.
    let lasted = all.end_ms.first()?.saturating_sub(*all.start_ms.first()?);
    let part = (lasted as f64 / (HOUR_S * 1000) as f64).min(1.0);
    Some(DiskHour {
        hour,
        iops: [all.read_iops[0] * part, all.write_iops[0] * part],
        bytes_s: [all.read_bytes_s[0] * part, all.write_bytes_s[0] * part],
        outstanding: all.outstanding[0] * part,
        response_us: [all.p50_us[0], all.p99_us[0], all.max_us[0]],
        parts_us: [all.queue_us[0], all.service_us[0]],
        windows: all.windows[0],
    })
}

fn push(all: &mut Columns, one: &DiskHour) {
    all.start_ms.push(one.hour * 1000);
    all.end_ms.push((one.hour + HOUR_S) * 1000);
    all.windows.push(one.windows);
    all.read_iops.push(one.iops[0]);
    all.write_iops.push(one.iops[1]);
    all.read_bytes_s.push(one.bytes_s[0]);
    all.write_bytes_s.push(one.bytes_s[1]);
    all.p50_us.push(one.response_us[0]);
    all.p99_us.push(one.response_us[1]);
    all.max_us.push(one.response_us[2]);
    all.queue_us.push(one.parts_us[0]);
    all.service_us.push(one.parts_us[1]);
    all.outstanding.push(one.outstanding);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_comes_back_as_it_was() {
        let one = DiskHour {
            hour: 7 * HOUR_S,
            iops: [1.0, 2.0],
            bytes_s: [3.0, 4.0],
            outstanding: 5.0,
            response_us: [Some(6.0), Some(7.0), Some(8.0)],
            parts_us: [None, Some(9.0)],
            windows: 4,
        };
        let mut columns = Columns::default();
        assert_eq!(hour_of(one.hour, &columns), None, "an hour without requests");
        push(&mut columns, &one);
        assert_eq!(hour_of(one.hour, &columns), Some(one));
        columns.end_ms[0] -= 45 * 60 * 1000;
        let quarter = hour_of(one.hour, &columns).unwrap();
        assert_eq!(quarter.iops, [0.25, 0.5], "rates are those of the hour");
        assert_eq!(quarter.response_us, one.response_us);
    }
}
