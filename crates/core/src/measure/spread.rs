//! How response times are spread: a histogram small enough to be taken ten times a
//! second for every disk.
//!
//! Sixteen buckets to each doubling, from 1 us to 68 s: a quantile is wrong by at
//! most 3.2 %. What is shorter counts as 1 us, what is longer as 68 s. Nothing is
//! allocated before the first value. In a tenth of a second most disks answer a few
//! requests that took about as long, so only what lies between the first bucket that
//! is used and the last is ever gone through.

use std::ops::Range;

use crate::Nanos;

/// The logarithm of the buckets to a doubling.
const FINE: u32 = 4;
/// Values below 2^LOW ns are one bucket.
const LOW: u32 = 10;
/// Values from 2^HIGH ns on are one bucket.
const HIGH: u32 = 36;
const BUCKETS: usize = ((HIGH - LOW) << FINE) as usize;

/// A histogram of spans of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    counts: Vec<u32>,
    /// From the first bucket that has counted anything to the last.
    used: Range<usize>,
    total: u64,
    max: Nanos,
}

fn bucket(span: Nanos) -> usize {
    let value = span.0.clamp(1 << LOW, (1 << HIGH) - 1);
    let octave = value.ilog2();
    let fine = (value >> (octave - FINE)) & ((1 << FINE) - 1);
    ((octave - LOW) << FINE) as usize + fine as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let (octave, fine) = (bucket as u32 >> FINE, bucket as u64 & ((1 << FINE) - 1));
    let width = 1u64 << (octave + LOW - FINE);
    ((1 << FINE) + fine) * width + width / 2
}

impl Spread {
    /// The most bytes that it takes besides itself.
    pub(super) const MEMORY_MAX: usize = BUCKETS * size_of::<u32>();

    /// Counts a span.
    pub fn record(&mut self, span: Nanos) {
        self.record_many(span, 1);
    }

    /// Counts so many spans of one length.
    pub fn record_many(&mut self, span: Nanos, count: u64) {
        if count == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.counts.resize(BUCKETS, 0);
        }
        let at = bucket(span);
        let more = u32::try_from(count).unwrap_or(u32::MAX);
        self.counts[at] = self.counts[at].saturating_add(more);
        self.cover(&(at..at + 1));
        self.total += count;
        self.max = self.max.max(span);
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Spread) {
        if other.counts.is_empty() {
            return;
        }
        self.counts.resize(BUCKETS, 0);
        let mine = &mut self.counts[other.used.clone()];
        for (mine, theirs) in mine.iter_mut().zip(&other.counts[other.used.clone()]) {
            *mine = mine.saturating_add(*theirs);
        }
        self.cover(&other.used);
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    fn cover(&mut self, more: &Range<usize>) {
        self.used = match self.used.is_empty() {
            true => more.clone(),
            false => self.used.start.min(more.start)..self.used.end.max(more.end),
        };
    }

    /// How many were counted.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The longest, exactly.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// How many were longer, to the bucket: those of which a quantile would say so.
    pub fn longer_than(&self, span: Nanos) -> u64 {
        let at = bucket(span);
        let same = Nanos(middle(at)).min(self.max) > span;
        let from = (at + usize::from(!same)).clamp(self.used.start, self.used.end);
        self.counts[from..self.used.end].iter().map(|it| u64::from(*it)).sum()
    }

    /// The span that this part (0 to 1) of all does not exceed; nothing of nothing.
    pub fn quantile(&self, part: f64) -> Option<Nanos> {
        let rank = ((self.total as f64 * part).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for at in self.used.clone() {
            seen += u64::from(self.counts[at]);
            if seen >= rank {
                return Some(Nanos(middle(at)).min(self.max));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_within_three_percent() {
        let mut spread = Spread::default();
        for micros in 1..=10_000 {
            spread.record(Nanos::from_micros(micros));
        }
        for part in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let found = spread.quantile(part).unwrap().0 as f64;
            let ratio = found / (part * 10_000_000.0);
            assert!((0.968..1.032).contains(&ratio), "{part}: {ratio}");
        }
        assert_eq!(spread.max(), Nanos::from_millis(10));
        assert_eq!(Spread::default().quantile(0.99), None);
    }

    #[test]
    fn what_was_longer_is_counted() {
        let mut spread = Spread::default();
        assert_eq!(spread.longer_than(Nanos(0)), 0);
        (1..=100).for_each(|millis| spread.record(Nanos::from_millis(millis)));
        let longer = |millis| spread.longer_than(Nanos::from_millis(millis));
        assert_eq!((longer(0), longer(100), longer(1000)), (100, 0, 0));
        assert!((48..=50).contains(&longer(50)), "{}", longer(50));
    }

    #[test]
    fn many_of_one_length_count_as_one_after_the_other() {
        let (mut many, mut single) = (Spread::default(), Spread::default());
        many.record_many(Nanos::from_micros(70), 3);
        many.record_many(Nanos::from_secs(1), 0);
        (0..3).for_each(|_| single.record(Nanos::from_micros(70)));
        assert_eq!(many, single);
    }

    #[test]
    fn what_is_out_of_range_counts_at_its_ends() {
        let mut spread = Spread::default();
        spread.record(Nanos(0));
        spread.record(Nanos::MAX);
        assert!(spread.quantile(0.5).unwrap() < Nanos::from_micros(2));
        assert!(spread.quantile(1.0).unwrap() > Nanos::from_secs(60));
    }

    #[test]
    fn two_spreads_make_one() {
        let (mut a, mut b) = (Spread::default(), Spread::default());
        a.record(Nanos::from_micros(10));
        b.record(Nanos::from_millis(10));
        a.merge(&b);
        assert_eq!((a.len(), a.max()), (2, Nanos::from_millis(10)));
        // In whatever order, and whatever lies between them or beyond.
        b.record(Nanos::from_secs(1));
        b.record(Nanos::from_micros(10));
        let mut c = Spread::default();
        c.merge(&b);
        c.merge(&Spread::default());
        assert_eq!(c, b);
        let [low, middle, high] = [0.3, 0.6, 1.0].map(|part| c.quantile(part).unwrap());
        assert!(low < Nanos::from_micros(11) && high > Nanos::from_millis(960));
        assert!((Nanos(9_600_000)..=Nanos(10_400_000)).contains(&middle));
    }
}
