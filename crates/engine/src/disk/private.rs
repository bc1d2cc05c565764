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
            None => Pool::new(len)?.get(len).ok_or(Errno(libc::ENOMEM)),
        }
    }
}
