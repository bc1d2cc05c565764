//! Buffers of I/O: page-aligned, reference-counted, out of a fixed budget.
//!
//! A reactor has one `Pool`: one stretch of address space as long as its
//! budget, cut into blocks of 4 KiB times a power of two (a buddy allocator).
//! A `Buf` is a counted reference to a block, a `Slice` a part of one; the
//! block returns to the pool with its last reference. Nothing is allocated on
//! the heap on the way, and memory that was never needed is never touched.
//!
//! **Who may touch the bytes.** The kernel reads and writes blocks while
//! operations are in flight, so each block has a borrow count like a
//! `RefCell`: any number of readers (writes to disk, sends, `bytes()`), or one
//! writer (reads from disk, receives, `copy_from`). The `Io` takes the count
//! for an operation when it starts and gives it back when it completes, and
//! keeps the reference itself meanwhile. A conflict is a bug of this crate,
//! and panics rather than corrupts.
//!
//! **Memory of others.** A slice can also be some stretches of a guest's own memory,
//! which cost the pool nothing. The guest may change them at any time: so they are never
//! looked at through a reference, only copied or given to the kernel, and nothing is
//! borrowed. Who needs the same bytes twice makes a copy first.
//!
//! **When the budget is used up**, `get` says `None`; the caller waits until
//! some block is freed. Who may take how much is the caller's rule, see
//! `export::memory` for the one that connections follow.

mod arena;
mod buddy;
mod slice;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use arena::Arena;
use buddy::{Lists, ORDER_MAX};
pub(crate) use slice::{Slice, Vector};

/// The smallest block, and the alignment of all of them: a page, which is
/// also the coarsest alignment that direct I/O asks for on common devices.
pub(crate) const UNIT: usize = 4096;

/// The buffers of one reactor.
#[derive(Clone)]
pub(crate) struct Pool(Rc<Inner>);

struct Inner {
    arena: Arena,
    blocks: Box<[Block]>,
    lists: RefCell<Lists>,
    free: Cell<usize>,
    reserved: Cell<bool>,
}

/// What is known about the block that begins at a unit.
#[derive(Clone, Default)]
struct Block {
    references: Cell<u32>,
    /// How many read it now; -1: one writes it.
    borrowed: Cell<i32>,
}

impl Pool {
    /// A pool of `budget` bytes, rounded down to whole units (at least one).
    pub(crate) fn new(budget: usize) -> io::Result<Pool> {
        let units = u32::try_from((budget / UNIT).max(1))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Pool(Rc::new(Inner {
            arena: Arena::map(units as usize * UNIT)?,
            blocks: vec![Block::default(); units as usize].into_boxed_slice(),
            lists: RefCell::new(Lists::new(units)),
            free: Cell::new(units as usize * UNIT),
            reserved: Cell::new(false),
        })))
    }

    /// A block of at least `len` bytes (rounded up to a power of two), or
    /// `None` if there is no room for it now. The bytes are whatever the last
    /// user left.
    pub(crate) fn get(&self, len: usize) -> Option<Buf> {
        let order = order_of(len)?;
        let unit = self.0.lists.borrow_mut().take(order)?;
        self.0.free.set(self.0.free.get() - (UNIT << order));
        self.0.blocks[unit as usize].references.set(1);
        Some(Buf { pool: Rc::clone(&self.0), unit, order: order as u8 })
    }

    /// A block of at least `len` bytes in a pool of its own, which goes with it.
    pub(crate) fn single(len: usize) -> io::Result<Buf> {
        let pool = Pool::new(Pool::cost(len))?;
        pool.get(len).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// How much `get(len)` takes out of the budget.
    pub(crate) fn cost(len: usize) -> usize {
        order_of(len).map_or(usize::MAX, |order| UNIT << order)
    }

    /// Bytes that are free. A `get` can fail nonetheless, if they lie apart.
    pub(crate) fn free(&self) -> usize {
        self.0.free.get()
    }

    /// Says whether what is free is kept for someone who waits in line. The
    /// pool only remembers it, for those who ask for memory to respect.
    pub(crate) fn set_reserved(&self, reserved: bool) {
        self.0.reserved.set(reserved);
    }

    /// See `set_reserved`.
    pub(crate) fn reserved(&self) -> bool {
        self.0.reserved.get()
    }

    /// Bytes in all.
    pub(crate) fn budget(&self) -> usize {
        self.0.arena.len
    }
}

/// The order of the smallest block that holds `len` bytes.
fn order_of(len: usize) -> Option<usize> {
    let units = len.div_ceil(UNIT).max(1);
    let order = units.next_power_of_two().trailing_zeros() as usize;
    (order <= ORDER_MAX).then_some(order)
}

/// A counted reference to a block of a pool.
pub(crate) struct Buf {
    pool: Rc<Inner>,
    unit: u32,
    order: u8,
}

impl Buf {
    /// The size of the block.
    pub(crate) fn capacity(&self) -> usize {
        UNIT << self.order
    }

    /// The bytes from `start`, `len` of them.
    pub(crate) fn slice(&self, start: usize, len: usize) -> Slice {
        let end = start.checked_add(len).expect("a slice within its buffer");
        assert!(end <= self.capacity(), "a slice within its buffer");
        Slice::of(self.clone(), start as u32, len as u32)
    }

    /// Nobody else has a reference.
    pub(crate) fn is_unique(&self) -> bool {
        self.block().references.get() == 1
    }

    fn block(&self) -> &Block {
        &self.pool.blocks[self.unit as usize]
    }
}

impl Clone for Buf {
    fn clone(&self) -> Self {
        let references = &self.block().references;
        references.set(references.get() + 1);
        Buf { pool: Rc::clone(&self.pool), unit: self.unit, order: self.order }
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        let references = &self.block().references;
        references.set(references.get() - 1);
        if references.get() == 0 {
            debug_assert_eq!(self.block().borrowed.get(), 0, "freed while in use");
            self.pool.lists.borrow_mut().give(self.unit, usize::from(self.order));
            self.pool.free.set(self.pool.free.get() + self.capacity());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_returns_with_its_last_reference() {
        let pool = Pool::new(1 << 20).unwrap();
        let buf = pool.get(5000).unwrap();
        assert_eq!((buf.capacity(), pool.free()), (8192, (1 << 20) - 8192));
        let slice = buf.slice(100, 50).part(10, 20);
        drop(buf);
        assert_eq!(pool.free(), (1 << 20) - 8192);
        drop(slice);
        assert_eq!(pool.free(), 1 << 20);
    }

    #[test]
    fn what_lies_apart_is_merged_when_a_large_block_is_asked_for() {
        let pool = Pool::new(1 << 20).unwrap();
        let small: Vec<_> = std::iter::from_fn(|| pool.get(1)).collect();
        assert_eq!((small.len(), pool.free()), (256, 0));
        drop(small);
        assert!(pool.get(1 << 20).is_some());
        assert!(pool.get((1 << 20) + 1).is_none());
    }

    #[test]
    #[should_panic(expected = "a buffer that is in use")]
    fn writing_bytes_that_someone_reads_is_refused() {
        let slice = Pool::new(UNIT).unwrap().get(1).unwrap().slice(0, 10);
        let _reading = slice.bytes();
        slice.zero();
    }

    proptest! {
        /// Whatever is taken and given back, no two blocks overlap, all are
        /// aligned, the account is exact, and in the end everything is one again.
        #[test]
        fn blocks_never_overlap(steps in prop::collection::vec((0usize..300_000, any::<bool>()), 1..200)) {
            let pool = Pool::new(3 << 20).unwrap();
            let mut held: Vec<Buf> = Vec::new();
            for (n, take) in steps {
                if take {
                    held.extend(pool.get(n));
                } else if !held.is_empty() {
                    held.swap_remove(n % held.len());
                }
                let mut ranges: Vec<_> =
                    held.iter().map(|b| (b.slice(0, 1).vector()[0].iov_base as usize, b.capacity())).collect();
                ranges.sort_unstable();
                prop_assert!(ranges.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
                prop_assert!(ranges.iter().all(|r| r.0 % UNIT == 0));
                let used: usize = ranges.iter().map(|r| r.1).sum();
                prop_assert_eq!(pool.free(), (3 << 20) - used);
            }
            held.clear();
            prop_assert!(pool.get(2 << 20).is_some());
        }
    }
}
