//! A token bucket for chunks.
//!
//! It may go into debt by one chunk: a chunk is charged in full when it starts, and
//! what turned out to be zeroes is refunded. So a chunk that is larger than the
//! bucket still starts, and over time no more than the rate flows.

use crate::Nanos;

/// Bytes that may flow per second.
#[derive(Debug)]
pub(super) struct Tokens {
    rate: Option<u64>,
    /// What comes in this time fits the bucket.
    burst: Nanos,
    /// Whether it fills as time goes by.
    flows: bool,
    /// Below zero it is in debt.
    bytes: f64,
    filled: Nanos,
}

impl Tokens {
    /// A bucket that holds nothing back.
    pub(super) fn open(now: Nanos, burst: Nanos) -> Self {
        Tokens { rate: None, burst, flows: true, bytes: 0.0, filled: now }
    }

    /// Fills with another rate from now on: bytes per second, zero for never, or
    /// nothing is held back. What is owed is owed still.
    pub(super) fn set_rate(&mut self, now: Nanos, rate: Option<u64>) {
        self.fill(now);
        self.rate = rate;
        self.flows = true;
        self.bytes = if rate.is_some() { self.bytes.min(self.room()) } else { 0.0 };
    }

    /// Holds what this rate above zero brings in a time, less what is owed, and does
    /// not fill.
    pub(super) fn give(&mut self, now: Nanos, rate: u64, time: Nanos) {
        self.fill(now);
        self.rate = Some(rate);
        self.flows = false;
        self.bytes = self.bytes.min(0.0) + rate as f64 * time.as_secs_f64();
    }

    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Whether a chunk may start now; if not, when, unless never.
    pub(super) fn ready(&mut self, now: Nanos) -> Result<(), Option<Nanos>> {
        self.fill(now);
        match self.rate {
            Some(0) => Err(None),
            Some(_) if !self.flows && self.bytes <= 0.0 => Err(None),
            Some(rate) if self.bytes < 0.0 => {
                let wait = -self.bytes / rate as f64;
                Err(Some(now.plus(Nanos((wait * 1e9) as u64 + 1))))
            }
            _ => Ok(()),
        }
    }

    /// A chunk of so many bytes starts.
    pub(super) fn charge(&mut self, bytes: u64) {
        if self.rate.is_some() {
            self.bytes -= bytes as f64;
        }
    }

    /// So many of the bytes did not flow after all.
    pub(super) fn refund(&mut self, bytes: u64) {
        if self.rate.is_some() {
            self.bytes += bytes as f64;
        }
    }

    fn room(&self) -> f64 {
        (self.rate.unwrap_or(0) as f64 * self.burst.as_secs_f64()).max(1.0)
    }

    fn fill(&mut self, now: Nanos) {
        if let Some(rate) = self.rate.filter(|_| self.flows) {
            let earned = rate as f64 * now.since(self.filled).as_secs_f64();
            self.bytes = (self.bytes + earned).min(self.room());
        }
        self.filled = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn bucket(rate: u64) -> Tokens {
        let mut tokens = Tokens::open(Nanos(0), Nanos::from_millis(100));
        tokens.set_rate(Nanos(0), Some(rate));
        tokens
    }

    #[test]
    fn a_rate_is_kept_within_two_percent() {
        let mut tokens = bucket(50 * MIB);
        let (mut now, mut flowed) = (Nanos(0), 0);
        while now < Nanos::from_secs(20) {
            match tokens.ready(now) {
                Ok(()) => {
                    tokens.charge(MIB);
                    flowed += MIB;
                }
                Err(later) => now = later.expect("a rate above zero"),
            }
        }
        let ratio = flowed as f64 / (20.0 * 50.0 * MIB as f64);
        assert!((0.98..1.02).contains(&ratio), "{ratio} of the rate");
    }

    #[test]
    fn zeroes_are_not_charged() {
        let mut tokens = bucket(MIB);
        tokens.charge(4 * MIB);
        assert!(tokens.ready(Nanos(1)).is_err());
        tokens.refund(4 * MIB);
        assert_eq!(tokens.ready(Nanos(2)), Ok(()));
    }

    #[test]
    fn a_rate_of_zero_is_never_and_not_for_ever() {
        let mut tokens = bucket(0);
        assert_eq!(tokens.ready(Nanos::from_secs(9)), Err(None));
        tokens.set_rate(Nanos::from_secs(9), Some(MIB));
        assert_eq!(tokens.ready(Nanos::from_secs(9)), Ok(()));
    }

    #[test]
    fn what_is_given_does_not_grow_and_what_is_owed_is_taken_off() {
        let mut tokens = bucket(0);
        let second = Nanos::from_secs(1);
        tokens.give(Nanos(0), 3 * MIB, second);
        tokens.charge(2 * MIB);
        assert_eq!(tokens.ready(Nanos(1)), Ok(()));
        tokens.charge(2 * MIB);
        assert_eq!(tokens.ready(second), Err(None), "however long it waits");
        tokens.give(second, MIB, second);
        assert_eq!(tokens.ready(second), Err(None), "that much was owed");
    }

    #[test]
    fn what_is_owed_is_owed_at_the_new_rate() {
        let mut tokens = bucket(MIB);
        tokens.charge(MIB);
        tokens.set_rate(Nanos(0), Some(2 * MIB));
        let Err(Some(at)) = tokens.ready(Nanos(0)) else { panic!("it is in debt") };
        assert_eq!(at.0 / 1_000_000, 500);
    }
}
