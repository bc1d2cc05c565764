//! How far a limit is used: by that it is told which of several binds, and whether one does.

use super::goal::Goal;
use super::terms::Rate;
use crate::Nanos;
use crate::measure::Summary;

/// Who does this part of what a limit allows is held back by the limit: a start is lost now
/// and then.
pub(super) const AT_LIMIT: f64 = 0.9;

impl Goal {
    /// The part of this limit that somebody uses who does so much. A least response time is
    /// used wholly by requests that take no longer.
    pub fn used(&self, did: &Summary) -> f64 {
        match self {
            Goal::Bytes(most) => did.bytes_per_second() / (*most).max(1) as f64,
            Goal::Requests(most) => did.iops() / (*most).max(1) as f64,
            Goal::Response(Nanos(least)) if did.iops() > 0.0 => {
                let took = did.outstanding() * 1e9 / did.iops();
                *least as f64 / took.max(1.0)
            }
            Goal::Response(_) => 0.0,
        }
    }

    /// Whether this limit holds somebody back who does so much, or would.
    pub fn binds(&self, did: &Summary) -> bool {
        self.used(did) >= AT_LIMIT
    }
}

impl Rate {
    /// How many bytes per second it is for somebody whose requests are as long as these; of
    /// requests, nothing without any.
    pub fn in_bytes(&self, did: &Summary) -> Option<f64> {
        match self {
            Rate::Bytes(rate) => Some(*rate as f64),
            Rate::Requests(rate) => {
                let iops = did.iops();
                let each = (iops > 0.0).then(|| did.bytes_per_second() / iops)?;
                Some(*rate as f64 * each)
            }
        }
    }
}

/// Of several limits the one that is used most: it binds before the others do.
pub fn tightest<T>(
    limits: impl IntoIterator<Item = (T, Goal)>,
    did: &Summary,
) -> Option<(T, Goal)> {
    let used = |(_, goal): &(T, Goal)| goal.used(did);
    limits.into_iter().max_by(|one, other| used(one).total_cmp(&used(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Side;

    /// So many requests of 32 KiB in a second.
    fn did(operations: u64) -> Summary {
        let bytes = (operations << 15) as f64;
        let read = Side { operations, bytes, response: Some(Nanos::from_millis(4)) };
        Summary { span: Nanos::from_secs(1), read, ..Summary::default() }
    }

    #[test]
    fn of_limits_in_several_metrics_the_one_that_is_used_most_binds() {
        let limits = [(2, Goal::Bytes(37 << 20)), (3, Goal::Bytes(18 << 20))];
        assert_eq!(tightest(limits, &did(576)), Some(limits[1]));
        let iops = (4, Goal::Requests(300));
        assert_eq!(tightest([limits[1], iops], &did(290)), Some(iops));
        assert_eq!(tightest::<u64>([], &did(290)), None);
    }

    #[test]
    fn requests_count_as_long_as_they_are_now() {
        assert_eq!(Rate::Requests(1200).in_bytes(&did(9)), Some(1200.0 * 32768.0));
        assert_eq!(Rate::Requests(1200).in_bytes(&did(0)), None);
        assert_eq!(Rate::Bytes(7).in_bytes(&did(0)), Some(7.0));
    }

    #[test]
    fn a_limit_binds_whoever_does_nearly_all_that_it_allows() {
        assert!(Goal::Bytes(18 << 20).binds(&did(550)));
        assert!(!Goal::Bytes(50 << 20).binds(&did(32)), "1 MiB/s of 50");
        assert!(Goal::Requests(100).binds(&did(400)), "it would");
        let least = Goal::Response(Nanos::from_millis(4));
        assert!(least.binds(&did(100)) && !least.binds(&did(0)));
    }
}
