//! The memory of a region map: what a kill leaves of it.

use std::fs::File;
use std::io;
use std::path::Path;

use super::header::{self, Header};
use super::words;
use crate::memory::{Home, Memory, Name};

/// How many words are written at a time: a page of them.
pub(super) const PAGE: usize = 512;

/// Makes the memory of a map that is so. The header comes last: without it the rest is
/// nothing.
pub(super) fn new_memory(
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

pub(super) fn store_words(
    memory: &Memory,
    header: &Header,
    states: &[u32],
) -> io::Result<()> {
    for (page, states) in (0..).zip(states.chunks(PAGE)) {
        let first = page * PAGE as u64;
        let sealed = words::sealed(header.generation, first, states);
        memory.store(words::at(first), &sealed)?;
    }
    Ok(())
}

/// The memory that belongs to the file with this header, with its own, newer header.
pub(super) fn left_of(header: &Header) -> Option<(Memory, Header)> {
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
pub(super) fn forget(path: &Path) {
    memory_of(path).into_iter().for_each(Memory::remove);
}
