use std::os::unix::fs::FileExt;

use proptest::prelude::*;
use sterna_core::mirror::{Found, MemoryMap, RegionMap, Side, Storage, Stored};

use sterna_core::DiskId;

use super::words::WORD;
use super::*;

const BOOT: BootId = BootId([1; 16]);
const WROTE: Nanos = Nanos::from_secs(1_800_000_000);

/// The world of a map on storage that is known again.
fn present() -> Present {
    let at = |file| Storage::Mounted { instance: 5, file };
    let found = |file| Found {
        origin: Origin { storage: at(file), size: 1 << 20 },
        changed: Some(WROTE),
    };
    Present {
        boot: BOOT.0,
        map: at(1),
        source: found(2),
        destination: found(3),
        now: WROTE,
    }
}

/// A map that was taken up in that world.
fn adopted(path: &Path, regions: u64) -> MapFile {
    let mut map = MapFile::create(path, key(regions), BOOT).unwrap();
    map.adopt(&present()).unwrap();
    map.note_write(WROTE);
    map.note_copy(WROTE);
    map
}
const REGION: u64 = 65536;

fn key(regions: u64) -> MapKey {
    MapKey { migration: 3, disk: DiskId(9), size: regions * REGION - 512, region: 65536 }
}

/// A place for a map, of which nothing stays in memory either.
struct Place(tempfile::TempDir);

impl Place {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        forget(&self.path().join("3.map"));
    }
}

fn directory() -> (Place, PathBuf) {
    let directory = Place(tempfile::tempdir().unwrap());
    let path = directory.path().join("3.map");
    (directory, path)
}

/// The file in memory of the map at `path`.
fn memory_of(path: &Path) -> PathBuf {
    let header = header::read(&File::open(path).unwrap()).unwrap();
    Name::Map(header.generation).path()
}

fn stored() -> impl Strategy<Value = Stored> {
    // Mostly synced, as a map is most of the time.
    prop_oneof![4 => Just(2u8), 1 => 0u8..4].prop_map(Stored::from_bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_file_says_what_memory_would(
        regions in 1u64..100,
        steps in prop::collection::vec((any::<u64>(), stored()), 0..300),
    ) {
        let (_directory, path) = directory();
        let mut file = MapFile::create(&path, key(regions), BOOT).unwrap();
        let mut memory = MemoryMap::new(regions, Stored::Absent);
        for (region, stored) in steps {
            file.set(region % regions, stored);
            memory.set(region % regions, stored);
        }
        drop(file);
        let mut file = MapFile::open(&path, key(regions)).unwrap();
        prop_assert_eq!(file.regions(), regions);
        for region in 0..regions {
            prop_assert_eq!(file.get(region), memory.get(region));
        }
        for from in 0..=regions {
            for until in [from, regions.midpoint(from), regions] {
                prop_assert_eq!(
                    file.next_not_synced(from..until), memory.next_not_synced(from..until)
                );
            }
            let (here, behind) = (from, from..regions);
            prop_assert_eq!(
                file.count_not_synced(0..here) + file.count_not_synced(behind.clone()),
                memory.count_not_synced(0..regions)
            );
            prop_assert_eq!(
                file.count_not_synced(behind.clone()), memory.count_not_synced(behind)
            );
        }
        let (from, until) = (regions / 3, regions - regions / 4);
        file.set_run(from..until, Stored::Synced);
        memory.set_run(from..until, Stored::Synced);
        for region in 0..regions {
            prop_assert_eq!(file.get(region), memory.get(region));
        }
        file.distrust();
        memory.distrust();
        drop(file);
        let file = MapFile::open(&path, key(regions)).unwrap();
        for region in 0..regions {
            prop_assert_eq!(file.get(region), memory.get(region));
        }
    }

    /// Whatever happens to the file, it is refused or says what it said before.
    #[test]
    fn damage_is_refused_or_harmless(
        regions in 1u64..100,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..8),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        forgotten in any::<bool>(),
    ) {
        let (_directory, path) = directory();
        let place = path.clone();
        let mut file = adopted(&path, regions);
        for region in (0..regions).step_by(3) {
            file.set(region, Stored::Synced);
        }
        file.flush().unwrap();
        let memory = memory_of(&path);
        drop(file);
        // Of the two, what is read.
        let path = if forgotten {
            std::fs::remove_file(memory).unwrap();
            path
        } else {
            memory
        };
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, flip) in damage {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(file) = MapFile::open(&place, key(regions)) {
            for region in 0..regions {
                let expected =
                    if region % 3 == 0 { Stored::Synced } else { Stored::Absent };
                prop_assert_eq!(file.get(region), expected);
            }
        }
    }

    #[test]
    fn random_bytes_are_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..6000), headed in any::<bool>(),
    ) {
        let (_directory, path) = directory();
        let mut bytes = bytes;
        if headed && bytes.len() >= HEADER_LEN {
            let header = Header { key: key(20), generation: 5, boot: BOOT, places: None };
            bytes[..HEADER_LEN].copy_from_slice(&header.page());
        }
        std::fs::write(&path, &bytes).unwrap();
        prop_assert!(MapFile::open(&path, key(20)).is_err());
    }
}

#[test]
fn the_errors_say_what_is_wrong() {
    let (_directory, path) = directory();
    drop(MapFile::create(&path, key(100), BOOT).unwrap());
    std::fs::remove_file(memory_of(&path)).unwrap();
    let expect = |key: MapKey, text: &str| {
        let error = MapFile::open(&path, key).unwrap_err().to_string();
        assert!(error.contains(text), "{error} does not say {text}");
    };
    expect(MapKey { migration: 4, ..key(100) }, "migration: 4");
    expect(key(101), "belongs to");
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"x", HEADER_LEN as u64 + 2 * WORD).unwrap();
    file.write_all_at(b"x", HEADER_LEN as u64 + 5 * WORD).unwrap();
    expect(key(100), "damaged in 2 places, for 2.00 MiB to 6.00 MiB of the disk");
    file.set_len(HEADER_LEN as u64 + 20).unwrap();
    expect(key(100), "has 4116 bytes and should have 4152");
    file.write_all_at(&[7; HEADER_LEN], 0).unwrap();
    expect(key(100), "header is damaged");
}

#[test]
fn one_copy_of_the_header_is_enough() {
    let (_directory, path) = directory();
    for copy in 0..2u64 {
        drop(MapFile::create(&path, key(10), BOOT).unwrap());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; 2048], copy * 2048).unwrap();
        MapFile::open(&path, key(10)).unwrap();
    }
}

#[test]
fn a_word_of_an_older_map_or_of_another_place_is_damage() {
    assert_ne!(seal(1, 0, 5), seal(2, 0, 5));
    assert_ne!(seal(1, 0, 5), seal(1, 1, 5));
}

#[test]
fn a_map_that_is_open_cannot_be_opened_again() {
    let (_directory, path) = directory();
    let map = MapFile::create(&path, key(10), BOOT).unwrap();
    assert!(matches!(MapFile::open(&path, key(10)), Err(MapError::Busy(_))));
    drop(map);
    MapFile::open(&path, key(10)).unwrap();
}

#[test]
fn a_new_map_replaces_an_old_one_and_leaves_nothing_behind() {
    let (directory, path) = directory();
    let mut map = MapFile::create(&path, key(10), BOOT).unwrap();
    map.set(4, Stored::Synced);
    drop(map);
    let map = MapFile::create(&path, key(10), BOOT).unwrap();
    assert_eq!(map.get(4), Stored::Absent);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let bad = directory.path().join("nowhere/3.map");
    assert!(matches!(MapFile::create(&bad, key(10), BOOT), Err(MapError::Io { .. })));
}

#[test]
fn a_stale_copy_can_be_compared_as_a_whole() {
    let (_directory, path) = directory();
    let mut map = MapFile::create(&path, key(21), BOOT).unwrap();
    map.suspect_all();
    assert!((0..21).all(|region| map.get(region) == Stored::Suspect));
    drop(map);
    MapFile::open(&path, key(21)).unwrap();
}

#[test]
fn no_disk_can_make_the_map_panic() {
    let (_directory, path) = directory();
    for (size, region) in [(0, 65536), (1 << 30, 0), (u64::MAX, 1)] {
        let key = MapKey { migration: 1, disk: DiskId(1), size, region };
        assert!(MapFile::create(&path, key, BOOT).is_err());
        assert!(MapFile::open(&path, key).is_err());
    }
}

/// What is made of a map with a region of each kind in the world as `change` leaves it.
fn taken_up(
    change: impl FnOnce(&Path, &mut Present),
) -> (Option<Suspicion>, [Stored; 4]) {
    let (_directory, path) = directory();
    let mut map = adopted(&path, 4);
    for bits in 0..4 {
        map.set(u64::from(bits), Stored::from_bits(bits));
    }
    map.flush().unwrap();
    drop(map);
    let mut now = present();
    change(&path, &mut now);
    let mut map = MapFile::open(&path, key(4)).unwrap();
    let suspicion = map.believe(&now).unwrap();
    // Once it is one of this world, it is believed.
    let states = [0, 1, 2, 3].map(|region| map.get(region));
    drop(map);
    let mut map = MapFile::open(&path, key(4)).unwrap();
    assert_eq!(map.believe(&now).unwrap(), None);
    assert_eq!(states, [0, 1, 2, 3].map(|region| map.get(region)));
    (suspicion, states)
}

const DISTRUSTED: [Stored; 4] =
    [Stored::Late, Stored::Late, Stored::Suspect, Stored::Suspect];

#[test]
fn a_map_is_believed_where_all_is_as_it_was() {
    let (suspicion, states) = taken_up(|_, _| ());
    assert_eq!(suspicion, None);
    assert_eq!(states, [Stored::Absent, Stored::Late, Stored::Synced, Stored::Suspect]);
}

#[test]
fn a_map_of_another_boot_or_mounting_is_not_believed() {
    let boot = taken_up(|_, now| now.boot = [2; 16]);
    assert_eq!(boot, (Some(Suspicion::Boot), DISTRUSTED));
    let mounted = Storage::Mounted { instance: 6, file: 3 };
    let mounted = taken_up(|_, now| now.destination.origin.storage = mounted);
    assert_eq!(mounted, (Some(Suspicion::Another(Side::Destination)), DISTRUSTED));
    // The source may have forgotten; the destination has not got what it never had.
    let device = Storage::Device { sequence: 4 };
    let (suspicion, states) = taken_up(|_, now| now.source.origin.storage = device);
    assert_eq!(suspicion, Some(Suspicion::Another(Side::Source)));
    assert_eq!(states, [Stored::Absent, Stored::Late, Stored::Suspect, Stored::Suspect]);
}

#[test]
fn what_a_kill_leaves_is_in_memory() {
    let (_directory, path) = directory();
    let mut map = adopted(&path, 40);
    let before = std::fs::read(&path).unwrap();
    map.set(3, Stored::Synced);
    map.set(20, Stored::Late);
    drop(map);
    // It is what it was a moment ago, as if its file system had stood still.
    drop(lock(File::open(&path).unwrap(), &path).unwrap()); // It is closed now.
    std::fs::write(&path, before).unwrap();
    let mut map = MapFile::open(&path, key(40)).unwrap();
    assert_eq!(map.believe(&present()).unwrap(), None);
    assert_eq!([map.get(3), map.get(20)], [Stored::Synced, Stored::Late]);
}

#[test]
fn a_file_without_its_memory_is_believed_of_nothing() {
    let forgotten = taken_up(|path, _| std::fs::remove_file(memory_of(path)).unwrap());
    assert_eq!(forgotten, (Some(Suspicion::Undated), DISTRUSTED));
    // So is one whose memory is another's, or not ours alone.
    let shared = taken_up(|path, _| {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(memory_of(path), all).unwrap();
    });
    assert_eq!(shared, (Some(Suspicion::Undated), DISTRUSTED));
    let another = taken_up(|path, _| {
        let (_directory, other) = directory();
        drop(MapFile::create(&other, MapKey { migration: 4, ..key(4) }, BOOT).unwrap());
        std::fs::copy(memory_of(&other), memory_of(path)).unwrap();
    });
    assert_eq!(another, (Some(Suspicion::Undated), DISTRUSTED));
}

#[test]
fn a_map_that_is_removed_leaves_nothing_in_memory() {
    let (_directory, path) = directory();
    drop(MapFile::create(&path, key(10), BOOT).unwrap());
    let first = memory_of(&path);
    drop(MapFile::create(&path, key(10), BOOT).unwrap());
    let second = memory_of(&path);
    assert!(!first.exists() && second.exists());
    MapFile::remove(&path).unwrap();
    assert!(!second.exists() && !path.exists());
}

#[test]
fn a_memory_that_fails_leaves_nothing_to_believe_and_is_made_anew() {
    let (_directory, path) = directory();
    let mut map = adopted(&path, 40);
    let memory = memory_of(&path);
    map.see_to(Err(io::ErrorKind::StorageFull.into()));
    assert!(!map.is_kept() && !memory.exists());
    map.set(3, Stored::Synced);
    map.keep_again();
    assert!(map.is_kept());
    drop(map);
    let map = MapFile::open(&path, key(40)).unwrap();
    assert_eq!([map.get(3), map.get(4)], [Stored::Synced, Stored::Absent]);
}

#[test]
fn a_map_of_the_version_before_is_read_and_not_believed() {
    let earlier = taken_up(|path, _| {
        std::fs::remove_file(memory_of(path)).unwrap();
        let mut page = std::fs::read(path).unwrap();
        for copy in [0, 2048] {
            let copy = &mut page[copy..copy + 2048];
            copy[8..12].copy_from_slice(&1u32.to_le_bytes());
            copy[72..].fill(0);
            let crc = crc32c::crc32c(&copy[..72]);
            copy[72..76].copy_from_slice(&crc.to_le_bytes());
        }
        std::fs::write(path, page).unwrap();
    });
    assert_eq!(earlier, (Some(Suspicion::Undated), DISTRUSTED));
}

#[test]
fn a_map_whose_last_write_is_not_known_is_not_believed() {
    for word in [header::WROTE_AT, header::COPIED_AT] {
        let damaged = taken_up(|path, _| {
            let file = OpenOptions::new().write(true).open(memory_of(path)).unwrap();
            file.write_all_at(&[7], word as u64).unwrap();
        });
        assert_eq!(damaged, (Some(Suspicion::Undated), DISTRUSTED));
    }
}

#[test]
fn a_guest_that_goes_on_writing_does_not_hide_a_write_to_the_copy() {
    let hidden = taken_up(|path, now| {
        let map = MapFile::open(path, key(4)).unwrap();
        now.now = WROTE.plus(Nanos::from_secs(9));
        now.destination.changed = Some(WROTE.plus(Nanos::from_secs(5)));
        map.note_write(now.now);
    });
    assert_eq!(hidden, (Some(Suspicion::Written(Side::Destination)), DISTRUSTED));
}

#[test]
fn a_map_that_is_made_anew_names_the_destination_that_was_noted_last() {
    let (_directory, path) = directory();
    let mut map = adopted(&path, 4);
    let reopened = Origin { size: 7, ..present().destination.origin };
    map.note_destination(reopened);
    map.see_to(Err(io::Error::other("the memory cannot be kept")));
    assert!(!map.is_kept());
    map.keep_again();
    assert!(map.is_kept());
    drop(map);
    let map = MapFile::open(&path, key(4)).unwrap();
    assert_eq!(map.destination(), reopened);
}
