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

mod error;
mod file;
mod header;
mod keeper;
mod key;
mod remembered;
mod words;

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::mirror::{
    Doubt, Origin, Present, RegionMap, Stored, Suspicion, suspicion,
};

pub use self::error::MapError;
pub use self::key::MapKey;
pub(crate) use self::remembered::memory_of;

use self::error::failed;
use self::file::{allocate, beside, lock, new_generation, write_out};
use self::header::{HEADER_LEN, Header};
use self::keeper::Keeper;
use self::remembered::{PAGE, forget, left_of, new_memory, store_words};
use self::words::seal;
use crate::boot::BootId;
use crate::memory::{Home, Memory, Name};
use crate::origin;
use crate::plain;

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

    /// What the source was known by when the map was taken up.
    pub fn source(&self) -> Origin {
        self.header().places.unwrap_or_default().source
    }

    /// What the destination was known by then, or noted since.
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

    /// Has the memory say what these words are now, a page of them at a time.
    fn keep_run(&mut self, run: Range<u64>) {
        self.soon.take_if(|soon| run.contains(soon));
        let mut first = run.start;
        while first < run.end && self.lost.is_none() {
            let end = run.end.min((first / PAGE as u64 + 1) * PAGE as u64);
            let states = &self.states[first as usize..end as usize];
            let words = words::sealed(self.header.generation, first, states);
            let stored = self.memory.store(words::at(first), &words);
            self.keeper.changed(words::at(first));
            self.see_to(stored);
            first = end;
        }
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

#[cfg(test)]
mod tests;
