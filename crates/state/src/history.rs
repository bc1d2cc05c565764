//! What was learned of disks, and what they did hour by hour: beside the state, in a database
//! of its own (`history.db`), since nothing hangs on it.
//!
//! What is usual is written as a whole: some 200 bytes for each kind of requests that a disk
//! sends. An hour of a disk has some 100 bytes, 200 KB in ninety days.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Row, params};
use sterna_core::hurt::KeptUsual;
use sterna_core::{DiskId, Nanos};

use super::beside::{BesideError, Kind};
use super::{from_sql, to_sql};

const KIND: Kind = Kind {
    // "STRH": this file is Sterna's, and has its history.
    application_id: 0x5354_5248,
    version: 1,
    tables: include_str!("sql/history_0001.sql"),
};

/// So long hours are kept.
const KEPT_S: u64 = 90 * 24 * 3600;
/// How long somebody waits for the file.
const ANSWER: Duration = Duration::from_secs(3);
/// How often it is looked whether it is free.
const LOOK: Duration = Duration::from_millis(5);

/// The file. Cheap to clone.
#[derive(Clone)]
pub struct HistoryFile {
    connection: Arc<Mutex<Connection>>,
}

/// What a disk did in an hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskHour {
    /// When it began (seconds since 1970).
    pub hour: u64,
    /// Reads and writes per second.
    pub iops: [f64; 2],
    /// Bytes read and written per second.
    pub bytes_s: [f64; 2],
    /// Requests under way, on average.
    pub outstanding: f64,
    /// p50, p99 and the longest, of the worst window each, in microseconds; nothing without
    /// requests.
    pub response_us: [Option<f64>; 3],
    /// Means of the wait before the device and the time at it, in microseconds.
    pub parts_us: [Option<f64>; 2],
    /// How many windows these are.
    pub windows: u32,
}

impl HistoryFile {
    /// Opens the file at that path. A file that is of no use is put aside, and if there can
    /// be none at the moment, it is in memory: the daemon runs without it.
    pub fn open(path: &Path) -> Result<HistoryFile, BesideError> {
        let connection = Arc::new(Mutex::new(KIND.open(path)?));
        Ok(HistoryFile { connection })
    }

    /// Lets go of the file, for the next daemon: threads that hang may keep this process. What
    /// is written afterwards is lost. Waits for the file system.
    pub fn close(&self) {
        if let (Ok(mut connection), Ok(in_memory)) = (self.turn(), KIND.in_memory()) {
            *connection = in_memory;
        }
    }

    /// What is usual for disks.
    pub fn usual(&self) -> Result<Vec<(DiskId, KeptUsual)>, BesideError> {
        let connection = self.turn()?;
        let sql = "SELECT disk, kind, since, weights FROM usual ORDER BY disk, kind";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        let mut all: Vec<(DiskId, KeptUsual)> = Vec::new();
        while let Some(row) = rows.next()? {
            // Of what is none of ours nothing is known.
            let Ok(disk) = row.get::<_, String>(0)?.parse() else { continue };
            let weights: Vec<u8> = row.get(3)?;
            let pairs = weights.chunks_exact(2);
            let weights =
                pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            let levels = (row.get(1)?, weights);
            match all.last_mut() {
                Some((last, kept)) if *last == disk => kept.levels.push(levels),
                _ => {
                    let since = Nanos::from_secs(from_sql(row.get(2)?));
                    all.push((disk, KeptUsual { since, levels: vec![levels] }));
                }
            }
        }
        Ok(all)
    }

    /// Keeps what is usual for disks, and nothing of others.
    pub fn keep_usual(&self, these: &[(DiskId, KeptUsual)]) -> Result<(), BesideError> {
        let mut connection = self.turn()?;
        let transaction = connection.transaction()?;
        transaction.execute("DELETE FROM usual", [])?;
        let sql = "INSERT INTO usual (disk, kind, since, weights) VALUES (?, ?, ?, ?)";
        let mut statement = transaction.prepare_cached(sql)?;
        for (disk, KeptUsual { since, levels }) in these {
            let since = to_sql(since.0 / 1_000_000_000);
            for (kind, weights) in levels {
                let weights: Vec<u8> =
                    weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
                statement.execute(params![disk.to_string(), kind, since, weights])?;
            }
        }
        drop(statement);
        Ok(transaction.commit()?)
    }

    /// Records what disks did in an hour, and forgets what is too old.
    pub fn add_hours(&self, these: &[(DiskId, DiskHour)]) -> Result<(), BesideError> {
        let Some(latest) = these.iter().map(|(_, one)| one.hour).max() else {
            return Ok(());
        };
        let mut connection = self.turn()?;
        let transaction = connection.transaction()?;
        for (disk, one) in these {
            add_hour(&transaction, *disk, one)?;
        }
        let until = to_sql(latest.saturating_sub(KEPT_S));
        transaction.execute("DELETE FROM disk_hours WHERE hour < ?", [until])?;
        Ok(transaction.commit()?)
    }

    /// The hours of a disk that begin from one moment on and before another, the oldest first.
    pub fn hours(
        &self,
        disk: DiskId,
        from: u64,
        to: u64,
    ) -> Result<Vec<DiskHour>, BesideError> {
        let connection = self.turn()?;
        let sql = "SELECT * FROM disk_hours WHERE disk = ? AND hour >= ? AND hour < ?
                   ORDER BY hour";
        let mut statement = connection.prepare_cached(sql)?;
        let wanted = params![disk.to_string(), to_sql(from), to_sql(to)];
        let found: rusqlite::Result<_> = statement.query_map(wanted, hour)?.collect();
        Ok(found?)
    }

    /// Waits for one's turn, but not for a file system that hangs.
    fn turn(&self) -> Result<MutexGuard<'_, Connection>, BesideError> {
        let until = Instant::now() + ANSWER;
        loop {
            match self.connection.try_lock() {
                Ok(guard) => return Ok(guard),
                // A call that failed halfway has left no transaction behind.
                Err(TryLockError::Poisoned(guard)) => return Ok(guard.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                    return Err(BesideError::Silent);
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
            }
        }
    }
}

fn hour(row: &Row<'_>) -> rusqlite::Result<DiskHour> {
    Ok(DiskHour {
        hour: from_sql(row.get("hour")?),
        iops: [row.get("read_iops")?, row.get("write_iops")?],
        bytes_s: [row.get("read_bytes_s")?, row.get("write_bytes_s")?],
        outstanding: row.get("outstanding")?,
        response_us: [row.get("p50_us")?, row.get("p99_us")?, row.get("max_us")?],
        parts_us: [row.get("queue_us")?, row.get("service_us")?],
        windows: row.get("windows")?,
    })
}

fn add_hour(
    connection: &Connection,
    disk: DiskId,
    one: &DiskHour,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO disk_hours
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let [read_iops, write_iops] = one.iops;
    let [read_bytes, write_bytes] = one.bytes_s;
    let [p50, p99, max] = one.response_us;
    let [queue, service] = one.parts_us;
    let values = params![
        disk.to_string(),
        to_sql(one.hour),
        read_iops,
        write_iops,
        read_bytes,
        write_bytes,
        one.outstanding,
        p50,
        p99,
        max,
        queue,
        service,
        one.windows
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> (tempfile::TempDir, HistoryFile) {
        let dir = tempfile::tempdir().unwrap();
        let file = HistoryFile::open(&dir.path().join("history.db")).unwrap();
        (dir, file)
    }

    #[test]
    fn what_is_usual_comes_back_at_the_next_start() {
        let (dir, file) = fresh();
        let usual = |since, weight| KeptUsual {
            since: Nanos::from_secs(since),
            levels: vec![(0, vec![weight; 96]), (6, vec![0, 1, 65_535])],
        };
        let all = [(DiskId(3), usual(7, 600)), (DiskId(u128::MAX), usual(9, 1))];
        file.keep_usual(&all).unwrap();
        file.keep_usual(&all).unwrap();
        drop(file);
        let file = HistoryFile::open(&dir.path().join("history.db")).unwrap();
        assert_eq!(file.usual().unwrap(), all);
        file.keep_usual(&all[..1]).unwrap();
        assert_eq!(file.usual().unwrap(), all[..1], "a disk that has gone is forgotten");
    }

    #[test]
    fn hours_are_kept_for_ninety_days() {
        let (_dir, file) = fresh();
        let at = |hour: u64| DiskHour {
            hour: hour * 3600,
            iops: [1.0, 2.0],
            bytes_s: [3.0, 4.0],
            outstanding: 5.0,
            response_us: [Some(6.0), Some(7.0), Some(8.0)],
            parts_us: [None, Some(9.0)],
            windows: 4,
        };
        let disk = DiskId(7);
        file.add_hours(&[(disk, at(1)), (disk, at(2)), (DiskId(8), at(2))]).unwrap();
        assert_eq!(file.hours(disk, 0, 10 * 3600).unwrap(), [at(1), at(2)]);
        assert_eq!(file.hours(disk, 7200, 7201).unwrap(), [at(2)]);
        file.add_hours(&[(disk, at(90 * 24 + 2))]).unwrap();
        let left = file.hours(disk, 0, u64::MAX / 2).unwrap();
        assert_eq!(left, [at(2), at(90 * 24 + 2)]);
    }
}
