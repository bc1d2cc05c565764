//! Datastores over their bound for response times, as warnings.
//!
//! The dashboard says the same in the same words, and besides who loads the datastore. Whoever
//! asks for the status asks for this, some of them every two seconds, so what was found is said
//! again for a while: response times are those of minutes, and change slowly. A daemon that has
//! just started gives no such warning.

use std::time::{Duration, Instant};

use sterna_api::{JudgedDatastore, OverBound, Result, Warning};
use sterna_core::Nanos;
use sterna_os::lock;

use super::asked;
use super::scene::StorageDrsScene;
use super::settings::bounds_of;
use crate::Planner;

/// How long what was found is said again.
const AGAIN: Duration = Duration::from_secs(5);

/// So long a daemon runs before it warns: some slow requests of its first seconds say nothing of
/// a datastore.
const LEARNED: Nanos = Nanos::from_secs(300);

/// What was found, and when.
#[derive(Debug, Default)]
pub(super) struct Slow {
    found: Option<(Instant, Vec<Warning>)>,
    /// Somebody is at it: others are told what was found before.
    is_asked: bool,
}

impl Planner {
    /// Datastores whose requests take longer than the bound of Storage DRS.
    pub fn slow_datastores(&self) -> Result<Vec<Warning>> {
        {
            let mut slow = lock(&self.balancer.slow);
            let is_fresh =
                slow.found.as_ref().is_some_and(|(at, _)| at.elapsed() < AGAIN);
            if is_fresh || slow.is_asked {
                return Ok(slow.found.clone().map_or(Vec::new(), |(_, found)| found));
            }
            slow.is_asked = true;
        }
        let found = self.find_slow_datastores();
        let mut slow = lock(&self.balancer.slow);
        slow.is_asked = false;
        let found = found?;
        slow.found = Some((Instant::now(), found.clone()));
        Ok(found)
    }

    /// Asks no image how much it takes: that makes no datastore slow.
    fn find_slow_datastores(&self) -> Result<Vec<Warning>> {
        let asked = asked(&self.balancer.settings());
        let window = Nanos((asked.window_s * 1e9) as u64);
        if self.balancer.now() < LEARNED.min(window) {
            return Ok(Vec::new());
        }
        let scene = StorageDrsScene::of(self.site(window, |_| false)?, window, &[]);
        let judged = scene.judged(&bounds_of(&asked), |_| None);
        let bound = Nanos(asked.latency_us.saturating_mul(1000));
        Ok(judged.iter().filter_map(|one| too_slow(one, bound)).collect())
    }
}

/// A datastore is over the bound.
fn too_slow(one: &JudgedDatastore, bound: Nanos) -> Option<Warning> {
    if !one.over.contains(&OverBound::Latency) {
        return None;
    }
    let p95 = Nanos((one.load.p95_us? * 1e3) as u64);
    Some(Warning {
        about: format!("datastore {}", one.datastore),
        message: format!("p95 {p95}, bound {bound}"),
        hint: "`sterna storage-drs recommend`".into(),
    })
}

#[cfg(test)]
mod tests {
    use sterna_api::DatastoreLoad;

    use super::*;

    #[test]
    fn a_datastore_over_its_bound_for_response_times_is_a_warning() {
        let bound = Nanos::from_millis(20);
        let judged = |over: &[OverBound]| JudgedDatastore {
            datastore: "slow".into(),
            load: DatastoreLoad { taken: Some(0.9), p95_us: Some(41_000.0) },
            outstanding: 3.0,
            over: over.to_vec(),
            away: false,
            settling: false,
            maintenance: false,
            shares_room_with: Vec::new(),
            trend: None,
        };
        let said = too_slow(&judged(&[OverBound::Space, OverBound::Latency]), bound);
        let said = said.unwrap();
        assert_eq!(
            (&*said.about, &*said.message),
            ("datastore slow", "p95 41.0 ms, bound 20.0 ms")
        );
        assert_eq!(too_slow(&judged(&[OverBound::Space]), bound), None);
    }
}
