//! Histograms with few, fixed buckets: what people look at.
//!
//! The buckets are those of vscsiStats (I. Ahmad, "Easy and Efficient Disk I/O
//! Workload Characterization in VMware ESX Server", IISWC 2007), so that what was
//! learned with them still holds; the times are finer, as devices are faster now.
//! Lengths have buckets of their own for 4095, 8191, 16383 and 65535 bytes: what is
//! not aligned shows beside what is.

/// The most buckets that a scale has: with the one for all that is beyond it.
pub const BUCKETS_MAX: usize = 28;

/// Up to where each bucket reaches, rising. One more bucket takes what is beyond.
#[derive(Debug, PartialEq, Eq)]
pub struct Scale(&'static [i64]);

impl Scale {
    /// Bytes of a request.
    pub const LENGTH: Scale = Scale(&[
        512, 1024, 2048, 4095, 4096, 8191, 8192, 16_383, 16_384, 32_768, 49_152, 65_535,
        65_536, 81_920, 131_072, 262_144, 524_288,
    ]);

    /// Sectors of 512 bytes from the end of one request to the start of another;
    /// negative backwards, 0 if the one follows the other.
    pub const DISTANCE: Scale = Scale(&[
        -500_000, -50_000, -5_000, -500, -128, -64, -32, -16, -8, -6, -4, -2, -1, 0, 1,
        2, 4, 6, 8, 16, 32, 64, 128, 500, 5_000, 50_000, 500_000,
    ]);

    /// Requests under way.
    pub const OUTSTANDING: Scale =
        Scale(&[1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 64, 128, 256]);

    /// Nanoseconds, from 1 us to 1 s.
    pub const TIME: Scale = Scale(&[
        1_000,
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        15_000_000,
        20_000_000,
        30_000_000,
        50_000_000,
        100_000_000,
        200_000_000,
        500_000_000,
        1_000_000_000,
    ]);
}

/// How many values fell into each bucket of a scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    scale: &'static Scale,
    counts: [u64; BUCKETS_MAX],
}

impl Buckets {
    /// Empty buckets.
    pub const fn new(scale: &'static Scale) -> Buckets {
        assert!(scale.0.len() < BUCKETS_MAX);
        Buckets { scale, counts: [0; BUCKETS_MAX] }
    }

    /// Counts a value.
    pub fn record(&mut self, value: i64) {
        let bucket = self.scale.0.partition_point(|edge| *edge < value);
        self.counts[bucket] += 1;
    }

    /// How many values were counted.
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each bucket: up to which value it reaches, and how many fell into it. The last
    /// one has no end.
    pub fn iter(&self) -> impl Iterator<Item = (Option<i64>, u64)> {
        let edges = self.scale.0.iter().copied().map(Some).chain([None]);
        edges.zip(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&Scale; 4] =
        [&Scale::LENGTH, &Scale::DISTANCE, &Scale::OUTSTANDING, &Scale::TIME];

    #[test]
    fn a_value_falls_into_the_first_bucket_that_reaches_it() {
        for scale in ALL {
            for (at, edge) in scale.0.iter().enumerate() {
                let mut buckets = Buckets::new(scale);
                buckets.record(*edge);
                buckets.record(edge + 1);
                let counts: Vec<u64> = buckets.iter().map(|(_, count)| count).collect();
                assert_eq!((counts[at], counts[at + 1]), (1, 1), "{edge}");
            }
        }
    }

    #[test]
    fn what_is_beyond_the_scale_has_a_bucket_without_an_end() {
        for scale in ALL {
            assert!(scale.0.is_sorted() && scale.0.len() < BUCKETS_MAX);
            let mut buckets = Buckets::new(scale);
            buckets.record(i64::MAX);
            buckets.record(i64::MIN);
            let all: Vec<_> = buckets.iter().collect();
            assert_eq!(all.len(), scale.0.len() + 1);
            assert_eq!(all.first(), Some(&(Some(scale.0[0]), 1)));
            assert_eq!(all.last(), Some(&(None, 1)));
            assert_eq!(buckets.len(), 2);
        }
    }
}
