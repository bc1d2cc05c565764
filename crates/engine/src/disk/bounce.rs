//! Bounce buffers: writes whose bytes the guest cannot change any more.
//!
//! If a write's bytes are in the guest's memory, the disk copies them into a bounce buffer;
//! bytes in a buffer of the engine stay where they are. `export::vhost` bounds how much of
//! guests' memory is under way. A disk keeps the bounce buffers that it usually needs while
//! it moves, and gets one for a single write beyond that.

use crate::buffer::{Buf, Pool};
use crate::image::ImageOp;
use crate::io::Errno;

/// What is kept: some sixty writes of 64 KiB.
const KEPT: usize = 4 << 20;

/// The bounce buffers of one disk.
#[derive(Default)]
pub(super) struct BounceBuffers(Option<Pool>);

impl BounceBuffers {
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
        let mut bounce = BounceBuffers::default();
        let mut held = Vec::new();
        for len in (512..=1 << 20).step_by(37 * 512) {
            let buf = bounce.get(len).expect("memory for a copy");
            assert!(buf.capacity() >= len);
            held.push(buf);
        }
        let total: usize = held.iter().map(Buf::capacity).sum();
        assert!(total > 4 * KEPT, "{total} bytes");
    }
}
