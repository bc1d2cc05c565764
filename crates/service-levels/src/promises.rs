//! What is kept of each promise, and for how long promises were missed: looked at every
//! second, and added up since the daemon was started.
//!
//! A promise is a target of a policy, or a reservation of a class. Limits and queue depths
//! are none: they hold a class back, and always hold. Whoever asks for less than was
//! promised has all of it.

use std::collections::BTreeMap;

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::policy::PolicyId;
use sterna_core::qos::{Attained, Attainment, ClassId, Goal, Limit, Rate};
use sterna_os::lock;

use super::snapshot::PolicySnapshot;
use crate::ServiceLevels;

/// A promise: what a policy, or without one the class's own reservation, is to give.
pub(super) type Promise = (ClassId, Option<PolicyId>);

/// How a promise was kept in one period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) promise: Promise,
    /// The part that the class had, from 0 to 1.
    pub(super) part: f64,
    /// Whether the class asked for anything, and no limit of its own left it less.
    pub(super) counts: bool,
}

/// How a promise was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The class that it was made to.
    pub class: String,
    /// The policy; without one it is the class's reservation.
    pub policy: Option<u64>,
    /// The part of it that the class had in the last second, from 0 to 1; nothing while the
    /// promise is not in force.
    pub part: Option<f64>,
    /// For how long the class had less, since the daemon was started.
    pub missed: Nanos,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Promises(BTreeMap<Promise, Seen>);

#[derive(Debug, Default)]
struct Seen {
    part: Option<f64>,
    missed: Nanos,
}

impl Promises {
    /// One period of this length: the promises in force, with the part that was kept.
    pub(super) fn step(&mut self, snapshot: &PolicySnapshot, span: Nanos, seen: &[Part]) {
        let is_there = |(class, policy): &Promise| match policy {
            Some(policy) => snapshot.policy(*policy).is_ok(),
            None => snapshot.get(*class).is_some(),
        };
        self.0.retain(|promise, _| is_there(promise));
        self.0.values_mut().for_each(|one| one.part = None);
        for Part { promise, part, .. } in seen {
            let one = self.0.entry(*promise).or_default();
            one.part = Some(*part);
            if *part < 1.0 {
                one.missed = one.missed.plus(span);
            }
        }
    }
}

/// The part of its target that a class had.
pub(super) fn part_of_target(target: Goal, own: &Window) -> f64 {
    let total = own.total();
    if total.operations == 0 {
        // With requests under way they hang; else it asks for nothing.
        return if own.in_flight > 0 { 0.0 } else { 1.0 };
    }
    let part = match target {
        Goal::Bytes(wanted) => own.bytes_per_second() / wanted as f64,
        Goal::Requests(wanted) => own.iops() / wanted as f64,
        Goal::Response(wanted) => {
            let mean = total.mean(total.response).unwrap_or_default();
            wanted.0 as f64 / mean.0.max(1) as f64
        }
    };
    part.min(1.0)
}

/// How much a class that is at its limit may do in the unit of its reservation, with requests as
/// long as these. Nothing, if no limit in the other unit holds it.
pub(super) fn left_by_limit(reserved: Rate, limit: &Limit, own: &Window) -> Option<f64> {
    let (bytes, iops) = (own.bytes_per_second(), own.iops());
    let left = match reserved {
        Rate::Requests(_) => limit.bytes? as f64 * iops / bytes,
        Rate::Bytes(_) => limit.requests? as f64 * bytes / iops,
    };
    Some(left).filter(|left| left.is_finite())
}

/// Whether that is all that is reserved: then what is missed of it is no limit's doing.
fn leaves_all(attained: &Attained, left: Option<f64>) -> bool {
    left.is_some_and(|left| left >= attained.reserved.number() as f64)
}

/// Whether a second says how a reservation is kept, if limits leave so much. Who limits a class
/// below its reservation has broken that promise by intent: this is no miss of Sterna's, and yet
/// the class has not had it.
pub(super) fn counts_for_reservation(attained: &Attained, left: Option<f64>) -> bool {
    match attained.state {
        Attainment::Idle => false,
        Attainment::Limited => attained.has_all() || leaves_all(attained, left),
        _ => true,
    }
}

/// The part of its reservation that a class has, if limits leave so much. Of a limit that is
/// hardly above the reservation a second gives a little less: that is no miss.
pub(super) fn part_of_reservation(attained: &Attained, left: Option<f64>) -> f64 {
    let part = (attained.has / attained.reserved.number().max(1) as f64).min(1.0);
    match attained.state {
        Attainment::Sought | Attainment::Lacking => part,
        Attainment::Limited if leaves_all(attained, left) && !attained.has_all() => part,
        Attainment::Idle
        | Attainment::Kept
        | Attainment::Limited
        | Attainment::Sated
        | Attainment::Alone => 1.0,
    }
}

impl ServiceLevels {
    /// How promises are kept.
    pub fn kept(&self) -> Vec<Kept> {
        let snapshot = self.snapshot();
        let promises = lock(&self.service.promises);
        let kept = promises.0.iter().filter_map(|((class, policy), seen)| {
            Some(Kept {
                class: snapshot.get(*class)?.record.name.clone(),
                policy: policy.map(|policy| policy.0),
                part: seen.part,
                missed: seen.missed,
            })
        });
        kept.collect()
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::measure::Traffic;
    use sterna_core::qos::SHARES;
    use sterna_state::ClassRecord;

    use super::*;
    use crate::Entry;

    const OLTP: ClassId = ClassId(7);
    const SECOND: Nanos = Nanos::from_secs(1);

    fn snapshot() -> PolicySnapshot {
        PolicySnapshot::default().with(Entry {
            record: ClassRecord {
                id: OLTP,
                name: "oltp".into(),
                shares: SHARES,
                reservation: None,
                created: 1,
            },
            disks: Vec::new(),
            policies: Vec::new(),
        })
    }

    fn second(operations: u64, millis_each: u64) -> Window {
        let mut read = Traffic::default();
        let took = Nanos::from_millis(millis_each);
        (0..operations).for_each(|_| read.record(4096, took, Nanos(0), took));
        Window { span: SECOND, read, ..Window::default() }
    }

    #[test]
    fn only_seconds_with_less_than_was_promised_are_missed() {
        let mut promises = Promises::default();
        let promise = (OLTP, None);
        for part in [1.0, 0.5, 0.9] {
            promises.step(&snapshot(), SECOND, &[Part { promise, part, counts: true }]);
        }
        assert_eq!(promises.0[&promise].missed, Nanos::from_secs(2));
        promises.step(&snapshot(), SECOND, &[]);
        assert_eq!(promises.0[&promise].part, None, "it is not in force any more");
        assert_eq!(promises.0[&promise].missed, Nanos::from_secs(2));
        promises.step(&PolicySnapshot::default(), SECOND, &[]);
        assert!(promises.0.is_empty(), "the class was removed");
    }

    #[test]
    fn a_class_that_asks_for_nothing_has_its_target_and_one_that_hangs_has_not() {
        let target = Goal::Requests(1000);
        assert_eq!(part_of_target(target, &second(0, 0)), 1.0);
        let hangs = Window { in_flight: 3, ..second(0, 0) };
        assert_eq!(part_of_target(target, &hangs), 0.0);
    }

    #[test]
    fn a_target_is_kept_in_its_own_unit() {
        assert_eq!(part_of_target(Goal::Requests(1000), &second(250, 1)), 0.25);
        assert_eq!(part_of_target(Goal::Requests(100), &second(250, 1)), 1.0);
        assert_eq!(part_of_target(Goal::Bytes(4096 * 500), &second(250, 1)), 0.5);
        let response = Goal::Response(Nanos::from_millis(2));
        assert_eq!(part_of_target(response, &second(10, 8)), 0.25);
    }

    #[test]
    fn a_reservation_is_missed_only_where_the_class_would_use_it() {
        let attained = |state| Attained {
            class: OLTP,
            reserved: Rate::Requests(1000),
            has: 250.0,
            state,
        };
        assert_eq!(part_of_reservation(&attained(Attainment::Lacking), None), 0.25);
        assert_eq!(part_of_reservation(&attained(Attainment::Sated), None), 1.0);
    }

    #[test]
    fn a_limit_below_the_reservation_neither_keeps_nor_misses_it() {
        let limited = |has| Attained {
            class: OLTP,
            reserved: Rate::Requests(1200),
            has,
            state: Attainment::Limited,
        };
        assert!(!counts_for_reservation(&limited(585.0), Some(600.0)));
        assert_eq!(part_of_reservation(&limited(585.0), Some(600.0)), 1.0);
        assert!(counts_for_reservation(&limited(1300.0), Some(1310.0)), "it has all");
        let idle = Attained { state: Attainment::Idle, ..limited(0.0) };
        assert!(!counts_for_reservation(&idle, None));
        let lacking = Attained { state: Attainment::Lacking, ..limited(585.0) };
        assert!(counts_for_reservation(&lacking, None));
        // Near its limit, which leaves what is reserved: something else keeps it from that.
        assert!(counts_for_reservation(&limited(1140.0), Some(1250.0)));
        assert_eq!(part_of_reservation(&limited(1140.0), Some(1250.0)), 0.95);
    }

    #[test]
    fn a_class_that_its_limit_holds_at_its_reservation_has_it() {
        let limited = |has| Attained {
            class: OLTP,
            reserved: Rate::Requests(1000),
            has,
            state: Attainment::Limited,
        };
        for (has, left) in [(1000.0, 1000.0), (975.0, 1000.0), (990.0, 1080.0)] {
            let (seen, left) = (limited(has), Some(left));
            assert!(counts_for_reservation(&seen, left), "{has} of {left:?}");
            assert_eq!(part_of_reservation(&seen, left), 1.0, "{has} of {left:?}");
        }
        // The limit leaves more than that, so something else holds the class back.
        assert_eq!(part_of_reservation(&limited(950.0), Some(1000.0)), 0.95);
    }

    #[test]
    fn what_a_limit_leaves_is_in_the_unit_of_the_reservation() {
        let bytes = Limit { bytes: Some(4096 * 600), ..Limit::default() };
        let own = second(500, 1);
        let reserved = Rate::Requests(1200);
        assert_eq!(left_by_limit(reserved, &bytes, &own), Some(600.0));
        assert_eq!(left_by_limit(reserved, &Limit::default(), &own), None);
        assert_eq!(left_by_limit(reserved, &bytes, &second(0, 0)), None);
        let requests = Limit { requests: Some(600), ..Limit::default() };
        let left = left_by_limit(Rate::Bytes(1 << 20), &requests, &own);
        assert_eq!(left, Some(4096.0 * 600.0));
    }
}
