//! What was done, by whom, and what the daemon decided: a year of it.
//!
//! It is beside the state, in a database of its own (`activity.db`), since nothing hangs on
//! it: entries are not synced one by one, a power loss may cost the last ones, and a file
//! that is of no use is put aside. **Nobody waits for an entry**: it goes into a queue
//! that is bounded ([`QUEUE`]), and what finds no place there is counted and told as soon as
//! there is one.
//!
//! **If the file cannot be had** at the start, as the threads of a daemon before this one hang and
//! keep it, entries are in memory, and go into the file as soon as it can be had ([`AGAIN`]). Of
//! more than [`MEMORY_MOST`] the oldest go; how many, and from when, is told in their place.
//!
//! What is older than a year goes, and of more than [`ENTRIES_MOST`] entries the oldest.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Row, params};
use sterna_api::Activity;
use sterna_os::{Local, clock};

use super::beside::{BesideError, Kind};
use super::{from_sql, to_sql};

const KIND: Kind = Kind {
    // "STRA": this file is Sterna's, and has activities.
    application_id: 0x5354_5241,
    version: 1,
    tables: include_str!("sql/activity_0001.sql"),
};

/// Entries that wait to be written: more than a daemon has in a minute in which everything
/// goes wrong.
const QUEUE: usize = 4096;
/// So many are written in one transaction.
const BATCH: usize = 256;
/// How long entries are kept.
const KEPT: Duration = Duration::from_secs(366 * 24 * 3600);
/// The most entries: some 200 MB.
const ENTRIES_MOST: i64 = 1_000_000;
/// How often old entries are removed.
const TIDY: Duration = Duration::from_secs(3600);
/// How often a file is tried that could not be had. An entry waits for that a second at most.
const AGAIN: Duration = Duration::from_secs(60);
/// How long somebody who reads waits.
const ANSWER: Duration = Duration::from_secs(3);
/// The most entries that somebody reads at once.
const READ_MOST: usize = 5000;

/// The most entries in memory: so many go into the file at once.
const MEMORY_MOST: usize = READ_MOST;

/// Which activities are wanted: the latest that fit, the latest first.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only those before this number.
    pub before: Option<u64>,
    /// Only those after this number.
    pub after: Option<u64>,
    /// Only those about this.
    pub about: Option<String>,
    /// Only those since this moment (milliseconds since 1970).
    pub from_ms: Option<u64>,
    /// Only those before this moment (milliseconds since 1970).
    pub to_ms: Option<u64>,
    /// So many at most.
    pub limit: usize,
}

enum Message {
    Enter(Activity),
    Read(Wanted, SyncSender<Result<Vec<Activity>, BesideError>>),
    Close(SyncSender<()>),
}

/// The list. Cheap to clone.
#[derive(Clone)]
pub struct ActivityLog {
    queue: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

impl ActivityLog {
    /// Opens the list at that path. A file that is of no use is put aside, and if there can
    /// be none at the moment, the list is kept in memory: the daemon runs without it.
    pub fn open(path: &Path) -> Result<ActivityLog, BesideError> {
        let connection = KIND.open(path)?;
        let is_in_memory = connection.path().is_none_or(str::is_empty);
        let missed = is_in_memory.then(|| (path.to_owned(), Instant::now()));
        let (queue, messages) = mpsc::sync_channel(QUEUE);
        let lost = Arc::<AtomicU64>::default();
        let dropped = Dropped::default();
        let writer =
            Writer { connection, missed, dropped, lost: lost.clone(), tidied: None };
        thread::Builder::new()
            .name("sterna-activity".into())
            .spawn(move || writer.run(&messages))?;
        Ok(ActivityLog { queue, lost })
    }

    /// Enters something, at once or never. Its number does not count.
    pub fn enter(&self, activity: Activity) {
        if self.queue.try_send(Message::Enter(activity)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads entries, with what was entered before.
    pub fn read(&self, wanted: Wanted) -> Result<Vec<Activity>, BesideError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let silent = || BesideError::Silent;
        self.queue.try_send(Message::Read(wanted, sender)).map_err(|_| silent())?;
        answer.recv_timeout(ANSWER).map_err(|_| silent())?
    }

    /// Writes what was entered before, and lets go of the file, for the next daemon: threads
    /// that hang may keep this process. What is entered afterwards is lost. Waits for the file.
    pub fn close(&self) {
        let (done, over) = mpsc::sync_channel(1);
        if self.queue.send(Message::Close(done)).is_ok() {
            // If its thread is gone, it has let go.
            let _ = over.recv();
        }
    }
}

/// Entries in memory that made room for later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dropped {
    count: u64,
    /// The first and the last (milliseconds since 1970).
    from_ms: u64,
    to_ms: u64,
}

impl Dropped {
    /// With more of them, which came later.
    fn and(self, more: Dropped) -> Dropped {
        let from_ms = if self.count > 0 { self.from_ms } else { more.from_ms };
        Dropped { count: self.count + more.count, from_ms, ..more }
    }

    /// What stands in their place; nothing if there are none.
    fn told(self) -> Option<Activity> {
        let local = Local::now();
        let words = |at_ms: u64| {
            let ago = clock::now_ms().saturating_sub(at_ms);
            local.words_ago(Duration::from_millis(ago))
        };
        let Dropped { count, from_ms, to_ms } = self;
        (count > 0).then(|| Activity {
            seq: 0,
            at_ms: to_ms,
            who: "sterna".into(),
            about: None,
            text: format!(
                "{count} entries of this list were lost, from {} to {}: its file could not be \
                 used, and the memory for entries was full",
                words(from_ms),
                words(to_ms)
            ),
            command: None,
            ok: false,
        })
    }
}

/// Who has the file.
struct Writer {
    connection: Connection,
    /// The file that could not be had, and when it was tried last: entries are in memory.
    missed: Option<(PathBuf, Instant)>,
    /// What did not fit into memory.
    dropped: Dropped,
    lost: Arc<AtomicU64>,
    tidied: Option<Instant>,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            let more = messages.try_iter().take(BATCH - 1);
            let mut entries = Vec::new();
            for message in [first].into_iter().chain(more) {
                match message {
                    Message::Enter(activity) => entries.push(activity),
                    Message::Read(wanted, answer) => {
                        self.write(&std::mem::take(&mut entries));
                        // Whoever asked may have gone.
                        let _ = answer.send(read(&self.connection, &wanted));
                    }
                    Message::Close(done) => {
                        self.write(&entries);
                        drop(self);
                        let _ = done.send(());
                        return;
                    }
                }
            }
            self.write(&entries);
        }
    }

    /// Has the file, if it can be had by now, with what is in memory.
    fn try_again(&mut self) {
        let Some((path, tried)) = &mut self.missed else { return };
        if tried.elapsed() < AGAIN {
            return;
        }
        *tried = Instant::now();
        let gap = self.dropped.told();
        let brought = KIND.connect(path).and_then(|mut file| {
            let mut known = read(
                &self.connection,
                &Wanted { limit: MEMORY_MOST, ..Wanted::default() },
            )?;
            known.reverse();
            insert(&mut file, gap.iter().chain(&known))?;
            Ok(file)
        });
        // If not, somebody has it still.
        if let Ok(file) = brought {
            tracing::info!(path = %path.display(), "this file can be used again");
            (self.connection, self.missed) = (file, None);
            self.dropped = Dropped::default();
        }
    }

    /// Makes room for what comes next, as long as entries are in memory.
    fn make_room(&mut self) {
        if self.missed.is_none() {
            return;
        }
        match drop_oldest(&self.connection) {
            Ok(Some(more)) => self.dropped = self.dropped.and(more),
            Ok(None) => {}
            // Not as a warning, which would be an entry.
            Err(error) => tracing::debug!(%error, "old activities stay in memory"),
        }
    }

    fn write(&mut self, entries: &[Activity]) {
        if entries.is_empty() {
            return;
        }
        self.try_again();
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let gap = (lost > 0).then(|| Activity {
            seq: 0,
            at_ms: entries[0].at_ms,
            who: "sterna".into(),
            about: None,
            text: format!("{lost} entries of this list were lost: too many came at once"),
            command: None,
            ok: false,
        });
        let all = gap.iter().chain(entries);
        if let Err(error) = insert(&mut self.connection, all) {
            self.lost.fetch_add(lost + entries.len() as u64, Ordering::Relaxed);
            // Not as a warning, which would be an entry.
            tracing::debug!(%error, "activities were not written");
        }
        self.make_room();
        if self.tidied.is_none_or(|last| last.elapsed() >= TIDY) {
            self.tidied = Some(Instant::now());
            // It is tried again in an hour.
            let _ = tidy(&self.connection, entries[0].at_ms);
        }
    }
}

fn insert<'a>(
    connection: &mut Connection,
    entries: impl Iterator<Item = &'a Activity>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let sql = "INSERT INTO activities (at_ms, who, about, text, command, ok)
               VALUES (?, ?, ?, ?, ?, ?)";
    let mut statement = transaction.prepare_cached(sql)?;
    for it in entries {
        let at = to_sql(it.at_ms);
        statement.execute(params![at, it.who, it.about, it.text, it.command, it.ok])?;
    }
    drop(statement);
    transaction.commit()
}

/// Drops the oldest entries that are too many for memory.
fn drop_oldest(connection: &Connection) -> rusqlite::Result<Option<Dropped>> {
    let too_old = "seq <= (SELECT max(seq) FROM activities) - ?";
    let sql = format!(
        "SELECT count(*), ifnull(min(at_ms), 0), ifnull(max(at_ms), 0) FROM activities
         WHERE {too_old}"
    );
    let most = to_sql(MEMORY_MOST as u64);
    let found = connection.query_row(&sql, [most], |row| {
        let (count, from_ms, to_ms) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let [count, from_ms, to_ms] = [count, from_ms, to_ms].map(from_sql);
        Ok(Dropped { count, from_ms, to_ms })
    })?;
    if found.count == 0 {
        return Ok(None);
    }
    connection.execute(&format!("DELETE FROM activities WHERE {too_old}"), [most])?;
    Ok(Some(found))
}

fn read(connection: &Connection, wanted: &Wanted) -> Result<Vec<Activity>, BesideError> {
    let sql = "SELECT seq, at_ms, who, about, text, command, ok FROM activities
               WHERE seq < ifnull(?1, 9223372036854775807) AND seq > ifnull(?2, -1)
                 AND (?3 IS NULL OR about = ?3)
                 AND at_ms >= ifnull(?4, 0) AND at_ms < ifnull(?5, 9223372036854775807)
               ORDER BY seq DESC LIMIT ?6";
    let mut statement = connection.prepare_cached(sql)?;
    let wanted = params![
        wanted.before.map(to_sql),
        wanted.after.map(to_sql),
        wanted.about,
        wanted.from_ms.map(to_sql),
        wanted.to_ms.map(to_sql),
        to_sql(wanted.limit.min(READ_MOST) as u64),
    ];
    let found: rusqlite::Result<Vec<Activity>> =
        statement.query_map(wanted, activity)?.collect();
    Ok(found?)
}

fn activity(row: &Row<'_>) -> rusqlite::Result<Activity> {
    Ok(Activity {
        seq: from_sql(row.get(0)?),
        at_ms: from_sql(row.get(1)?),
        who: row.get(2)?,
        about: row.get(3)?,
        text: row.get(4)?,
        command: row.get(5)?,
        ok: row.get(6)?,
    })
}

fn tidy(connection: &Connection, now_ms: u64) -> rusqlite::Result<()> {
    let oldest = to_sql(now_ms.saturating_sub(KEPT.as_millis() as u64));
    connection.execute("DELETE FROM activities WHERE at_ms < ?", [oldest])?;
    let sql = "DELETE FROM activities WHERE seq <= (SELECT max(seq) FROM activities) - ?";
    connection.execute(sql, [ENTRIES_MOST])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_ms: u64, about: &str, text: &str) -> Activity {
        Activity {
            seq: 0,
            at_ms,
            who: "root".into(),
            about: Some(about.into()),
            text: text.into(),
            command: None,
            ok: true,
        }
    }

    fn texts(log: &ActivityLog, wanted: Wanted) -> Vec<String> {
        log.read(wanted).unwrap().into_iter().map(|it| it.text).collect()
    }

    fn all() -> Wanted {
        Wanted { limit: 100, ..Wanted::default() }
    }

    #[test]
    fn the_latest_comes_first_and_a_new_start_finds_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("activity.db");
        let log = ActivityLog::open(&path).unwrap();
        for (at, about, text) in
            [(1, "disk a", "one"), (2, "disk b", "two"), (3, "disk a", "three")]
        {
            log.enter(entry(at, about, text));
        }
        assert_eq!(texts(&log, all()), ["three", "two", "one"]);
        drop(log);
        let log = ActivityLog::open(&path).unwrap();
        let about = Wanted { about: Some("disk a".into()), ..all() };
        assert_eq!(texts(&log, about), ["three", "one"]);
        let before = Wanted { before: Some(3), limit: 1, ..all() };
        assert_eq!(texts(&log, before), ["two"]);
        let between = Wanted { from_ms: Some(2), to_ms: Some(3), ..all() };
        assert_eq!(texts(&log, between), ["two"]);
    }

    #[test]
    fn a_list_that_is_closed_is_the_next_ones_although_somebody_has_it_still() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("activity.db");
        let hangs = ActivityLog::open(&path).unwrap();
        hangs.enter(entry(1, "disk a", "one"));
        hangs.close();
        hangs.enter(entry(2, "disk a", "too late"));
        let next = ActivityLog::open(&path).unwrap();
        assert_eq!(texts(&next, all()), ["one"]);
    }

    #[test]
    fn what_came_while_the_file_was_anothers_is_in_it_when_it_can_be_had() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("activity.db");
        let mut before = KIND.connect(&path).unwrap();
        insert(&mut before, [entry(1, "disk a", "one")].iter()).unwrap();
        let mut writer = Writer {
            connection: KIND.in_memory().unwrap(),
            missed: Some((path, Instant::now())),
            dropped: Dropped::default(),
            lost: Arc::default(),
            tidied: None,
        };
        writer.write(&[entry(2, "disk a", "two")]);
        assert!(writer.missed.is_some(), "it is not tried all the time");
        let long_ago = Instant::now().checked_sub(AGAIN).unwrap();
        writer.missed.as_mut().unwrap().1 = long_ago;
        drop(before);
        writer.write(&[entry(3, "disk a", "three")]);
        assert!(writer.missed.is_none());
        let found = read(&writer.connection, &all()).unwrap();
        let texts: Vec<_> = found.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts, ["three", "two", "one"]);
    }

    #[test]
    fn of_what_did_not_fit_into_memory_the_list_says_how_much_and_from_when_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer {
            connection: KIND.in_memory().unwrap(),
            missed: Some((dir.path().join("activity.db"), Instant::now())),
            dropped: Dropped::default(),
            lost: Arc::default(),
            tidied: None,
        };
        let now = clock::now_ms();
        let came = |at: usize| entry(now + at as u64, "disk a", &at.to_string());
        let many: Vec<_> = (0..MEMORY_MOST + 3).map(came).collect();
        writer.write(&many[..MEMORY_MOST + 1]);
        writer.write(&many[MEMORY_MOST + 1..]);
        let dropped = Dropped { count: 3, from_ms: now, to_ms: now + 2 };
        assert_eq!(writer.dropped, dropped);
        let long_ago = Instant::now().checked_sub(AGAIN).unwrap();
        writer.missed.as_mut().unwrap().1 = long_ago;
        writer.write(&[came(MEMORY_MOST + 3)]);
        assert_eq!((writer.missed.is_none(), writer.dropped), (true, Dropped::default()));
        let first = Wanted { before: Some(3), ..all() };
        let found = read(&writer.connection, &first).unwrap();
        assert_eq!(found[0].text, "3", "the oldest that did fit");
        let gap = &found[1].text;
        assert!(gap.starts_with("3 entries of this list were lost, from "), "{gap}");
        assert!(!found[1].ok && found.len() == 2);
    }

    #[test]
    fn a_file_that_is_no_list_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("activity.db");
        std::fs::write(&path, "a letter, which is no database at all").unwrap();
        let log = ActivityLog::open(&path).unwrap();
        log.enter(entry(1, "disk a", "one"));
        assert_eq!(texts(&log, all()), ["one"]);
        assert!(dir.path().join("activity.db.unusable").exists());
    }

    #[test]
    fn what_is_older_than_a_year_goes() {
        let mut connection = KIND.in_memory().unwrap();
        let now = KEPT.as_millis() as u64 + 10;
        let entries = [entry(1, "disk a", "old"), entry(now, "disk a", "new")];
        insert(&mut connection, entries.iter()).unwrap();
        tidy(&connection, now).unwrap();
        let left = read(&connection, &all()).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].text, "new");
    }
}
