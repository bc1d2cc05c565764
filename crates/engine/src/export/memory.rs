//! Who may take how much of the pool.
//!
//! The rule is that of shared-memory switches (Choudhury and Hahne's dynamic
//! threshold): a connection may take more while what it then holds is at most
//! `SHARE` times what is still free. One connection alone gets two thirds of
//! the budget, `n` greedy ones get `2/(2n+1)` each and leave as much for the
//! next one that comes, whatever they do with theirs. A connection that holds
//! nothing may take whatever there is: everyone gets at least one command on.
//!
//! Who is refused stands in line. While the first in line holds nothing, all
//! that becomes free is kept for it (`Pool::reserved`).

use crate::buffer::{Buf, Pool};

/// See above.
const SHARE: usize = 2;

/// What a connection holds of its reactor's pool for commands and replies.
#[derive(Default)]
pub(super) struct Account {
    held: usize,
}

impl Account {
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// `count` buffers of `len` bytes each (at most two), or none at all.
    pub(super) fn take(
        &mut self,
        pool: &Pool,
        len: usize,
        count: usize,
    ) -> Option<[Option<Buf>; 2]> {
        if pool.reserved() {
            return None;
        }
        let cost = Pool::cost(len).checked_mul(count)?;
        let free = pool.free().checked_sub(cost)?;
        if self.held > 0 && self.held + cost > SHARE * free {
            return None;
        }
        let first = pool.get(len)?;
        let second = if count > 1 { Some(pool.get(len)?) } else { None };
        self.held += cost;
        Some([Some(first), second])
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
    fn however_many_are_greedy_the_next_one_gets_its_part() {
        let pool = Pool::new(16 << 20).unwrap();
        let mut buffers = Vec::new();
        let mut shares = Vec::new();
        for _ in 0..20 {
            let mut account = Account::default();
            while let Some(taken) = account.take(&pool, 64 << 10, 1) {
                buffers.push(taken);
            }
            shares.push(account.held());
        }
        assert!(shares[0] > 10 << 20 && shares[0] < 11 << 20);
        assert!(shares.iter().all(|&share| share >= 64 << 10), "{shares:?}");
    }
}
