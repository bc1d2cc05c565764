//! What an application asks next, and when.
//!
//! Pure: time is what the caller says it is, counted from the application's start,
//! and all chance comes from the seed. The caller carries requests out and says when
//! one was answered.
//!
//! In an open loop only the next request's moment is kept. A disk that is behind
//! does not make anything grow: the moments just lie in the past, and each request
//! carries the one at which it was due.

use sterna_core::{Bytes, Nanos};

use super::profile::{Bursts, Order, Pace, Profile, ProfileError};
use crate::random::Random;

/// The most requests under way in an open loop; what is due beyond it waits, and its
/// waiting is counted. As many as an operating system puts into one queue.
const OPEN_OUTSTANDING: u32 = 256;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Make durable what was written; it has no place and no length.
    Flush,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub kind: Kind,
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// The moment at which it is due: not after now.
    pub due: Nanos,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This request, now. Ask again at once.
    Start(Request),
    /// Nothing before this moment.
    At(Nanos),
    /// Nothing before one of those under way is answered.
    Answer,
}

/// An application at work.
#[derive(Clone, Debug)]
pub struct Demand {
    profile: Profile,
    span: u64,
    random: Random,
    /// Where the last request ended, for one that goes in order.
    cursor: u64,
    outstanding: u32,
    /// Writes since the last flush.
    unflushed: u32,
    /// When the next request is due in an open loop, on a clock that stands still
    /// while the application rests.
    worked: Nanos,
}

impl Demand {
    /// An application with this profile on a disk of this size. Refuses a profile
    /// that makes no sense there.
    pub fn new(
        profile: &Profile,
        disk: Bytes,
        seed: u64,
    ) -> Result<Demand, ProfileError> {
        let span = profile.span_on(disk)?.0;
        let mut demand = Demand {
            profile: *profile,
            span,
            random: Random::new(seed),
            cursor: 0,
            outstanding: 0,
            unflushed: 0,
            worked: Nanos(0),
        };
        if let Pace::Open { rate } = profile.pace {
            demand.worked = demand.interval(rate);
        }
        Ok(demand)
    }

    /// What comes next, so long after the start. Time never goes back.
    pub fn next(&mut self, now: Nanos) -> Next {
        let (places, due) = match self.profile.pace {
            Pace::Closed { outstanding } => (outstanding, self.working_from(now)),
            Pace::Open { .. } => (OPEN_OUTSTANDING, self.wall(self.worked)),
        };
        if self.outstanding >= places {
            return Next::Answer;
        }
        if self.profile.flush_every.is_some_and(|every| self.unflushed >= every) {
            self.unflushed = 0;
            self.outstanding += 1;
            return Next::Start(Request {
                kind: Kind::Flush,
                offset: 0,
                len: 0,
                due: now,
            });
        }
        if due > now {
            return Next::At(due);
        }
        if let Pace::Open { rate } = self.profile.pace {
            self.worked = self.worked.plus(self.interval(rate));
        }
        self.outstanding += 1;
        Next::Start(self.request(due))
    }

    /// One of the requests was answered.
    pub fn answered(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// How many requests have no answer yet.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    fn request(&mut self, due: Nanos) -> Request {
        let read = self.random.percent(self.profile.reads);
        let kind = if read { Kind::Read } else { Kind::Write };
        if !read {
            self.unflushed = self.unflushed.saturating_add(1);
        }
        let lengths = self.profile.lengths;
        let least = u64::from(lengths.least);
        let len = least * (1 + self.random.below(u64::from(lengths.most) / least));
        let offset = match self.profile.order {
            Order::Random => self.random.below((self.span - len) / least + 1) * least,
            Order::Sequential if self.cursor + len > self.span => 0,
            Order::Sequential => self.cursor,
        };
        self.cursor = offset + len;
        // At most `most`, which has 32 bits.
        Request { kind, offset, len: len as u32, due }
    }

    /// The time from one arrival of a Poisson process to the next: exponentially
    /// distributed, with a mean of 1 / rate.
    fn interval(&mut self, rate: f64) -> Nanos {
        // 53 bits and a half: never 0, never 1.
        let uniform = ((self.random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        Nanos((-uniform.ln() / rate * 1e9) as u64)
    }

    /// The first moment from `now` on at which it works.
    fn working_from(&self, now: Nanos) -> Nanos {
        match self.profile.bursts {
            Some(Bursts { on, off }) => {
                let round = on.0.saturating_add(off.0);
                let into = now.0 % round;
                if into < on.0 { now } else { Nanos(now.0 - into + round) }
            }
            None => now,
        }
    }

    /// The moment at which it has worked so long.
    fn wall(&self, worked: Nanos) -> Nanos {
        match self.profile.bursts {
            Some(Bursts { on, off }) => {
                let rests = worked.0 / on.0;
                Nanos(worked.0.saturating_add(rests.saturating_mul(off.0)))
            }
            None => worked,
        }
    }
}
