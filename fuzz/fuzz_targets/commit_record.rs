//! Any bytes where the record of a commit should be, and any order of what happens to it.
//! The destination becomes the truth by nothing but the very record of this switch-over,
//! and nobody is told both.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_core::commit::record::{Key, LEN, Says};
use sterna_core::commit::{Commitment, Do, Found, Stated, Written};
use sterna_core::mirror::Commit;

fuzz_target!(|input: &[u8]| {
    let Some((control, rest)) = input.split_first() else { return };
    let (record, events) = rest.split_at(rest.len().min(LEN));
    let mut record = record.to_vec();
    if control & 1 != 0 && record.len() == LEN {
        let crc = crc32c::crc32c(&record[..LEN - 4]);
        record[LEN - 4..].copy_from_slice(&crc.to_le_bytes());
    }
    let key = key(&record);
    let found = key.find(&record);
    let says = [(Says::Prepared, Found::Prepared), (Says::Committed, Found::Committed)];
    for (says, means) in says {
        assert_eq!(found == means, record == key.record(says));
    }
    if found != Found::Nothing {
        record[usize::from(control >> 1) % LEN] ^= 0x10;
        assert_eq!(key.find(&record), Found::Nothing, "damage is seen");
    }
    let other = Key { attempt: key.attempt ^ 1, ..key };
    assert_eq!(other.find(&record), Found::Nothing);
    run(Commitment::asked(), events);
    let stated = if control & 2 != 0 { Stated::Committed } else { Stated::Switching };
    match Commitment::found(found, stated) {
        Some(commitment) => run(commitment, events),
        None => assert!(stated == Stated::Switching && found != Found::Committed),
    }
});

/// The switch-over that a record names.
fn key(record: &[u8]) -> Key {
    let word = |at: usize| {
        let bytes = record.get(at..at + 8).and_then(|it| it.first_chunk());
        u64::from_le_bytes(bytes.copied().unwrap_or_default())
    };
    Key {
        migration: word(16),
        disk: u128::from(word(24)) | u128::from(word(32)) << 64,
        started: word(40),
        source_generation: word(48),
        destination_generation: word(56),
        attempt: word(64),
    }
}

/// Whatever happens, and in whichever order: it is certain for ever once it is certain, and
/// the source is freed only then.
fn run(mut commitment: Commitment, events: &[u8]) {
    let mut certain = commitment.is_certain();
    let mut answers = Vec::new();
    for event in events {
        let asked = commitment.next();
        match event % 9 {
            0 => commitment.written(Written::Durable),
            1 => commitment.written(Written::Absent),
            2 => commitment.written(Written::Unclear),
            3 => commitment.erased(),
            4 => {
                if let Do::Answer(answer) = asked {
                    answers.push(answer);
                }
                commitment.answered();
            }
            5 => commitment.told(),
            6 => commitment.freed(),
            7 => commitment.dropped(),
            _ => {}
        }
        if commitment.next() == Do::End {
            break;
        }
        assert!(!certain || commitment.is_certain(), "it is not taken back");
        certain = commitment.is_certain();
        let after = matches!(commitment.next(), Do::Tell | Do::Free | Do::Drop);
        let durable = commitment.next() == Do::Answer(Commit::Durable);
        assert_eq!(certain, after || durable);
    }
    assert!(answers.len() <= 1, "nobody is answered twice: {answers:?}");
}
