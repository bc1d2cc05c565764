//! Any bytes where a sidecar should be: they say what somebody wrote there, or they are
//! refused. The first byte says what becomes of the others: whether their checksums are
//! made right, so that the fields behind them are looked at, and which byte is damaged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_engine::sidecar::{Identity, MAX_GENERATION, RECORD_LEN, slots, trailer};

/// Where a record can be in a sidecar's file, or in a trailer.
const PLACES: [usize; 3] = [0, trailer::TRAILER_LEN / 2, slots::SLOT_LEN];
const CRC_AT: usize = RECORD_LEN - 4;

fuzz_target!(|input: &[u8]| {
    let Some((control, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if control & 1 != 0 {
        seal(&mut bytes);
    }
    record(&bytes, usize::from(control >> 1));
    file(&bytes, usize::from(control >> 1));
    if let Some(bytes) = bytes.first_chunk() {
        block(bytes, usize::from(control >> 1));
    }
});

fn seal(bytes: &mut [u8]) {
    for at in PLACES {
        let Some(record) = bytes.get_mut(at..at + RECORD_LEN) else { return };
        let crc = crc32c::crc32c(&record[..CRC_AT]);
        record[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }
}

fn check(identity: &Identity) {
    assert!(identity.generation <= MAX_GENERATION && !identity.name.is_empty());
    let again =
        Identity::decode(&identity.encode().expect("what was read can be written"));
    assert_eq!(again.expect("what was written can be read"), *identity);
}

fn record(bytes: &[u8], at: usize) {
    let Ok(identity) = Identity::decode(bytes) else { return };
    check(&identity);
    let mut damaged = bytes.to_vec();
    // Every byte of a record is below its checksum.
    damaged[at * 4 % RECORD_LEN] ^= 0x10;
    assert!(Identity::decode(&damaged).is_err(), "damage is seen");
}

fn file(bytes: &[u8], at: usize) {
    let Ok(said) = slots::decode(bytes) else { return };
    check(&said.record.identity);
    if said.is_old() {
        return;
    }
    let slot = slots::encode(&said.record, said.sequence).expect("it can be written");
    let mut again = [0; slots::FILE_LEN];
    again[..slots::SLOT_LEN].copy_from_slice(&slot);
    assert_eq!(slots::decode(&again).expect("it can be read").record, said.record);
    // With one slot damaged, the other one speaks, or none.
    for slot in [0, slots::SLOT_LEN] {
        let mut damaged = bytes.to_vec();
        damaged[slot + at * 4 % RECORD_LEN] ^= 0x10;
        let mut other = bytes.to_vec();
        other[slot..slot + slots::SLOT_LEN].fill(0);
        if let Ok(left) = slots::decode(&damaged) {
            assert_eq!(
                left.record,
                slots::decode(&other).expect("the other slot").record
            );
        }
    }
}

fn block(bytes: &trailer::Trailer, at: usize) {
    let Ok(identity) = trailer::read(bytes) else { return };
    check(&identity);
    let mut damaged = *bytes;
    damaged[PLACES[at % 2] + at * 4 % RECORD_LEN] ^= 0x10;
    let copies = [0, PLACES[1]].map(|at| Identity::decode(&bytes[at..at + RECORD_LEN]));
    if let Ok(left) = trailer::read(&damaged) {
        assert!(copies.iter().flatten().any(|copy| *copy == left), "one of the copies");
    }
    // On the way to the next record there is always one that is whole.
    let next = Identity { generation: identity.generation / 2, ..identity.clone() };
    let record = next.encode().expect("it can be written");
    for step in trailer::steps(bytes, &record) {
        let said = trailer::read(&step).expect("a step says something");
        assert!(said == identity || said == next);
    }
}
