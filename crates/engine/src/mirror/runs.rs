//! Which parts of a chunk are zeroes, and which parts of two chunks differ.

use std::ops::Range;

/// Zeroes are looked for in blocks of this size: the smallest piece that a file
/// system leaves out.
const BLOCK: usize = 4096;

/// A run of zeroes shorter than this is written with its neighbours: one larger
/// write costs less than two small ones, and no file system saves much by it.
const ZEROES_MIN: usize = 64 << 10;

/// A part of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Bytes of the chunk, from its start.
    pub(super) bytes: Range<usize>,
    /// All of them are zero.
    pub(super) zero: bool,
}

/// Cuts `chunk` into runs of data and of zeroes.
pub(super) fn runs(chunk: &[u8]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut start = 0;
    for block in chunk.chunks(BLOCK) {
        let bytes = start..start + block.len();
        start = bytes.end;
        push(&mut runs, Run { zero: is_zero(block), bytes });
    }
    let short = |run: &Run| run.zero && run.bytes.len() < ZEROES_MIN.min(chunk.len());
    let mut merged = Vec::with_capacity(runs.len());
    for mut run in runs {
        run.zero &= !short(&run);
        push(&mut merged, run);
    }
    merged
}

/// Adds a run, joined to the last one if they are of one kind.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.zero == run.zero => last.bytes.end = run.bytes.end,
        _ => runs.push(run),
    }
}

fn is_zero(block: &[u8]) -> bool {
    // Data shows itself in the first bytes nearly always; the rest is compared
    // eight bytes at a time by the compiler's vectors.
    block.iter().take(16).all(|byte| *byte == 0)
        && block.chunks(64).all(|part| part.iter().fold(0, |all, byte| all | byte) == 0)
}

/// The parts of `unit` bytes in which two chunks of equal length differ.
pub(super) fn differing(one: &[u8], other: &[u8], unit: usize) -> Vec<Range<usize>> {
    let pairs = one.chunks(unit).zip(other.chunks(unit)).enumerate();
    pairs
        .filter(|(_, (one, other))| one != other)
        .map(|(at, (one, _))| at * unit..at * unit + one.len())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(parts: &[(u8, usize)]) -> Vec<u8> {
        parts.iter().flat_map(|(byte, len)| vec![*byte; *len]).collect()
    }

    #[test]
    fn data_and_long_zeroes_are_told_apart() {
        let chunk = chunk(&[(1, 4096), (0, 128 << 10), (2, 8192)]);
        let kinds: Vec<_> = runs(&chunk).into_iter().map(|r| (r.zero, r.bytes)).collect();
        let end = 4096 + (128 << 10);
        assert_eq!(
            kinds,
            [(false, 0..4096), (true, 4096..end), (false, end..end + 8192)]
        );
    }

    #[test]
    fn short_zeroes_between_data_are_written_along() {
        let chunk = chunk(&[(1, 4096), (0, 8192), (2, 4096)]);
        assert_eq!(runs(&chunk), [Run { bytes: 0..16384, zero: false }]);
    }

    #[test]
    fn a_short_chunk_of_zeroes_is_zero() {
        assert_eq!(runs(&[0; 512]), [Run { bytes: 0..512, zero: true }]);
    }

    #[test]
    fn one_byte_anywhere_makes_a_block_data() {
        for at in [0, 17, 63, 64, 4095] {
            let mut block = vec![0; 4096];
            block[at] = 1;
            assert!(!runs(&block)[0].zero, "byte {at}");
        }
    }

    #[test]
    fn differing_units_are_named() {
        let one = vec![0u8; 1000];
        let mut other = one.clone();
        other[999] = 1;
        assert!(differing(&one, &one, 300).is_empty());
        assert_eq!(differing(&one, &other, 300).first(), Some(&(900..1000)));
    }
}
