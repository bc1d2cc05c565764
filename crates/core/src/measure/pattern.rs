//! What requests of one kind look like: how long, how far apart, how many at once.
//!
//! Reads and writes have a pattern each, as vscsiStats has them: the seek distance of
//! a read is that from the read before it, so that a log that is written in order
//! shows as such whatever is read meanwhile. The distance to the nearest of the last
//! [`TRAIL`] requests tells several streams in order from requests without one.

use super::{Buckets, Scale};
use crate::Nanos;

/// So many streams that take turns are still seen as such; vscsiStats' number.
const TRAIL: usize = 16;

/// What offsets are counted in.
const SECTOR: u64 = 512;

/// A request that begins so many sectors behind an end goes on there: an array reads
/// ahead by elements of 64 KiB.
const GOES_ON: i64 = 128;

/// The pattern of a disk's reads, or of its writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Bytes.
    pub length: Buckets,
    /// Sectors from the end of the request before.
    pub distance: Buckets,
    /// Sectors from the nearest end of the last 16 requests.
    pub nearest: Buckets,
    /// The disk's requests under way when one came, with itself.
    pub outstanding: Buckets,
    /// Nanoseconds since the request before came.
    pub interval: Buckets,
    /// Nanoseconds from a request's coming to its answer.
    pub response: Buckets,
    /// When the last one came.
    last: Option<Nanos>,
    /// Where the last ones ended, in sectors; `newest` is the last of them.
    trail: [i64; TRAIL],
    newest: usize,
}

impl Default for Pattern {
    fn default() -> Self {
        Pattern {
            length: Buckets::new(&Scale::LENGTH),
            distance: Buckets::new(&Scale::DISTANCE),
            nearest: Buckets::new(&Scale::DISTANCE),
            outstanding: Buckets::new(&Scale::OUTSTANDING),
            interval: Buckets::new(&Scale::TIME),
            response: Buckets::new(&Scale::TIME),
            last: None,
            trail: [0; TRAIL],
            newest: 0,
        }
    }
}

impl Pattern {
    /// A request has come: for `length` bytes from `offset` on, with so many of the
    /// disk's requests under way, itself included.
    pub fn arrived(&mut self, now: Nanos, offset: u64, length: u64, outstanding: usize) {
        let (start, end) = (sectors(offset), sectors(offset.saturating_add(length)));
        self.length.record(signed(length));
        self.outstanding.record(signed(outstanding as u64));
        // Who waited to be read came before one that did not.
        let newest = self.last.map_or(now, |last| last.max(now));
        if let Some(last) = self.last.replace(newest) {
            self.interval.record(signed(now.since(last).0));
            self.distance.record(start - self.trail[self.newest]);
            self.nearest.record(self.nearest_to(start));
            self.newest = (self.newest + 1) % TRAIL;
            self.trail[self.newest] = end;
        } else {
            self.trail = [end; TRAIL];
        }
    }

    /// A request was answered well.
    pub fn answered(&mut self, response: Nanos) {
        self.response.record(signed(response.0));
    }

    /// The part of the requests that went on where one of the last 16 had ended; nothing
    /// if there were not two.
    pub fn in_order(&self) -> Option<f64> {
        let goes_on =
            |edge: Option<i64>| edge.is_some_and(|it| (0..=GOES_ON).contains(&it));
        let near = self.nearest.iter().filter(|(to, _)| goes_on(*to));
        let near: u64 = near.map(|(_, count)| count).sum();
        (!self.nearest.is_empty()).then(|| near as f64 / self.nearest.len() as f64)
    }

    fn nearest_to(&self, start: i64) -> i64 {
        let mut nearest = i64::MAX;
        for end in self.trail {
            let distance = start - end;
            if distance.unsigned_abs() < nearest.unsigned_abs() {
                nearest = distance;
            }
        }
        nearest
    }
}

fn sectors(offset: u64) -> i64 {
    signed(offset / SECTOR)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bucket that holds everything.
    fn only(buckets: &Buckets) -> Option<i64> {
        let mut full = buckets.iter().filter(|(_, count)| *count > 0);
        let (edge, _) = full.next().expect("a value");
        assert_eq!(full.next(), None);
        edge
    }

    #[test]
    fn requests_in_order_have_no_distance() {
        let mut pattern = Pattern::default();
        for at in 0..100 {
            pattern.arrived(Nanos::from_micros(90 * at), at * 4096, 4096, 1);
        }
        assert_eq!(pattern.length.len(), 100);
        assert_eq!(pattern.distance.len(), 99);
        assert_eq!(only(&pattern.distance), Some(0));
        assert_eq!(only(&pattern.nearest), Some(0));
        assert_eq!(only(&pattern.length), Some(4096));
        assert_eq!(only(&pattern.outstanding), Some(1));
        assert_eq!(only(&pattern.interval), Some(100_000));
    }

    #[test]
    fn streams_that_take_turns_are_near_but_not_in_order() {
        let mut pattern = Pattern::default();
        for at in 0..640 {
            let (stream, step) = (at % 16, at / 16);
            pattern.arrived(Nanos(at), (stream << 40) + step * 65_536, 65_536, 16);
        }
        let count = |buckets: &Buckets, edge| {
            buckets.iter().find(|(to, _)| *to == edge).map_or(0, |(_, count)| count)
        };
        assert_eq!(count(&pattern.distance, Some(0)), 0);
        // All but the first of each stream.
        assert_eq!(count(&pattern.nearest, Some(0)), 640 - 16);
        assert!(pattern.in_order().expect("requests") > 0.95);
    }

    #[test]
    fn requests_that_jump_are_not_in_order() {
        let mut pattern = Pattern::default();
        assert_eq!(pattern.in_order(), None);
        pattern.arrived(Nanos(0), 0, 4096, 1);
        assert_eq!(pattern.in_order(), None);
        for at in 1..100 {
            pattern.arrived(Nanos(at), (at * 7919 % 100) << 30, 4096, 1);
        }
        assert_eq!(pattern.in_order(), Some(0.0));
    }

    #[test]
    fn distances_are_from_end_to_start_and_have_a_sign() {
        let mut pattern = Pattern::default();
        pattern.arrived(Nanos(0), 1 << 20, 4096, 1);
        pattern.arrived(Nanos(0), (1 << 20) + 4096 + 512, 512, 1);
        let mut back = pattern.clone();
        assert_eq!(only(&pattern.distance), Some(1));
        // From the end of the second (sector 2058) back to the start of the first.
        back.arrived(Nanos(0), 1 << 20, 4096, 1);
        let edges: Vec<_> = back.distance.iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(edges, [(Some(-8), 1), (Some(1), 1)]);
    }

    #[test]
    fn offsets_at_the_end_of_all_things_do_no_harm() {
        let mut pattern = Pattern::default();
        pattern.arrived(Nanos(0), u64::MAX, u64::MAX, usize::MAX);
        pattern.arrived(Nanos(0), 0, 0, 0);
        pattern.answered(Nanos::MAX);
        assert_eq!(pattern.length.len(), 2);
        assert_eq!(only(&pattern.response), None);
    }
}
