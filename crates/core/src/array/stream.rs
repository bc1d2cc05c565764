//! Streams: reads that follow one another, and how far ahead of them to fetch.
//!
//! A read that begins where an earlier one ended continues it; the third in a row
//! makes a stream. From then on the next elements of 64 KiB are fetched before they
//! are asked for. Requests of a stream may come a little out of order, as a client
//! with several in flight sends them. The table is small and the one unused for the
//! longest goes: a random read is a beginning that nothing follows.

use std::ops::Range;

use super::raid::ELEMENT;

/// Beginnings and streams that are remembered at once.
const STREAMS_MAX: usize = 64;

/// Reads in a row that make a stream.
const DETECT: u32 = 3;

/// How far from its end a read of a stream may be: so many elements either way.
const DISORDER: u64 = 8;

#[derive(Clone, Debug)]
struct Stream {
    lun: u32,
    /// Behind the furthest read.
    end: u64,
    /// Reads in a row.
    run: u32,
    /// Behind the last element that was fetched for it.
    ahead: u64,
    /// When it was last used.
    used: u64,
}

/// The streams of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    table: Vec<Stream>,
    /// Counts the reads.
    turn: u64,
}

impl Streams {
    /// Takes a read in. If it is of a stream, gives the elements to fetch for it,
    /// `window` ahead at most.
    pub(super) fn read(
        &mut self,
        lun: u32,
        offset: u64,
        bytes: u64,
        window: u64,
    ) -> Option<Range<u64>> {
        self.turn += 1;
        let end = offset.saturating_add(bytes);
        let at = self.table.iter().position(|stream| stream.takes(lun, offset));
        let Some(at) = at else {
            self.begin(lun, end);
            return None;
        };
        let stream = &mut self.table[at];
        stream.used = self.turn;
        stream.run = stream.run.saturating_add(1);
        stream.end = stream.end.max(end);
        if stream.run < DETECT {
            return None;
        }
        let next = stream.end.div_ceil(ELEMENT);
        let from = stream.ahead.max(next);
        stream.ahead = from.max(next.saturating_add(window));
        Some(from..stream.ahead)
    }

    fn begin(&mut self, lun: u32, end: u64) {
        if self.table.len() == STREAMS_MAX {
            let oldest = (0..STREAMS_MAX).min_by_key(|&at| self.table[at].used);
            self.table.swap_remove(oldest.unwrap_or(0));
        }
        self.table.push(Stream { lun, end, run: 1, ahead: 0, used: self.turn });
    }
}

impl Stream {
    /// Whether a read from `offset` on continues it.
    fn takes(&self, lun: u32, offset: u64) -> bool {
        let slack = if self.run < DETECT { 0 } else { DISORDER * ELEMENT };
        lun == self.lun && offset.abs_diff(self.end) <= slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1024;

    #[test]
    fn the_third_read_in_a_row_makes_a_stream_that_is_fetched_ahead_of() {
        let mut streams = Streams::default();
        assert_eq!(streams.read(0, 0, 64 * K, 4), None);
        assert_eq!(streams.read(0, 64 * K, 64 * K, 4), None);
        assert_eq!(streams.read(0, 128 * K, 64 * K, 4), Some(3..7));
        assert_eq!(streams.read(0, 192 * K, 64 * K, 4), Some(7..8));
        // Out of order, and again in order.
        assert_eq!(streams.read(0, 320 * K, 64 * K, 4), Some(8..10));
        assert_eq!(streams.read(0, 256 * K, 64 * K, 4), Some(10..10));
    }

    #[test]
    fn a_stream_is_of_one_lun_and_survives_few_others() {
        let mut streams = Streams::default();
        for at in 0..3 {
            streams.read(1, at * 64 * K, 64 * K, 4);
        }
        assert_eq!(streams.read(2, 192 * K, 64 * K, 4), None);
        for other in 0..40 {
            assert_eq!(streams.read(1, (1 << 40) + other * 999 * K, K, 4), None);
        }
        assert!(streams.read(1, 192 * K, 64 * K, 4).is_some());
        for other in 0..70 {
            assert_eq!(streams.read(1, (1 << 41) + other * 999 * K, K, 4), None);
        }
        assert!(streams.read(1, 256 * K, 64 * K, 4).is_none());
    }
}
