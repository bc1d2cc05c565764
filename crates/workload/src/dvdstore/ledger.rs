//! The file of acknowledged orders.
//!
//! A line for each: the order's number, its customer's, the total, how many lines it
//! has, and when it was acknowledged, in milliseconds since 1970. A line is written
//! with one call as soon as the commit was answered, so a driver that is killed has
//! noted all that it knew. A line without its end was never whole, and does not count.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::copy::money;
use super::error::StoreError;

/// What the file begins with.
const HEAD: &str = "# order customer total lines unix_ms\n";
/// No line is longer.
const LONGEST: u64 = 128;

/// An order that the server has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Acknowledged {
    /// Its number.
    pub order: i32,
    /// Whose it is.
    pub customer: i32,
    /// What it costs, in cents.
    pub total_cents: i64,
    /// How many lines it has.
    pub lines: i64,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
}

impl Acknowledged {
    /// From a line of the file.
    pub fn parse(line: &str) -> Option<Acknowledged> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        let order = word()?.parse().ok()?;
        let customer = word()?.parse().ok()?;
        let (whole, cents) = word()?.split_once('.')?;
        if cents.len() != 2 {
            return None;
        }
        let total_cents = format!("{whole}{cents}").parse().ok()?;
        let (lines, unix_ms) = (word()?.parse().ok()?, word()?.parse().ok()?);
        let one = Acknowledged { order, customer, total_cents, lines, unix_ms };
        word().is_none().then_some(one)
    }

    /// Now, by the wall clock.
    pub(crate) fn now() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_millis() as u64
    }

    /// What it costs, as an amount.
    pub fn total(&self) -> String {
        money(self.total_cents.unsigned_abs())
    }
}

impl fmt::Display for Acknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Acknowledged { order, customer, lines, unix_ms, .. } = self;
        write!(f, "{order} {customer} {} {lines} {unix_ms}", self.total())
    }
}

/// The file, being written.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
}

impl Ledger {
    /// Goes on with a file, or begins one.
    pub(crate) fn open(path: &Path) -> Result<Ledger, StoreError> {
        let failed = |error| StoreError::File { path: path.into(), error };
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).append(true).create(true).open(path).map_err(failed)?;
        cut(&mut file).map_err(failed)?;
        Ok(Ledger { path: path.into(), file })
    }

    /// Notes an order.
    pub(crate) fn note(&self, order: Acknowledged) -> Result<(), StoreError> {
        let line = format!("{order}\n");
        // Appended in one piece, whoever else appends.
        (&self.file)
            .write_all(line.as_bytes())
            .map_err(|error| StoreError::File { path: self.path.clone(), error })
    }
}

/// Removes a line without its end; an empty file gets its head.
fn cut(file: &mut File) -> io::Result<()> {
    let len = file.metadata()?.len();
    if len == 0 {
        return file.write_all(HEAD.as_bytes());
    }
    let mut tail = Vec::new();
    let from = len.saturating_sub(LONGEST);
    file.seek(SeekFrom::Start(from))?;
    file.read_to_end(&mut tail)?;
    let end = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
    if from + end < len {
        file.set_len(from + end)?;
    }
    Ok(())
}

/// What a file says.
pub(crate) fn read(path: &Path) -> Result<Vec<Acknowledged>, StoreError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| StoreError::File { path: path.into(), error })?;
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let lines = whole.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            Acknowledged::parse(line).ok_or_else(|| StoreError::NoOrder {
                path: path.into(),
                line: index + 1,
                text: line.chars().take(60).collect(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: i32) -> Acknowledged {
        Acknowledged { order, customer: 7, total_cents: 1205, lines: 3, unix_ms: 99 }
    }

    #[test]
    fn what_is_noted_is_read_again_and_a_run_goes_on_with_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("orders");
        Ledger::open(&path).and_then(|ledger| ledger.note(order(1))).expect("note");
        Ledger::open(&path).and_then(|ledger| ledger.note(order(2))).expect("note");
        assert_eq!(read(&path).expect("read"), [order(1), order(2)]);
    }

    #[test]
    fn a_line_without_its_end_does_not_count_and_is_in_nobodys_way() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("orders");
        std::fs::write(&path, "1 7 12.05 3 99\n2 7 12.0").expect("write");
        assert_eq!(read(&path).expect("read"), [order(1)]);
        Ledger::open(&path).and_then(|ledger| ledger.note(order(3))).expect("note");
        assert_eq!(read(&path).expect("read"), [order(1), order(3)]);
    }

    #[test]
    fn another_file_is_not_taken_for_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("orders");
        std::fs::write(&path, "1 7 12.05 3 99\nhello\n").expect("write");
        let error = read(&path).expect_err("no orders").to_string();
        assert!(error.contains("line 2: `hello`"), "{error}");
        for line in ["", "1", "1 7 12 3 99", "1 7 12.5 3 99", "1 7 12.05 3 99 1"] {
            assert_eq!(Acknowledged::parse(line), None, "{line}");
        }
    }
}
