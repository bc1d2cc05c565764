//! Where a guest writes one place after another, as a database's log does.
//!
//! A few streams are followed, by where each goes on. A write belongs to a stream if it
//! begins near that place: many requests are under way at once, and a log writes its
//! last page again. A write anywhere else begins a stream in the place of one that nothing
//! followed, or else of the one that was idle for longest. Random writes make streams, too;
//! those leave out more than they write, and do not count.

use crate::ByteRange;

/// Streams that are followed: a log, a file system's journal, and as many others as a
/// guest of usual size has at a time.
const STREAMS: usize = 8;

/// A write that begins so near to where a stream goes on belongs to it: what a queue of
/// 32 writes of 32 KiB covers.
const NEAR: u64 = 1 << 20;

/// A stream has gone so far before it is believed.
const SURE: u64 = 1 << 20;

/// How far streams go until what was before counts half.
const RECENT: u64 = 16 << 20;

/// Writes that follow one another.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Where it goes on.
    next: u64,
    /// Up to where it was said to have gone on.
    said: u64,
    /// Bytes that it has gone forward, of late.
    gone: u64,
    /// Bytes that were written for that.
    written: u64,
    /// The number of its last write.
    last: u64,
}

impl Stream {
    fn is_near(&self, offset: u64) -> bool {
        self.last > 0 && self.next.abs_diff(offset) <= NEAR
    }

    /// Whether it writes most of the places that it passes.
    fn counts(&self) -> bool {
        self.gone >= SURE && self.written >= self.gone / 2
    }
}

/// The streams of one disk.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: [Stream; STREAMS],
    /// Writes, all in all.
    writes: u64,
}

impl Streams {
    /// The guest writes there. Gives from where to where a stream has gone on, if that
    /// counts and was not said before.
    pub(super) fn wrote(&mut self, range: ByteRange) -> Option<(u64, u64)> {
        self.writes += 1;
        let near = self.streams.iter_mut().find(|it| it.is_near(range.offset));
        let Some(stream) = near else {
            let new = Stream {
                next: range.end(),
                said: range.offset,
                last: self.writes,
                ..Stream::default()
            };
            let followed = |it: &&mut Stream| (it.gone > 0, it.last);
            if let Some(idle) = self.streams.iter_mut().min_by_key(followed) {
                *idle = new;
            }
            return None;
        };
        stream.last = self.writes;
        stream.written = stream.written.saturating_add(range.len);
        stream.gone += range.end().saturating_sub(stream.next);
        stream.next = stream.next.max(range.end());
        let gone_on = stream.counts().then_some((stream.said, stream.next));
        if gone_on.is_some() {
            stream.said = stream.next;
        }
        if stream.gone >= RECENT {
            for stream in &mut self.streams {
                stream.gone /= 2;
                stream.written /= 2;
            }
        }
        gone_on
    }

    /// Where the stream goes on that has gone farthest of late.
    pub(super) fn head(&self) -> Option<u64> {
        let streams = self.streams.iter().filter(|it| it.counts());
        streams.max_by_key(|it| it.gone).map(|it| it.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn write(streams: &mut Streams, offset: u64, len: u64) {
        streams.wrote(ByteRange::new(offset, len));
    }

    /// Writes 8 KiB in one of so many places, as a multiplication scatters.
    fn scatter(streams: &mut Streams, at: &mut u64, places: u64) {
        *at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        write(streams, (*at >> 33) % places * 8192, 8192);
    }

    /// A log's writes of 8 KiB, from one place to another.
    fn log(streams: &mut Streams, from: u64, to: u64) {
        for at in (from..to).step_by(8192) {
            write(streams, at, 8192);
        }
    }

    #[test]
    fn a_log_is_known_after_a_mebibyte_and_followed() {
        let mut streams = Streams::default();
        log(&mut streams, 0, MIB);
        assert_eq!(streams.head(), None);
        log(&mut streams, MIB, 3 * MIB);
        assert_eq!(streams.head(), Some(3 * MIB));
    }

    #[test]
    fn a_log_that_writes_its_last_page_again_is_one() {
        let mut streams = Streams::default();
        for commit in 0..3000 {
            write(&mut streams, commit * 700 / 8192 * 8192, 8192);
        }
        assert_eq!(streams.head(), Some(2999 * 700 / 8192 * 8192 + 8192));
    }

    #[test]
    fn writes_out_of_order_are_one_stream() {
        let mut streams = Streams::default();
        for pair in 0..200 {
            write(&mut streams, (2 * pair + 1) * 16384, 16384);
            write(&mut streams, 2 * pair * 16384, 16384);
        }
        assert_eq!(streams.head(), Some(400 * 16384));
    }

    #[test]
    fn random_writes_are_none() {
        let mut streams = Streams::default();
        let mut at: u64 = 7;
        for _ in 0..10_000 {
            scatter(&mut streams, &mut at, 4096);
        }
        assert_eq!(streams.head(), None);
    }

    #[test]
    fn among_many_random_writes_a_log_is_found() {
        let mut streams = Streams::default();
        let mut at: u64 = 7;
        for commit in 0..1000 {
            write(&mut streams, (1 << 40) + commit * 8192, 8192);
            for _ in 0..6 {
                scatter(&mut streams, &mut at, 100_000_000);
            }
        }
        assert_eq!(streams.head(), Some((1 << 40) + 1000 * 8192));
    }

    #[test]
    fn a_log_that_begins_anew_elsewhere_is_followed_there() {
        let mut streams = Streams::default();
        log(&mut streams, 500 * MIB, 900 * MIB);
        log(&mut streams, 0, 20 * MIB);
        assert_eq!(streams.head(), Some(20 * MIB));
    }
}
