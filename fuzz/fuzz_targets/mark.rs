//! Any bytes where a directory's mark should be: they are its number, or they are refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_engine::datastore::mark::{RECORD_LEN, decode, encode};

fuzz_target!(|input: &[u8]| {
    let Some((control, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if control & 1 != 0 && bytes.len() == RECORD_LEN {
        let crc = crc32c::crc32c(&bytes[..RECORD_LEN - 4]);
        bytes[RECORD_LEN - 4..].copy_from_slice(&crc.to_le_bytes());
    }
    let Ok(mark) = decode(&bytes) else { return };
    assert_eq!(decode(&encode(mark)).expect("what was written is read"), mark);
    assert_eq!(mark.to_string().parse(), Ok(mark));
    bytes[usize::from(control >> 1) % RECORD_LEN] ^= 0x10;
    assert!(decode(&bytes).is_err(), "damage is seen");
});
