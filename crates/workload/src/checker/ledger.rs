//! The file in which every write stands before it is sent and again when it
//! was acknowledged.
//!
//! Append-only, records of 32 bytes, each with its own checksum:
//!
//! ```text
//! header  "STERNLOG" | format u32 | block u32 | seed u64 | size u64 | blank u32 | crc32c
//! record  mark u8 | effect u8 | 0 u16 | version u32 | offset u64 | length u32 | ms u32 | 0 u32 | crc32c
//! ```
//!
//! A record goes out with one `write` before the request that it speaks of
//! leaves, so it survives the death of this process (not of the machine: that
//! is not what the checker is for). A last record that is cut short or has a
//! wrong checksum was being written at that moment; nothing was promised by
//! it and it is cut off. A wrong record before the last is damage, and an
//! error.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::content::Version;
use super::mix::Effect;
use super::model::Model;

const MAGIC: [u8; 8] = *b"STERNLOG";
const FORMAT: u32 = 1;
const HEADER: usize = 40;
const RECORD: usize = 32;

/// What the ledger is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes in a block: 512 or 4096.
    pub block: u32,
    /// What the contents follow from.
    pub seed: u64,
    /// The disk's size in bytes.
    pub size: u64,
    /// Whether the disk read as zeroes at the start.
    pub blank: bool,
}

/// What happened to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is about to be sent.
    Sent = 1,
    /// It was acknowledged.
    Done = 2,
    /// The server answered with an error.
    Failed = 3,
    /// A new run begins; what was not acknowledged until here is in doubt.
    Begin = 4,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What happened.
    pub mark: Mark,
    /// Data, zeroes or a trim.
    pub effect: Effect,
    /// Which write.
    pub version: Version,
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// Milliseconds since the run began.
    pub ms: u32,
}

/// Why a ledger can't be used.
#[derive(Debug)]
pub enum LedgerError {
    /// The file can't be read or written.
    Io(PathBuf, io::Error),
    /// The file is no ledger.
    NotALedger(PathBuf),
    /// A record in the middle is damaged.
    Damaged(PathBuf, u64),
}

impl std::fmt::Display for LedgerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LedgerError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            LedgerError::NotALedger(path) => write!(
                f,
                "{} is not a checker's log; give --log the file that `run` wrote",
                path.display()
            ),
            LedgerError::Damaged(path, at) => write!(
                f,
                "{} is damaged at byte {at}; what it promised is not known any more",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LedgerError {}

/// An open ledger.
pub struct Ledger {
    path: PathBuf,
    file: File,
    pending: Vec<u8>,
}

impl Ledger {
    /// Starts a ledger; a file that is already there is an error.
    pub fn create(path: &Path, header: Header) -> Result<Ledger, LedgerError> {
        let error = |error| LedgerError::Io(path.into(), error);
        let mut file =
            OpenOptions::new().append(true).create_new(true).open(path).map_err(error)?;
        file.write_all(&header.encode()).map_err(error)?;
        Ok(Ledger { path: path.into(), file, pending: Vec::new() })
    }

    /// Opens a ledger, replays it, and is ready to go on with it. Gives the
    /// highest write number too.
    pub fn open(path: &Path) -> Result<(Ledger, Header, Model, u32), LedgerError> {
        let error = |error| LedgerError::Io(path.into(), error);
        let mut file =
            OpenOptions::new().read(true).append(true).open(path).map_err(error)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(error)?;
        let header =
            Header::decode(&bytes).ok_or_else(|| LedgerError::NotALedger(path.into()))?;
        let (entries, whole) = records(path, &bytes)?;
        file.set_len(whole).map_err(error)?;
        file.seek(SeekFrom::End(0)).map_err(error)?;
        let (model, last) = replay(header, &entries);
        Ok((Ledger { path: path.into(), file, pending: Vec::new() }, header, model, last))
    }

    /// Notes an entry; it is safe after the next [`Ledger::commit`].
    pub fn note(&mut self, entry: Entry) {
        self.pending.extend_from_slice(&entry.encode());
    }

    /// Hands everything noted to the operating system.
    pub fn commit(&mut self) -> Result<(), LedgerError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.file
            .write_all(&self.pending)
            .map_err(|error| LedgerError::Io(self.path.clone(), error))?;
        self.pending.clear();
        Ok(())
    }
}

/// The entries of a ledger's bytes, and how many of the bytes are good.
fn records(path: &Path, bytes: &[u8]) -> Result<(Vec<Entry>, u64), LedgerError> {
    let body = &bytes[HEADER..];
    let count = body.len() / RECORD;
    let mut entries = Vec::with_capacity(count);
    for (index, chunk) in body.chunks_exact(RECORD).enumerate() {
        match Entry::decode(chunk) {
            Some(entry) => entries.push(entry),
            None if index + 1 == count => break,
            None => {
                let at = (HEADER + index * RECORD) as u64;
                return Err(LedgerError::Damaged(path.into(), at));
            }
        }
    }
    let whole = (HEADER + entries.len() * RECORD) as u64;
    Ok((entries, whole))
}

/// What must be on the disk after all that.
fn replay(header: Header, entries: &[Entry]) -> (Model, u32) {
    let mut model = Model::new(header.seed, header.size, header.block, header.blank);
    // By number, so that of two writes in doubt the later one comes later.
    let mut sent: BTreeMap<u32, Entry> = BTreeMap::new();
    let mut last = 0;
    for entry in entries {
        last = last.max(entry.version.number());
        match entry.mark {
            Mark::Sent => {
                sent.insert(entry.version.number(), *entry);
            }
            Mark::Done => {
                sent.remove(&entry.version.number());
                entry.settle(&mut model, true);
            }
            Mark::Failed => {
                sent.remove(&entry.version.number());
                entry.settle(&mut model, false);
            }
            Mark::Begin => {
                for (_, open) in std::mem::take(&mut sent) {
                    open.settle(&mut model, false);
                }
            }
        }
    }
    for open in sent.values() {
        open.settle(&mut model, false);
    }
    (model, last)
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.block.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.seed.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.size.to_le_bytes());
        bytes[32..36].copy_from_slice(&u32::from(self.blank).to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        let right = sealed(bytes) && bytes[..8] == MAGIC && u32_at(bytes, 8) == FORMAT;
        right.then(|| Header {
            block: u32_at(bytes, 12),
            seed: u64_at(bytes, 16),
            size: u64_at(bytes, 24),
            blank: u32_at(bytes, 32) == 1,
        })
    }
}

impl Entry {
    /// The record that says "a new run begins".
    pub fn begin() -> Entry {
        let (mark, effect) = (Mark::Begin, Effect::Data);
        Entry { mark, effect, version: Version::NONE, offset: 0, length: 0, ms: 0 }
    }

    /// Tells the model how the write ended.
    pub fn settle(&self, model: &mut Model, done: bool) {
        let block = model.block_size();
        let blocks = self.offset / block..(self.offset + u64::from(self.length)) / block;
        match (self.effect, done) {
            (Effect::Trim, _) => model.trim(blocks, self.version),
            (_, true) => model.acknowledge(blocks, self.version),
            (_, false) => model.doubt(blocks, self.version),
        }
    }

    fn encode(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[0] = self.mark as u8;
        bytes[1] = self.effect as u8;
        bytes[4..8].copy_from_slice(&self.version.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.length.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.ms.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Entry> {
        if !sealed(bytes) {
            return None;
        }
        let mark = [Mark::Sent, Mark::Done, Mark::Failed, Mark::Begin]
            .into_iter()
            .find(|&mark| mark as u8 == bytes[0])?;
        let effect = [Effect::Data, Effect::Zeroes, Effect::Trim]
            .into_iter()
            .find(|&effect| effect as u8 == bytes[1])?;
        Some(Entry {
            mark,
            effect,
            version: Version(u32_at(bytes, 4)),
            offset: u64_at(bytes, 8),
            length: u32_at(bytes, 16),
            ms: u32_at(bytes, 20),
        })
    }
}

/// Puts the checksum of everything before it into the last four bytes.
fn seal(bytes: &mut [u8]) {
    let at = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..at]);
    bytes[at..].copy_from_slice(&crc.to_le_bytes());
}

fn sealed(bytes: &[u8]) -> bool {
    let at = bytes.len() - 4;
    crc32c::crc32c(&bytes[..at]) == u32_at(bytes, at)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    const HEADER_OF_TESTS: Header =
        Header { block: 512, seed: 5, size: 512 * 64, blank: true };

    fn fresh_path() -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sterna-ledger-{}-{number}", std::process::id());
        std::env::temp_dir().join(name)
    }

    fn entry(mark: Mark, number: u32, block: u64) -> Entry {
        Entry {
            mark,
            effect: Effect::Data,
            version: Version::new(number, false),
            offset: block * 512,
            length: 512,
            ms: 1,
        }
    }

    fn written(entries: &[Entry]) -> PathBuf {
        let path = fresh_path();
        let mut ledger = Ledger::create(&path, HEADER_OF_TESTS).expect("create");
        for &entry in entries {
            ledger.note(entry);
        }
        ledger.commit().expect("commit");
        path
    }

    #[test]
    fn what_was_acknowledged_is_promised_and_the_rest_in_doubt() {
        let path = written(&[
            entry(Mark::Sent, 1, 0),
            entry(Mark::Sent, 2, 1),
            entry(Mark::Done, 1, 0),
        ]);
        let (_, header, model, last) = Ledger::open(&path).expect("open");
        assert_eq!(header, HEADER_OF_TESTS);
        assert_eq!((model.written(), model.doubts(), last), (1, 1, 2));
        std::fs::remove_file(path).expect("remove");
    }

    #[test]
    fn a_torn_last_record_is_cut_off() {
        let path = written(&[entry(Mark::Sent, 1, 0), entry(Mark::Done, 1, 0)]);
        let file = OpenOptions::new().write(true).open(&path).expect("open");
        file.set_len((HEADER + RECORD + 9) as u64).expect("cut");
        let (_, _, model, _) = Ledger::open(&path).expect("open");
        assert_eq!((model.written(), model.doubts()), (0, 1));
        assert_eq!(std::fs::metadata(&path).expect("stat").len(), 72);
        std::fs::remove_file(path).expect("remove");
    }

    #[test]
    fn damage_before_the_end_is_an_error() {
        let path = written(&[entry(Mark::Sent, 1, 0), entry(Mark::Done, 1, 0)]);
        let mut bytes = std::fs::read(&path).expect("read");
        bytes[HEADER + 5] ^= 1;
        std::fs::write(&path, bytes).expect("write");
        assert!(matches!(Ledger::open(&path), Err(LedgerError::Damaged(_, 40))));
        std::fs::remove_file(path).expect("remove");
    }
}
