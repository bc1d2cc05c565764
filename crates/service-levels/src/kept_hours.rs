//! How promises were kept, hour by hour: the state keeps it for ninety days.
//!
//! Each second that was looked at is one in which a class had what was promised, or had less,
//! or that counts neither way: it asked for nothing, or a limit of its own left it less.
//! Seconds in which the promise was not in force, or the daemon did not run, are none of these.
//! They are added up here and recorded every few minutes: a daemon that is killed loses those
//! since the last time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Error, KeptClass, KeptHour, Result};
use sterna_core::Nanos;
use sterna_os::{clock, lock};
use sterna_runtime::tasks::Task;
use sterna_state::KeptHour as Record;

use super::promises::{Part, Promise};
use crate::ServiceLevels;

const HOUR_S: u64 = 3600;
/// What is shown unless a request says otherwise: a week.
const USUAL_S: u64 = 7 * 24 * HOUR_S;
/// The longest that can be asked for: what is kept.
const LONGEST_S: u64 = 90 * 24 * HOUR_S;
/// How often it is recorded: each time, the state syncs once.
const RECORD: Duration = Duration::from_secs(300);

/// Seconds by what they were: kept, missed, quiet.
type Seconds = [Nanos; 3];

/// What is not recorded yet, by the beginnings of hours.
#[derive(Debug, Default)]
pub(super) struct Unrecorded(BTreeMap<(u64, Promise), Seconds>);

impl Unrecorded {
    /// One period of this length that ended now (seconds since 1970).
    pub(super) fn add(&mut self, now: u64, span: Nanos, seen: &[Part]) {
        for Part { promise, part, counts } in seen {
            let hour = now / HOUR_S * HOUR_S;
            let at = match (counts, *part < 1.0) {
                (true, true) => 1,
                (true, false) => 0,
                (false, _) => 2,
            };
            let seconds = &mut self.0.entry((hour, *promise)).or_default()[at];
            *seconds = seconds.plus(span);
        }
    }

    fn records(&self) -> Vec<Record> {
        let record =
            |(&(hour, (class, policy)), seconds): (&(u64, Promise), &Seconds)| {
                let [kept_s, missed_s, quiet_s] = seconds.map(Nanos::as_secs_f64);
                Record { class, policy, hour, kept_s, missed_s, quiet_s }
            };
        self.0.iter().map(record).collect()
    }

    /// What could not be recorded counts on.
    fn put_back(&mut self, other: Unrecorded) {
        for (key, more) in other.0 {
            let mine = self.0.entry(key).or_default();
            mine.iter_mut().zip(more).for_each(|(mine, more)| *mine = mine.plus(more));
        }
    }
}

/// Records how promises were kept.
pub fn recording(levels: &Arc<ServiceLevels>) -> Task {
    let record = |levels: &Arc<ServiceLevels>| levels.record_kept();
    Task::every("kept", "record how promises were kept", RECORD, levels, record)
}

impl ServiceLevels {
    /// Records what is not recorded yet.
    pub fn record_kept(&self) -> Result<()> {
        let these = std::mem::take(&mut *lock(&self.service.unrecorded));
        if these.0.is_empty() {
            return Ok(());
        }
        let recorded = self.storage.store.add_kept(clock::now(), these.records());
        if recorded.is_err() {
            lock(&self.service.unrecorded).put_back(these);
        }
        Ok(recorded?)
    }

    /// How promises to a class were kept, hour by hour, from one moment to another (seconds
    /// since 1970).
    pub fn kept_hours(
        &self,
        class: &str,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<KeptClass> {
        let snapshot = self.snapshot();
        let id = snapshot.class(class)?.record.id;
        let to = to.unwrap_or_else(clock::now);
        let from = from.unwrap_or_else(|| to.saturating_sub(USUAL_S));
        if from >= to || to - from > LONGEST_S {
            let message =
                "the first moment must be before the last one, by 90 days at most";
            return Err(Error::invalid(message).hint("give `from` before `to`"));
        }
        // The hour in which it begins is whole.
        let from = from / HOUR_S * HOUR_S;
        let recorded = self.storage.store.kept_hours(id, from, to)?;
        let unrecorded = lock(&self.service.unrecorded).records();
        let is_asked = |one: &Record| one.class == id && (from..to).contains(&one.hour);
        let mut hours: BTreeMap<_, KeptHour> = BTreeMap::new();
        for one in recorded.into_iter().chain(unrecorded.into_iter().filter(is_asked)) {
            let policy = one.policy.map(|policy| policy.0);
            let new = KeptHour { policy, at: one.hour, ..KeptHour::default() };
            let hour = hours.entry((one.hour, policy)).or_insert(new);
            hour.kept_s += one.kept_s;
            hour.missed_s += one.missed_s;
            hour.quiet_s += one.quiet_s;
        }
        Ok(KeptClass { class: class.into(), hours: hours.into_values().collect() })
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::qos::ClassId;

    use super::*;

    #[test]
    fn seconds_are_of_their_hour_and_of_what_they_were() {
        let promise = (ClassId(7), None);
        let part = |part, counts| Part { promise, part, counts };
        let second = Nanos::from_secs(1);
        let mut these = Unrecorded::default();
        for (now, part) in [
            (HOUR_S, part(1.0, true)),
            (HOUR_S + 1, part(0.5, true)),
            (2 * HOUR_S - 1, part(1.0, false)),
            (2 * HOUR_S, part(0.9, true)),
        ] {
            these.add(now, second, &[part]);
        }
        let seen = |one: &Record| (one.hour, one.kept_s, one.missed_s, one.quiet_s);
        let found: Vec<_> = these.records().iter().map(seen).collect();
        assert_eq!(found, [(HOUR_S, 1.0, 1.0, 1.0), (2 * HOUR_S, 0.0, 1.0, 0.0)]);
        let taken = std::mem::take(&mut these);
        these.add(HOUR_S, second, &[part(1.0, true)]);
        these.put_back(taken);
        assert_eq!(seen(&these.records()[0]), (HOUR_S, 2.0, 1.0, 1.0));
    }
}
