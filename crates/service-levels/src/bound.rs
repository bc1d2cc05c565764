//! Which of the limits on a class binds first.
//!
//! The limits of its own policies hold, and so do those that the target of a class sets for the
//! others; what somebody waits for is the tighter one.

use sterna_api::{BindingLimit, HeldFor};
use sterna_core::measure::Summary;
use sterna_core::qos::{ClassId, Goal, tightest};
use sterna_core::{DiskId, Nanos};
use sterna_os::Local;

use super::snapshot::PolicySnapshot;
use crate::ServiceLevels;

/// How much of a limit is used is seen over so long: a second is chance.
const SEEN: Nanos = Nanos::from_secs(10);

/// Who is at a limit for one second of [`SEEN`] uses so much of it. A limit of which less is
/// used has made nobody wait: bursts count, and a limit far above the load does not.
const REACHED: f64 = 0.1;

/// A limit on a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The policy that it is of.
    pub policy: u64,
    /// The class whose target it is for; nothing of a limit that people set.
    pub target_of: Option<String>,
    /// The limit.
    pub limit: Goal,
}

impl Bound {
    /// Whether it makes somebody wait, at least now and then, who does so much.
    fn is_reached(&self, did: &Summary) -> bool {
        self.limit.used(did) >= REACHED
    }
}

impl From<Bound> for BindingLimit {
    fn from(bound: Bound) -> BindingLimit {
        let Bound { policy, target_of, limit } = bound;
        BindingLimit { policy, target_of, limit: limit.into() }
    }
}

/// The tightest of a class's own limits and of what it is held to, for somebody who does so
/// much.
fn tightest_of(
    own: Vec<(u64, Goal)>,
    held: Option<HeldFor>,
    did: &Summary,
) -> Option<Bound> {
    let own = own
        .into_iter()
        .map(|(policy, limit)| (Bound { policy, target_of: None, limit }, limit));
    let held = held.into_iter().flat_map(|held| {
        let HeldFor { policy, class, bytes_per_second, iops, response_ms } = held;
        let goals = [
            bytes_per_second.map(Goal::Bytes),
            iops.map(Goal::Requests),
            response_ms.map(|ms| Goal::Response(Nanos((ms * 1e6) as u64))),
        ];
        let bound = move |limit: Goal| {
            (Bound { policy, target_of: Some(class.clone()), limit }, limit)
        };
        goals.into_iter().flatten().map(bound)
    });
    tightest(own.chain(held), did).map(|(bound, _)| bound)
}

impl ServiceLevels {
    /// Which limit on the class of a disk, or on the disks in none, binds first.
    pub fn bound_of_disk(
        &self,
        snapshot: &PolicySnapshot,
        disk: DiskId,
    ) -> Option<Bound> {
        self.bound_and_use(snapshot, disk).map(|(bound, _)| bound)
    }

    /// The limit that holds a disk back, if its class reaches one.
    pub fn holding(&self, snapshot: &PolicySnapshot, disk: DiskId) -> Option<Bound> {
        let (bound, did) = self.bound_and_use(snapshot, disk)?;
        bound.is_reached(&did).then_some(bound)
    }

    /// Which limit binds a disk first, and what the class of the disk did, or the disks in
    /// none.
    fn bound_and_use(
        &self,
        snapshot: &PolicySnapshot,
        disk: DiskId,
    ) -> Option<(Bound, Summary)> {
        let entry = snapshot.class_of(disk);
        let own = entry.map(|entry| entry.limits(Local::now().moment()));
        let (own, held) = (own.unwrap_or_default(), self.view_held_disk(snapshot, disk));
        // All disks are asked about every few seconds, and most have no limit.
        if own.is_empty() && held.is_none() {
            return None;
        }
        let class = entry.map_or(ClassId::OTHERS, |entry| entry.record.id);
        let did = self.storage.samples.look(SEEN).class(class);
        tightest_of(own, held, &did).map(|bound| (bound, did))
    }

    /// Which limit holds copies back, if one does: one that they do not reach holds nobody.
    pub(crate) fn bound_of_copies(&self, snapshot: &PolicySnapshot) -> Option<Bound> {
        let class = ClassId::MIGRATION;
        let own = snapshot.get(class)?.limits(Local::now().moment());
        let did = self.storage.samples.look(SEEN).class(class);
        tightest_of(own, self.view_held(snapshot, class), &did)
            .filter(|bound| bound.limit.binds(&did))
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::measure::Side;

    use super::*;

    #[test]
    fn of_a_limit_and_a_target_of_another_class_the_tighter_one_is_named() {
        let held = |bytes| HeldFor {
            policy: 2,
            class: "gold".into(),
            bytes_per_second: Some(bytes),
            iops: None,
            response_ms: None,
        };
        let read = Side { operations: 320, bytes: f64::from(10 << 20), response: None };
        let did = Summary { span: Nanos::from_secs(1), read, ..Summary::default() };
        let own = vec![(3, Goal::Bytes(10 << 20))];
        let bound = tightest_of(own.clone(), Some(held(37 << 20)), &did).unwrap();
        assert_eq!((bound.policy, bound.target_of), (3, None));
        let bound = tightest_of(own, Some(held(1 << 20)), &did).unwrap();
        assert_eq!((bound.policy, bound.target_of.as_deref()), (2, Some("gold")));
        assert_eq!(tightest_of(Vec::new(), None, &did), None);
    }

    #[test]
    fn a_limit_far_above_the_load_holds_nobody_back() {
        let read = Side { operations: 320, bytes: f64::from(10 << 20), response: None };
        let did = Summary { span: Nanos::from_secs(1), read, ..Summary::default() };
        let limit =
            |bytes| Bound { policy: 3, target_of: None, limit: Goal::Bytes(bytes) };
        assert!(limit(10 << 20).is_reached(&did));
        assert!(limit(90 << 20).is_reached(&did), "a burst of a second or so");
        assert!(!limit(200 << 20).is_reached(&did));
        assert!(!limit(1 << 20).is_reached(&Summary::default()), "it asks for nothing");
    }
}
