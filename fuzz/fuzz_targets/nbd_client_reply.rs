//! Any stream of replies against our client: every head is found or refused, payload
//! lengths stay within the limits, and a read counts as whole only when it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_nbd::ReplyHead;
use sterna_nbd::client::{Parsed, ReadPieces, ReplyLimits};
use sterna_nbd::status::parse_extents;

const LIMITS: ReplyLimits =
    ReplyLimits { structured: true, data_max: 4096, extents_max: 64 };
const LEN: u32 = 512;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let mut pieces = ReadPieces::new(0, LEN);
    let mut seen = [0u8; LEN as usize];
    while let Ok(Parsed::Head(head, taken)) = ReplyHead::parse(rest, &LIMITS) {
        rest = &rest[taken..];
        let payload = match head {
            ReplyHead::Data { offset, len, .. } => {
                assert!(len > 0 && len <= LIMITS.data_max);
                note(&mut pieces, &mut seen, offset, len);
                len
            }
            ReplyHead::Hole { offset, len, .. } => {
                note(&mut pieces, &mut seen, offset, len);
                0
            }
            ReplyHead::Status { payload, .. } => {
                assert!(payload > 0 && payload <= 8 * LIMITS.extents_max);
                payload
            }
            _ => 0,
        };
        let Some((payload, next)) = rest.split_at_checked(payload as usize) else {
            break;
        };
        if let Ok(extents) = parse_extents(payload, LEN) {
            let sum: u64 = extents.iter().map(|extent| extent.len).sum();
            assert!(sum > 0 && sum <= u64::from(LEN));
        }
        rest = next;
    }
    assert_eq!(pieces.is_complete(), seen.iter().all(|&count| count == 1));
});

fn note(pieces: &mut ReadPieces, seen: &mut [u8], offset: u64, len: u32) {
    if let Ok(at) = pieces.add(offset, len) {
        for count in &mut seen[at..at + len as usize] {
            *count += 1;
            assert_eq!(*count, 1, "no byte is taken twice");
        }
    }
}
