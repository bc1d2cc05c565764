//! Who may take how much of the pool.
//!
//! The rule is that of shared-memory switches (Choudhury and Hahne's dynamic
//! threshold): a connection may take more while what it then holds is at most
//! `SHARE` times what is still free. So one connection alone gets two thirds of
//! the budget, `n` busy ones settle at `2/(2n+1)` each, and even one that never
//! gives anything back leaves a third to the others.
//!
//! When memory is that short, a long command of a connection that holds nothing
//! makes do with two small buffers (`SMALL`), and those it may take whatever is
//! free. So it takes many connections that give nothing back to leave nothing
//! for one command more; and then the clock runs out for them (`STALL`).
//!
//! Who is refused stands in line. While the first in line holds nothing, all
//! that becomes free is kept for it (`Pool::reserved`).
//!
//! Requests that wait for their turn may do so for long: their class is held to a
//! rate. So what waits on one disk, over all its connections, is held to a smaller
//! part of what is free (`WAITING_PART`): one such disk leaves eight ninths of the
//! budget to the others, and each further one takes less. A command past that does
//! not stand in the line for memory; it goes on when one that waits has started. Then
//! the connections of the disk begin one command each, in turn (`disk::Entry`): one with
//! small commands would else fill each gap before one with large ones fits in.

use super::PIECE;
use crate::buffer::{Buf, Pool};

/// See above.
const SHARE: usize = 2;

/// What waits for its turn on a disk holds at most so much of what is free: enough
/// for some hundred requests of the usual size, and the next one comes in while one
/// starts.
const WAITING_PART: usize = 8;

/// The smallest buffers of a long command: two of these take as much as one
/// command of the usual size, and still carry 64 KiB at a time.
const SMALL: usize = 64 << 10;

/// The buffers of a command: two if it works through them in turn.
pub(super) type Lanes = [Option<Buf>; 2];

/// Why a command cannot start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no memory for it.
    Memory,
    /// Enough of its disk's requests wait for their turn.
    Turns,
}

/// What a connection holds of its reactor's pool for commands and replies.
#[derive(Default)]
pub(super) struct Account {
    held: usize,
}

impl Account {
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// All buffers that a command with `len` bytes of payload ever needs, and
    /// what they cost. So much of the pool is held by what waits on the same disk.
    pub(super) fn take(
        &mut self,
        pool: &Pool,
        len: usize,
        waiting: usize,
    ) -> Result<(Lanes, usize), Refusal> {
        let (each, count) = if len > PIECE { (PIECE, 2) } else { (len, 1) };
        let cost = Pool::cost(each).saturating_mul(count);
        let left = pool.free().saturating_sub(cost);
        if waiting > 0 && waiting.saturating_add(cost) > left / WAITING_PART {
            return Err(Refusal::Turns);
        }
        if pool.reserved() {
            return Err(Refusal::Memory);
        }
        self.take_now(pool, len, each, count).ok_or(Refusal::Memory)
    }

    fn take_now(
        &mut self,
        pool: &Pool,
        len: usize,
        each: usize,
        count: usize,
    ) -> Option<(Lanes, usize)> {
        if len <= 2 * SMALL {
            return self.take_lanes(pool, each, count, self.held == 0);
        }
        let lanes = self.take_lanes(pool, each, count, false);
        if lanes.is_none() && self.held == 0 {
            return self.take_lanes(pool, SMALL, 2, true);
        }
        lanes
    }

    fn take_lanes(
        &mut self,
        pool: &Pool,
        each: usize,
        count: usize,
        whatever_is_free: bool,
    ) -> Option<(Lanes, usize)> {
        let cost = Pool::cost(each).checked_mul(count)?;
        let free = pool.free().checked_sub(cost)?;
        if !whatever_is_free && self.held + cost > SHARE * free {
            return None;
        }
        let first = pool.get(each)?;
        let second = if count > 1 { Some(pool.get(each)?) } else { None };
        self.held += cost;
        Some(([Some(first), second], cost))
    }

    /// Gives back what `take` counted; the buffers go by themselves.
    pub(super) fn give(&mut self, cost: usize) {
        debug_assert!(cost <= self.held);
        self.held = self.held.saturating_sub(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_gives_nothing_back_leaves_a_third() {
        let pool = Pool::new(16 << 20).unwrap();
        let mut buffers = Vec::new();
        let mut free = pool.free();
        for _ in 0..4 {
            let mut account = Account::default();
            while let Ok(taken) = account.take(&pool, 64 << 10, 0) {
                buffers.push(taken);
            }
            assert!(pool.free() >= free / 3 && pool.free() <= free / 2);
            free = pool.free();
        }
        assert!(Account::default().take(&pool, 64 << 10, 0).is_ok());
    }

    #[test]
    fn a_long_command_gets_on_with_little() {
        let pool = Pool::new(1 << 20).unwrap();
        let hog = pool.get(512 << 10).unwrap();
        let mut account = Account::default();
        let (lanes, cost) = account.take(&pool, 32 << 20, 0).unwrap();
        assert_eq!((lanes.iter().flatten().count(), cost), (2, 2 * SMALL));
        let next = account.take(&pool, 32 << 20, 0);
        assert_eq!(next.err(), Some(Refusal::Memory), "and waits with the next one");
        drop(hog);
    }

    #[test]
    fn what_waits_for_its_turn_leaves_eight_ninths() {
        let pool = Pool::new(32 << 20).unwrap();
        let (mut waiting, mut buffers) = (0, Vec::new());
        // Over many connections of one disk.
        let refused = loop {
            match Account::default().take(&pool, 64 << 10, waiting) {
                Ok((lanes, cost)) => {
                    buffers.push(lanes);
                    waiting += cost;
                }
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refused, Refusal::Turns);
        assert!((30 << 20) / 9 < waiting && waiting <= (32 << 20) / 9, "{waiting}");
        // Of another disk, nothing waits.
        assert!(Account::default().take(&pool, 1 << 20, 0).is_ok());
    }
}
