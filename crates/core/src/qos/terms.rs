//! The terms of a class: what it is promised, and what it is held to.

use crate::Nanos;

/// The shares of a class that was given none.
pub const SHARES: u32 = 1000;

/// So much per second, of bytes or of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// Bytes per second, above zero.
    Bytes(u64),
    /// Requests per second, above zero.
    Requests(u64),
}

/// What a class is held to. All that is set holds at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limit {
    /// Bytes per second at most.
    pub bytes: Option<u64>,
    /// Requests per second at most.
    pub requests: Option<u64>,
    /// The mean response time at least: requests are held back for what the device
    /// does not take of it.
    pub response: Option<Nanos>,
}

impl Limit {
    /// Whether nothing is held back.
    pub fn is_none(&self) -> bool {
        *self == Limit::default()
    }
}

/// The terms of a class on one datastore. In the order of precedence:
/// reservation, limit, shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// What it gets before anybody gets more than theirs.
    pub reservation: Option<Rate>,
    /// What it is held to.
    pub limit: Limit,
    /// Its part of what is left, against the shares of the others; above zero.
    pub shares: u32,
    /// Requests at the device at most, above zero.
    pub depth: Option<u32>,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { reservation: None, limit: Limit::default(), shares: SHARES, depth: None }
    }
}
