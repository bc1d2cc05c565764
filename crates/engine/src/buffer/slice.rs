//! A part of a block, or stretches of a guest's memory, as one run of bytes.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use super::{Block, Buf, Pool, UNIT};

/// Stretches of one slice at most: the system takes 1024 (`IOV_MAX`) in one call, and
/// a message has many slices.
pub(crate) const STRETCHES_MAX: usize = 128;

/// Keeps a guest's memory where it is.
type Owner = Arc<dyn Any + Send + Sync>;

/// A part of a `Buf`, or of a guest's memory.
#[derive(Clone)]
pub(crate) struct Slice {
    memory: Memory,
    len: u32,
}

#[derive(Clone)]
enum Memory {
    Block { buf: Buf, start: u32 },
    // Of somebody who may change it at any time; it is there as long as its owner.
    Stretch { base: NonNull<u8>, owner: Owner },
    Stretches(Rc<Stretches>),
}

/// Two stretches or more.
struct Stretches {
    vector: Box<[libc::iovec]>,
    owner: Owner,
}

/// Where bytes are, for the kernel. It is right as long as the slice is there.
pub(crate) enum Vector<'a> {
    One(libc::iovec),
    Many(&'a [libc::iovec]),
}

impl Deref for Vector<'_> {
    type Target = [libc::iovec];

    fn deref(&self) -> &[libc::iovec] {
        match self {
            Vector::One(one) => std::slice::from_ref(one),
            Vector::Many(many) => many,
        }
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.memory {
            Memory::Block { buf, start } => {
                write!(f, "Slice({}+{start}, {})", buf.unit, self.len)
            }
            Memory::Stretch { base, .. } => write!(f, "Slice({base:p}, {})", self.len),
            Memory::Stretches(all) => {
                write!(f, "Slice({} stretches, {})", all.vector.len(), self.len)
            }
        }
    }
}

impl Slice {
    /// A part of a block, which is inside it.
    pub(super) fn of(buf: Buf, start: u32, len: u32) -> Slice {
        Slice { memory: Memory::Block { buf, start }, len }
    }

    /// Stretches of a guest's memory, in the order of their bytes.
    ///
    /// # Safety
    ///
    /// They can be read and written as long as `owner` is there.
    ///
    /// # Panics
    ///
    /// If there are none, or more than `STRETCHES_MAX`, or more bytes than 32 bits count.
    pub(crate) unsafe fn shared(mut vector: Vec<libc::iovec>, owner: Owner) -> Slice {
        assert!((1..=STRETCHES_MAX).contains(&vector.len()), "stretches of a slice");
        vector.retain(|one| one.iov_len > 0);
        let len = vector.iter().map(|one| one.iov_len).sum::<usize>();
        let len = u32::try_from(len).expect("a slice of less than 4 GiB");
        Slice { memory: Memory::shared(vector, owner), len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether nobody else refers to its memory.
    pub(crate) fn is_unique(&self) -> bool {
        self.buf().is_some_and(Buf::is_unique)
    }

    /// Whether it is a guest's memory, which can change at any time.
    pub(crate) fn is_shared(&self) -> bool {
        self.buf().is_none()
    }

    /// Whether it is of this pool.
    pub(crate) fn is_of(&self, pool: &Pool) -> bool {
        self.buf().is_some_and(|buf| Rc::ptr_eq(&buf.pool, &pool.0))
    }

    /// What of the pool the slice keeps from others: its whole block.
    pub(crate) fn cost(&self) -> usize {
        self.buf().map_or(0, Buf::capacity)
    }

    fn buf(&self) -> Option<&Buf> {
        match &self.memory {
            Memory::Block { buf, .. } => Some(buf),
            Memory::Stretch { .. } | Memory::Stretches(_) => None,
        }
    }

    /// The part of this slice from `start`, `len` bytes long.
    pub(crate) fn part(&self, start: usize, len: usize) -> Slice {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len()));
        let memory = match &self.memory {
            Memory::Block { buf, start: at } => {
                Memory::Block { buf: buf.clone(), start: at + start as u32 }
            }
            Memory::Stretch { base, owner } => {
                // SAFETY: `start` is inside the stretch, or right behind it.
                let base = unsafe { base.add(start) };
                Memory::Stretch { base, owner: Arc::clone(owner) }
            }
            Memory::Stretches(all) => {
                Memory::shared(cut(&all.vector, start, len), Arc::clone(&all.owner))
            }
        };
        Slice { memory, len: len as u32 }
    }

    /// The bytes, to read. Panics while something writes them, and if they are a
    /// guest's.
    pub(crate) fn bytes(&self) -> Bytes<'_> {
        let start = self.own();
        self.borrow_shared();
        // SAFETY: the range lies inside the arena (checked when the slice was
        // made), which lives as long as the block. No one writes the block
        // while the guard holds the shared borrow.
        let bytes = unsafe { std::slice::from_raw_parts(start, self.len()) };
        Bytes { slice: self, bytes }
    }

    /// Runs `f` on the bytes. Panics while something else uses them, and if they are a
    /// guest's.
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        let start = self.own();
        self.borrow_exclusive();
        // SAFETY: as in `bytes`; the exclusive borrow keeps everyone else away.
        let result = f(unsafe { std::slice::from_raw_parts_mut(start, self.len()) });
        self.release_exclusive();
        result
    }

    /// Where bytes begin that are not a guest's.
    fn own(&self) -> *mut u8 {
        assert!(!self.is_shared(), "a guest's memory is copied, not looked at");
        self.vector()[0].iov_base.cast()
    }

    /// Copies `from` to the bytes from `at`. Panics while something uses them.
    pub(crate) fn copy_from(&self, at: usize, from: &[u8]) {
        let to = self.part(at, from.len());
        to.borrow_exclusive();
        let mut rest = from;
        for one in to.vector().iter() {
            let (now, later) = rest.split_at(one.iov_len);
            // SAFETY: the stretch is valid and nothing of ours uses it: what is read
            // is no part of it.
            unsafe {
                let to = one.iov_base.cast::<u8>();
                std::ptr::copy_nonoverlapping(now.as_ptr(), to, now.len());
            }
            rest = later;
        }
        to.release_exclusive();
    }

    /// Copies the bytes to another slice of the same length, which is no guest's.
    pub(crate) fn copy_to(&self, to: &Slice) {
        self.borrow_shared();
        to.with_mut(|bytes| {
            assert_eq!(bytes.len(), self.len(), "as much as there is room for");
            let mut rest = bytes;
            for one in self.vector().iter() {
                let (now, later) = rest.split_at_mut(one.iov_len);
                // SAFETY: the stretch is valid. It does not overlap what is written, of
                // which we have the exclusive borrow.
                unsafe {
                    let from = one.iov_base.cast::<u8>().cast_const();
                    std::ptr::copy_nonoverlapping(from, now.as_mut_ptr(), now.len());
                }
                rest = later;
            }
        });
        self.release_shared();
    }

    /// Makes all bytes zero.
    pub(crate) fn zero(&self) {
        self.borrow_exclusive();
        for one in self.vector().iter() {
            // SAFETY: the stretch is valid, and nothing of ours uses it.
            unsafe { std::ptr::write_bytes(one.iov_base.cast::<u8>(), 0, one.iov_len) };
        }
        self.release_exclusive();
    }

    /// Where the bytes are, for the kernel. Borrow first.
    pub(crate) fn vector(&self) -> Vector<'_> {
        let one = |start: *mut u8| {
            Vector::One(libc::iovec { iov_base: start.cast(), iov_len: self.len() })
        };
        match &self.memory {
            Memory::Block { buf, start } => {
                let from = buf.unit as usize * UNIT + *start as usize;
                // SAFETY: `slice` and `part` checked that the range is inside the
                // block, and the block is inside the arena.
                one(unsafe { buf.pool.arena.base.as_ptr().add(from) })
            }
            Memory::Stretch { base, .. } => one(base.as_ptr()),
            Memory::Stretches(all) => Vector::Many(&all.vector),
        }
    }

    /// Whether each stretch begins and ends at a multiple of this power of two.
    pub(crate) fn is_aligned(&self, to: u32) -> bool {
        let mask = to as usize - 1;
        let vector = self.vector();
        vector.iter().all(|one| (one.iov_base as usize | one.iov_len) & mask == 0)
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
        self.buf().map(Buf::block).map(|Block { borrowed, .. }| borrowed)
    }
}

impl Memory {
    /// Stretches that can be used as long as their owner is there; at least one.
    fn shared(vector: Vec<libc::iovec>, owner: Owner) -> Memory {
        match vector[..] {
            [] => Memory::Stretch { base: NonNull::dangling(), owner },
            [libc::iovec { iov_base, .. }] => {
                let base = NonNull::new(iov_base.cast()).expect("memory is somewhere");
                Memory::Stretch { base, owner }
            }
            _ => {
                let vector = vector.into_boxed_slice();
                Memory::Stretches(Rc::new(Stretches { vector, owner }))
            }
        }
    }
}

/// The stretches of `len` bytes from `start` on.
fn cut(vector: &[libc::iovec], mut start: usize, mut len: usize) -> Vec<libc::iovec> {
    let mut parts = Vec::with_capacity(vector.len());
    for one in vector {
        let skip = start.min(one.iov_len);
        let part = (one.iov_len - skip).min(len);
        start -= skip;
        len -= part;
        if part > 0 {
            // SAFETY: less than the stretch is skipped.
            let from = unsafe { one.iov_base.cast::<u8>().add(skip) };
            parts.push(libc::iovec { iov_base: from.cast(), iov_len: part });
        }
    }
    parts
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A slice over stretches of these lengths, laid out in memory with gaps and
    /// backwards, and that memory.
    fn scattered(lengths: &[usize]) -> Slice {
        let memory: Vec<Cell<u8>> =
            vec![Cell::new(0xee); lengths.iter().sum::<usize>() * 2];
        let memory: &'static [Cell<u8>] = memory.leak();
        let (mut end, mut vector) = (memory.len(), Vec::new());
        for len in lengths {
            end -= len;
            let start = memory[end..].as_ptr().cast_mut().cast();
            vector.push(libc::iovec { iov_base: start, iov_len: *len });
            end -= len;
        }
        // SAFETY: the memory is there for ever.
        unsafe { Slice::shared(vector, Arc::new(())) }
    }

    fn own(bytes: &[u8]) -> Slice {
        let slice = Pool::new(1 << 20).unwrap().get(bytes.len()).unwrap();
        let slice = slice.slice(0, bytes.len());
        slice.copy_from(0, bytes);
        slice
    }

    fn read(slice: &Slice) -> Vec<u8> {
        let copy = own(&vec![0; slice.len()]);
        slice.copy_to(&copy);
        copy.bytes().to_vec()
    }

    proptest! {
        /// Whatever is done to parts of scattered memory, its bytes are those of one
        /// stretch to which the same was done.
        #[test]
        fn stretches_are_as_one(
            lengths in prop::collection::vec(1usize..200, 1..20),
            steps in prop::collection::vec((any::<u16>(), any::<u16>(), any::<Option<u8>>()), 1..20),
        ) {
            let slice = scattered(&lengths);
            let mut model = vec![0xee; slice.len()];
            for (start, len, fill) in steps {
                let start = usize::from(start) % (model.len() + 1);
                let len = usize::from(len) % (model.len() - start + 1);
                let part = slice.part(start, len);
                prop_assert_eq!(part.vector().iter().map(|one| one.iov_len).sum::<usize>(), len);
                match fill {
                    Some(byte) => slice.copy_from(start, &vec![byte; len]),
                    None => part.zero(),
                }
                model[start..start + len].fill(fill.unwrap_or(0));
                prop_assert_eq!(read(&part), &model[start..start + len]);
            }
            prop_assert_eq!(read(&slice), model);
        }
    }

    #[test]
    fn a_stretch_that_begins_anywhere_is_not_aligned() {
        let slice = own(&[0; 2048]);
        assert!(slice.is_aligned(512) && slice.part(512, 1024).is_aligned(512));
        assert!(!slice.part(100, 512).is_aligned(512));
        assert!(!slice.part(0, 100).is_aligned(512));
    }
}
