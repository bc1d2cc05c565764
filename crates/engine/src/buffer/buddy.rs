//! Which blocks of a pool are free: a buddy allocator with lazy merging.
//!
//! A freed block goes to the `quick` stack of its order, where the next request
//! of that size finds it (still in the cache); only when a request finds nothing
//! are the stacks emptied and neighbours merged. Blocks are named by their first
//! unit; a block of order `n` has `2^n` units and begins at a multiple of that.

/// The largest block is `UNIT << ORDER_MAX` = 4 MiB: the copier's largest chunk.
pub(super) const ORDER_MAX: usize = 10;

/// No block: the end of a list of free blocks.
const NONE: u32 = u32::MAX;

/// Marks a unit at which no free block begins.
const NOT_FREE: u8 = u8::MAX;

/// The free blocks.
pub(super) struct Lists {
    quick: [Vec<u32>; ORDER_MAX + 1],
    heads: [u32; ORDER_MAX + 1],
    links: Box<[Link]>,
}

/// A unit's place in a list of free blocks, if a free block begins there.
#[derive(Clone)]
struct Link {
    order: u8,
    next: u32,
    previous: u32,
}

impl Lists {
    /// All of `units` units are free.
    pub(super) fn new(units: u32) -> Lists {
        let link = Link { order: NOT_FREE, next: NONE, previous: NONE };
        let mut lists = Lists {
            quick: std::array::from_fn(|_| Vec::new()),
            heads: [NONE; ORDER_MAX + 1],
            links: vec![link; units as usize].into_boxed_slice(),
        };
        // The largest aligned blocks that fit; the first ones on top.
        let mut blocks = Vec::new();
        let mut unit = 0;
        while unit < units {
            let fits = (units - unit).ilog2() as usize;
            let aligned =
                if unit == 0 { ORDER_MAX } else { unit.trailing_zeros() as usize };
            let order = fits.min(aligned).min(ORDER_MAX);
            blocks.push((unit, order));
            unit += 1 << order;
        }
        for &(unit, order) in blocks.iter().rev() {
            lists.push(unit, order);
        }
        lists
    }

    /// Takes a free block.
    pub(super) fn take(&mut self, order: usize) -> Option<u32> {
        if let Some(unit) = self.quick[order].pop() {
            return Some(unit);
        }
        self.split(order).or_else(|| {
            self.merge_all();
            self.split(order)
        })
    }

    /// Gives a block back.
    pub(super) fn give(&mut self, unit: u32, order: usize) {
        self.quick[order].push(unit);
    }

    /// A block of `order` out of the smallest free block that is big enough.
    fn split(&mut self, order: usize) -> Option<u32> {
        let mut from = (order..=ORDER_MAX).find(|&order| self.heads[order] != NONE)?;
        let unit = self.heads[from];
        self.unlink(unit);
        while from > order {
            from -= 1;
            self.push(unit + (1 << from), from);
        }
        Some(unit)
    }

    fn merge_all(&mut self) {
        for order in 0..=ORDER_MAX {
            while let Some(unit) = self.quick[order].pop() {
                self.merge(unit, order);
            }
        }
    }

    fn merge(&mut self, mut unit: u32, mut order: usize) {
        while order < ORDER_MAX {
            let buddy = unit ^ (1 << order);
            let free = self.links.get(buddy as usize).map(|link| usize::from(link.order));
            if free != Some(order) {
                break;
            }
            self.unlink(buddy);
            unit = unit.min(buddy);
            order += 1;
        }
        self.push(unit, order);
    }

    fn push(&mut self, unit: u32, order: usize) {
        let next = std::mem::replace(&mut self.heads[order], unit);
        if next != NONE {
            self.links[next as usize].previous = unit;
        }
        self.links[unit as usize] = Link { order: order as u8, next, previous: NONE };
    }

    fn unlink(&mut self, unit: u32) {
        let Link { order, next, previous } = self.links[unit as usize];
        if previous == NONE {
            self.heads[usize::from(order)] = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
        self.links[unit as usize].order = NOT_FREE;
    }
}
