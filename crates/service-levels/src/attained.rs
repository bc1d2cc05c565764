//! What classes have of their reservations: looked at every second, and said.

use std::collections::BTreeMap;

use sterna_api::{ReservationState, Warning};
use sterna_core::qos::policy::resolve;
use sterna_core::qos::{Attained, Attainment, ClassId, Rate};
use sterna_core::schedule::Moment;
use sterna_os::{Local, clock, lock};

use super::period::Period;
use super::snapshot::{Entry, PolicySnapshot};
use super::windows::Windows;
use crate::ServiceLevels;

/// Seconds for which a reservation is lacking before there is a warning: a trial may end in
/// the middle of a load that begins.
const WARN_AFTER: u64 = 10;

/// What a class has of its reservation, on which datastore that is so, and since when
/// (seconds since 1970).
#[derive(Clone, Debug)]
pub(super) struct Seen {
    attained: Attained,
    datastore: String,
    since: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct AllSeen(BTreeMap<ClassId, Seen>);

impl AllSeen {
    /// One period: where windows are looked at, these say it; who asks for nothing has
    /// none.
    pub(super) fn step(
        &mut self,
        snapshot: &PolicySnapshot,
        windows: &Windows,
        period: &Period,
    ) {
        let mut all: BTreeMap<ClassId, Seen> = BTreeMap::new();
        for (datastore, attained) in windows.attained() {
            let worse = |known: &Seen| attained.state > known.attained.state;
            if all.get(&attained.class).is_none_or(worse) {
                all.insert(attained.class, self.seen(attained, datastore));
            }
        }
        let now = Local::now().moment();
        for entry in snapshot.entries().filter(|entry| !entry.is_built_in()) {
            let class = entry.record.id;
            if all.contains_key(&class) {
                continue;
            }
            let Some(reserved) = reserved(entry, now) else { continue };
            if period.whole(class).0.total().operations == 0 {
                let state = Attainment::Idle;
                let idle = Attained { class, reserved, has: 0.0, state };
                all.insert(class, self.seen(idle, ""));
            }
        }
        self.0 = all;
    }

    /// What each has.
    pub(super) fn each(&self) -> impl Iterator<Item = &Attained> {
        self.0.values().map(|seen| &seen.attained)
    }

    fn seen(&self, attained: Attained, datastore: &str) -> Seen {
        let same = self.0.get(&attained.class).filter(|known| {
            known.attained.state == attained.state
                && known.attained.reserved == attained.reserved
        });
        let since = same.map_or_else(clock::now, |known| known.since);
        Seen { attained, datastore: datastore.into(), since }
    }
}

/// What is reserved for a class now, unless its response time is limited: the two are not
/// compared.
fn reserved(entry: &Entry, now: Moment) -> Option<Rate> {
    let plan = entry.plan();
    let terms = plan.reserves().then(|| resolve(&plan, now).terms)?;
    terms.reservation.filter(|_| terms.limit.response.is_none())
}

impl ServiceLevels {
    /// What a class has of what is reserved for it now. Nothing, if nothing is, or nobody
    /// has looked since it is.
    fn seen_of(&self, entry: &Entry) -> Option<Seen> {
        let reserved = reserved(entry, Local::now().moment())?;
        let seen = lock(&self.service.attained).0.get(&entry.record.id).cloned()?;
        (seen.attained.reserved == reserved).then_some(seen)
    }

    /// That, as the API shows it.
    pub(crate) fn view_attained(&self, entry: &Entry) -> Option<ReservationState> {
        let Seen { attained, since, .. } = self.seen_of(entry)?;
        Some(ReservationState {
            state: attained.state.into(),
            since,
            has: attained.reserved.with(attained.has.round() as u64).into(),
            percent: attained.percent(),
        })
    }

    /// What is to be done where a class has less than is reserved for it, in words.
    pub(super) fn lack(&self, entry: &Entry) -> Option<String> {
        let Seen { attained, datastore, .. } = self.seen_of(entry)?;
        let why = match attained.state {
            Attainment::Lacking => {
                "Sterna slows other classes as far as this helps, and the datastore does \
                 no more with so few requests of the class at a time. Reserve less, let \
                 the class send more requests at a time, or move its disks"
            }
            Attainment::Alone => {
                "there is no other load: the class asks for no more, or the datastore \
                 does no more"
            }
            _ => return None,
        };
        let percent = attained.percent();
        Some(format!(
            "datastore {datastore}: the class has {percent} % of its reservation; {why}"
        ))
    }

    /// Classes that lack what is reserved for them though others are slowed for it.
    pub fn lacking(&self) -> Vec<Warning> {
        let snapshot = self.snapshot();
        let lacking = |entry: &Entry| {
            let Seen { attained, datastore, since } = self.seen_of(entry)?;
            let lasts = clock::now().saturating_sub(since) >= WARN_AFTER;
            if attained.state != Attainment::Lacking || !lasts {
                return None;
            }
            let percent = attained.percent();
            Some(Warning {
                about: format!("class {}", entry.record.name),
                message: format!(
                    "the class has {percent} % of its reservation on datastore \
                     {datastore}, and Sterna slows other classes as far as this helps"
                ),
                hint: format!(
                    "reserve less, or move its disks: see `sterna class show {}`",
                    entry.record.name
                ),
            })
        };
        snapshot.entries().filter_map(lacking).collect()
    }
}
