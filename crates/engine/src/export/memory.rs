//! Who may take how much of the pool.
//!
//! The rule is that of shared-memory switches (Choudhury and Hahne's dynamic
//! threshold): a connection may take more while what it then holds is at most
//! `SHARE` times what is still free. So one connection alone gets two thirds of
//! the budget, `n` busy ones settle at `2/(2n+1)` each, and even one that never
//! gives anything back leaves a third to the others.
//!
//! The same holds for the connections of one disk together: a guest that opens many of them,
//! and takes none of its replies, leaves a third to the others, too.
//!
//! When memory is that short, a command of a connection that holds nothing makes do with
//! two small buffers, a sixteenth of what is free or less (`small`); a page each, if its disk
//! or its datastore has its share. So it takes many connections that give nothing back to leave
//! nothing for one command more; and then the clock runs out for them (`STALL`).
//!
//! Who is refused stands in line. While the first in line holds nothing, all
//! that becomes free is kept for it (`Pool::reserved`).
//!
//! Requests that wait for admission may do so for long: their class is held to a
//! rate. So what waits on one disk, over all its connections, is held to a smaller
//! part of what is free (`WAITING_PART`): one such disk leaves eight ninths of the
//! budget to the others, and each further one takes less. A command past that does
//! not stand in the line for memory; it goes on when one that waits has started. Then
//! the connections of the disk begin one command each, in turn (`disk::Entry`): one with
//! small commands would else fill each gap before one with large ones fits in.
//!
//! A datastore may hang, with everything that is under way there. So what the commands of
//! all its disks hold is bounded as well (`sterna_core::qos::Portion`). A command past
//! that does not stand in the line either: it would keep all that becomes free for
//! something that gives nothing back. It waits among those of its own datastore; while the
//! first of them holds nothing, what becomes free of the portion is kept for it.
//!
//! Whoever comes in (`newcomers`) needs none of this: first receive buffers and
//! handshakes have a pool of their own; and so have connections to NBD servers (`links`),
//! which would else, where there are many, take all of it.

use std::rc::Rc;

use sterna_core::qos::Portion;

use super::{CONNECTIONS_MAX, HANDSHAKES_MAX, PIECE, RECEIVE_MIN};
use crate::buffer::{Buf, Pool, UNIT};
use crate::disk::Strain;
use crate::holds::Holds;

/// See above.
const SHARE: usize = 2;

/// What waits for admission on a disk holds at most so much of what is free: enough
/// for some hundred requests of the usual size, and the next one comes in while one
/// starts.
const WAITING_PART: usize = 8;

/// Small buffers are no larger than this, however much is free: two of these carry
/// 64 KiB at a time.
const SMALL_MAX: usize = 64 << 10;

/// Two small buffers take at most so much of what is free, or a page each.
const SMALL_PART: usize = 16;

/// The small buffers of a command where so much is free.
fn small(free: usize) -> usize {
    let fair = (free / SMALL_PART / 2).max(UNIT);
    (1 << fair.ilog2()).min(SMALL_MAX)
}

/// The buffers of a command: two if it works through them in turn.
pub(super) type Lanes = [Option<Buf>; 2];

/// Why a command cannot start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no memory for it.
    Memory,
    /// Enough of its disk's requests wait for admission.
    Admission,
    /// What is under way at its datastore holds its portion.
    Datastore,
}

/// First receive buffers of connections to NBD servers: a hundred of them. They keep
/// theirs, so a server that is lost is found again without memory; more come out of the
/// common pool.
const LINKS: usize = 100 * (16 << 10);

/// A pool for whoever comes in: no connection and no handshake can be kept out by
/// commands that hold memory. What is not used of it costs address space alone.
pub(crate) fn newcomers() -> std::io::Result<Pool> {
    Pool::new((CONNECTIONS_MAX + 2 * HANDSHAKES_MAX) * RECEIVE_MIN)
}

/// A pool for connections to NBD servers, of whom no client and no command is kept waiting.
pub(crate) fn links() -> std::io::Result<Pool> {
    Pool::new(LINKS)
}

/// What a connection holds of its reactor's pool for commands and replies.
#[derive(Default)]
pub(super) struct Account {
    held: usize,
    /// What of it is under way at the datastore is counted there, too.
    holds: Rc<Holds>,
}

impl Account {
    pub(super) fn new(holds: &Rc<Holds>) -> Account {
        Account { held: 0, holds: Rc::clone(holds) }
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// All buffers that a command with `len` bytes of payload ever needs, and
    /// what they cost.
    pub(super) fn take(
        &mut self,
        pool: &Pool,
        len: usize,
        strain: Strain,
    ) -> Result<(Lanes, usize), Refusal> {
        let (each, count) = if len > PIECE { (PIECE, 2) } else { (len, 1) };
        let cost = Pool::cost(each).saturating_mul(count);
        let (left, waiting) = (pool.free().saturating_sub(cost), strain.waiting);
        let portion = Portion {
            held: self.holds.of_all() as u64,
            oldest: strain.oldest,
            newcomer: self.held == 0,
        };
        let free = pool.free();
        // Where memory is short, one that holds nothing needs less.
        let lane = self.least_lane(portion, free);
        let least = if self.held == 0 { cost.min(2 * lane) } else { cost };
        if self.holds.is_reserved() || !portion.may_take(least as u64, free as u64) {
            return Err(Refusal::Datastore);
        }
        if waiting > 0 && waiting.saturating_add(cost) > left / WAITING_PART {
            return Err(Refusal::Admission);
        }
        if pool.reserved() {
            return Err(Refusal::Memory);
        }
        let whole = portion.may_take(cost as u64, free as u64);
        let taken = whole.then(|| self.take_lanes(pool, each, count, false)).flatten();
        let taken = taken.or_else(|| self.take_small(pool, len, lane));
        taken.ok_or(Refusal::Memory)
    }

    /// The small buffers of a command, where its disk has its share or not.
    fn least_lane(&self, portion: Portion, free: usize) -> usize {
        let lane = small(free);
        let has_its_share = self.holds.lent() > SHARE * free
            || !portion.may_take(2 * lane as u64, free as u64);
        if has_its_share { UNIT } else { lane }
    }

    /// What a command gets on with where memory is short, if the connection holds nothing.
    fn take_small(
        &mut self,
        pool: &Pool,
        len: usize,
        each: usize,
    ) -> Option<(Lanes, usize)> {
        if self.held > 0 {
            return None;
        }
        if len <= each {
            return self.take_lanes(pool, len, 1, true);
        }
        self.take_lanes(pool, each, 2, true)
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
        let most = self.held.max(self.holds.lent()) + cost;
        if !whatever_is_free && most > SHARE * free {
            return None;
        }
        let first = pool.get(each)?;
        let second = if count > 1 { Some(pool.get(each)?) } else { None };
        self.held += cost;
        self.holds.take(cost);
        self.holds.lend(cost);
        Some(([Some(first), second], cost))
    }

    /// The datastore has answered for what `take` counted: whoever holds it now, it is not
    /// what is under way there.
    pub(super) fn answered(&self, cost: usize) {
        self.holds.give(cost);
    }

    /// The datastore is asked again on behalf of what `answered` counted off.
    pub(super) fn asked(&self, cost: usize) {
        self.holds.take(cost);
    }

    /// Gives back what `take` counted; the buffers go by themselves.
    pub(super) fn give(&mut self, cost: usize) {
        debug_assert!(cost <= self.held);
        self.held = self.held.saturating_sub(cost);
        self.holds.give_back(cost);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.holds.give_back(self.held);
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::Nanos;

    use super::*;

    #[test]
    fn whoever_gives_nothing_back_leaves_a_third() {
        let pool = Pool::new(16 << 20).unwrap();
        let mut buffers = Vec::new();
        let mut free = pool.free();
        for _ in 0..4 {
            let mut account = Account::default();
            while let Ok(taken) = account.take(&pool, 64 << 10, Strain::default()) {
                buffers.push(taken);
            }
            assert!(pool.free() >= free / 3 && pool.free() <= free / 2);
            free = pool.free();
        }
        assert!(Account::default().take(&pool, 64 << 10, Strain::default()).is_ok());
    }

    fn strain(waiting: usize) -> Strain {
        Strain { waiting, oldest: Nanos(0) }
    }

    #[test]
    fn the_clients_of_a_datastore_that_hangs_leave_room_for_those_of_another() {
        let pool = Pool::new(16 << 20).unwrap();
        let (sick, well) = (Rc::new(Holds::default()), Rc::new(Holds::default()));
        let mut accounts: Vec<Account> = (0..64).map(|_| Account::new(&sick)).collect();
        let mut buffers = Vec::new();
        for _ in 0..16 {
            for account in &mut accounts {
                buffers.extend(account.take(&pool, 256 << 10, Strain::default()).ok());
            }
        }
        assert!(pool.free() > 1 << 20, "{} are left", pool.free());
        let hangs = Strain { waiting: 0, oldest: Nanos::from_secs(3) };
        let more = accounts[0].take(&pool, 4096, hangs);
        assert_eq!(more.err(), Some(Refusal::Datastore));
        assert!(!pool.reserved());
        // Eight writes under way, as before; and one who has just come.
        let mut other = Account::new(&well);
        let others = (0..8).map(|_| other.take(&pool, 64 << 10, Strain::default()).ok());
        assert!(others.collect::<Option<Vec<_>>>().is_some());
        assert!(Account::new(&well).take(&pool, 1 << 20, Strain::default()).is_ok());
        // What is kept for the first of those who wait is no newcomer's.
        well.set_reserved(true);
        let newcomer = Account::new(&well).take(&pool, 4096, Strain::default());
        assert_eq!(newcomer.err(), Some(Refusal::Datastore));
    }

    #[test]
    fn a_long_command_gets_on_with_little() {
        let pool = Pool::new(1 << 20).unwrap();
        let hog = pool.get(512 << 10).unwrap();
        let lane = small(512 << 10);
        let mut account = Account::default();
        let (lanes, cost) = account.take(&pool, 32 << 20, Strain::default()).unwrap();
        assert_eq!((lanes.iter().flatten().count(), cost), (2, 2 * lane));
        let next = account.take(&pool, 32 << 20, Strain::default());
        assert_eq!(next.err(), Some(Refusal::Datastore), "and waits with the next one");
        drop(hog);
    }

    #[test]
    fn many_that_give_nothing_back_leave_something_for_one_more() {
        let pool = Pool::new(16 << 20).unwrap();
        let mut kept = Vec::new();
        for _ in 0..48 {
            let mut account = Account::default();
            while let Ok(taken) = account.take(&pool, 1 << 20, Strain::default()) {
                kept.push(taken);
            }
            // It is not under way at its datastore: its client does not take it.
            account.answered(account.held());
        }
        for len in [512, 64 << 10, 1 << 20] {
            let taken = Account::default().take(&pool, len, Strain::default());
            assert!(taken.is_ok(), "{} are free for {len}", pool.free());
        }
    }

    #[test]
    fn a_disk_whose_clients_take_no_replies_leaves_a_third_to_others_on_its_datastore() {
        let pool = Pool::new(16 << 20).unwrap();
        let (bad, well) = (Rc::new(Holds::default()), Rc::new(Holds::default()));
        bad.move_to(well.sum());
        let mut accounts: Vec<Account> = (0..64).map(|_| Account::new(&bad)).collect();
        let mut kept = Vec::new();
        for _ in 0..16 {
            for account in &mut accounts {
                if let Ok((lanes, cost)) = account.take(&pool, 4 << 20, Strain::default())
                {
                    // It was read, and its client does not take it.
                    account.answered(cost);
                    kept.push(lanes);
                }
            }
        }
        assert!(pool.free() > 4 << 20, "{} are left", pool.free());
        let mut other = Account::new(&well);
        for len in [4096, 64 << 10, 1 << 20] {
            let taken = other.take(&pool, len, Strain::default());
            assert!(taken.is_ok(), "{:?} of {len}", taken.err());
        }
    }

    #[test]
    fn what_waits_for_admission_leaves_eight_ninths() {
        let pool = Pool::new(32 << 20).unwrap();
        let (mut waiting, mut buffers) = (0, Vec::new());
        // Over many connections of one disk.
        let refused = loop {
            match Account::default().take(&pool, 64 << 10, strain(waiting)) {
                Ok((lanes, cost)) => {
                    buffers.push(lanes);
                    waiting += cost;
                }
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refused, Refusal::Admission);
        assert!((30 << 20) / 9 < waiting && waiting <= (32 << 20) / 9, "{waiting}");
        // Of another disk, nothing waits.
        assert!(Account::default().take(&pool, 1 << 20, Strain::default()).is_ok());
    }
}
