//! How promises to classes were kept, hour by hour, for ninety days.
//!
//! A promise has some 30 bytes an hour: 70 KB in ninety days.

use rusqlite::{Connection, Row, params};
use sterna_core::qos::ClassId;
use sterna_core::qos::policy::PolicyId;

use super::{Store, StoreError, cannot, from_sql, to_sql};

/// So long hours are kept.
const KEPT_S: u64 = 90 * 24 * 3600;

/// How a promise was kept in an hour, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptHour {
    /// The class that it was made to.
    pub class: ClassId,
    /// The policy; without one it is the class's reservation.
    pub policy: Option<PolicyId>,
    /// When the hour began (seconds since 1970).
    pub hour: u64,
    /// The class had what was promised.
    pub kept_s: f64,
    /// It had less.
    pub missed_s: f64,
    /// It asked for nothing, or a limit of its own left it less.
    pub quiet_s: f64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeptHour> {
    let policy = from_sql(row.get("policy")?);
    Ok(KeptHour {
        class: ClassId(row.get("class")?),
        policy: (policy > 0).then_some(PolicyId(policy)),
        hour: from_sql(row.get("hour")?),
        kept_s: row.get("kept_s")?,
        missed_s: row.get("missed_s")?,
        quiet_s: row.get("quiet_s")?,
    })
}

impl Store {
    /// Adds to hours, and forgets those that are too old by `now`. A class that has gone
    /// meanwhile has none.
    pub fn add_kept(&self, now: u64, these: Vec<KeptHour>) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            let added = these.iter().try_for_each(|one| add(transaction, one));
            let forgotten = added.and_then(|()| {
                let until = to_sql(now.saturating_sub(KEPT_S));
                transaction.execute("DELETE FROM kept_hours WHERE hour < ?1", [until])
            });
            forgotten.map(drop).map_err(cannot("record how promises were kept"))
        })
    }

    /// The hours of a class that begin from one moment on and before another, the oldest
    /// first.
    pub fn kept_hours(
        &self,
        class: ClassId,
        from: u64,
        to: u64,
    ) -> Result<Vec<KeptHour>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT * FROM kept_hours WHERE class = ?1 AND hour >= ?2 \
                       AND hour < ?3 ORDER BY hour, policy";
            let rows = connection.prepare_cached(sql).and_then(|mut statement| {
                let wanted = params![class.0, to_sql(from), to_sql(to)];
                statement.query_map(wanted, read)?.collect()
            });
            rows.map_err(cannot("read how promises were kept"))
        })?
    }
}

fn add(connection: &Connection, one: &KeptHour) -> rusqlite::Result<()> {
    let sql = "INSERT INTO kept_hours (class, policy, hour, kept_s, missed_s, quiet_s)
               SELECT id, ?2, ?3, ?4, ?5, ?6 FROM classes WHERE id = ?1
               ON CONFLICT DO UPDATE SET kept_s = kept_s + excluded.kept_s,
                   missed_s = missed_s + excluded.missed_s,
                   quiet_s = quiet_s + excluded.quiet_s";
    let KeptHour { class, policy, hour, kept_s, missed_s, quiet_s } = *one;
    let policy = policy.map_or(0, |policy| policy.0);
    let (policy, hour) = (to_sql(policy), to_sql(hour));
    let values = params![class.0, policy, hour, kept_s, missed_s, quiet_s];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}
