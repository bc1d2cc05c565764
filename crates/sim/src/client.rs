//! A client: what asks things of an array, and when.
//!
//! A *closed* client has a number of requests in flight and asks anew when one is
//! answered, as a virtual machine does. An *open* one asks at its own times, whatever
//! the array does, as users of a web site do. A backup is a closed client that reads
//! one place after the other.

use std::cmp::Ordering;

use sterna_core::Nanos;
use sterna_core::array::{Kind, Request};
use sterna_workload::random::Random;

use crate::dice;

/// Requests of an open client that have not been answered, at most: past that its
/// users have gone. What would come then is counted as refused.
const OPEN_MAX: u32 = 1 << 16;

/// When a client asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// So many requests in flight, always.
    Closed {
        /// Requests in flight.
        outstanding: u32,
    },
    /// The same, for a while, then nothing for a while.
    Bursts {
        /// Requests in flight during a burst.
        outstanding: u32,
        /// How long a burst is, above zero.
        on: Nanos,
        /// How long it is quiet, above zero.
        off: Nanos,
    },
    /// Independent of each other, so many a second on average.
    Open {
        /// Requests per second, above zero.
        rate: f64,
    },
    /// The same, with so many in flight at most: who would come then goes away.
    Bounded {
        /// Requests per second, above zero.
        rate: f64,
        /// Requests in flight.
        outstanding: u32,
    },
    /// As many as come, at a rate that goes up and down.
    Sine {
        /// Requests per second on average, above zero.
        mean: f64,
        /// How far up and down, as a part of the mean, 0 to 1.
        swing: f64,
        /// From peak to peak.
        period: Nanos,
    },
}

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Bytes of each request, above zero.
    pub bytes: u64,
    /// Reads, of a hundred requests.
    pub read_percent: u32,
    /// Anywhere, or one after the other.
    pub random: bool,
    /// Bytes of its disk, from which it asks; at least one request's.
    pub size: u64,
}

/// A client of the simulation.
#[derive(Clone, Debug)]
pub struct Client {
    /// What it is called.
    pub name: String,
    /// The array that it uses, by its number in the plan.
    pub array: usize,
    /// When it asks.
    pub load: Load,
    /// What it asks.
    pub access: Access,
    /// From when on it asks.
    pub from: Nanos,
    /// Until when.
    pub until: Nanos,
}

impl Client {
    /// A client of array 0 that asks all the time.
    pub fn new(name: &str, load: Load, access: Access) -> Client {
        let (name, from, until) = (name.into(), Nanos(0), Nanos::MAX);
        Client { name, array: 0, load, access, from, until }
    }

    /// The same, from then on.
    #[must_use]
    pub fn starting(mut self, from: Nanos) -> Client {
        self.from = from;
        self
    }

    /// The same, until then.
    #[must_use]
    pub fn ending(mut self, until: Nanos) -> Client {
        self.until = until;
        self
    }
}

/// A client at work.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) client: Client,
    random: Random,
    /// Requests in flight.
    pub(crate) in_flight: u32,
    pub(crate) refused: u64,
    /// Where a sequential client asks next.
    next: u64,
}

/// What a client does at a moment.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    /// So many requests come.
    pub(crate) requests: u32,
    /// It is to be asked again then.
    pub(crate) again: Option<Nanos>,
}

impl Worker {
    pub(crate) fn new(client: Client, seed: u64) -> Worker {
        let random = Random::new(seed);
        Worker { client, random, in_flight: 0, refused: 0, next: 0 }
    }

    /// Its own clock has struck: at `from`, and when it said.
    pub(crate) fn wake(&mut self, now: Nanos) -> Doing {
        if now >= self.client.until {
            return Doing::default();
        }
        match self.client.load {
            Load::Closed { .. } => Doing { requests: self.missing(now), again: None },
            Load::Bursts { .. } => {
                Doing { requests: self.missing(now), again: Some(self.next_burst(now)) }
            }
            Load::Open { rate } => self.open(now, rate, 1.0, OPEN_MAX),
            Load::Bounded { rate, outstanding } => self.open(now, rate, 1.0, outstanding),
            Load::Sine { mean, swing, period } => {
                // Thinning (Lewis and Shedler 1979): as many as at the peak, of which
                // some do not happen.
                let peak = mean * (1.0 + swing);
                let here = mean * (1.0 + swing * dice::wave(now, period));
                self.open(now, peak, here / peak, OPEN_MAX)
            }
        }
    }

    /// One of its requests was answered: so many come instead.
    pub(crate) fn answered(&mut self, now: Nanos) -> u32 {
        self.in_flight -= 1;
        self.missing(now)
    }

    /// The next request, on this LUN.
    pub(crate) fn request(&mut self, id: u64, lun: u32) -> Request {
        let Access { bytes, read_percent, random, size } = self.client.access;
        let places = (size / bytes).max(1);
        let place = match random {
            true => self.random.below(places),
            false => self.next % places,
        };
        self.next += 1;
        let kind =
            if self.random.percent(read_percent) { Kind::Read } else { Kind::Write };
        self.in_flight += 1;
        Request { id, lun, kind, offset: place * bytes, bytes }
    }

    /// Requests that a closed client is short of.
    fn missing(&self, now: Nanos) -> u32 {
        let outstanding = match self.client.load {
            Load::Closed { outstanding } => outstanding,
            Load::Bursts { outstanding, on, off } => {
                let since = now.since(self.client.from).0 % on.plus(off).0.max(1);
                if since.cmp(&on.0) == Ordering::Less { outstanding } else { 0 }
            }
            Load::Open { .. } | Load::Bounded { .. } | Load::Sine { .. } => 0,
        };
        let asks = now >= self.client.from && now < self.client.until;
        if asks { outstanding.saturating_sub(self.in_flight) } else { 0 }
    }

    /// When the next burst begins.
    fn next_burst(&self, now: Nanos) -> Nanos {
        let Load::Bursts { on, off, .. } = self.client.load else { return Nanos::MAX };
        let turn = on.plus(off).0.max(1);
        let turns = now.since(self.client.from).0 / turn + 1;
        self.client.from.plus(Nanos(turns.saturating_mul(turn)))
    }

    /// One request with this probability, unless so many are in flight; and the next at
    /// its time.
    fn open(&mut self, now: Nanos, rate: f64, probability: f64, most: u32) -> Doing {
        let again = Some(now.plus(dice::interval(&mut self.random, rate)));
        let comes = dice::part(&mut self.random) < probability;
        if comes && self.in_flight >= most {
            self.refused += 1;
            return Doing { requests: 0, again };
        }
        Doing { requests: u32::from(comes), again }
    }
}
