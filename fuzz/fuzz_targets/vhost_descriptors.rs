//! Any memory of a guest, and any request in it: no byte is read or written but those of
//! the guest's memory, and of the disk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_engine::fuzzing::{Asked, Guest, Piece};

/// Sectors of the disk.
const SECTORS: u64 = 4096;
const DISK: u64 = SECTORS * 512;
/// Where the second part of the memory is, if there is one: behind a gap.
const SECOND: u64 = 0x8000;

fuzz_target!(|input: &[u8]| {
    let Some((head, memory)) = input.split_first_chunk::<8>() else { return };
    let number = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let (table, first, size) = (number(0), number(2), number(4) % 1025);
    let memory = &memory[..memory.len().min(2 * SECOND as usize)];
    let cut = memory.len().min(64 * usize::from(number(6)).clamp(1, 512));
    let (low, high) = memory.split_at(cut);
    let parts = [(0, low), (SECOND, high)];
    let parts: Vec<(u64, &[u8])> =
        parts.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let Some(guest) = Guest::new(&parts) else { return };
    match guest.request(table.into(), size, first, DISK).map(|found| found.asked) {
        Some(Asked::Read(pieces) | Asked::Write(pieces)) => check(&guest, &pieces),
        Some(Asked::Zero(ranges)) => {
            assert!(ranges.len() <= 16);
            assert!(ranges.iter().all(|it| it.start < it.end && it.end <= DISK));
        }
        Some(Asked::Else) | None => {}
    }
});

fn check(guest: &Guest, pieces: &[Piece]) {
    let mut at = pieces.first().expect("a request has bytes").offset;
    for piece in pieces {
        assert!(piece.offset == at && piece.len > 0 && piece.len <= 1 << 20);
        at += piece.len as u64;
        let Some(host) = &piece.host else { continue };
        assert!(
            host.iter().all(|range| guest.holds(range)),
            "bytes of the guest's alone"
        );
        assert_eq!(host.iter().map(|range| range.len()).sum::<usize>(), piece.len);
    }
    assert!(at <= DISK && at.is_multiple_of(512));
}
