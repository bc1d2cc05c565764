//! What the commands of a disk's clients hold of the reactor's memory while they are
//! under way, and with it what those of all disks on the same datastore do.
//!
//! A disk that has moved takes what is held along to its new datastore.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Of all disks on a datastore here.
pub(crate) type Sum = Rc<All>;

/// See [`Sum`].
#[derive(Debug, Default)]
pub(crate) struct All {
    held: Cell<usize>,
    /// What becomes free is for the first of those who wait.
    reserved: Cell<bool>,
}

impl All {
    fn take(&self, cost: usize) {
        self.held.set(self.held.get() + cost);
    }

    fn give(&self, cost: usize) {
        self.held.set(self.held.get().saturating_sub(cost));
    }
}

/// Of one disk.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    mine: Cell<usize>,
    /// What the connections of the disk have of the pool, with replies that nobody has taken.
    lent: Cell<usize>,
    all: RefCell<Sum>,
}

impl Holds {
    pub(crate) fn take(&self, cost: usize) {
        self.mine.set(self.mine.get() + cost);
        self.all.borrow().take(cost);
    }

    pub(crate) fn give(&self, cost: usize) {
        debug_assert!(cost <= self.mine.get());
        self.mine.set(self.mine.get().saturating_sub(cost));
        self.all.borrow().give(cost);
    }

    /// A connection has got so much of the pool.
    pub(crate) fn lend(&self, cost: usize) {
        self.lent.set(self.lent.get() + cost);
    }

    /// It has given that back.
    pub(crate) fn give_back(&self, cost: usize) {
        debug_assert!(cost <= self.lent.get());
        self.lent.set(self.lent.get().saturating_sub(cost));
    }

    /// What the connections of the disk have of the pool.
    pub(crate) fn lent(&self) -> usize {
        self.lent.get()
    }

    /// What all on its datastore hold.
    pub(crate) fn of_all(&self) -> usize {
        self.all.borrow().held.get()
    }

    /// Says whether what becomes free of the datastore's portion is kept for the first of
    /// those who wait for it.
    pub(crate) fn set_reserved(&self, reserved: bool) {
        self.all.borrow().reserved.set(reserved);
    }

    /// See `set_reserved`.
    pub(crate) fn is_reserved(&self) -> bool {
        self.all.borrow().reserved.get()
    }

    /// What all on its datastore hold together.
    #[cfg(test)]
    pub(crate) fn sum(&self) -> Sum {
        Rc::clone(&self.all.borrow())
    }

    /// The disk is on another datastore now.
    pub(crate) fn move_to(&self, all: Sum) {
        let old = self.all.replace(all);
        old.give(self.mine.get());
        self.all.borrow().take(self.mine.get());
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        self.give(self.mine.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_holds_goes_with_it() {
        let (here, there) = (Sum::default(), Sum::default());
        let (one, other) = (Holds::default(), Holds::default());
        one.move_to(Rc::clone(&here));
        other.move_to(Rc::clone(&here));
        one.take(5);
        other.take(7);
        let held = |sum: &Sum| sum.held.get();
        assert_eq!((one.of_all(), held(&here)), (12, 12));
        one.move_to(Rc::clone(&there));
        assert_eq!((held(&here), held(&there)), (7, 5));
        one.give(2);
        drop(other);
        assert_eq!((held(&here), held(&there)), (0, 3));
    }
}
