//! How long requests of one kind took: response, queue and service time.
//!
//! Histograms of some 20 KiB each. A request that was admitted at once was at the
//! device for all of its time: as long as none has waited there is one histogram, and
//! the others are made with the first that does, from what that one says.

use hdrhistogram::Histogram;
use sterna_core::Nanos;

/// Times are told apart from 1 us on; nothing below is real.
const LOW: u64 = 1_000;
/// Anything longer counts as this, 100 s.
const HIGH: u64 = 100_000_000_000;
/// Two figures: an error of at most 1 %.
const FIGURES: u8 = 2;

/// The times of requests of one kind, in nanoseconds. They only grow: subtract an
/// earlier copy to get an interval.
#[derive(Clone, Debug)]
pub struct Times {
    response: Histogram<u64>,
    waited: Option<Box<Waited>>,
}

/// What is told apart once a request has waited.
#[derive(Clone, Debug)]
struct Waited {
    queue: Histogram<u64>,
    service: Histogram<u64>,
}

impl Default for Times {
    fn default() -> Self {
        Times { response: histogram(), waited: None }
    }
}

impl Times {
    pub(crate) fn record(&mut self, queue: Nanos, service: Nanos) {
        if queue > Nanos(0) && self.waited.is_none() {
            let (mut waits, service) = (histogram(), self.response.clone());
            waits.saturating_record_n(0, self.response.len());
            self.waited = Some(Box::new(Waited { queue: waits, service }));
        }
        self.response.saturating_record(queue.plus(service).0);
        if let Some(waited) = &mut self.waited {
            waited.queue.saturating_record(queue.0);
            waited.service.saturating_record(service.0);
        }
    }

    /// From their coming to their answer.
    pub fn response(&self) -> &Histogram<u64> {
        &self.response
    }

    /// What they waited for admission; nothing if none ever had to.
    pub fn queue(&self) -> Option<&Histogram<u64>> {
        self.waited.as_ref().map(|waited| &waited.queue)
    }

    /// From admission to their answer.
    pub fn service(&self) -> &Histogram<u64> {
        self.waited.as_ref().map_or(&self.response, |waited| &waited.service)
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LOW, HIGH, FIGURES).expect("the bounds are constants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_never_waited_was_at_the_device_all_the_time() {
        let mut times = Times::default();
        for _ in 0..10 {
            times.record(Nanos(0), Nanos::from_millis(1));
        }
        assert!(times.queue().is_none());
        assert_eq!(times.service(), times.response());
    }

    #[test]
    fn the_first_that_waits_does_not_lose_those_before() {
        let mut times = Times::default();
        for _ in 0..9 {
            times.record(Nanos(0), Nanos::from_millis(1));
        }
        times.record(Nanos::from_millis(8), Nanos::from_millis(2));
        let queue = times.queue().expect("one has waited");
        assert_eq!((queue.len(), times.service().len()), (10, 10));
        assert!(queue.value_at_quantile(0.9) < 1_000);
        let within = |value: u64, millis: u64| {
            value.abs_diff(millis * 1_000_000) < millis * 10_000
        };
        assert!(within(queue.max(), 8), "{}", queue.max());
        assert!(within(times.service().max(), 2));
        assert!(within(times.service().value_at_quantile(0.9), 1));
        assert!(within(times.response().max(), 10));
    }

    #[test]
    fn endless_times_count_as_the_longest() {
        let mut times = Times::default();
        times.record(Nanos::MAX, Nanos::MAX);
        assert_eq!(times.response().len(), 1);
    }
}
