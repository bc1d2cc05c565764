//! Any bytes where a region map should be: each region is what somebody stored, or the map
//! is refused. What is stored afterwards is read again.
//!
//! A map is a file, and after a kill its memory too. Without the memory the file is all
//! there is; with it the memory says what is so, and the file is only asked whose map it is.

#![no_main]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sterna_core::{DiskId, Nanos};
use sterna_core::mirror::{Found, Origin, Present, RegionMap, Storage, Stored};
use sterna_engine::mirror::{MapError, MapFile, MapKey};

/// In memory, and nobody else's.
static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    PathBuf::from(format!("/dev/shm/sterna-fuzz-{}.map", std::process::id()))
});

const HEADER_LEN: usize = 4096;
const COPIES: [usize; 2] = [0, 2048];
const CRC_AT: usize = 160;
/// Where a header's fields are: region size, generation, migration, disk, size.
const REGION: usize = 12;
const GENERATION: usize = 16;
const MIGRATION: usize = 24;
const DISK: usize = 32;
const SIZE: usize = 48;

fuzz_target!(|input: &[u8]| {
    let Some((control, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    bytes.truncate(HEADER_LEN + 1024);
    if control & 1 != 0 {
        seal(&mut bytes);
    }
    let key = key(&bytes);
    let Some(states) = open(&bytes, None, key) else { return };
    let mut damaged = bytes.clone();
    let place = usize::from(control >> 1);
    if let Some(byte) = damaged.get_mut(HEADER_LEN + place) {
        *byte ^= 0x10;
        assert!(open(&damaged, None, key).is_none(), "damage of a word is seen");
        if twins(&bytes) {
            let left = open(&damaged, Some(&bytes), key);
            assert_eq!(left, Some(states.clone()), "the memory says what is so");
            let left = open(&bytes, Some(&damaged), key);
            assert_eq!(left, None, "damage of the memory is seen");
        }
    }
    damaged.clone_from(&bytes);
    damaged[place] ^= 0x10;
    if let Some(left) = open(&damaged, None, key) {
        assert_eq!(left, states, "the header's other copy is as good");
    }
    change(&bytes, key, place);
});

fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..at + N).and_then(|it| it.first_chunk::<N>());
    found.copied().unwrap_or([0; N])
}

/// Makes the checksums right.
fn seal(bytes: &mut [u8]) {
    for copy in COPIES {
        let Some(copy) = bytes.get_mut(copy..copy + CRC_AT + 4) else { return };
        let crc = crc32c::crc32c(&copy[..CRC_AT]);
        copy[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }
    let generation: [u8; 8] = word(bytes, GENERATION);
    let words = bytes.get_mut(HEADER_LEN..).unwrap_or_default().chunks_exact_mut(8);
    for (index, word) in (0u64..).zip(words) {
        let parts = [&generation[..], &index.to_le_bytes()[..], &word[..4]].concat();
        word[4..].copy_from_slice(&crc32c::crc32c(&parts).to_le_bytes());
    }
}

/// What the map says that it is about.
fn key(bytes: &[u8]) -> MapKey {
    MapKey {
        migration: u64::from_le_bytes(word(bytes, MIGRATION)),
        disk: DiskId(u128::from_le_bytes(word(bytes, DISK))),
        size: u64::from_le_bytes(word(bytes, SIZE)),
        region: u32::from_le_bytes(word(bytes, REGION)),
    }
}

fn states(map: &MapFile) -> Vec<Stored> {
    (0..map.regions()).map(|region| map.get(region)).collect()
}

/// Both copies of the header are the same.
fn twins(bytes: &[u8]) -> bool {
    let [first, second] = COPIES.map(|at| bytes.get(at..at + CRC_AT + 4));
    first.is_some() && first == second
}

/// Puts a file in its place that nobody has open.
fn put(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .expect("room in memory");
    file.write_all(bytes).expect("room in memory");
    fs::rename(&new, path).expect("it is there");
}

/// A map that was dropped is closed by its keeper, which a busy machine may let wait.
fn opened(key: MapKey) -> Result<MapFile, MapError> {
    loop {
        match MapFile::open(&PATH, key) {
            Err(MapError::Busy(_)) => {}
            opened => return opened,
        }
    }
}

/// The map of a file, and of the memory beside it if there is one; nothing stays.
fn open(file: &[u8], memory: Option<&[u8]>, key: MapKey) -> Option<Vec<Stored>> {
    put(&PATH, file);
    if let Some(memory) = memory {
        let generation = u64::from_le_bytes(word(memory, GENERATION));
        let name = format!("/dev/shm/sterna-map-{generation:016x}");
        put(Path::new(&name), memory);
    }
    let states = opened(key).ok().map(|map| {
        assert_eq!(map.key(), key);
        states(&map)
    });
    if states.is_some() {
        let other = MapKey { migration: key.migration ^ 1, ..key };
        assert!(opened(other).is_err(), "it is another migration's");
    }
    MapFile::remove(&PATH).expect("it is there");
    states
}

/// It is believed as far as it is to be, changed, and opened anew.
fn change(bytes: &[u8], key: MapKey, place: usize) {
    put(&PATH, bytes);
    let mut map = opened(key).expect("it was open before");
    let before = states(&map);
    let origin = Origin { storage: Storage::Unknown, size: key.size };
    let found = Found { origin, changed: None };
    let now = Nanos::from_secs(1_000_000);
    let (boot, storage) = ([7; 16], Storage::Unknown);
    let present = Present { boot, map: storage, source: found, destination: found, now };
    let suspicion = map.believe(&present).expect("memory does not fail");
    let after = states(&map);
    for (before, after) in before.iter().zip(&after) {
        assert!(*after != Stored::Synced || *before == Stored::Synced);
        assert!(suspicion.is_some() || before == after);
    }
    let first = place as u64 % map.regions();
    map.set_run(first..map.regions(), Stored::from_bits(place as u8));
    let before = states(&map);
    drop(map);
    let map = opened(key).expect("what was written can be read");
    assert_eq!(states(&map), before);
    drop(map);
    MapFile::remove(&PATH).expect("it is there");
}
