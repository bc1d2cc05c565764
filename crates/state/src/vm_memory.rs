//! What is known of VMs' memory: which of them sleep, and what their wakes needed.

use rusqlite::{Row, params};
use sterna_core::memory::{GranuleSet, Needed, SCORES_KEPT, WAKES_KEPT};

use super::{Store, StoreError, cannot, from_sql, to_sql};

/// A wake of so many granules; nothing if it is not whole.
fn read(row: &Row<'_>, granules: u32) -> rusqlite::Result<Option<Needed>> {
    let set = |column: &str| {
        let bytes: Vec<u8> = row.get(column)?;
        Ok::<_, rusqlite::Error>(GranuleSet::from_bytes(granules, &bytes))
    };
    let sets = [set("within_2s")?, set("within_10s")?, set("within_60s")?];
    Ok(match sets {
        [Some(hot), Some(warm), Some(cool)] => Some(Needed([hot, warm, cool])),
        _ => None,
    })
}

impl Store {
    /// Records since when a VM sleeps (seconds since 1970), or that it does not.
    pub fn set_asleep(&self, vm: &str, since: Option<u64>) -> Result<(), StoreError> {
        let vm = vm.to_owned();
        self.run(move |connection| match since {
            Some(since) => {
                let sql = "INSERT OR REPLACE INTO asleep_vms (vm, since) VALUES (?, ?)";
                connection.execute(sql, params![vm, to_sql(since)])
            }
            None => connection.execute("DELETE FROM asleep_vms WHERE vm = ?", [vm]),
        })?
        .map_err(cannot("record that a VM sleeps"))?;
        Ok(())
    }

    /// The VMs that sleep, by name.
    pub fn asleep_vms(&self) -> Result<Vec<String>, StoreError> {
        self.run(move |connection| {
            let sql = "SELECT vm FROM asleep_vms ORDER BY vm";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the VMs that sleep"))
    }

    /// Since when a VM sleeps (seconds since 1970), if it does.
    pub fn asleep_since(&self, vm: &str) -> Result<Option<u64>, StoreError> {
        let vm = vm.to_owned();
        self.run(move |connection| {
            let sql = "SELECT max(since) FROM asleep_vms WHERE vm = ?";
            connection.query_row(sql, [vm], |row| row.get::<_, Option<i64>>(0))
        })?
        .map(|since| since.map(from_sql))
        .map_err(cannot("look whether a VM sleeps"))
    }

    /// What was predicted of the last wakes of all VMs and what they took, in seconds, the newest
    /// first.
    pub fn wake_scores(&self) -> Result<Vec<(f64, f64)>, StoreError> {
        self.run(|connection| {
            let sql =
                "SELECT predicted_us, took_us FROM wake_scores ORDER BY at DESC LIMIT ?";
            let mut statement = connection.prepare_cached(sql)?;
            let seconds = |row: &Row<'_>, at: usize| {
                Ok::<_, rusqlite::Error>(
                    row.get::<_, i64>(at).map(from_sql)? as f64 / 1e6,
                )
            };
            let read = |row: &Row<'_>| Ok((seconds(row, 0)?, seconds(row, 1)?));
            let kept = to_sql(SCORES_KEPT as u64);
            statement.query_map([kept], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("read what was predicted of wakes"))
    }

    /// Adds what was predicted of a wake and what it took, in seconds (`at` in seconds since 1970),
    /// and forgets those that are too many.
    pub fn add_wake_score(
        &self,
        vm: &str,
        at: u64,
        predicted: f64,
        took: f64,
    ) -> Result<(), StoreError> {
        let (vm, at) = (vm.to_owned(), to_sql(at));
        let [predicted, took] = [predicted, took].map(|it| to_sql((it * 1e6) as u64));
        self.transact(move |transaction| {
            let add = || {
                let sql =
                    "INSERT OR REPLACE INTO wake_scores (at, vm, predicted_us, took_us)
                           VALUES (?, ?, ?, ?)";
                transaction.execute(sql, params![at, vm, predicted, took])?;
                let sql = "DELETE FROM wake_scores WHERE at <
                               (SELECT min(at) FROM (SELECT at FROM wake_scores
                                                     ORDER BY at DESC LIMIT ?))";
                transaction.execute(sql, [to_sql(SCORES_KEPT as u64)])
            };
            add().map(drop).map_err(cannot("record what a wake took"))
        })
    }

    /// The last wakes of a VM with so many granules, the newest first. Those of another size are
    /// left out.
    pub fn wakes(&self, vm: &str, granules: u32) -> Result<Vec<Needed>, StoreError> {
        let vm = vm.to_owned();
        self.run(move |connection| {
            let sql = "SELECT * FROM wakes WHERE vm = ? AND granules = ?
                       ORDER BY at DESC LIMIT ?";
            let mut statement = connection.prepare_cached(sql)?;
            let values = params![vm, granules, to_sql(WAKES_KEPT as u64)];
            let rows = statement.query_map(values, |row| read(row, granules))?;
            rows.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("read what a VM's wakes needed"))
    }

    /// Adds a wake of a VM that is known (`at` in seconds since 1970), and forgets those that are
    /// too many.
    pub fn add_wake(&self, vm: &str, at: u64, needed: &Needed) -> Result<(), StoreError> {
        let (vm, needed) = (vm.to_owned(), needed.clone());
        self.transact(move |transaction| {
            let add = || {
                let Needed([hot, warm, cool]) = &needed;
                let sql = "INSERT OR REPLACE INTO wakes
                               (vm, at, granules, within_2s, within_10s, within_60s)
                           SELECT ?1, ?2, ?3, ?4, ?5, ?6
                           WHERE EXISTS (SELECT 1 FROM vms WHERE name = ?1)";
                let sets = [hot.bytes(), warm.bytes(), cool.bytes()];
                let [hot_bytes, warm_bytes, cool_bytes] = sets;
                let (at, of) = (to_sql(at), hot.of());
                let values = params![vm, at, of, hot_bytes, warm_bytes, cool_bytes];
                transaction.execute(sql, values)?;
                let sql = "DELETE FROM wakes WHERE vm = ?1 AND at NOT IN
                               (SELECT at FROM wakes WHERE vm = ?1 ORDER BY at DESC LIMIT ?2)";
                transaction.execute(sql, params![vm, to_sql(WAKES_KEPT as u64)])
            };
            add().map(drop).map_err(cannot("record what a VM's wake needed"))
        })
    }
}
