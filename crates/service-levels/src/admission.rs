//! Whether datastores can keep what is reserved on them.
//!
//! What a datastore does is known where it is shaped, and learned from its traffic
//! elsewhere (`samples`). Where it is not known, every reservation is accepted, and
//! said to be unproven, unless the datastore has done more already.
//!
//! A figure that is beyond any storage is refused in any case: a unit was left out, or is
//! another one.
//!
//! A change is refused only if it makes things worse: where too much is reserved
//! already, less can be asked for in steps.

use std::collections::BTreeSet;

use sterna_api::{Error, Result};
use sterna_core::measure::{LqFit, Summary};
use sterna_core::qos::policy::{
    Aim, BYTES_MIN, Basis, Capacity, Oversold, Plan, Unproven, admit,
};
use sterna_core::qos::{ClassId, Goal, Rate};
use sterna_core::{Bytes, Nanos, Shape};
use sterna_os::Local;
use sterna_state::DiskRecord;
use sterna_storage::handle::DatastoreHandle;

use super::snapshot::{Entry, PolicySnapshot};
use crate::ServiceLevels;

/// How long requests are is seen over so long.
const SEEN: Nanos = Nanos::from_secs(60);
/// So many standard errors hold what is measured in 19 of 20 cases.
const ERRORS: f64 = 2.0;
/// A device's line is that of the traffic it had. Another mixture of requests may
/// find it so much slower or faster, however well the line fits.
const MIXTURE_PERCENT: f64 = 20.0;

/// The most that can be reserved in bytes per second: the memory of a large host moves
/// less, and its storage is behind that.
const RESERVED_BYTES_MAX: u64 = 1 << 40;
/// The most that can be reserved in requests per second: so many of 4 KiB are about the
/// bytes above.
const RESERVED_REQUESTS_MAX: u64 = RESERVED_BYTES_MAX / 4096;

impl ServiceLevels {
    /// Refuses what `next` would reserve for a class beyond what its datastores do.
    pub(super) fn check_admission(
        &self,
        next: &PolicySnapshot,
        class: ClassId,
    ) -> Result<()> {
        let disks = self.storage.store.disks()?;
        let now = self.snapshot();
        if let Some(entry) = next.get(class) {
            let before = now.get(class).map_or_else(Vec::new, reserved);
            let new = reserved(entry).into_iter().filter(|rate| !before.contains(rate));
            new.into_iter().try_for_each(check_meant)?;
        }
        for name in datastores_of(next, class, &disks) {
            let Ok(handle) = self.storage.handle(name) else { continue };
            let Err(after) = self.judge(next, &handle, &disks) else { continue };
            let better = |before: &Oversold| {
                after.sum == before.sum.with(after.sum.number())
                    && after.sum.number() <= before.sum.number()
            };
            if self.judge(&now, &handle, &disks).as_ref().is_err_and(better) {
                continue;
            }
            let message = format!("datastore {name} cannot keep that: {after}");
            let hint =
                "reserve less, or move disks of these classes to another datastore";
            return Err(Error::invalid(message).hint(hint));
        }
        Ok(())
    }

    /// What cannot be told of a class's reservations, has become too much, or is lacking.
    pub(crate) fn reservation_notes(&self, class: ClassId) -> Result<Vec<String>> {
        let (disks, snapshot) = (self.storage.store.disks()?, self.snapshot());
        let mut notes = Vec::new();
        for name in datastores_of(&snapshot, class, &disks) {
            let Ok(handle) = self.storage.handle(name) else { continue };
            match self.judge(&snapshot, &handle, &disks) {
                Ok(unproven) => {
                    notes.extend(
                        unproven.iter().map(|it| format!("datastore {name}: {it}")),
                    );
                }
                Err(oversold) => notes.push(format!("datastore {name}: {oversold}")),
            }
        }
        notes.extend(snapshot.get(class).and_then(|entry| self.lack(entry)));
        notes.extend(snapshot.get(class).and_then(|entry| self.broken_by_limit(entry)));
        Ok(notes)
    }

    /// That a limit of a class leaves it less than is reserved for it. Of one metric Sterna
    /// refuses that; of two it depends on how long the requests are.
    fn broken_by_limit(&self, entry: &Entry) -> Option<String> {
        let now = Local::now().moment();
        let did = self.storage.samples.look(SEEN).class(entry.record.id);
        leaves_less(&entry.limits(now), entry.reserved(now)?, &did)
    }

    /// More is reserved on this datastore than it does.
    pub fn oversold(
        &self,
        handle: &DatastoreHandle,
        disks: &[DiskRecord],
    ) -> Option<Oversold> {
        self.judge(&self.snapshot(), handle, disks).err()
    }

    fn judge(
        &self,
        snapshot: &PolicySnapshot,
        handle: &DatastoreHandle,
        disks: &[DiskRecord],
    ) -> Result<Vec<Unproven>, Oversold> {
        let on_it = |entry: &&Entry| {
            let mut here = disks.iter().filter(|disk| disk.datastore == handle.name());
            here.any(|disk| is_concerned(entry, disk))
        };
        let concerned = snapshot.entries().filter(on_it);
        let plans: Vec<(&str, Plan)> =
            concerned.map(|entry| (entry.record.name.as_str(), entry.plan())).collect();
        let classes: Vec<_> = plans.iter().map(|(name, plan)| (*name, plan)).collect();
        admit(&classes, self.capacity(handle).as_ref())
    }

    /// What a datastore does, as far as that is known.
    fn capacity(&self, handle: &DatastoreHandle) -> Option<Capacity> {
        let limits = |it: &Shape| it.bytes_per_second.is_some() || it.iops.is_some();
        match handle.record().shape.filter(limits) {
            Some(shape) => Some(shaped(shape)),
            None => {
                let line = self.storage.samples.device(handle.name()).and_then(measured);
                line.or_else(|| done(self.storage.samples.most(handle.name())?))
            }
        }
    }
}

/// All that is ever reserved for a class.
fn reserved(entry: &Entry) -> Vec<Rate> {
    let floors = entry.policies.iter().filter_map(|policy| match policy.aim {
        Aim::Cruise(cruise) => cruise.floor,
        Aim::Limit(_) | Aim::Depth(_) => None,
    });
    entry.record.reservation.into_iter().chain(floors).collect()
}

/// Refuses a reservation that nobody can mean.
fn check_meant(rate: Rate) -> Result<()> {
    match rate {
        Rate::Bytes(bytes) if bytes < BYTES_MIN => {
            let message = format!(
                "a reservation of {}/s has no effect: the minimum is {}/s",
                Bytes(bytes).beside(Bytes(BYTES_MIN)),
                Bytes(BYTES_MIN)
            );
            let hint = match Bytes(bytes).meant_mib() {
                Some(number) => format!("did you mean {number}M, or {number}iops?"),
                None => "reserve more, or nothing".into(),
            };
            Err(Error::invalid(message).hint(hint))
        }
        Rate::Bytes(RESERVED_BYTES_MAX..) | Rate::Requests(RESERVED_REQUESTS_MAX..) => {
            let most = match rate {
                Rate::Bytes(_) => Rate::Bytes(RESERVED_BYTES_MAX),
                Rate::Requests(_) => Rate::Requests(RESERVED_REQUESTS_MAX),
            };
            let message = format!(
                "no datastore can keep {rate}: a reservation must be below {most}"
            );
            Err(Error::invalid(message).hint("reserve what the class needs"))
        }
        Rate::Bytes(_) | Rate::Requests(_) => Ok(()),
    }
}

/// The datastores on which a class may want what is reserved for it; none if nothing
/// is.
fn datastores_of<'a>(
    snapshot: &PolicySnapshot,
    class: ClassId,
    disks: &'a [DiskRecord],
) -> BTreeSet<&'a str> {
    let Some(entry) = snapshot.get(class).filter(|entry| entry.plan().reserves()) else {
        return BTreeSet::new();
    };
    let on = disks.iter().filter(|disk| is_concerned(entry, disk));
    on.map(|disk| disk.datastore.as_str()).collect()
}

/// Copies read and write wherever there are disks.
fn is_concerned(entry: &Entry, disk: &DiskRecord) -> bool {
    entry.is_built_in() || entry.disks.contains(&disk.id)
}

/// The capacity of a datastore that is shaped.
fn shaped(shape: Shape) -> Capacity {
    let (bytes, requests) = (shape.bytes_per_second, shape.iops);
    Capacity { bytes, requests, basis: Basis::Shape }
}

/// The capacity of a device whose line is known: in requests, as they come there.
fn measured(fit: LqFit) -> Option<Capacity> {
    let LqFit::Line(line) = fit else { return None };
    let error = (ERRORS * line.slope_error / line.slope * 100.0).max(MIXTURE_PERCENT);
    Some(Capacity {
        bytes: None,
        requests: Some(line.peak() as u64),
        // Beyond the whole there is no difference.
        basis: Basis::Measured { error_percent: error.min(100.0).ceil() as u8 },
    })
}

/// The capacity of a device of which only what it has done is known.
fn done(most: f64) -> Option<Capacity> {
    let basis = Basis::Done { error_percent: MIXTURE_PERCENT as u8 };
    let requests = Some(most as u64).filter(|most| *most > 0);
    requests.map(|_| Capacity { bytes: None, requests, basis })
}

/// Which limit leaves a class less than is reserved for it, with requests as long as these.
fn leaves_less(limits: &[(u64, Goal)], reserved: Rate, did: &Summary) -> Option<String> {
    let each = did.bytes_per_second() / did.iops();
    let least = reserved.in_bytes(did).filter(|_| each > 0.0)?;
    let leaves = |limit: &Goal| match limit {
        Goal::Bytes(most) => Some(*most as f64),
        Goal::Requests(most) => Some(*most as f64 * each),
        Goal::Response(_) => None,
    };
    let tighter = |(policy, limit): &(u64, Goal)| {
        let bytes = leaves(limit).filter(|bytes| *bytes < least)?;
        let left = match reserved {
            Rate::Bytes(_) => reserved.with(bytes as u64),
            Rate::Requests(_) => reserved.with((bytes / each) as u64),
        };
        Some(format!(
            "the limit of {limit} (policy {policy}) breaks the reservation: with requests \
             as long as now it leaves the class {left} of {reserved}"
        ))
    };
    limits.iter().find_map(tighter)
}

#[cfg(test)]
mod tests {
    use sterna_core::measure::{Line, Side};

    use super::*;

    #[test]
    fn what_is_reserved_is_what_somebody_can_mean() {
        let said = |rate| check_meant(rate).err().map(|error| error.to_string());
        for rate in [Rate::Bytes(BYTES_MIN), Rate::Requests(1), Rate::Bytes(40 << 30)] {
            assert_eq!(said(rate), None, "{rate}");
        }
        let few = "a reservation of 5 B/s has no effect: the minimum is 256 KiB/s";
        assert_eq!(said(Rate::Bytes(5)).as_deref(), Some(few));
        for rate in [Rate::Bytes(999_999 << 40), Rate::Requests(u64::MAX)] {
            assert!(said(rate).unwrap().starts_with("no datastore can keep"), "{rate}");
        }
    }

    fn line(slope: f64, slope_error: f64) -> LqFit {
        let unloaded = Nanos::from_millis(5);
        LqFit::Line(Line { unloaded, slope, slope_error, points: 40, seen: (1.0, 16.0) })
    }

    #[test]
    fn a_devices_line_says_what_it_does_and_how_sure_that_is() {
        let capacity = measured(line(1e6, 0.2e6)).unwrap();
        assert_eq!((capacity.requests, capacity.bytes), (Some(1000), None));
        assert_eq!(capacity.basis, Basis::Measured { error_percent: 40 });
        let sure = measured(line(1e6, 1.0)).unwrap();
        assert_eq!(sure.basis, Basis::Measured { error_percent: 20 });
        let vague = measured(line(1e6, 9e6)).unwrap();
        assert_eq!(vague.basis, Basis::Measured { error_percent: 100 });
    }

    #[test]
    fn a_device_without_a_line_has_no_known_capacity() {
        assert_eq!(measured(LqFit::TooFew { points: 3 }), None);
        assert_eq!(measured(LqFit::NoVariation { seen: (1.0, 1.2) }), None);
        let flat = LqFit::Flat { seen: (1.0, 16.0), latency: Nanos::from_micros(100) };
        assert_eq!(measured(flat), None);
    }

    #[test]
    fn what_a_device_has_done_is_the_least_that_it_can_do() {
        let capacity = done(4000.7).unwrap();
        assert_eq!((capacity.requests, capacity.bytes), (Some(4000), None));
        assert_eq!(capacity.basis, Basis::Done { error_percent: 20 });
        assert_eq!(done(0.5), None);
    }

    #[test]
    fn a_limit_of_another_metric_that_breaks_a_reservation_is_named() {
        let read = Side { operations: 600, bytes: 600.0 * 32_768.0, response: None };
        let did = Summary { span: Nanos::from_secs(1), read, ..Summary::default() };
        let reserved = Rate::Requests(1200);
        let limit = |mib: u64| vec![(3, Goal::Bytes(mib << 20))];
        assert_eq!(
            leaves_less(&limit(18), reserved, &did).unwrap(),
            "the limit of 18.0 MiB/s (policy 3) breaks the reservation: with requests as \
             long as now it leaves the class 576 IO/s of 1200 IO/s"
        );
        assert_eq!(leaves_less(&limit(40), reserved, &did), None);
        assert_eq!(leaves_less(&limit(18), reserved, &Summary::default()), None);
    }
}
