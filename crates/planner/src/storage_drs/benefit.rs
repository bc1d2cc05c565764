//! What came of the moves that Storage DRS has begun: measured when the disk has been at
//! its destination for a window, and judged by `core`.
//!
//! A daemon that was away has to watch for a window first, so a verdict may come late; it
//! never comes of less. If a datastore does not say how full it is, the verdict waits for that,
//! for a further window at most. A disk that has moved on, or is gone, is not judged: what would be
//! measured is of something else.

use sterna_api::{
    Balanced, BalancedOutcome, BalancedScene, Fared as FaredOnTheWire, OverBound, Result,
};
use sterna_core::{DiskId, Nanos};
use sterna_os::{clock, lock};
use sterna_placement::storage::{
    Bounds, Fared, MoveFared, Over, Verdict, Why, may_be_told_later, verdict,
};
use sterna_state::{MigrationRecord, Step};

use super::run::seconds;
use crate::Planner;

/// Why it is not known what a move brought that was made for response times.
const NO_LOAD: &str = "there was no load before or after the move";

/// Why it is not known what a move brought whose source or destination was away.
const NO_ROOM_TOLD: &str =
    "a datastore did not say, before or after the move, how full it was";

/// So many windows more a move waits for its verdict, if a datastore does not say how full it is:
/// one answer that comes too late is no reason to give none.
const FURTHER_WINDOWS: u64 = 1;

impl Planner {
    /// What a disk, and source and destination of its move, had in the last window.
    pub(super) fn fares(
        &self,
        disk: DiskId,
        ends: [&str; 2],
        window: Nanos,
    ) -> MoveFared {
        let there =
            |name: &str| Fared::of(&self.storage.samples.of_datastore(name, window));
        let taken = |name: &str| {
            let handle = self.storage.handle(name).ok()?;
            taken_of(handle.is_shared(), || handle.taken(&handle.space()?))
        };
        MoveFared {
            disk: Fared::of(&self.storage.samples.of_disk(disk, window)),
            source: there(ends[0]),
            destination: there(ends[1]),
            taken: ends.map(taken),
        }
    }

    /// Judges the moves that have ended long enough ago.
    pub(super) fn measure_moves(&self) {
        let waiting: Vec<(u64, Balanced)> = {
            let kept = lock(&self.balancer.kept);
            let waits = kept
                .moves
                .iter()
                .filter(|(_, it)| it.outcome == BalancedOutcome::Waiting);
            waits.map(|(id, one)| (*id, one.clone())).collect()
        };
        for (id, one) in waiting {
            match self.judged_move(id, one) {
                Ok(Some(judged)) => self.keep(id, judged),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(migration = id, %error, "cannot tell what a move \
                                                            brought");
                }
            }
        }
    }

    /// What became of a move; nothing while that is not known.
    fn judged_move(&self, id: u64, one: Balanced) -> Result<Option<Balanced>> {
        let Some(record) = self.storage.store.migration(id)? else { return Ok(None) };
        let Some(ended) = record.ended else { return Ok(None) };
        if let Some(note) = self.unjudged(&record)? {
            let (outcome, note) = (BalancedOutcome::Unknown, Some(note));
            return Ok(Some(Balanced { outcome, note, ..one }));
        }
        let window = seconds(one.window_s);
        let there = Nanos::from_secs(clock::now().saturating_sub(ended));
        if there < window || self.balancer.now() < window {
            return Ok(None);
        }
        let ends = [record.from.datastore.as_str(), record.to.datastore.as_str()];
        let after = self.fares(record.disk, ends, window);
        let bounds = Bounds {
            space: one.space,
            latency: Nanos(one.latency_us.saturating_mul(1000)),
            ..Bounds::default()
        };
        let why = match one.over {
            Some(OverBound::Space) => Why::Over(Over::Space),
            Some(OverBound::Latency) => Why::Over(Over::Latency),
            // Which rule it was makes no difference.
            None => Why::Rule(0),
        };
        let before = heard(&one.before);
        if waits_on(there, window) && may_be_told_later(why, &bounds, &before, &after) {
            return Ok(None);
        }
        let verdict = verdict(why, &bounds, &before, &after);
        let (outcome, note) = match verdict {
            Verdict::Paid => (BalancedOutcome::Paid, None),
            Verdict::NotPaid => (BalancedOutcome::NotPaid, None),
            Verdict::NoLoad => (BalancedOutcome::Unknown, Some(NO_LOAD.to_owned())),
            Verdict::NoRoomTold => {
                (BalancedOutcome::Unknown, Some(NO_ROOM_TOLD.to_owned()))
            }
        };
        tracing::info!(
            migration = id,
            ?outcome,
            "Storage DRS has measured what a move brought"
        );
        Ok(Some(Balanced { after: Some(told(&after)), outcome, note, ..one }))
    }

    /// Why a move that has ended cannot be judged, if so.
    fn unjudged(&self, record: &MigrationRecord) -> Result<Option<String>> {
        if record.step != Step::Completed {
            return Ok(Some("the move was cancelled".into()));
        }
        let disks = self.storage.store.disks()?;
        let Some(disk) = disks.iter().find(|disk| disk.id == record.disk) else {
            return Ok(Some("the disk was removed".into()));
        };
        let moved = disk.datastore != record.to.datastore
            || self.moves.migration_of(record.disk)?.is_some();
        Ok(moved.then(|| "the disk moved again before the measurement".into()))
    }
}

/// Which part of a datastore is taken; none of one that images share and that does not say so.
/// A device or an export is its one image's, and is never too full for it.
fn taken_of(is_shared: bool, says: impl FnOnce() -> Option<f64>) -> Option<f64> {
    if is_shared { says() } else { Some(0.0) }
}

/// Whether a disk that has been at its destination for so long waits on for a verdict.
fn waits_on(there: Nanos, window: Nanos) -> bool {
    there.0 < window.0.saturating_mul(1 + FURTHER_WINDOWS)
}

fn micros(span: Nanos) -> f64 {
    span.0 as f64 / 1e3
}

/// A scene in the API's form.
pub(super) fn told(scene: &MoveFared) -> BalancedScene {
    let fared = |it: &Fared| FaredOnTheWire {
        iops: it.iops,
        mean_us: it.mean.map(micros),
        p95_us: it.p95.map(micros),
    };
    BalancedScene {
        disk: fared(&scene.disk),
        source: fared(&scene.source),
        destination: fared(&scene.destination),
        source_taken: scene.taken[0],
        destination_taken: scene.taken[1],
    }
}

/// A scene in `core`'s terms.
fn heard(scene: &BalancedScene) -> MoveFared {
    let nanos = |micros: f64| Nanos((micros.max(0.0) * 1e3) as u64);
    let fared = |it: &FaredOnTheWire| Fared {
        iops: it.iops,
        mean: it.mean_us.map(nanos),
        p95: it.p95_us.map(nanos),
    };
    MoveFared {
        disk: fared(&scene.disk),
        source: fared(&scene.source),
        destination: fared(&scene.destination),
        taken: [scene.source_taken, scene.destination_taken],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_datastore_that_does_not_say_how_full_it_is_does_not_count_as_empty() {
        assert_eq!(taken_of(true, || None), None);
        assert_eq!(taken_of(true, || Some(0.7)), Some(0.7));
        assert_eq!(taken_of(false, || None), Some(0.0), "a device is its one image's");
    }

    #[test]
    fn a_verdict_waits_for_one_further_window_at_most() {
        let window = Nanos::from_secs(600);
        assert!(waits_on(window, window));
        assert!(waits_on(Nanos::from_secs(1199), window));
        assert!(!waits_on(Nanos::from_secs(1200), window));
    }
}
