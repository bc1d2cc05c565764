//! Writes whose bytes nobody changes any more.
//!
//! A copy is made of what is in a guest's memory; what is in a buffer of ours is left
//! where it is. How much of guests' memory is under way is bounded where it comes in
//! (`export::vhost`); what a disk usually needs is kept while it moves, and what it
//! needs beyond that for one write alone.

use crate::buffer::{Buf, Pool};
use crate::image::ImageOp;
use crate::io::Errno;

/// What is kept: some sixty writes of 64 KiB.
const KEPT: usize = 4 << 20;

/// Memory for the copies of one disk.
#[derive(Default)]
pub(super) struct Private(Option<Pool>);

impl Private {
    /// Gives a write a copy of its bytes, if they are a guest's.
    pub(super) fn make(&mut self, op: &mut ImageOp) -> Result<(), Errno> {
        let ImageOp::Write { buf, .. } = op else { return Ok(()) };
        if buf.is_shared() {
            let copy = self.get(buf.len())?.slice(0, buf.len());
            buf.copy_to(&copy);
            *buf = copy;
        }
        Ok(())
    }

    fn get(&mut self, len: usize) -> Result<Buf, Errno> {
        let kept = match &mut self.0 {
            Some(kept) => kept,
            none => none.insert(Pool::new(KEPT)?),
        };
        match kept.get(len) {
            Some(buf) => Ok(buf),
            None => Ok(Pool::single(len)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_of_any_length_has_its_copy_however_much_is_under_way() {
        let mut private = Private::default();
        let mut held = Vec::new();
        for len in (512..=1 << 20).step_by(37 * 512) {
            let buf = private.get(len).expect("memory for a copy");
            assert!(buf.capacity() >= len);
            held.push(buf);
        }
        let total: usize = held.iter().map(Buf::capacity).sum();
        assert!(total > 4 * KEPT, "{total} bytes");
    }
}
