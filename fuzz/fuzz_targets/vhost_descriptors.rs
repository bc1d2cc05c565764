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
    let Some(found) = guest.request(table.into(), size, first, DISK) else { return };
    let mut memory = Memory::of(&parts);
    match &found.asked {
        Asked::Read(pieces) => {
            check(&guest, pieces);
            read(&guest, &mut memory, &found.data, pieces);
        }
        Asked::Write(pieces) => {
            check(&guest, pieces);
            written(&memory, &found.data, pieces);
        }
        Asked::Zero(ranges) => {
            assert!(ranges.len() <= 16);
            assert!(ranges.iter().all(|it| it.start < it.end && it.end <= DISK));
        }
        Asked::Else => {}
    }
    let there = memory.byte(found.status).map(|byte| *byte = STATUS).is_some();
    assert_eq!(guest.says(found.status, STATUS), there);
    memory.is_like(&guest);
});

/// A status that no memory of the corpus has by chance everywhere.
const STATUS: u8 = 0xa7;

/// What is compared byte by byte is no longer than this.
const COMPARED_MAX: usize = 256 << 10;

/// The guest's memory as it should be, in the simplest form.
struct Memory(Vec<(u64, Vec<u8>)>);

impl Memory {
    fn of(parts: &[(u64, &[u8])]) -> Memory {
        Memory(parts.iter().map(|(at, bytes)| (*at, bytes.to_vec())).collect())
    }

    fn byte(&mut self, at: u64) -> Option<&mut u8> {
        self.0.iter_mut().find_map(|(start, bytes)| {
            let place = usize::try_from(at.checked_sub(*start)?).ok()?;
            bytes.get_mut(place)
        })
    }

    fn is_like(&self, guest: &Guest) {
        for (at, bytes) in &self.0 {
            assert!(guest.part(*at, bytes.len()) == *bytes, "the memory from {at:#x} on");
        }
    }
}

/// The addresses of a request's data, byte by byte.
fn addresses(data: &[(u64, u32)]) -> impl Iterator<Item = u64> {
    data.iter()
        .flat_map(|(at, len)| (0..u64::from(*len)).map(move |it| at.wrapping_add(it)))
}

/// What was read by way of a copy is where it belongs, and nowhere else.
fn read(guest: &Guest, memory: &mut Memory, data: &[(u64, u32)], pieces: &[Piece]) {
    let len = pieces.iter().map(|piece| piece.len).sum::<usize>();
    if len > COMPARED_MAX || pieces.iter().any(|piece| piece.host.is_some()) {
        return;
    }
    let bytes: Vec<u8> = (0..len).map(|at| (at * 31 + at / 256 + 7) as u8).collect();
    let mut all = true;
    let mut skip = 0;
    for piece in pieces {
        all &= guest.arrives(data, skip, &bytes[skip..skip + piece.len]);
        skip += piece.len;
    }
    let mut missing = false;
    for (at, byte) in addresses(data).zip(&bytes) {
        match memory.byte(at) {
            // Where a part is missing, what is before it may be there.
            Some(place) if !all => *place = guest.part(at, 1)[0],
            Some(place) => *place = *byte,
            None => missing = true,
        }
    }
    assert_eq!(all, !missing, "bytes that are not the guest's");
}

/// What goes by way of a copy is what the guest has.
fn written(memory: &Memory, data: &[(u64, u32)], pieces: &[Piece]) {
    let len = pieces.iter().map(|piece| piece.len).sum::<usize>();
    if len > COMPARED_MAX {
        return;
    }
    let mut memory = Memory(memory.0.clone());
    let copies = pieces.iter().filter_map(|piece| piece.copy.as_ref());
    let copied: Vec<u8> = copies.flatten().copied().collect();
    if copied.is_empty() {
        return;
    }
    let given: Option<Vec<u8>> =
        addresses(data).take(len).map(|at| memory.byte(at).map(|it| *it)).collect();
    assert!(given.as_deref() == Some(&copied[..]), "other bytes than the guest's");
}

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
