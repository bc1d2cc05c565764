//! Any bytes where a directory's mark should be: they are its number, or they are refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_engine::datastore::Mark;

fuzz_target!(|input: &[u8]| {
    let Some((control, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if control & 1 != 0 && bytes.len() == Mark::LEN {
        let crc = crc32c::crc32c(&bytes[..Mark::LEN - 4]);
        bytes[Mark::LEN - 4..].copy_from_slice(&crc.to_le_bytes());
    }
    let Ok(mark) = Mark::decode(&bytes) else { return };
    assert_eq!(Mark::decode(&mark.encode()).expect("what was written is read"), mark);
    assert_eq!(mark.to_string().parse(), Ok(mark));
    bytes[usize::from(control >> 1) % Mark::LEN] ^= 0x10;
    assert!(Mark::decode(&bytes).is_err(), "damage is seen");
});
