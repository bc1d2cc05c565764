use proptest::prelude::*;

use super::Beside;
use super::slots::{FILE_LEN, Origin, Record, SLOT_LEN, decode, encode};
use super::trailer::{self, TRAILER_LEN};
use super::*;

fn identity() -> impl Strategy<Value = Identity> {
    let role = prop_oneof![Just(Role::Active), Just(Role::Partial), Just(Role::Retired)];
    ("\\PC{1,57}", any::<u128>(), any::<u64>(), 0..=MAX_GENERATION, role).prop_map(
        |(name, id, size, generation, role)| Identity {
            id: DiskId(id),
            name,
            size,
            generation,
            role,
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    let origin =
        prop_oneof![Just(Origin::Unknown), Just(Origin::Made), Just(Origin::Found)];
    (identity(), any::<u64>(), any::<u64>(), origin).prop_map(
        |(identity, number, made, origin)| Record {
            identity,
            beside: Some(Beside { number, made }).filter(|_| number != 0),
            origin,
        },
    )
}

/// A sidecar's file of which the first slot, and the second, say this.
fn file_of(slots: [Option<(u64, u64)>; 2]) -> [u8; FILE_LEN] {
    let mut file = [0; FILE_LEN];
    for (slot, at) in slots.into_iter().zip([0, SLOT_LEN]) {
        if let Some((generation, sequence)) = slot {
            let slot = encode(&recorded(generation), sequence).unwrap();
            file[at..at + SLOT_LEN].copy_from_slice(&slot);
        }
    }
    file
}

fn recorded(generation: u64) -> Record {
    let beside = Some(Beside { number: 7, made: 8 });
    Record { identity: example(generation), beside, origin: Origin::Made }
}

fn example(generation: u64) -> Identity {
    Identity {
        id: DiskId(7),
        name: "db1".into(),
        size: 1 << 30,
        generation,
        role: Role::Active,
    }
}

#[test]
fn what_was_said_before_is_in_the_other_slot_and_in_no_older_one() {
    let before =
        |slots| slots::decode_before(&file_of(slots)).map(|it| it.identity.generation);
    assert_eq!(before([Some((7, 4)), Some((8, 5))]), Some(7));
    assert_eq!(before([Some((9, 6)), Some((8, 5))]), Some(8));
    assert_eq!(before([Some((9, 6)), Some((7, 4))]), None);
    assert_eq!(before([Some((1, 1)), None]), None);
    assert_eq!(slots::decode_before(&example(1).encode().unwrap()), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read(identity in identity()) {
        let record = identity.encode().unwrap();
        prop_assert_eq!(Identity::decode(&record).unwrap(), identity);
    }

    #[test]
    fn damage_never_goes_unseen(
        identity in identity(), at in 0..RECORD_LEN, flip in 1u8..,
    ) {
        let mut record = identity.encode().unwrap();
        record[at] ^= flip;
        prop_assert!(Identity::decode(&record).is_err());
    }

    #[test]
    fn what_is_written_to_a_slot_is_read(record in record(), sequence in 1u64..) {
        let mut file = [0; FILE_LEN];
        for at in [0, SLOT_LEN] {
            file[at..at + SLOT_LEN].copy_from_slice(&encode(&record, sequence).unwrap());
            let said = decode(&file).unwrap();
            prop_assert_eq!((said.record, said.sequence), (record.clone(), sequence));
        }
    }

    #[test]
    fn any_file_is_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..RECORD_LEN + 8), second in any::<bool>(),
        good in any::<bool>(),
    ) {
        let mut file = file_of([Some((1, 1)), None]);
        let at = if second { SLOT_LEN } else { 0 };
        file[at..at + bytes.len()].copy_from_slice(&bytes);
        if good {
            file[at..at + 8].copy_from_slice(MAGIC);
            file[at + 8..at + 12].copy_from_slice(&slots::VERSION.to_le_bytes());
            let crc = crc32c::crc32c(&file[at..at + CRC_AT]);
            file[at + CRC_AT..at + RECORD_LEN].copy_from_slice(&crc.to_le_bytes());
        }
        let _ = decode(&file);
        let _ = decode(&bytes);
    }

    /// The write of a slot is torn, again and again: parts of it are on the disk, others
    /// are not. The file always says what was last written or what was being written.
    #[test]
    fn a_torn_slot_says_the_old_or_the_new(
        crashes in prop::collection::vec((any::<u8>(), any::<bool>()), 1..12),
    ) {
        let mut disk = file_of([Some((1, 1)), None]);
        let mut truth = 1;
        for (sectors, garbage) in crashes {
            let (at, sequence) = decode(&disk).unwrap().next();
            let slot = encode(&recorded(truth + 1), sequence).unwrap();
            let slot_at = at as usize;
            for sector in (0..8).filter(|sector| sectors & 1 << sector != 0) {
                let part = sector * 512..(sector + 1) * 512;
                disk[slot_at..][part.clone()].copy_from_slice(&slot[part.clone()]);
                if garbage {
                    disk[slot_at + part.start + 100] ^= 0x5a;
                }
            }
            let said = decode(&disk).unwrap().record.identity.generation;
            prop_assert!(said == truth || said == truth + 1, "{said} after {truth}");
            truth = said;
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..RECORD_LEN + 8), good in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if good && bytes.len() >= RECORD_LEN {
            // Past the checksum, where the fields are looked at.
            bytes[..8].copy_from_slice(MAGIC);
            bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
            let crc = crc32c::crc32c(&bytes[..CRC_AT]);
            bytes[CRC_AT..RECORD_LEN].copy_from_slice(&crc.to_le_bytes());
        }
        let _ = Identity::decode(&bytes);
    }

    /// Power fails in the middle of a trailer's write, again and again: some
    /// sectors of the step are on the disk, the others are not, and the sector
    /// that was being written may hold garbage. The trailer always says what was
    /// last written or what was being written, and having said the new it never
    /// goes back to the old.
    #[test]
    fn a_torn_trailer_says_the_old_or_the_new(
        crashes in prop::collection::vec((0usize..4, any::<u8>(), any::<u8>()), 1..12),
    ) {
        let mut disk = [0u8; TRAILER_LEN];
        for step in trailer::steps(&disk, &example(1).encode().unwrap()) {
            disk = step;
        }
        let mut truth = 1;
        for (crash_at, sectors, garbage) in crashes {
            let new = example(truth + 1);
            for (number, step) in
                trailer::steps(&disk, &new.encode().unwrap()).into_iter().enumerate()
            {
                if number < crash_at {
                    disk = step;
                    continue;
                }
                for sector in 0..8 {
                    let range = sector * 512..(sector + 1) * 512;
                    if step[range.clone()] == disk[range.clone()] {
                        continue;
                    }
                    if sectors & 1 << sector != 0 {
                        disk[range].copy_from_slice(&step[sector * 512..][..512]);
                    } else if garbage & 1 << sector != 0 {
                        disk[sector * 512 + 100] ^= 0x5a;
                    }
                }
                break;
            }
            let said = trailer::read(&disk).unwrap().generation;
            prop_assert!(said == truth || said == truth + 1, "{said} after {truth}");
            truth = said;
        }
    }
}

#[test]
fn names_that_do_not_fit_are_refused() {
    for name in [String::new(), "x".repeat(MAX_NAME + 1)] {
        let identity = Identity { name, ..example(1) };
        assert!(matches!(identity.encode(), Err(SidecarError::Name(_))));
    }
}

#[test]
fn a_version_from_the_future_is_told_from_damage() {
    let mut record = example(1).encode().unwrap();
    record[8] = 9;
    let crc = crc32c::crc32c(&record[..CRC_AT]);
    record[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    assert!(matches!(Identity::decode(&record), Err(SidecarError::Version(9))));
}

#[test]
fn a_generation_that_nobody_can_have_reached_is_damage() {
    let mut record = example(MAX_GENERATION).encode().unwrap();
    assert_eq!(Identity::decode(&record).unwrap().generation, MAX_GENERATION);
    for generation in [MAX_GENERATION + 1, u64::MAX] {
        let refused = example(generation).encode();
        assert!(matches!(refused, Err(SidecarError::Generation(_))));
        record[40..48].copy_from_slice(&generation.to_le_bytes());
        let crc = crc32c::crc32c(&record[..CRC_AT]);
        record[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(Identity::decode(&record), Err(SidecarError::Damaged(_))));
    }
}

#[test]
fn a_file_is_replaced_whole_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db1.raw.sterna");
    assert!(matches!(file::read(&path), Err(SidecarError::Missing)));
    for generation in 1..4 {
        file::write(&path, &example(generation)).unwrap();
        assert_eq!(file::read(&path).unwrap(), example(generation));
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), FILE_LEN as u64);
    std::fs::write(&path, b"short").unwrap();
    assert!(matches!(file::read(&path), Err(SidecarError::Damaged(_))));
    std::fs::write(&path, [0; RECORD_LEN]).unwrap();
    assert!(matches!(file::read(&path), Err(SidecarError::Damaged(_))));
    file::remove(&path).unwrap();
    file::remove(&path).unwrap();
    assert!(matches!(file::read(&path), Err(SidecarError::Missing)));
}

#[test]
fn the_newest_whole_slot_counts() {
    let says =
        |slots| decode(&file_of(slots)).map(|said| said.record.identity.generation);
    assert_eq!(says([Some((5, 8)), Some((6, 9))]).unwrap(), 6);
    assert_eq!(says([Some((7, 10)), Some((6, 9))]).unwrap(), 7);
    assert_eq!(says([None, Some((6, 9))]).unwrap(), 6);
    assert!(matches!(says([None, None]), Err(SidecarError::Damaged(_))));
    let mut file = file_of([Some((5, 8)), Some((6, 9))]);
    file[SLOT_LEN + 40] ^= 1;
    assert_eq!(decode(&file).unwrap().record.identity.generation, 5);
    // What a newer Sterna has written is not passed over for what it has left.
    file[SLOT_LEN + 8] = 9;
    let crc = crc32c::crc32c(&file[SLOT_LEN..SLOT_LEN + CRC_AT]);
    file[SLOT_LEN + CRC_AT..SLOT_LEN + RECORD_LEN].copy_from_slice(&crc.to_le_bytes());
    assert!(matches!(decode(&file), Err(SidecarError::Version(9))));
}

#[test]
fn a_file_of_an_older_sterna_is_read_and_gets_slots_with_the_next_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db1.raw.sterna");
    std::fs::write(&path, example(4).encode().unwrap()).unwrap();
    let said = file::read_all(&path).unwrap();
    assert!(said.is_old());
    assert_eq!((said.record.identity, said.record.beside), (example(4), None));
    file::write(&path, &example(5)).unwrap();
    let said = file::read_all(&path).unwrap();
    assert!(!said.is_old());
    assert_eq!(said.record.identity, example(5));
}

#[test]
fn what_is_known_of_the_file_stays_when_something_else_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db1.raw.sterna");
    file::write_all(&path, &recorded(4)).unwrap();
    for generation in 5..9 {
        file::write(&path, &example(generation)).unwrap();
        assert_eq!(file::read_all(&path).unwrap().record, recorded(generation));
    }
    let other = Beside { number: 9, made: 9 };
    file::write_beside(&path, other).unwrap();
    let said = file::read_all(&path).unwrap().record;
    assert_eq!(said, Record { beside: Some(other), ..recorded(8) });
}

#[test]
fn a_sidecar_that_is_a_link_is_not_written_through() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    file::write_all(&at("victim"), &recorded(4)).unwrap();
    let victim = std::fs::read(at("victim")).unwrap();
    std::os::unix::fs::symlink(at("victim"), at("link.sterna")).unwrap();
    std::fs::hard_link(at("victim"), at("second.sterna")).unwrap();
    assert!(matches!(file::read(&at("link.sterna")), Err(SidecarError::Io { .. })));
    for name in ["link.sterna", "second.sterna"] {
        file::write(&at(name), &example(5)).unwrap();
        assert_eq!(file::read(&at(name)).unwrap(), example(5));
        assert_eq!(std::fs::read(at("victim")).unwrap(), victim);
    }
}

#[test]
fn the_trailer_takes_the_last_whole_block_that_the_disk_leaves_free() {
    let mib = 1 << 20;
    assert_eq!(trailer::offset(mib, mib), None);
    assert_eq!(trailer::offset(mib, mib - 4095), None);
    assert_eq!(trailer::offset(mib, mib - 4096), Some(mib - 4096));
    assert_eq!(trailer::offset(mib + 511, 5), Some(mib - 4096));
    assert_eq!(trailer::offset(512, 0), None);
}

#[test]
fn a_trailer_of_somebody_else_is_no_sidecar() {
    assert!(matches!(trailer::read(&[0; TRAILER_LEN]), Err(SidecarError::Missing)));
    assert!(matches!(trailer::read(&[7; TRAILER_LEN]), Err(SidecarError::Missing)));
}
