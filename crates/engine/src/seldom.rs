//! What may happen many times a second, and is said seldom.

use sterna_core::Nanos;

/// It is said no more often than this.
const EACH: Nanos = Nanos::from_secs(10);

/// One thing that is said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seldom {
    said: Option<Nanos>,
    left_out: u64,
}

impl Seldom {
    /// It has happened: how many times before this it was not said, if it is to be said now.
    pub(crate) fn happens(&mut self, now: Nanos) -> Option<u64> {
        if self.said.is_some_and(|said| now.since(said) < EACH) {
            self.left_out += 1;
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_said_each_ten_seconds_with_what_was_left_out() {
        let mut seldom = Seldom::default();
        let at = |millis| Nanos::from_millis(millis);
        assert_eq!(seldom.happens(at(5)), Some(0));
        for millis in 6..=100 {
            assert_eq!(seldom.happens(at(millis)), None);
        }
        assert_eq!(seldom.happens(at(10_005)), Some(95));
        assert_eq!(seldom.happens(at(20_100)), Some(0));
    }
}
