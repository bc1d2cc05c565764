//! Requests of several clients that overlap: one after the other.
//!
//! A client whose connection breaks connects anew and sends again what was not answered.
//! The write that it had sent before may still be under way, and would land on whatever the
//! client has written there since, flushed or not. The same is true of a machine that was
//! killed and started elsewhere. So a request waits until every *earlier* write of *another*
//! client that overlaps it has ended. Whether the other client is gone does not matter:
//! nobody can tell one that is gone from one that is silent, and clients that are alive and
//! write one place at the same time have been promised no order.
//!
//! Reads wait, too: what was read must not change behind a client's back. Flushes do not:
//! they cover what was answered, and what waits was not.
//!
//! What waits is not yet in line for a turn. It waits for as long as it takes, because to go
//! on could destroy what a client relies on; after [`TOLD`] that is said. A client that has
//! gone takes what waits here for it along.

use std::collections::VecDeque;

use sterna_core::{ByteRange, Nanos};

use super::Client;
use crate::image::ImageOp;

/// A storage that answers takes no longer than this; past it, somebody should look.
pub(super) const TOLD: Nanos = Nanos::from_secs(5);

/// What is under way and what waits for it.
#[derive(Default)]
pub(super) struct Order {
    writes: Vec<Entry>,
    held: VecDeque<Held>,
}

/// A request, by its number in the disk's table.
#[derive(Clone, Copy)]
struct Entry {
    request: u32,
    client: Client,
    range: ByteRange,
    writes: bool,
}

struct Held {
    entry: Entry,
    since: Nanos,
}

impl Entry {
    fn follows(&self, earlier: &Entry) -> bool {
        earlier.writes
            && earlier.client != self.client
            && earlier.range.overlaps(self.range)
    }
}

impl Order {
    /// A request has come. Says whether it has to wait here.
    pub(super) fn arrives(
        &mut self,
        now: Nanos,
        request: u32,
        client: Client,
        op: &ImageOp,
    ) -> bool {
        let Some((range, writes)) = touches(op) else { return false };
        let entry = Entry { request, client, range, writes };
        let behind = self.held.iter().any(|held| entry.follows(&held.entry));
        if behind || self.is_behind(&entry) {
            self.held.push_back(Held { entry, since: now });
            return true;
        }
        self.begins(entry);
        false
    }

    fn is_behind(&self, entry: &Entry) -> bool {
        self.writes.iter().any(|other| entry.follows(other))
    }

    fn begins(&mut self, entry: Entry) {
        if entry.writes {
            self.writes.push(entry);
        }
    }

    /// A request has ended.
    pub(super) fn ends(&mut self, request: u32) {
        // The oldest are in front, and mostly the first to end.
        if let Some(at) = self.writes.iter().position(|entry| entry.request == request) {
            self.writes.swap_remove(at);
        }
    }

    /// Takes the next request that need not wait any more.
    pub(super) fn next(&mut self) -> Option<u32> {
        let free = |at: &usize| {
            let entry = &self.held[*at].entry;
            let earlier = self.held.iter().take(*at);
            !self.is_behind(entry)
                && !earlier.into_iter().any(|it| entry.follows(&it.entry))
        };
        let at = (0..self.held.len()).find(free)?;
        let Held { entry, .. } = self.held.remove(at)?;
        self.begins(entry);
        Some(entry.request)
    }

    /// Takes what waits of a client that has gone.
    pub(super) fn give_up(&mut self, client: Client) -> Vec<u32> {
        let (gone, left) = std::mem::take(&mut self.held)
            .into_iter()
            .partition::<VecDeque<_>, _>(|held| held.entry.client == client);
        self.held = left;
        gone.into_iter().map(|held| held.entry.request).collect()
    }

    /// Takes all that waits.
    pub(super) fn give_up_all(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.held)
            .into_iter()
            .map(|held| held.entry.request)
            .collect()
    }

    /// Since when the first of those that wait does, and how many they are.
    pub(super) fn waits(&self) -> Option<(Nanos, usize)> {
        // In order of their coming.
        Some((self.held.front()?.since, self.held.len()))
    }
}

/// The bytes of a request that has a place in the order, and whether it changes them.
fn touches(op: &ImageOp) -> Option<(ByteRange, bool)> {
    match op {
        ImageOp::Read { offset, buf } => {
            Some((ByteRange::new(*offset, buf.len() as u64), false))
        }
        ImageOp::Write { offset, buf, .. } => {
            Some((ByteRange::new(*offset, buf.len() as u64), true))
        }
        ImageOp::Zero { offset, len, .. } => Some((ByteRange::new(*offset, *len), true)),
        ImageOp::Extents { offset, len, .. } => {
            Some((ByteRange::new(*offset, *len), false))
        }
        ImageOp::Flush | ImageOp::Cache { .. } | ImageOp::Clone { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Client = Client::Connection(1);
    const NEW: Client = Client::Connection(2);

    fn zero(offset: u64, len: u64) -> ImageOp {
        ImageOp::Zero { offset, len, unmap: false, fua: false, fast: false }
    }

    fn look(offset: u64, len: u64) -> ImageOp {
        ImageOp::Extents { offset, len, limit: 1 }
    }

    #[test]
    fn what_overlaps_an_earlier_write_of_another_client_waits_until_that_has_ended() {
        let mut order = Order::default();
        let now = Nanos(7);
        assert!(!order.arrives(now, 1, OLD, &zero(0, 4096)));
        assert!(!order.arrives(now, 2, OLD, &zero(0, 4096)), "its own client's");
        assert!(!order.arrives(now, 3, NEW, &zero(4096, 4096)), "beside it");
        assert!(!order.arrives(now, 4, NEW, &ImageOp::Flush));
        assert!(order.arrives(now, 5, NEW, &zero(512, 512)));
        assert!(order.arrives(now, 6, NEW, &look(0, 512)));
        assert_eq!(order.waits(), Some((now, 2)));
        order.ends(1);
        assert_eq!(order.next(), None, "the other one is under way");
        order.ends(2);
        assert_eq!((order.next(), order.next(), order.next()), (Some(5), Some(6), None));
        assert_eq!(order.waits(), None);
    }

    #[test]
    fn what_only_looks_is_waited_for_by_nobody() {
        let mut order = Order::default();
        assert!(!order.arrives(Nanos(0), 1, OLD, &look(0, 4096)));
        assert!(!order.arrives(Nanos(0), 2, NEW, &zero(0, 4096)));
    }

    #[test]
    fn those_that_wait_keep_their_order_and_do_not_starve() {
        let mut order = Order::default();
        let third = Client::Device(1);
        assert!(!order.arrives(Nanos(0), 1, OLD, &zero(0, 512)));
        assert!(order.arrives(Nanos(0), 2, NEW, &zero(0, 1024)));
        assert!(order.arrives(Nanos(0), 3, third, &zero(512, 512)), "2 came first");
        order.ends(1);
        assert_eq!((order.next(), order.next()), (Some(2), None));
        order.ends(2);
        assert_eq!(order.next(), Some(3));
    }

    #[test]
    fn a_client_that_goes_takes_along_what_waits() {
        let mut order = Order::default();
        assert!(!order.arrives(Nanos(0), 1, OLD, &zero(0, 512)));
        assert!(order.arrives(Nanos(0), 2, NEW, &zero(0, 512)));
        assert_eq!(order.give_up(NEW), [2]);
        assert_eq!(order.give_up_all(), [0; 0]);
        order.ends(1);
        assert_eq!(order.next(), None);
    }
}
