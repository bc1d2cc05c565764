//! What all did in a period of cruise control, and where.
//!
//! The others of a class are those who did something on its datastores, and those who
//! are held back for its sake and rest: they may come back at any moment. One that is at
//! work elsewhere, or is no class any more, has nothing to come back for.

use std::collections::{BTreeMap, BTreeSet};

use sterna_core::guard::cruise::Other;
use sterna_core::measure::Window;
use sterna_core::qos::policy::resolve;
use sterna_core::qos::{ClassId, Rate, Reserved};
use sterna_core::schedule::Moment;
use sterna_core::{DiskId, Nanos};
use sterna_telemetry::samples::Tick;

use super::snapshot::{Entry, PolicySnapshot};
use super::windows::needs_window;

/// What one party did on each datastore in a period.
type Done = BTreeMap<String, Window>;

/// What all did in a period.
#[derive(Debug, Default)]
pub(super) struct Period {
    pub(super) span: Nanos,
    classes: BTreeMap<ClassId, Done>,
    /// Disks in no class, and where they are.
    pub(super) unclassed: BTreeMap<DiskId, String>,
}

impl Period {
    pub(super) fn add(&mut self, tick: &Tick) {
        self.span = self.span.plus(tick.span);
        for sample in &tick.disks {
            let Some(datastore) = &sample.datastore else { continue };
            if sample.class.is_none() {
                self.unclassed.insert(sample.disk, datastore.clone());
            }
            let class = sample.class.unwrap_or(ClassId::OTHERS);
            self.enter(class, datastore, &sample.window);
        }
        for (datastore, window) in &tick.copied {
            self.enter(ClassId::MIGRATION, datastore, window);
        }
    }

    fn enter(&mut self, class: ClassId, datastore: &str, window: &Window) {
        let done = self.classes.entry(class).or_default();
        // Of the whole period in any case: who did nothing for a part of it did less.
        let all = done.entry(datastore.to_owned()).or_default();
        all.join(window);
        all.span = Nanos(0);
    }

    /// What a class did on some datastores.
    fn of(&self, class: ClassId, datastores: &BTreeSet<String>) -> Option<Window> {
        let done = self.classes.get(&class)?;
        let mut all = Window::default();
        let mut any = false;
        for (datastore, window) in done {
            if datastores.contains(datastore) {
                all.join(window);
                any = true;
            }
        }
        all.span = self.span;
        any.then_some(all)
    }

    /// What all did on the datastores on which somebody needs a window.
    pub(super) fn contended(
        &self,
        snapshot: &PolicySnapshot,
    ) -> BTreeMap<String, Window> {
        let needs = snapshot.entries().filter(|entry| needs_window(entry));
        let used = needs.filter_map(|entry| self.classes.get(&entry.record.id));
        let names: BTreeSet<&String> = used.flat_map(BTreeMap::keys).collect();
        let all = |name: &String| {
            let mut all = Window::default();
            self.classes.values().filter_map(|done| done.get(name)).for_each(|window| {
                all.join(window);
            });
            all.span = self.span;
            (name.clone(), all)
        };
        names.into_iter().map(all).collect()
    }

    /// The classes for which something is reserved now, as they are on a datastore.
    /// Copies are not among them: they are slow on purpose, for the applications' sake.
    pub(super) fn reserved(
        &self,
        snapshot: &PolicySnapshot,
        datastore: &str,
        now: Moment,
    ) -> Vec<Reserved> {
        let there = BTreeSet::from([datastore.to_owned()]);
        let reserved = |entry: &Entry| {
            let (class, plan) = (entry.record.id, entry.plan());
            // What a class did is added up only where it is asked for.
            let terms = plan.reserves().then(|| resolve(&plan, now).terms)?;
            let here = self.of(class, &there).unwrap_or(self.nothing());
            Reserved::of(class, &terms, &self.whole(class).0, &here)
        };
        let entries = snapshot.entries().filter(|entry| !entry.is_built_in());
        entries.filter_map(reserved).collect()
    }

    /// What a class did everywhere, and where.
    pub(super) fn whole(&self, class: ClassId) -> (Window, BTreeSet<String>) {
        let done = self.classes.get(&class);
        let datastores = done.map(|done| done.keys().cloned().collect());
        let datastores: BTreeSet<String> = datastores.unwrap_or_default();
        (self.of(class, &datastores).unwrap_or(self.nothing()), datastores)
    }

    fn nothing(&self) -> Window {
        Window { span: self.span, ..Window::default() }
    }

    /// The others of a class on some datastores, of whom these are held back already.
    pub(super) fn others(
        &self,
        snapshot: &PolicySnapshot,
        class: ClassId,
        datastores: &BTreeSet<String>,
        held: &BTreeSet<ClassId>,
        now: Moment,
    ) -> Vec<Other> {
        let resting = held.iter().filter(|it| self.rests(snapshot, **it));
        let resting: BTreeSet<&ClassId> = resting.collect();
        let others: BTreeSet<&ClassId> =
            self.classes.keys().chain(resting.iter().copied()).collect();
        let others = others.into_iter().filter(|other| **other != class);
        let other = |other: &ClassId| {
            let rests = || resting.contains(other).then(|| self.nothing());
            let window = self.of(*other, datastores).or_else(rests)?;
            let floor =
                snapshot.get(*other).map_or(0.0, |entry| floor(entry, &window, now));
            Some(Other { class: *other, window, floor })
        };
        others.filter_map(other).collect()
    }

    /// Whether a class is there, and does nothing anywhere.
    fn rests(&self, snapshot: &PolicySnapshot, class: ClassId) -> bool {
        let is_there = class == ClassId::OTHERS || snapshot.get(class).is_some();
        let done = self.classes.get(&class);
        is_there && done.is_none_or(|done| done.values().all(Window::is_idle))
    }
}

/// What a class must not be held below, in bytes per second: its reservation, or the
/// floor of its own cruise control. Requests count at the size that the class has.
fn floor(entry: &Entry, window: &Window, now: Moment) -> f64 {
    match resolve(&entry.plan(), now).terms.reservation {
        None => 0.0,
        Some(Rate::Bytes(rate)) => rate as f64,
        Some(Rate::Requests(rate)) => rate as f64 * Other::request(window),
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::measure::Traffic;
    use sterna_core::qos::policy::{Aim, Cruise, Fallback, PolicyId, Tolerance};
    use sterna_core::qos::{Goal, SHARES};
    use sterna_core::schedule::Weekday;
    use sterna_state::{ClassRecord, PolicyRecord};

    use super::*;

    const OLTP: ClassId = ClassId(1);
    const BACKUP: ClassId = ClassId(2);

    fn snapshot(classes: &[ClassId]) -> PolicySnapshot {
        let entry = |id: ClassId| Entry {
            record: ClassRecord {
                id,
                name: format!("class {}", id.0),
                shares: SHARES,
                reservation: None,
                created: 1,
            },
            disks: Vec::new(),
            policies: Vec::new(),
        };
        classes
            .iter()
            .fold(PolicySnapshot::default(), |snapshot, id| snapshot.with(entry(*id)))
    }

    fn period(did: &[(ClassId, &str, u64)]) -> Period {
        let mut period = Period { span: Nanos::from_secs(1), ..Period::default() };
        for (class, datastore, operations) in did {
            let read = Traffic { operations: *operations, ..Traffic::default() };
            period.enter(*class, datastore, &Window { read, ..Window::default() });
        }
        period
    }

    /// The others of the database on `ds1`, of whom those are held.
    fn found(snapshot: &PolicySnapshot, period: &Period, held: &[ClassId]) -> Vec<Other> {
        let (there, held) = (BTreeSet::from(["ds1".into()]), held.iter().copied());
        let monday = Moment::new(Weekday::Monday, 0);
        period.others(snapshot, OLTP, &there, &held.collect(), monday)
    }

    fn others(
        snapshot: &PolicySnapshot,
        period: &Period,
        held: &[ClassId],
    ) -> Vec<ClassId> {
        found(snapshot, period, held).into_iter().map(|other| other.class).collect()
    }

    #[test]
    fn who_is_held_and_rests_is_still_one_of_the_others() {
        let snapshot = snapshot(&[OLTP, BACKUP]);
        let held = [BACKUP, ClassId::OTHERS];
        assert_eq!(others(&snapshot, &period(&[(OLTP, "ds1", 9)]), &held), held);
        let hardly = period(&[(OLTP, "ds1", 9), (BACKUP, "ds2", 0)]);
        assert_eq!(others(&snapshot, &hardly, &[BACKUP]), [BACKUP]);
        assert_eq!(others(&snapshot, &hardly, &[]), []);
    }

    #[test]
    fn nobody_is_held_below_the_floor_of_its_own_cruise_control() {
        let target = Goal::Requests(2000);
        let floor = Some(Rate::Requests(1000));
        let (tolerance, fallback) = (Tolerance::new(10).unwrap(), Fallback::None);
        let cruise = Cruise { target, tolerance, floor, fallback };
        let mut snapshot = snapshot(&[OLTP, BACKUP]);
        let mut backup = snapshot.get(BACKUP).unwrap().clone();
        backup.policies.push(PolicyRecord {
            id: PolicyId(1),
            class: BACKUP,
            aim: Aim::Cruise(cruise),
            schedule: None,
            until_job: None,
            created: 1,
        });
        snapshot = snapshot.with(backup);
        let floors = |bytes: u64| {
            let read = Traffic { operations: 9, bytes: 9 * bytes, ..Traffic::default() };
            let mut period = period(&[(OLTP, "ds1", 9)]);
            period.enter(BACKUP, "ds1", &Window { read, ..Window::default() });
            let others = found(&snapshot, &period, &[]);
            others.into_iter().map(|other| other.floor).collect::<Vec<_>>()
        };
        assert_eq!(floors(65536), [65_536_000.0]);
        // One that rests counts with a database's pages.
        assert_eq!(floors(0), [8_192_000.0]);
    }

    #[test]
    fn who_has_gone_to_another_datastore_is_let_go() {
        let snapshot = snapshot(&[OLTP, BACKUP]);
        let away = period(&[(OLTP, "ds1", 9), (BACKUP, "ds2", 9)]);
        assert_eq!(others(&snapshot, &away, &[BACKUP]), []);
        let on_both = period(&[(OLTP, "ds1", 9), (BACKUP, "ds1", 1), (BACKUP, "ds2", 9)]);
        assert_eq!(others(&snapshot, &on_both, &[BACKUP]), [BACKUP]);
    }

    #[test]
    fn a_class_that_was_removed_is_let_go() {
        let snapshot = snapshot(&[OLTP]);
        assert_eq!(others(&snapshot, &period(&[(OLTP, "ds1", 9)]), &[BACKUP]), []);
    }
}
