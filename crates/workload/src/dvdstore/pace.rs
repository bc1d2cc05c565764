//! When the next order is made.
//!
//! In a *closed* loop each user makes one after the other, with some thinking between
//! them. In an *open* loop orders come as they come, as a Poisson process; a user who
//! is free takes the next one. When the server is slow, the moments at which orders
//! were due lie in the past, and response times count from them: a server that stands
//! still for a second spoils every order that would have come in it.
//!
//! Pure: moments are counted from the run's start, and all chance comes from the seed.

use std::time::Duration;

use crate::random::Random;

/// What decides when orders are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// By users, who think so long on average after each.
    Closed {
        /// The mean.
        think: Duration,
    },
    /// By so many orders a second, whoever makes them.
    Open {
        /// Orders a second.
        rate: f64,
    },
}

/// The moments at which orders are due in an open loop.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    random: Random,
    rate: f64,
    due: f64,
}

impl Arrivals {
    /// So many orders a second.
    pub(crate) fn new(rate: f64, seed: u64) -> Arrivals {
        Arrivals { random: Random::new(seed), rate, due: 0.0 }
    }

    /// When the next one is due.
    pub(crate) fn next(&mut self) -> Duration {
        // 53 bits and a half: never 0, never 1.
        let uniform = ((self.random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        self.due -= uniform.ln() / self.rate;
        Duration::from_secs_f64(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_at_their_rate_and_as_they_like() {
        let mut arrivals = Arrivals::new(50.0, 1);
        let moments: Vec<f64> =
            (0..50_000).map(|_| arrivals.next().as_secs_f64()).collect();
        assert!((980.0..1020.0).contains(&moments[49_999]), "{}", moments[49_999]);
        // Of a Poisson process, one gap in e is longer than the mean.
        let gaps = moments.windows(2).filter(|two| two[1] - two[0] > 0.02).count();
        let part = gaps as f64 / 50_000.0;
        assert!((0.36..0.376).contains(&part), "{part}");
    }
}
