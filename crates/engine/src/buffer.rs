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
//! **Memory of others.** A slice can also be a stretch of a guest's own memory, which
//! costs the pool nothing. The guest may change it at any time: so it is never looked
//! at through a reference, only copied or given to the kernel, and nothing is borrowed.
//! Who needs the same bytes twice makes a copy first.
//!
//! **When the budget is used up**, `get` says `None`; the caller waits until
//! some block is freed. Who may take how much is the caller's rule, see
//! `export::memory` for the one that connections follow.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use crate::buddy::{Lists, ORDER_MAX};

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
        let memory = Memory::Block(self.clone());
        Slice { memory, start: start as u32, len: len as u32 }
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

/// A part of a `Buf`, or of a guest's memory.
#[derive(Clone)]
pub(crate) struct Slice {
    memory: Memory,
    start: u32,
    len: u32,
}

#[derive(Clone)]
enum Memory {
    Block(Buf),
    /// Of somebody who may change it at any time. It is there as long as its owner.
    Shared {
        base: NonNull<u8>,
        #[expect(dead_code, reason = "it is what keeps the memory there")]
        owner: Arc<dyn Any + Send + Sync>,
    },
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.memory {
            Memory::Block(buf) => {
                write!(f, "Slice({}+{}, {})", buf.unit, self.start, self.len)
            }
            Memory::Shared { base, .. } => {
                write!(f, "Slice({base:p}+{}, {})", self.start, self.len)
            }
        }
    }
}

impl Slice {
    /// A stretch of a guest's memory.
    ///
    /// # Safety
    ///
    /// `len` bytes from `base` can be read and written as long as `owner` is there.
    pub(crate) unsafe fn shared(
        base: NonNull<u8>,
        len: u32,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Slice {
        Slice { memory: Memory::Shared { base, owner }, start: 0, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether nobody else refers to its memory.
    pub(crate) fn is_unique(&self) -> bool {
        self.block().is_some_and(Buf::is_unique)
    }

    /// Whether it is a guest's memory, which can change at any time.
    pub(crate) fn is_shared(&self) -> bool {
        self.block().is_none()
    }

    /// Whether it is of this pool.
    pub(crate) fn is_of(&self, pool: &Pool) -> bool {
        self.block().is_some_and(|buf| Rc::ptr_eq(&buf.pool, &pool.0))
    }

    /// What of the pool the slice keeps from others: its whole block.
    pub(crate) fn cost(&self) -> usize {
        self.block().map_or(0, Buf::capacity)
    }

    fn block(&self) -> Option<&Buf> {
        match &self.memory {
            Memory::Block(buf) => Some(buf),
            Memory::Shared { .. } => None,
        }
    }

    /// The part of this slice from `start`, `len` bytes long.
    pub(crate) fn part(&self, start: usize, len: usize) -> Slice {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len()));
        let (start, len) = (self.start + start as u32, len as u32);
        Slice { memory: self.memory.clone(), start, len }
    }

    /// The bytes, to read. Panics while something writes them, and if they are a
    /// guest's.
    pub(crate) fn bytes(&self) -> Bytes<'_> {
        assert!(!self.is_shared(), "a guest's memory is copied, not looked at");
        self.borrow_shared();
        // SAFETY: the range lies inside the arena (checked when the slice was
        // made), which lives as long as the block. No one writes the block
        // while the guard holds the shared borrow.
        let bytes = unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) };
        Bytes { slice: self, bytes }
    }

    /// Copies `from` to the bytes from `at`. Panics while something uses them.
    pub(crate) fn copy_from(&self, at: usize, from: &[u8]) {
        assert!(at.checked_add(from.len()).is_some_and(|end| end <= self.len()));
        self.borrow_exclusive();
        // SAFETY: the range is valid and long enough, and nothing of ours uses it:
        // what is read is no part of it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from.as_ptr(),
                self.as_ptr().add(at),
                from.len(),
            );
        }
        self.release_exclusive();
    }

    /// Copies the bytes to another slice of the same length, which is no guest's.
    pub(crate) fn copy_to(&self, to: &Slice) {
        self.borrow_shared();
        to.with_mut(|bytes| {
            assert_eq!(bytes.len(), self.len(), "as much as there is room for");
            // SAFETY: what is read is valid for so many bytes. It does not overlap
            // what is written, of which we have the exclusive borrow.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.as_ptr().cast_const(),
                    bytes.as_mut_ptr(),
                    bytes.len(),
                );
            }
        });
        self.release_shared();
    }

    /// Makes all bytes zero.
    pub(crate) fn zero(&self) {
        self.borrow_exclusive();
        // SAFETY: the range is valid, and nothing of ours uses it.
        unsafe { std::ptr::write_bytes(self.as_ptr(), 0, self.len()) };
        self.release_exclusive();
    }

    /// Runs `f` on the bytes. Panics while something else uses them, and if they are a
    /// guest's.
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        assert!(!self.is_shared(), "a guest's memory is copied, not looked at");
        self.borrow_exclusive();
        // SAFETY: as in `bytes`; the exclusive borrow keeps everyone else away.
        let result =
            f(unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len()) });
        self.release_exclusive();
        result
    }

    /// The address, for the kernel. Borrow first.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        let (base, unit) = match &self.memory {
            Memory::Block(buf) => (buf.pool.arena.base, buf.unit as usize * UNIT),
            Memory::Shared { base, .. } => (*base, 0),
        };
        // SAFETY: `slice` and `part` checked that the range is inside the block,
        // and the block is inside the arena; or who made the slice has promised it.
        unsafe { base.as_ptr().add(unit + self.start as usize) }
    }

    /// Takes a read borrow of the block, until `release_shared`.
    pub(crate) fn borrow_shared(&self) {
        let Some(borrowed) = self.borrowed() else { return };
        assert!(borrowed.get() >= 0, "reading a buffer that is being written");
        borrowed.set(borrowed.get() + 1);
    }

    pub(crate) fn release_shared(&self) {
        let Some(borrowed) = self.borrowed() else { return };
        debug_assert!(borrowed.get() > 0);
        borrowed.set(borrowed.get() - 1);
    }

    /// Takes the write borrow of the block, until `release_exclusive`.
    pub(crate) fn borrow_exclusive(&self) {
        let Some(borrowed) = self.borrowed() else { return };
        assert!(borrowed.get() == 0, "writing a buffer that is in use");
        borrowed.set(-1);
    }

    pub(crate) fn release_exclusive(&self) {
        let Some(borrowed) = self.borrowed() else { return };
        debug_assert_eq!(borrowed.get(), -1);
        borrowed.set(0);
    }

    fn borrowed(&self) -> Option<&Cell<i32>> {
        self.block().map(|buf| &buf.block().borrowed)
    }
}

/// The bytes of a slice while they are being read.
pub(crate) struct Bytes<'a> {
    slice: &'a Slice,
    bytes: &'a [u8],
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Bytes<'_> {
    fn drop(&mut self) {
        self.slice.release_shared();
    }
}

/// The address space of a pool.
struct Arena {
    base: NonNull<u8>,
    len: usize,
}

impl Arena {
    fn map(len: usize) -> io::Result<Arena> {
        // SAFETY: a new private mapping at an address of the kernel's choice
        // touches no memory that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arena { base, len })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and the last reference to the pool is
        // gone, so no `Buf` points into it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
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
                    held.iter().map(|b| (b.slice(0, 1).as_ptr() as usize, b.capacity())).collect();
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
