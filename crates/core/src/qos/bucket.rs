//! A token bucket without a clock, which any number of threads may take from.
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
//! A request may start when the bucket is not in debt, and takes all that it
//! costs, however much that is. So a request that is larger than the bucket
//! waits for nobody's help, and over time no more than `rate` flows: until any
//! moment at most `rate * time + burst` and the last request.
//!
//! A request takes before it starts, and is told when that may be: who takes
//! first starts first. So nobody who waits for admission can be overtaken again and
//! again, and nobody has to be woken to try once more.
//!
//! The burst is what comes in 10 ms: enough that a timer that fires late costs
//! no throughput, too little for a device's behaviour to show through.
//!
//! All of it is one number, the moment at which the bucket will be full again; so
//! one atomic step takes. What a request costs is a time of filling, rounded up to
//! a nanosecond: the rate is never exceeded, and up to 1 GB/s the rounding costs a
//! 512th of it at most.
//!
//! What is owed is a time at one rate, so it may never be taken for a time at
//! another: a request of a second at an old, slow rate would cost hours at a new one.
//! The number says which rate it speaks of: its lowest bit names one of two. A new
//! rate is put where the old one is not, and then one step changes both, what is
//! owed and which rate holds. Who takes meanwhile sees that the number is another
//! one, and reckons again.
//!
//! What a bucket holds, too, is so many units, and no more than fits it at its rate. A
//! slower one is full with what filled a faster one by a part; one that is empty is
//! empty at any rate, and who takes from it next waits no longer for that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Nanos;

/// What fits a bucket that was given no other size, as a time of filling.
const BURST: Nanos = Nanos::from_millis(10);

/// Nanoseconds in a second.
const SECOND: u128 = 1_000_000_000;

/// No rate: everything may start at once.
const OPEN: u64 = 0;

/// A token bucket.
#[derive(Debug)]
pub struct Bucket {
    state: AtomicU64,
    /// Units per second, or `OPEN`. The state says which of them holds.
    rates: [AtomicU64; 2],
    /// Rates are changed by one at a time.
    change: Mutex<()>,
    /// What fits it.
    burst: Nanos,
}

/// When a bucket will be full, and at which of its rates.
#[derive(Clone, Copy)]
struct State {
    /// In nanoseconds of the clock of those that take.
    full_at: u64,
    rate: usize,
}

impl State {
    /// 292 years.
    const LATEST: u64 = u64::MAX >> 1;

    fn packed(self) -> u64 {
        self.full_at.min(State::LATEST) << 1 | self.rate as u64
    }

    fn of(packed: u64) -> State {
        State { full_at: packed >> 1, rate: (packed & 1) as usize }
    }
}

impl Default for Bucket {
    /// One that holds nobody back.
    fn default() -> Self {
        Bucket::open(BURST)
    }
}

impl Bucket {
    /// A full bucket that fills with `rate` units per second, at least one.
    pub fn new(rate: u64) -> Bucket {
        Bucket::with_burst(rate, BURST)
    }

    /// A full bucket that takes so long to fill.
    pub fn with_burst(rate: u64, burst: Nanos) -> Bucket {
        Bucket { rates: [rate.max(1), OPEN].map(AtomicU64::new), ..Bucket::open(burst) }
    }

    /// A bucket that holds nobody back, and takes so long to fill once it has a rate.
    pub fn open(burst: Nanos) -> Bucket {
        let (state, rates) = (AtomicU64::new(0), [OPEN; 2].map(AtomicU64::new));
        Bucket { state, rates, change: Mutex::new(()), burst }
    }

    /// Units per second, if it holds anybody back.
    pub fn rate(&self) -> Option<u64> {
        self.rate_of(self.state())
    }

    /// Fills with another rate from now on, or holds nobody back. What is in it stays,
    /// as far as it fits; what is owed is owed still, and paid at the new rate.
    pub fn set_rate(&self, now: Nanos, rate: Option<u64>) {
        let _alone = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let State { rate: number, .. } = self.state();
        let (old, other) = (self.rate(), 1 - number);
        let new = rate.map(|rate| rate.max(1));
        if old == new {
            return;
        }
        self.rates[other].store(new.unwrap_or(OPEN), Ordering::SeqCst);
        self.step(|State { full_at, .. }| {
            let left = match (old, new) {
                (Some(old), Some(new)) => {
                    self.left(full_at.saturating_sub(now.0), old, new)
                }
                // Full: what was taken while nothing was held back was for nothing.
                _ => 0,
            };
            Some(State { full_at: now.0.saturating_add(left), rate: other })
        });
    }

    /// How long so many units take to come; nothing where nobody is held back.
    pub fn price(&self, units: u64) -> Nanos {
        self.rate().map_or(Nanos(0), |rate| price(rate, units))
    }

    /// Since when the next request might have started, or from when on it may.
    pub fn tag(&self) -> Nanos {
        self.start(self.state().full_at)
    }

    /// Takes what a request costs; gives the moment from which on it may start:
    /// `now` or later.
    pub fn take(&self, now: Nanos, units: u64) -> Nanos {
        let found = self.step(|state| {
            let price = price(self.rate_of(state)?, units);
            let full_at = state.full_at.max(now.0).saturating_add(price.0);
            Some(State { full_at, ..state })
        });
        found.map_or(now, |State { full_at, .. }| now.max(self.start(full_at)))
    }

    /// Gives back what a request took that does not start. Those that took after it
    /// start when they were told.
    pub fn give(&self, units: u64) {
        self.step(|state| {
            let price = price(self.rate_of(state)?, units);
            Some(State { full_at: state.full_at.saturating_sub(price.0), ..state })
        });
    }

    /// How long it takes until it is full, if that took `left` at the old rate.
    fn left(&self, left: u64, old: u64, new: u64) -> u64 {
        let at_new = |span: u64| {
            let span = u128::from(span) * u128::from(old) / u128::from(new);
            u64::try_from(span).unwrap_or(u64::MAX)
        };
        let Nanos(burst) = self.burst;
        match left.checked_sub(burst) {
            Some(owed) => burst.saturating_add(at_new(owed)),
            None => burst.saturating_sub(at_new(burst - left)),
        }
    }

    fn state(&self) -> State {
        State::of(self.state.load(Ordering::SeqCst))
    }

    fn rate_of(&self, state: State) -> Option<u64> {
        Some(self.rates[state.rate].load(Ordering::SeqCst)).filter(|rate| *rate != OPEN)
    }

    /// Changes the state as a whole, unless there is nothing to change; gives the one
    /// before. A rate that was read for a state holds for it: it is changed only while
    /// the state names the other one.
    fn step(&self, change: impl Fn(State) -> Option<State>) -> Option<State> {
        let packed = |state| change(State::of(state)).map(State::packed);
        let order = Ordering::SeqCst;
        self.state.fetch_update(order, order, packed).ok().map(State::of)
    }

    /// When a request may start that finds the bucket full at `full_at`.
    fn start(&self, full_at: u64) -> Nanos {
        Nanos(full_at.saturating_sub(self.burst.0))
    }
}

/// How long so many units take to come.
fn price(rate: u64, units: u64) -> Nanos {
    let price = (u128::from(units) * SECOND).div_ceil(u128::from(rate));
    Nanos(u64::try_from(price).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// Starts requests of `units` one after the other, each as early as it may;
    /// gives the moments.
    fn starts(rate: u64, units: u64, count: usize) -> Vec<u64> {
        let bucket = Bucket::new(rate);
        let mut now = Nanos(0);
        let start = |_| {
            now = bucket.take(now, units);
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
    fn what_is_given_back_is_there_for_the_next_and_no_more_than_that() {
        let bucket = Bucket::new(1);
        let take = |now: u64| bucket.take(Nanos(now), 1).0;
        assert_eq!([take(0), take(0)], [0, 990_000_000]);
        bucket.give(1);
        assert_eq!(take(0), 990_000_000);
        // Nobody owes anything any more: what is given back then is not kept.
        (0..9).for_each(|_| bucket.give(1));
        assert_eq!([take(5 * SECOND), take(5 * SECOND)], [5 * SECOND, 5_990_000_000]);
        Bucket::default().give(1);
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
    fn a_rate_that_does_not_divide_is_missed_by_a_nanosecond_a_request() {
        // 3 per second; the bucket holds 0.03. Number n starts when n - 0.03
        // have come, n / 3 s - 10 ms, and n thirds of a nanosecond were rounded
        // up to n nanoseconds: two thirds too much.
        let starts = starts(3, 1, 3_000_001);
        assert_eq!(starts[3], SECOND - 10_000_000 + 2);
        assert_eq!(starts[3_000_000], 1_000_000 * SECOND - 10_000_000 + 2_000_000);
    }

    #[test]
    fn timers_that_fire_late_cost_no_throughput() {
        // Each start that has to wait is 1 ms late, ten times what a request
        // costs.
        let bucket = Bucket::new(10_000);
        let (mut now, mut count) = (Nanos(0), 0);
        while now < Nanos(SECOND) {
            let start = bucket.take(now, 1);
            if start > now {
                now = start.plus(Nanos::from_millis(1));
            }
            count += 1;
        }
        // 10 000, and the burst of 100; less what the last, late request had.
        assert!((10_085..=10_101).contains(&count), "{count}");
    }

    #[test]
    fn those_that_share_a_bucket_start_in_turn() {
        // 100 per second: the bucket holds one, so the third has to wait, and
        // each further one 10 ms more. All have come at once.
        let bucket = Bucket::new(100);
        let starts = [(); 5].map(|()| bucket.take(Nanos(0), 1));
        assert_eq!(starts, [0, 0, 10, 20, 30].map(Nanos::from_millis));
    }

    #[test]
    fn a_new_rate_holds_for_what_is_owed_already() {
        // One per second, and two taken, which are owed but for the burst.
        let bucket = Bucket::new(1);
        assert_eq!([(); 2].map(|()| bucket.take(Nanos(0), 1).0), [0, SECOND - BURST.0]);
        // Half of it is paid by then; what is left takes a hundredth of its time.
        let now = Nanos(SECOND - BURST.0 / 2);
        bucket.set_rate(now, Some(100));
        assert_eq!(bucket.take(now, 1), now.plus(Nanos(now.0 / 100)));
        bucket.set_rate(now, None);
        assert_eq!(bucket.take(now, 1 << 40), now);
        bucket.set_rate(now, Some(1));
        assert_eq!(bucket.take(now, 1), now, "what was free is not owed");
    }

    #[test]
    fn an_empty_bucket_is_empty_at_any_rate_and_owes_nothing() {
        let now = Nanos(SECOND);
        for (old, new) in [(50_000, 50), (100, 50_000), (1_000_000_000, 65_536)] {
            let bucket = Bucket::new(old);
            assert_eq!(bucket.take(now, old / 100), now, "all that there is");
            bucket.set_rate(now, Some(new));
            assert_eq!(
                [(); 2].map(|()| bucket.take(now, new)),
                [now, now.plus(Nanos(SECOND))]
            );
        }
    }

    #[test]
    fn what_is_in_a_bucket_stays_as_far_as_it_fits() {
        // Half full: 50 of 100. That is more than fits at 1000 per second, and half of
        // what fits again at 2000.
        let now = Nanos(SECOND);
        let bucket = Bucket::new(10_000);
        bucket.take(now, 50);
        bucket.set_rate(now, Some(1000));
        bucket.set_rate(now, Some(2000));
        let starts = [10, 1, 0].map(|units| bucket.take(now, units));
        assert_eq!(starts, [now, now, now.plus(Nanos(SECOND / 2000))]);
    }

    proptest! {
        /// Whoever they are that share it, and however many of them wait.
        #[test]
        fn no_more_flows_than_the_rate_the_burst_and_one_request(
            rate in 1u64..2_000_000_000,
            steps in prop::collection::vec((0u64..1 << 23, 0u64..50_000_000), 1..100),
        ) {
            let bucket = Bucket::new(rate);
            let (mut now, mut before) = (Nanos(0), 0u128);
            for (units, pause) in steps {
                now = now.plus(Nanos(pause));
                let start = bucket.take(now, units);
                let allowed = u128::from(rate) * u128::from(start.0 + BURST.0);
                prop_assert!(before * u128::from(SECOND) <= allowed);
                before += u128::from(units);
            }
        }
    }
}
