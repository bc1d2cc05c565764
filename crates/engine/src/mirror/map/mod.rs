//! The region map: which regions both images share, in a file that outlives
//! the process.
//!
//! The map is in two places. In `crate::memory`, which outlives the process and not the
//! machine: setting a region is one 8-byte store there, so it takes no I/O and waits for no
//! disk, and a process that is killed at any instruction leaves every word whole. And in a
//! file in the state directory, which a thread brings up to date (see `keeper`): its words may
//! be older than the images are, by any time.
//!
//! That is why the words of the file are believed of nothing ([`MapFile::believe`]):
//! whoever finds no memory takes every `Synced` for `Suspect`, and `Absent` for `Late`. For
//! the memory, the header names the boot, and where the map and both images were; whether
//! the map is believed now is decided by `core::mirror::suspicion`.
//!
//! ```text
//!   0      header, two copies (see `header`)
//!   4096   words of 8 bytes, little endian, 16 regions each (see `words`):
//!            bits  0..32  the states, 2 bits a region, lowest first
//!            bits 32..64  crc32c of map generation (u64), word index (u64), states (u32)
//! ```
//!
//! A store costs a microsecond, and the end of a scan sets thousands of regions. So that
//! a region is synced may be kept back until another word's turn: a crash before that has
//! it copied once more. That it is not is stored at once.
//!
//! The generation is new with every map, so a block of an older file that comes
//! up in this one, or a word in the wrong place, does not pass for one of ours.
//!
//! **Failure cases.** A state directory that is full fails at creation: the file
//! is written out then, block by block, and only takes its name when it is
//! whole and durable. A file that is damaged fails at opening, where every word
//! is checked; what is damaged is in the error. Nobody else may open the map
//! while it is open (it is locked).
//!
//! A word that cannot be stored in memory (which is allocated, so only if something is
//! badly wrong) leaves a map that says less than what is so: a region that it calls synced
//! may be late. So the memory is removed at once, and the map goes on within the process
//! and says so (`is_kept`): the migration pauses, and whoever finds no memory after a kill
//! compares everything. When it is to go on, the memory is made anew (`keep_again`). None
//! of this touches the state directory, which may stand still.

mod header;
mod keeper;
mod words;

use std::cell::Cell;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sterna_core::mirror::{
    Doubt, Origin, Present, RegionMap, Stored, Suspicion, suspicion,
};
use sterna_core::{Bytes, DiskId, Nanos};

use crate::boot::BootId;
use crate::memory::{Home, Memory, Name};
use crate::origin;
use crate::place;
use crate::plain;
use header::{HEADER_LEN, Header};
use keeper::Keeper;
use std::os::unix::fs::FileExt;
use words::{PER_WORD, WORD, seal};

/// A lock that was just given up can live on for a moment in a child of this
/// process that has not yet come to its `exec`: look again for 100 ms.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// What a map is about; a map of something else is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapKey {
    /// The migration.
    pub migration: u64,
    /// The disk that it moves.
    pub disk: DiskId,
    /// The disk's size in bytes.
    pub size: u64,
    /// The size of a region in bytes.
    pub region: u32,
}

impl MapKey {
    /// How many regions the disk has; the last one may be shorter.
    pub fn regions(&self) -> u64 {
        self.size.div_ceil(u64::from(self.region.max(1)))
    }

    fn words(&self) -> u64 {
        self.regions().div_ceil(PER_WORD)
    }

    fn file_len(&self) -> u64 {
        HEADER_LEN as u64 + self.words() * WORD
    }
}

/// Why a region map cannot be made or used. After all but `Io` and `Busy` the
/// way on is to compare or copy everything, with a new map.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file system said no.
    #[error("cannot {what} the region map {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody has it open.
    #[error("the region map {} is in use; is another daemon running?", .0.display())]
    Busy(PathBuf),
    /// No disk has this shape.
    #[error("a disk of {size} bytes in regions of {region} bytes cannot be mapped")]
    Shape {
        /// The disk's size.
        size: u64,
        /// The region's size.
        region: u32,
    },
    /// Neither copy of the header is whole.
    #[error("the region map's header is damaged")]
    Header,
    /// Made by a newer Sterna.
    #[error("the region map has version {0}, which this Sterna does not know")]
    Version(u32),
    /// A map of another migration or disk.
    #[error("the region map belongs to {found:?}, not to {expected:?}")]
    Other {
        /// What it is about.
        found: MapKey,
        /// What it should be about.
        expected: MapKey,
    },
    /// The file is longer or shorter than its header says.
    #[error("the region map has {found} bytes and should have {expected}")]
    Length {
        /// The file's length.
        found: u64,
        /// What the header asks for.
        expected: u64,
    },
    /// Words that are not whole.
    #[error(
        "the region map is damaged in {count} places, for {from} to {to} of the disk"
    )]
    Words {
        /// How many.
        count: u64,
        /// Where the disk's part of the first of them begins.
        from: Bytes,
        /// Where the disk's part of the last of them ends.
        to: Bytes,
    },
}

impl MapError {
    /// Whether the map itself may be whole: then it is to be opened again, later.
    pub fn may_pass(&self) -> bool {
        match self {
            MapError::Busy(_) => true,
            MapError::Io { source, .. } => source.kind() != io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

/// How many words are written at a time: a page of them.
const PAGE: usize = 512;

/// The region map in its file.
#[derive(Debug)]
pub struct MapFile {
    path: PathBuf,
    /// Where its memory belongs.
    home: Option<Home>,
    header: Header,
    /// The states of each word's regions, as they are.
    states: Vec<u32>,
    /// What a kill leaves.
    memory: Arc<Memory>,
    /// What the machine's end leaves; it has the lock of the file.
    keeper: Keeper,
    /// The word that says less of what is synced than is so.
    soon: Option<u64>,
    /// Why the memory does not say what is so any more.
    lost: Option<io::Error>,
    /// Which destination was noted since the header was written.
    noted: Cell<Option<Origin>>,
}

impl Drop for MapFile {
    fn drop(&mut self) {
        self.catch_up();
    }
}

impl MapFile {
    /// Makes a map with every region `Absent`, in the place of what `path` may
    /// hold. Durable when it returns, and all the space that it will ever need
    /// is allocated.
    pub fn create(path: &Path, key: MapKey, boot: BootId) -> Result<MapFile, MapError> {
        let len = key.file_len();
        if key.size == 0 || key.region == 0 || usize::try_from(len).is_err() {
            return Err(MapError::Shape { size: key.size, region: key.region });
        }
        let header = Header { key, generation: new_generation(), boot, places: None };
        forget(path);
        let temporary = beside(path);
        let made = write_out(&temporary, &header)
            .and_then(|file| std::fs::rename(&temporary, path).map(|()| file));
        let file = made.map_err(|error| {
            // The first error is the one to tell.
            let _ = std::fs::remove_file(&temporary);
            failed("create", path, error)
        })?;
        plain::sync_directory_of(path).map_err(|error| failed("create", path, error))?;
        let file = lock(file, path)?;
        let home = Home::of(path);
        let made = new_memory(&header, &vec![0; key.words() as usize], home.as_ref());
        let memory = made.map_err(|error| failed("keep", path, error))?;
        let map = MapFile::over(file, memory, path, header)?;
        map.note_both(origin::now());
        Ok(map)
    }

    /// Opens the map at `path`, which must be about `key`; checks every word. If only the
    /// file is left of it, it says nothing of its time, and is not to be believed.
    pub fn open(path: &Path, key: MapKey) -> Result<MapFile, MapError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| failed("open", path, error))?;
        let file = lock(file, path)?;
        let header = header::read(&file).map_err(|error| match error {
            header::ReadError::Io(error) => failed("read", path, error),
            header::ReadError::Damaged => MapError::Header,
            header::ReadError::Version(version) => MapError::Version(version),
        })?;
        if header.key != key {
            return Err(MapError::Other { found: header.key, expected: key });
        }
        let found = file.metadata().map_err(|error| failed("read", path, error))?.len();
        let expected = key.file_len();
        if found != expected || usize::try_from(expected).is_err() {
            return Err(MapError::Length { found, expected });
        }
        // A copy of the file may have holes, and filling them later could fail.
        allocate(&file, expected).map_err(|error| failed("allocate", path, error))?;
        let mut words = vec![0; (expected - HEADER_LEN as u64) as usize];
        let (left, header) = match left_of(&header) {
            Some((memory, header)) => (Some(memory), header),
            // Older than the images, nobody knows by how much.
            None => (None, Header { places: None, ..header }),
        };
        let read = match &left {
            Some(memory) => memory.read(HEADER_LEN as u64, &mut words),
            None => file.read_exact_at(&mut words, HEADER_LEN as u64),
        };
        read.map_err(|error| failed("read", path, error))?;
        let states = words::take(&header, &words)?;
        let memory = match left {
            Some(memory) => memory,
            None => new_memory(&header, &states, Home::of(path).as_ref())
                .map_err(|error| failed("keep", path, error))?,
        };
        let mut map = MapFile::over(file, memory, path, header)?;
        map.states = states;
        Ok(map)
    }

    /// A map of `Absent` regions over a file and a memory that are there.
    fn over(
        file: File,
        memory: Memory,
        path: &Path,
        header: Header,
    ) -> Result<MapFile, MapError> {
        let (memory, len) = (Arc::new(memory), header.key.file_len());
        let keeper = Keeper::start(file, Arc::clone(&memory), len, path)
            .map_err(|error| failed("keep", path, error))?;
        keeper.all_changed();
        let states = vec![0; header.key.words() as usize];
        let home = Home::of(path);
        let (path, soon, lost, noted) = (path.into(), None, None, Cell::default());
        Ok(MapFile { path, home, header, states, memory, keeper, soon, lost, noted })
    }

    /// Removes the map at `path`, wherever it is.
    pub fn remove(path: &Path) -> io::Result<()> {
        forget(path);
        std::fs::remove_file(path)
    }

    /// What the map is about.
    pub fn key(&self) -> MapKey {
        self.header.key
    }

    /// Makes the map one of `present`. If what it says is not to be believed there, it is
    /// doubted first, durably, and only then the header changes; so a crash in between
    /// loses nothing. Gives the reason.
    pub fn believe(&mut self, present: &Present) -> Result<Option<Suspicion>, MapError> {
        let mut times = [0; header::TIMES_LEN];
        let read = self.memory.read(header::WROTE_AT as u64, &mut times);
        read.map_err(|error| failed("read", &self.path, error))?;
        let suspicion = suspicion(self.header.past(&times).as_ref(), present);
        if let Some(suspicion) = suspicion {
            self.doubt(suspicion.doubt());
            self.flush()?;
            self.adopt(present)?;
        }
        self.note_both(present.now);
        Ok(suspicion)
    }

    /// Believes less of what the map says.
    pub fn doubt(&mut self, doubt: Doubt) {
        match doubt {
            Doubt::Unflushed => {} // Of that it says nothing.
            Doubt::Equal => self.replace_synced(Stored::Suspect),
            Doubt::Everything => self.distrust(),
        }
    }

    /// From now on the map is one of `present`, durably.
    pub fn adopt(&mut self, present: &Present) -> Result<(), MapError> {
        self.header.adopt(present);
        self.noted.set(None);
        for copy in 0..header::COPIES {
            let stored = self.store_header(copy, &self.header);
            stored.map_err(|error| failed("write", &self.path, error))?;
            self.flush()?;
        }
        Ok(())
    }

    fn store_header(&self, copy: usize, header: &Header) -> io::Result<()> {
        let at = (copy * header::COPY_STRIDE) as u64;
        self.memory.store(at, &header.encode())?;
        self.keeper.changed(at);
        Ok(())
    }

    /// What the destination was known by when the map was taken up, or noted since.
    pub fn destination(&self) -> Origin {
        self.header().places.unwrap_or_default().destination
    }

    /// The header as it is now.
    fn header(&self) -> Header {
        let mut header = self.header;
        if let Some(destination) = self.noted.get() {
            header.places.get_or_insert_default().destination = destination;
        }
        header
    }

    /// The destination was opened anew and is this one now; what is not to be believed of
    /// it is doubted already. After a kill the file says so; after a power loss nothing
    /// that it says is believed, so that nothing is waited for.
    pub fn note_destination(&self, destination: Origin) {
        self.noted.set(Some(destination));
        let header = self.header();
        for copy in 0..header::COPIES {
            // One that cannot be stored is taken for another destination's: compared.
            let _ = self.store_header(copy, &header);
        }
    }

    /// Something may have been written to either image at this time (since 1970). A store
    /// to memory, as the change of a region is.
    pub fn note_write(&self, at: Nanos) {
        let word = self.header.word_of_time(at);
        // Without it a write of our own is taken for somebody else's: compared.
        let _ = self.memory.store(header::WROTE_AT as u64, &word.to_le_bytes());
    }

    /// Something may have been written to the destination at this time.
    pub fn note_copy(&self, at: Nanos) {
        let word = self.header.word_of_time(at);
        let _ = self.memory.store(header::COPIED_AT as u64, &word.to_le_bytes());
    }

    fn note_both(&self, at: Nanos) {
        self.note_write(at);
        self.note_copy(at);
    }

    /// Waits until the map as it is now is on the medium.
    pub fn flush(&mut self) -> Result<(), MapError> {
        self.catch_up();
        let kept = match &self.lost {
            None => self.keeper.flush(),
            Some(lost) => Err(io::Error::new(lost.kind(), lost.to_string())),
        };
        kept.map_err(|error| failed("write", &self.path, error))
    }

    /// Has the memory say what a word is now, or when another one's turn comes.
    fn keep_soon(&mut self, index: u64) {
        if self.soon != Some(index) {
            self.catch_up();
            self.soon = Some(index);
        }
    }

    /// Has the memory say what was kept back.
    fn catch_up(&mut self) {
        if let Some(index) = self.soon {
            self.keep(index);
        }
    }

    /// Has the memory say what a word is now.
    fn keep(&mut self, index: u64) {
        self.soon.take_if(|soon| *soon == index);
        if self.lost.is_some() {
            return;
        }
        let word = seal(self.header.generation, index, self.states[index as usize]);
        let stored = self.memory.store(words::at(index), &word.to_le_bytes());
        self.keeper.changed(words::at(index));
        self.see_to(stored);
    }

    /// Has the memory say what all words are now.
    fn store_all(&mut self) {
        self.soon = None;
        if self.lost.is_none() {
            let stored = store_words(&self.memory, &self.header, &self.states);
            self.keeper.all_changed();
            self.see_to(stored);
        }
    }

    /// What could not be stored leaves a memory that nobody may believe.
    fn see_to(&mut self, stored: io::Result<()>) {
        let Err(error) = stored else { return };
        // The next one looks at the header first, and only at one with a name.
        let _ = self.memory.file().set_len(0);
        Memory::remove(Name::Map(self.header.generation));
        let path = self.path.display();
        tracing::warn!(%path, %error, "cannot keep the region map in memory");
        self.lost = Some(error);
    }

    /// Makes the memory anew, if it was lost.
    fn keep_all_again(&mut self) {
        if self.lost.is_none() {
            return;
        }
        match new_memory(&self.header(), &self.states, self.home.as_ref()) {
            Ok(memory) => {
                self.memory = Arc::new(memory);
                self.keeper.replace(Arc::clone(&self.memory));
                self.lost = None;
                self.note_both(origin::now());
            }
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "cannot make the region map anew");
            }
        }
    }
}

/// Makes the memory of a map that is so. The header comes last: without it the rest is
/// nothing.
fn new_memory(
    header: &Header,
    states: &[u32],
    home: Option<&Home>,
) -> io::Result<Memory> {
    let (name, len) = (Name::Map(header.generation), header.key.file_len());
    let memory = Memory::create(name, len, home)?;
    store_words(&memory, header, states)?;
    memory.store(0, &header.page())?;
    Ok(memory)
}

fn store_words(memory: &Memory, header: &Header, states: &[u32]) -> io::Result<()> {
    for (page, states) in (0..).zip(states.chunks(PAGE)) {
        let first = page * PAGE as u64;
        let sealed = words::sealed(header.generation, first, states);
        memory.store(words::at(first), &sealed)?;
    }
    Ok(())
}

/// The memory that belongs to the file with this header, with its own, newer header.
fn left_of(header: &Header) -> Option<(Memory, Header)> {
    let memory = Memory::open(Name::Map(header.generation), header.key.file_len())?;
    let found = header::read(memory.file()).ok()?;
    let same = found.generation == header.generation && found.key == header.key;
    same.then_some((memory, found))
}

/// The memory of the map at `path`, if one is there.
pub(crate) fn memory_of(path: &Path) -> Option<Name> {
    let header = header::read(&File::open(path).ok()?).ok()?;
    Some(Name::Map(header.generation))
}

/// Removes the memory of the map at `path`, if there is one.
fn forget(path: &Path) {
    memory_of(path).into_iter().for_each(Memory::remove);
}

/// Gives the first `len` bytes of `file` space on the medium. A file system that cannot
/// do that has them written by the caller or not at all.
fn allocate(file: &File, len: u64) -> io::Result<()> {
    match place::allocate(file, len) {
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) =>
        {
            Ok(())
        }
        allocated => allocated,
    }
}

/// What a map is called until it is whole.
fn beside(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    temporary.into()
}

/// A number that no other map of this machine has.
fn new_generation() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Nanoseconds reach over 64 bits in 2554; wrapping keeps them apart.
    since.as_nanos() as u64
}

/// Makes a file of `len` bytes that has its space, to be overwritten in place.
fn open_new(path: &Path, len: u64) -> io::Result<File> {
    // What is there may share its blocks, and only an empty file takes the attribute.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    // Where that cannot be had, a full file system is found out page by page.
    let _ = place::keep_in_place(&file);
    file.set_len(len)?;
    allocate(&file, len)?;
    Ok(file)
}

/// Writes a map of `Absent` regions to `path`, every block of it, durably.
fn write_out(path: &Path, header: &Header) -> io::Result<File> {
    let file = open_new(path, header.key.file_len())?;
    let mut writer = BufWriter::with_capacity(1 << 20, &file);
    writer.write_all(&header.page())?;
    for index in 0..header.key.words() {
        writer.write_all(&seal(header.generation, index, 0).to_le_bytes())?;
    }
    writer.flush()?;
    drop(writer);
    file.sync_all()?;
    Ok(file)
}

fn lock(file: File, path: &Path) -> Result<File, MapError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(failed("lock", path, error)),
        }
    }
    Err(MapError::Busy(path.into()))
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> MapError {
    MapError::Io { what, path: path.into(), source }
}

#[cfg(test)]
mod tests;
