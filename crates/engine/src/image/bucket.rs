//! A token bucket, exact and without a clock.
//!
//! ```text
//!        rate units per second
//!                 |
//!          \      v      /   <- full: what BURST brings
//!           \~~~~~~~~~~~/
//!            \         /
//!    0 ------ \_______/ -----
//!       debt:     |   what a request took that was more than there was
//!                 v
//! ```
//!
//! A request may start when the bucket is not in debt, and then takes all that
//! it costs, however much that is. So a request that is larger than the bucket
//! waits for nobody's help, and over time no more than `rate` flows: until any
//! moment at most `rate * time + burst` and the last request.
//!
//! The burst is what comes in 10 ms: enough that a timer that fires late costs
//! no throughput, too little for a device's behaviour to show through.
//!
//! Arithmetic is in whole billionths of a unit, so nothing is ever rounded away.

use sterna_core::Nanos;

/// What fits the bucket, as a time of filling.
const BURST: Nanos = Nanos::from_millis(10);

/// Billionths of a unit in a unit, as nanoseconds in a second.
const SCALE: i128 = 1_000_000_000;

/// A token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Units per second; so also billionths per nanosecond.
    rate: u64,
    /// Billionths of a unit; negative: debt.
    credit: i128,
    /// The moment of `credit`.
    at: Nanos,
}

impl Bucket {
    /// A full bucket that fills with `rate` units per second, not zero.
    pub(crate) fn new(rate: u64, now: Nanos) -> Bucket {
        let rate = rate.max(1);
        Bucket { rate, credit: full(rate), at: now }
    }

    /// From when on a request may start: `now` or later.
    pub(crate) fn ready(&mut self, now: Nanos) -> Nanos {
        self.fill(now);
        let debt = self.credit.min(0).unsigned_abs();
        // Rounded up: at the moment that is given, the debt is paid.
        let wait = debt.div_ceil(u128::from(self.rate));
        now.plus(Nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Takes what a request costs that starts now.
    pub(crate) fn take(&mut self, now: Nanos, units: u64) {
        self.fill(now);
        self.credit -= i128::from(units) * SCALE;
    }

    fn fill(&mut self, now: Nanos) {
        let came = i128::from(self.rate) * i128::from(now.since(self.at).0);
        self.credit = (self.credit + came).min(full(self.rate));
        self.at = self.at.max(now);
    }
}

fn full(rate: u64) -> i128 {
    i128::from(rate) * i128::from(BURST.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// Starts requests of `units` one after the other, each as early as it may;
    /// gives the moments.
    fn starts(rate: u64, units: u64, count: usize) -> Vec<u64> {
        let mut bucket = Bucket::new(rate, Nanos(0));
        let mut now = Nanos(0);
        let start = |_| {
            now = bucket.ready(now);
            bucket.take(now, units);
            now.0
        };
        (0..count).map(start).collect()
    }

    #[test]
    fn the_first_requests_use_the_burst_and_the_next_waits_for_its_debt() {
        // 1 MB/s: the bucket holds 10 000 bytes. After three requests of 4096 it
        // owes 2288, which takes 2288 us; from then on 4096 us each.
        let expected = [0, 0, 0, 2_288_000, 6_384_000, 10_480_000];
        assert_eq!(starts(1_000_000, 4096, 6), expected);
    }

    #[test]
    fn a_thousand_requests_take_a_second_at_a_thousand_per_second() {
        // The bucket holds 10; the 11th makes a debt of 1, so number n (from 0)
        // starts (n - 10) ms after the first.
        let starts = starts(1000, 1, 1011);
        assert_eq!((starts[10], starts[11], starts[1010]), (0, SECOND / 1000, SECOND));
    }

    #[test]
    fn a_request_larger_than_the_bucket_goes_and_the_next_one_pays() {
        // 100 MB/s: 1 MB fits; a request of 4 MiB owes 3 194 304 bytes.
        assert_eq!(starts(100_000_000, 4 << 20, 2), [0, 31_943_040]);
    }

    #[test]
    fn a_rate_that_does_not_divide_is_not_rounded_away() {
        // 3 per second; the bucket holds 0.03. Number n starts when n - 0.03
        // have come: n / 3 s - 10 ms.
        let starts = starts(3, 1, 3_000_001);
        assert_eq!(starts[3], SECOND - 10_000_000);
        assert_eq!(starts[3_000_000], 1_000_000 * SECOND - 10_000_000);
    }

    #[test]
    fn timers_that_fire_late_cost_no_throughput() {
        // Each start 1 ms late; 1000 requests of a tenth of a ms in a second
        // would be 10 % load, so take the full load: 10 000 of them.
        let mut bucket = Bucket::new(10_000, Nanos(0));
        let (mut now, mut count) = (Nanos(0), 0);
        while now < Nanos(SECOND) {
            while bucket.ready(now) == now {
                bucket.take(now, 1);
                count += 1;
            }
            now = bucket.ready(now).plus(Nanos::from_millis(1));
        }
        // 10 000, and the burst of 100; less what the last, late turn had.
        assert!((10_085..=10_101).contains(&count), "{count}");
    }

    proptest! {
        #[test]
        fn no_more_flows_than_the_rate_the_burst_and_one_request(
            rate in 1u64..2_000_000_000,
            steps in prop::collection::vec((0u64..1 << 23, 0u64..50_000_000), 1..100),
        ) {
            let mut bucket = Bucket::new(rate, Nanos(0));
            let (mut now, mut before) = (Nanos(0), 0u128);
            for (units, pause) in steps {
                now = bucket.ready(now.plus(Nanos(pause)));
                let allowed = u128::from(rate) * u128::from(now.0 + BURST.0);
                prop_assert!(before * SCALE as u128 <= allowed);
                bucket.take(now, units);
                before += u128::from(units);
            }
        }
    }
}
