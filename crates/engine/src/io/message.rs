//! What leaves through a socket in one go: headers and payloads, in order.
//!
//! Headers are written into one vector; payloads are slices that go out from
//! where they are. A message is made once and used again and again by its
//! owner, so its vectors grow to their size once.

use std::fmt;

use crate::buffer::Slice;

/// The most heads and stretches of payloads in a message: the system takes 1024
/// (`IOV_MAX`) at a time, and the last payload may have many (`STRETCHES_MAX`).
pub(crate) const PARTS_MAX: usize = 512;

/// Bytes to send.
pub(crate) struct Message {
    head: Vec<u8>,
    parts: Vec<Part>,
    len: usize,
    /// Heads, and stretches of payloads.
    iovecs: usize,
    /// What the kernel is told: set up by `prepare`, stable while in flight.
    vector: Vec<libc::iovec>,
    header: libc::msghdr,
}

enum Part {
    /// A range of `head`.
    Head(usize, usize),
    Payload(Slice),
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({} bytes in {} parts)", self.len, self.parts.len())
    }
}

impl Default for Message {
    fn default() -> Self {
        // SAFETY: `msghdr` is a plain C structure; null pointers and zero
        // lengths are its empty value.
        let header = unsafe { std::mem::zeroed() };
        Message {
            head: Vec::new(),
            parts: Vec::new(),
            len: 0,
            iovecs: 0,
            vector: Vec::new(),
            header,
        }
    }
}

impl Message {
    /// Appends the bytes that `write` appends to the vector it is given.
    pub(crate) fn head<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let start = self.head.len();
        let result = write(&mut self.head);
        let end = self.head.len();
        self.len += end - start;
        match self.parts.last_mut() {
            _ if start == end => {}
            Some(Part::Head(_, last)) => *last = end,
            _ => {
                self.iovecs += 1;
                self.parts.push(Part::Head(start, end));
            }
        }
        result
    }

    /// Appends a payload.
    pub(crate) fn payload(&mut self, slice: Slice) {
        if !slice.is_empty() {
            self.len += slice.len();
            self.iovecs += slice.vector().len();
            self.parts.push(Part::Payload(slice));
        }
    }

    /// Whether another header and payload have a place.
    pub(crate) fn has_room(&self) -> bool {
        self.iovecs + 2 <= PARTS_MAX
    }

    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lets go of everything, to be filled again; keeps room for about `kept`
    /// bytes of heads.
    pub(crate) fn clear(&mut self, kept: usize) {
        self.head.clear();
        self.head.shrink_to(kept);
        self.parts.clear();
        self.vector.clear();
        (self.len, self.iovecs) = (0, 0);
    }

    /// Borrows the payloads for reading, until `release`.
    pub(super) fn borrow(&self) {
        self.payloads().for_each(Slice::borrow_shared);
    }

    pub(super) fn release(&self) {
        self.payloads().for_each(Slice::release_shared);
    }

    fn payloads(&self) -> impl Iterator<Item = &Slice> {
        self.parts.iter().filter_map(|part| match part {
            Part::Payload(slice) => Some(slice),
            Part::Head(..) => None,
        })
    }

    /// Sets up the structure for `sendmsg`, with everything from the start.
    /// It points into this message and stays right until the message is moved
    /// out of its box or changed.
    pub(super) fn prepare(&mut self) -> *const libc::msghdr {
        self.vector.clear();
        for part in &self.parts {
            match part {
                Part::Head(start, end) => self.vector.push(libc::iovec {
                    iov_base: self.head[*start..*end].as_ptr().cast_mut().cast(),
                    iov_len: end - start,
                }),
                Part::Payload(slice) => self.vector.extend(&*slice.vector()),
            }
        }
        self.point(0)
    }

    /// Sets up the rest, after `sent` bytes of what was prepared have left;
    /// `None` if nothing is left to send.
    pub(super) fn advance(&mut self, mut sent: usize) -> Option<*const libc::msghdr> {
        let skip = self.vector.len() - self.header.msg_iovlen;
        for at in skip..self.vector.len() {
            let part = &mut self.vector[at];
            if sent < part.iov_len {
                // SAFETY: `sent` is less than the length of the part.
                part.iov_base = unsafe { part.iov_base.cast::<u8>().add(sent) }.cast();
                part.iov_len -= sent;
                return Some(self.point(at));
            }
            sent -= part.iov_len;
        }
        None
    }

    /// The structure for what is left.
    pub(super) fn rest(&self) -> *const libc::msghdr {
        &raw const self.header
    }

    fn point(&mut self, first: usize) -> *const libc::msghdr {
        self.header.msg_iov = self.vector[first..].as_mut_ptr();
        self.header.msg_iovlen = self.vector.len() - first;
        &raw const self.header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Pool;

    #[test]
    fn what_was_sent_in_part_goes_on_where_it_stopped() {
        let slice = Pool::new(4096).unwrap().get(1).unwrap().slice(0, 6);
        let mut message = Message::default();
        message.head(|head| head.extend(b"abc"));
        message.head(|head| head.extend(b"d"));
        message.payload(slice);
        message.head(|head| head.extend(b"xy"));
        assert_eq!((message.len(), message.parts.len()), (12, 3));
        message.prepare();
        assert_eq!(message.header.msg_iovlen, 3);
        assert!(message.advance(3).is_some());
        assert_eq!((message.header.msg_iovlen, message.vector[0].iov_len), (3, 1));
        assert!(message.advance(7).is_some());
        assert_eq!((message.header.msg_iovlen, message.vector[2].iov_len), (1, 2));
        assert!(message.advance(2).is_none());
    }
}
