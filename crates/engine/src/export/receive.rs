//! The receive buffer of a connection, and where the next bytes belong.

use sterna_core::Nanos;
use sterna_nbd::wire::REQUEST_LEN;

use crate::buffer::{Buf, Pool, Slice};

use super::{RECEIVE_MAX, RECEIVE_MIN, STALL};

/// A client that sends a payload sends at least so much of it in [`STALL`]: 2 KiB a second, less
/// than any network that disks are used over. A byte now and then is no progress.
const PROGRESS: usize = 64 << 10;

/// What has been received and not yet been used.
pub(super) struct Input {
    buf: Buf,
    start: usize,
    end: usize,
}

/// What the next bytes of the stream are.
pub(super) enum Phase {
    /// A request's head.
    Head,
    /// The payload of the write with this number.
    Payload(u32),
    /// Payload of a refused write: dropped, then the error is sent.
    Skip { left: usize, reply: sterna_nbd::reply::ErrorHead },
}

/// How a payload comes that a client has announced, or how replies go.
pub(super) struct Progress {
    /// When it began, or had last brought [`PROGRESS`].
    mark: Nanos,
    /// What has come since.
    bytes: usize,
}

impl Progress {
    /// Nothing is awaited, or a payload begins.
    pub(super) fn anew(now: Nanos) -> Progress {
        Progress { mark: now, bytes: 0 }
    }

    /// So much of it has come.
    pub(super) fn came(&mut self, now: Nanos, len: usize) {
        self.bytes += len;
        if self.bytes >= PROGRESS {
            *self = Progress::anew(now);
        }
    }

    /// Since when it has not come that far.
    pub(super) fn since(&self) -> Nanos {
        self.mark
    }

    /// Whether it comes too slowly for others to wait for the memory that it takes.
    pub(super) fn stalls(&self, now: Nanos) -> bool {
        self.has_lasted(now, STALL)
    }

    /// Whether it has not come that far for longer than that.
    pub(super) fn has_lasted(&self, now: Nanos, limit: Nanos) -> bool {
        now.since(self.mark) > limit
    }
}

impl Input {
    /// A buffer that holds `leftover` already; `None` if the pool has no room.
    pub(super) fn new(pool: &Pool, leftover: &[u8]) -> Option<Input> {
        let buf = pool.get(leftover.len().max(RECEIVE_MIN))?;
        buf.slice(0, leftover.len()).copy_from(0, leftover);
        Some(Input { buf, start: 0, end: leftover.len() })
    }

    pub(super) fn available(&self) -> usize {
        self.end - self.start
    }

    /// The next request's head, if all of it is there. It stays.
    pub(super) fn head(&self) -> Option<[u8; REQUEST_LEN]> {
        if self.available() < REQUEST_LEN {
            return None;
        }
        let mut head = [0; REQUEST_LEN];
        head.copy_from_slice(&self.buf.slice(self.start, REQUEST_LEN).bytes());
        Some(head)
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.start += len;
        debug_assert!(self.start <= self.end);
    }

    /// Moves bytes to `to`, as many as there are; says how many.
    pub(super) fn fill(&mut self, to: &Slice) -> usize {
        let len = self.available().min(to.len());
        if len > 0 {
            to.copy_from(0, &self.buf.slice(self.start, len).bytes());
            self.consume(len);
        }
        len
    }

    /// Where to receive to. At most a head in part is left when it is asked
    /// for, and that is moved to the front.
    pub(super) fn room(&mut self) -> Slice {
        let left = self.available();
        let (start, end) = (self.start, self.end);
        if start > 0 {
            self.buf
                .slice(0, self.buf.capacity())
                .with_mut(|b| b.copy_within(start..end, 0));
            (self.start, self.end) = (0, left);
        }
        self.buf.slice(left, self.buf.capacity() - left)
    }

    /// So many bytes were received. Where they filled the buffer, a larger one
    /// is taken for the next time, as long as half of the pool stays free.
    pub(super) fn received(&mut self, len: usize, pool: &Pool) {
        self.end += len;
        debug_assert!(self.end <= self.buf.capacity());
        let larger = (self.buf.capacity() * 4).min(RECEIVE_MAX);
        if self.end < self.buf.capacity()
            || larger <= self.buf.capacity()
            || pool.free() < pool.budget() / 2 + larger
        {
            return;
        }
        if let Some(buf) = pool.get(larger) {
            let rest = self.buf.slice(self.start, self.available());
            buf.slice(0, rest.len()).copy_from(0, &rest.bytes());
            (self.start, self.end) = (0, rest.len());
            self.buf = buf;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_is_no_progress_and_a_slow_network_is() {
        for (each, stalls) in [(1, true), (1 << 10, true), (4 << 10, false)] {
            let mut payload = Progress::anew(Nanos(0));
            let mut now = Nanos(0);
            for _ in 0..60 {
                now = now.plus(Nanos::from_secs(1));
                payload.came(now, each);
            }
            assert_eq!(payload.stalls(now), stalls, "{each} bytes a second");
        }
    }
}
