//! What came out of a wake.

use sterna_core::memory::Outcome;

/// The course of a wake.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Orders of each second.
    pub orders: Vec<u32>,
    /// Pages that the guest waited for.
    pub waits: u64,
    /// Bytes that were read from the device.
    pub read: u64,
    /// From the beginning until Sterna saw that the guest needs its memory, in seconds.
    pub seen: Option<f64>,
    /// What Sterna's wake did.
    pub wake: Option<Outcome>,
}

impl Course {
    /// Orders a second from one second until another one; nothing of no time.
    pub fn mean(&self, from: usize, until: usize) -> f64 {
        let some =
            &self.orders[from.min(self.orders.len())..until.min(self.orders.len())];
        match some.len() {
            0 => 0.0,
            count => f64::from(some.iter().sum::<u32>()) / count as f64,
        }
    }

    /// Orders a second in all of it.
    pub fn whole(&self) -> f64 {
        self.mean(0, self.orders.len())
    }

    /// The second from which on no second is below `least` orders; nothing if the last one is.
    pub fn above_from(&self, least: f64) -> Option<usize> {
        let below = self.orders.iter().rposition(|orders| f64::from(*orders) < least);
        let from = below.map_or(0, |last| last + 1);
        (from < self.orders.len()).then_some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_the_last_slow_second_are_found() {
        let course = Course { orders: vec![0, 10, 5, 10, 10], ..Course::default() };
        assert_eq!((course.whole(), course.mean(0, 2)), (7.0, 5.0));
        assert_eq!((course.above_from(8.0), course.above_from(0.0)), (Some(3), Some(0)));
        assert_eq!(course.above_from(11.0), None);
        assert_eq!(course.mean(9, 12), 0.0);
    }
}
