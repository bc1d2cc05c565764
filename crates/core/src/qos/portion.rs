//! How much of a memory that all datastores share is lent to what is under way at one.
//!
//! A request holds its bytes until its datastore has answered. A datastore that hangs
//! gives nothing back, and within a millisecond its clients have asked for as much as they
//! are let. So it is not enough to look at who is slow: before anybody can know, a
//! datastore must leave something to the others.
//!
//! **The rule** is that of shared-memory switches (Choudhury and Hahne's dynamic
//! threshold), datastore by datastore: one may take more while what it then holds is at
//! most [`SHARE`] times what is still free. So one that gives nothing back leaves a third
//! to the others, and `n` of them leave `1/(2n+1)`.
//!
//! **Special cases.**
//! - Once its oldest request has been under way for longer than [`SLOW`], a datastore is
//!   held to a small part of what is free. One that trickles, or comes back for a moment
//!   and hangs again, does not gather memory anew.
//! - A client that holds nothing is let in a little beyond the share, as others of the
//!   same datastore may sit on theirs. Each takes so little of what is free
//!   ([`NEWCOMER`]) that however many come, they leave enough for others to work with.

use crate::Nanos;

/// See above.
const SHARE: u64 = 2;

/// A request that takes longer than this is not one of a busy device: queues of that
/// length are cut by their window long before.
pub const SLOW: Nanos = Nanos::from_secs(1);

/// A slow datastore holds at most so much of what is free.
const PART: u64 = 8;

/// A newcomer beyond the share holds at most so much of what is free: while the smallest
/// request has a page, 256 KiB are left.
const NEWCOMER: u64 = 64;

/// What is asked of the memory, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    /// What is under way at the datastore holds so much.
    pub held: u64,
    /// For how long its oldest request has been under way.
    pub oldest: Nanos,
    /// Whether the client that asks holds nothing.
    pub newcomer: bool,
}

impl Portion {
    /// Whether `cost` more may be taken of `free`.
    pub fn may_take(self, cost: u64, free: u64) -> bool {
        let Some(left) = free.checked_sub(cost) else { return false };
        let Portion { held, oldest, newcomer } = self;
        if oldest > SLOW {
            return held.saturating_add(cost) <= left / PART;
        }
        let share = held.saturating_add(cost) <= left.saturating_mul(SHARE);
        share || (newcomer && cost <= left / NEWCOMER)
    }
}
