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
//! **Alone.** A write that reads what it does not change of its blocks first (`patch`) would
//! undo whatever is written there in between. So it waits for every earlier write that
//! overlaps it, its own client's as well, and whatever comes later waits for it.
//!
//! **Nobody waits for each other.** A request waits only for writes that came before it, so
//! there is no circle; and what comes later never adds to what it waits for, so nobody is
//! overtaken again and again. Each keeps the count of the writes that it still waits for.
//!
//! What waits is not yet in line for admission. If the earlier write never ends, it waits for
//! ever, because to go on could destroy what a client relies on; after [`TOLD`] the log and
//! the disk's status say so. A client that has gone takes what waits here for it along, and
//! a disk that is detached gives up all that waits.

use std::collections::VecDeque;

use sterna_core::{ByteRange, Nanos};

use super::Client;
use crate::image::ImageOp;

/// A storage that answers takes no longer than this; past it, somebody should look.
pub(super) const TOLD: Nanos = Nanos::from_secs(5);

/// What is under way and what waits for it.
#[derive(Default)]
pub(super) struct Order {
    /// Requests that have come.
    came: u64,
    writes: Vec<Entry>,
    /// In order of their coming.
    held: VecDeque<Held>,
}

/// A request, by its number in the disk's table.
#[derive(Clone, Copy)]
struct Entry {
    request: u32,
    /// Its place in the order of their coming.
    came: u64,
    client: Client,
    range: ByteRange,
    writes: bool,
    alone: bool,
}

struct Held {
    entry: Entry,
    since: Nanos,
    /// The writes that it waits for.
    behind: usize,
}

impl Entry {
    fn follows(&self, other: &Entry) -> bool {
        other.writes
            && other.came < self.came
            && (other.client != self.client || self.alone || other.alone)
            && other.range.overlaps(self.range)
    }
}

impl Order {
    /// A request has come, which may have to be alone. Says whether it has to wait here.
    pub(super) fn arrives(
        &mut self,
        now: Nanos,
        request: u32,
        client: Client,
        op: &ImageOp,
        alone: bool,
    ) -> bool {
        let Some((range, writes)) = touches(op) else { return false };
        self.came += 1;
        let entry = Entry { request, came: self.came, client, range, writes, alone };
        let held = self.held.iter().map(|held| &held.entry);
        let earlier = self.writes.iter().chain(held);
        let behind = earlier.filter(|other| entry.follows(other)).count();
        if behind > 0 {
            self.held.push_back(Held { entry, since: now, behind });
        } else {
            self.begins(entry);
        }
        behind > 0
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
            let ended = self.writes.swap_remove(at);
            self.is_out_of_the_way(&ended);
        }
    }

    fn is_out_of_the_way(&mut self, ended: &Entry) {
        for held in &mut self.held {
            if held.entry.follows(ended) {
                held.behind -= 1;
            }
        }
    }

    /// Takes the next request that need not wait any more.
    pub(super) fn next(&mut self) -> Option<u32> {
        let at = self.held.iter().position(|held| held.behind == 0)?;
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
        for held in &gone {
            self.is_out_of_the_way(&held.entry);
        }
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
    use proptest::prelude::*;

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
        assert!(!order.arrives(now, 1, OLD, &zero(0, 4096), false));
        assert!(!order.arrives(now, 2, OLD, &zero(0, 4096), false), "its own client's");
        assert!(!order.arrives(now, 3, NEW, &zero(4096, 4096), false), "beside it");
        assert!(!order.arrives(now, 4, NEW, &ImageOp::Flush, false));
        assert!(order.arrives(now, 5, NEW, &zero(512, 512), false));
        assert!(order.arrives(now, 6, NEW, &look(0, 512), false));
        assert_eq!(order.waits(), Some((now, 2)));
        order.ends(1);
        assert_eq!(order.next(), None, "the other one is under way");
        order.ends(2);
        assert_eq!((order.next(), order.next(), order.next()), (Some(5), Some(6), None));
        assert_eq!(order.waits(), None);
    }

    #[test]
    fn a_write_that_is_alone_waits_for_its_own_client_and_that_waits_for_it() {
        let mut order = Order::default();
        let third = Client::Device(1);
        assert!(!order.arrives(Nanos(0), 1, OLD, &zero(0, 4096), false));
        assert!(order.arrives(Nanos(0), 2, OLD, &zero(512, 512), true));
        assert!(!order.arrives(Nanos(0), 3, OLD, &zero(0, 512), false), "beside it");
        assert!(order.arrives(Nanos(0), 4, OLD, &zero(512, 1024), false));
        assert!(order.arrives(Nanos(0), 5, third, &look(512, 512), false));
        order.ends(1);
        assert_eq!((order.next(), order.next()), (Some(2), None));
        order.ends(2);
        assert_eq!((order.next(), order.next()), (Some(4), None));
        order.ends(4);
        assert_eq!((order.next(), order.next()), (Some(5), None));
    }

    #[test]
    fn what_only_looks_is_waited_for_by_nobody() {
        let mut order = Order::default();
        assert!(!order.arrives(Nanos(0), 1, OLD, &look(0, 4096), false));
        assert!(!order.arrives(Nanos(0), 2, NEW, &zero(0, 4096), false));
    }

    #[test]
    fn those_that_wait_keep_their_order_and_do_not_starve() {
        let mut order = Order::default();
        let third = Client::Device(1);
        assert!(!order.arrives(Nanos(0), 1, OLD, &zero(0, 512), false));
        assert!(order.arrives(Nanos(0), 2, NEW, &zero(0, 1024), false));
        assert!(
            order.arrives(Nanos(0), 3, third, &zero(512, 512), false),
            "2 came first"
        );
        order.ends(1);
        assert_eq!((order.next(), order.next()), (Some(2), None));
        order.ends(2);
        assert_eq!(order.next(), Some(3));
    }

    #[test]
    fn what_comes_later_does_not_add_to_what_a_read_waits_for() {
        let mut order = Order::default();
        let third = Client::Device(1);
        assert!(!order.arrives(Nanos(0), 1, OLD, &zero(0, 512), false));
        assert!(order.arrives(Nanos(0), 2, NEW, &look(0, 1024), false));
        assert!(
            !order.arrives(Nanos(0), 3, third, &zero(512, 512), false),
            "2 changes nothing"
        );
        order.ends(1);
        assert_eq!((order.next(), order.next()), (Some(2), None));
        order.ends(3);
        assert_eq!(order.next(), None);
    }

    #[test]
    fn what_waited_for_a_request_that_was_given_up_goes_on() {
        let mut order = Order::default();
        let third = Client::Device(1);
        assert!(!order.arrives(Nanos(0), 1, OLD, &zero(0, 512), false));
        assert!(order.arrives(Nanos(0), 2, NEW, &zero(0, 1024), false));
        assert!(order.arrives(Nanos(0), 3, third, &look(512, 512), false));
        assert_eq!(order.give_up(NEW), [2]);
        assert_eq!((order.next(), order.next()), (Some(3), None), "1 never ends");
    }

    #[test]
    fn a_client_that_goes_takes_along_what_waits() {
        let mut order = Order::default();
        assert!(!order.arrives(Nanos(0), 1, OLD, &zero(0, 512), false));
        assert!(order.arrives(Nanos(0), 2, NEW, &zero(0, 512), false));
        assert_eq!(order.give_up(NEW), [2]);
        assert_eq!(order.give_up_all(), [0; 0]);
        order.ends(1);
        assert_eq!(order.next(), None);
    }

    /// What happens to the order in the test below.
    #[derive(Clone, Debug)]
    enum Step {
        Arrives {
            client: u32,
            start: u64,
            len: u64,
            writes: bool,
            alone: bool,
        },
        /// One of those that are under way ends.
        Ends(usize),
        Leaves(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let kind =
            prop_oneof![Just((false, false)), Just((true, false)), Just((true, true))];
        let arrives = (0..4u32, 0..8u64, 1..5u64, kind).prop_map(
            |(client, start, len, (writes, alone))| Step::Arrives {
                client,
                start,
                len,
                writes,
                alone,
            },
        );
        let ends = any::<usize>().prop_map(Step::Ends);
        let leaves = (0..4u32).prop_map(Step::Leaves);
        prop::collection::vec(prop_oneof![6 => arrives, 4 => ends, 1 => leaves], 1..80)
    }

    /// What the rule says, with nothing kept: requests in order of their coming.
    #[derive(Default)]
    struct Plain(Vec<One>);

    struct One {
        request: u32,
        client: Client,
        range: ByteRange,
        writes: bool,
        alone: bool,
        begun: bool,
    }

    impl Plain {
        fn must_wait(&self, request: u32) -> bool {
            let at = self.0.iter().position(|one| one.request == request);
            let at = at.expect("it is there");
            let own = &self.0[at];
            self.0[..at].iter().any(|other| {
                let apart = other.client != own.client || other.alone || own.alone;
                other.writes && apart && other.range.overlaps(own.range)
            })
        }

        fn under_way(&self) -> Vec<u32> {
            self.0.iter().filter(|one| one.begun).map(|one| one.request).collect()
        }

        fn begins(&mut self, request: u32) {
            assert!(!self.must_wait(request), "{request} overtakes");
            let one = self.0.iter_mut().find(|one| one.request == request);
            let one = one.expect("it is there");
            assert!(!std::mem::replace(&mut one.begun, true), "{request} begins twice");
        }

        fn ends(&mut self, request: u32) {
            self.0.retain(|one| one.request != request);
        }

        /// Takes what goes on; afterwards exactly those wait that have to.
        fn follow(&mut self, order: &mut Order) {
            while let Some(request) = order.next() {
                self.begins(request);
            }
            for One { request, begun, .. } in &self.0 {
                assert_eq!(*begun, !self.must_wait(*request), "{request}");
            }
        }
    }

    proptest! {
        #[test]
        fn nobody_overtakes_and_nobody_waits_for_nothing(steps in steps()) {
            let (mut order, mut plain) = (Order::default(), Plain::default());
            for (number, step) in (0u32..).zip(steps) {
                match step {
                    Step::Arrives { client, start, len, writes, alone } => {
                        let client = Client::Connection(client);
                        let op = if writes { zero(start, len) } else { look(start, len) };
                        let range = ByteRange::new(start, len);
                        let request = number;
                        let begun = false;
                        plain.0.push(One { request, client, range, writes, alone, begun });
                        if !order.arrives(Nanos(0), number, client, &op, alone) {
                            plain.begins(number);
                        }
                    }
                    Step::Ends(which) => {
                        let under_way = plain.under_way();
                        if let Some(at) = which.checked_rem(under_way.len()) {
                            order.ends(under_way[at]);
                            plain.ends(under_way[at]);
                        }
                    }
                    Step::Leaves(client) => {
                        let gone = order.give_up(Client::Connection(client));
                        gone.into_iter().for_each(|request| plain.ends(request));
                    }
                }
                plain.follow(&mut order);
            }
            // When all that is under way ends, nothing waits any more.
            while !plain.0.is_empty() {
                let under_way = plain.under_way();
                prop_assert!(!under_way.is_empty(), "all wait for each other");
                for request in under_way {
                    order.ends(request);
                    plain.ends(request);
                }
                plain.follow(&mut order);
            }
            prop_assert_eq!(order.waits(), None);
        }
    }
}
