//! What a disk's clients have to be told: that writes which they had been answered may be
//! lost.
//!
//! There is one way to tell a client, and every file system and database knows it: a flush
//! that fails (`EIO`), as `fsync` fails once for each loss since Linux 4.13.
//!
//! - After a loss the next flush fails, once. So does every flush that had begun before the
//!   loss was known and has not been answered: who waits for it relies on what is lost.
//! - A write that must be durable when it is answered (FUA) counts as a flush.
//! - The flush after that succeeds: what was written since the loss is durable.

/// Losses, and how many of them clients have been told of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Debt {
    losses: u64,
    told: u64,
}

impl Debt {
    /// Writes that clients were answered may be lost.
    pub fn lost(&mut self) {
        self.losses += 1;
    }

    /// What a flush that begins has to remember.
    pub fn now(&self) -> u64 {
        self.losses
    }

    /// Whether a flush that began at `began`, and would succeed, must fail.
    pub fn settle(&mut self, began: u64) -> bool {
        let must_fail = self.losses > self.told || self.losses > began;
        self.told = self.losses;
        must_fail
    }

    /// Whether there is a loss that no client has been told of.
    pub fn is_owed(&self) -> bool {
        self.losses > self.told
    }
}

#[cfg(test)]
mod tests {
    use super::Debt;

    #[test]
    fn one_flush_fails_for_each_loss() {
        let mut debt = Debt::default();
        assert!(!debt.settle(debt.now()));
        debt.lost();
        assert!(debt.is_owed());
        assert!(debt.settle(debt.now()));
        assert!(!debt.is_owed() && !debt.settle(debt.now()));
        debt.lost();
        debt.lost();
        assert!(debt.settle(debt.now()));
        assert!(!debt.settle(debt.now()));
    }

    #[test]
    fn each_flush_that_was_under_way_fails() {
        let mut debt = Debt::default();
        let (one, other) = (debt.now(), debt.now());
        debt.lost();
        let later = debt.now();
        assert!(debt.settle(one) && debt.settle(other));
        assert!(!debt.settle(later), "a client has been told");
    }
}
