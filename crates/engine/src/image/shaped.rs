//! A layer over any image that slows it down to a [`Shape`].
//!
//! Reads, writes and zeroes wait in one queue, in order, for two token buckets
//! (bytes and requests; zeroes cost no bytes). Flushes and questions do not wait
//! there: a flush covers only what has been answered. Every answer is kept back
//! for the latency. The queue is as long as the caller lets it become: each
//! entry is a request that it has in flight.

use std::collections::VecDeque;

use sterna_core::Nanos;

use super::bucket::Bucket;
use super::shape::Shape;
use super::{Cx, Image, ImageInfo, ImageOp, ImageResult, Opened, Ticket, token};
use crate::io::{Completion, Errno, ImageId};
use crate::timer::TimerId;

/// The tag of this layer's timers. The image below must not use it.
const TAG: u32 = u32::MAX;

/// `opened`, slowed down; itself, if there is nothing to slow down.
pub(crate) fn shaped(opened: Box<dyn Opened>, shape: Shape) -> Box<dyn Opened> {
    if shape.is_none() {
        return opened;
    }
    Box::new(OpenedShaped { inner: opened, shape })
}

struct OpenedShaped {
    inner: Box<dyn Opened>,
    shape: Shape,
}

impl Opened for OpenedShaped {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn start(self: Box<Self>, cx: &mut Cx, id: ImageId) -> Box<dyn Image> {
        let inner = self.inner.start(cx, id);
        Box::new(Shaped::new(inner, self.shape, id, cx.now))
    }
}

struct Shaped {
    inner: Box<dyn Image>,
    id: ImageId,
    latency: Nanos,
    bytes: Option<Bucket>,
    requests: Option<Bucket>,
    /// For the buckets.
    waiting: VecDeque<(Ticket, ImageOp)>,
    /// For the latency; the moments never decrease.
    answers: VecDeque<(Nanos, Ticket, ImageResult)>,
    timer: Option<(Nanos, TimerId)>,
}

impl Shaped {
    fn new(inner: Box<dyn Image>, shape: Shape, id: ImageId, now: Nanos) -> Shaped {
        Shaped {
            inner,
            id,
            latency: shape.latency,
            bytes: shape.bytes_per_second.map(|rate| Bucket::new(rate, now)),
            requests: shape.iops.map(|rate| Bucket::new(rate, now)),
            waiting: VecDeque::new(),
            answers: VecDeque::new(),
            timer: None,
        }
    }

    /// Calls the image below and keeps back what it answers.
    fn below(&mut self, cx: &mut Cx, call: impl FnOnce(&mut dyn Image, &mut Cx)) {
        let before = cx.finished.len();
        call(self.inner.as_mut(), cx);
        if self.latency > Nanos(0) {
            let due = cx.now.plus(self.latency);
            let answers = cx.finished.drain(before..);
            self.answers.extend(answers.map(|(ticket, result)| (due, ticket, result)));
        }
    }

    /// Starts what may start, answers what is due, and sets the timer for the
    /// rest.
    fn advance(&mut self, cx: &mut Cx) {
        while self.gate(cx.now) <= cx.now
            && let Some((ticket, op)) = self.waiting.pop_front()
        {
            self.take(cx.now, &op);
            self.below(cx, |inner, cx| inner.submit(cx, ticket, op));
        }
        while self.answers.front().is_some_and(|(due, ..)| *due <= cx.now)
            && let Some((_, ticket, result)) = self.answers.pop_front()
        {
            cx.finished.push((ticket, result));
        }
        self.set_timer(cx);
    }

    /// From when on the next request may start.
    fn gate(&mut self, now: Nanos) -> Nanos {
        let buckets = [&mut self.bytes, &mut self.requests];
        let ready = buckets.into_iter().flatten().map(|bucket| bucket.ready(now));
        ready.max().unwrap_or(now)
    }

    fn take(&mut self, now: Nanos, op: &ImageOp) {
        let bytes = match op {
            ImageOp::Read { buf, .. } | ImageOp::Write { buf, .. } => buf.len() as u64,
            _ => 0,
        };
        if let Some(bucket) = &mut self.bytes {
            bucket.take(now, bytes);
        }
        if let Some(bucket) = &mut self.requests {
            bucket.take(now, 1);
        }
    }

    fn set_timer(&mut self, cx: &mut Cx) {
        let gate = if self.waiting.is_empty() { None } else { Some(self.gate(cx.now)) };
        let due = self.answers.front().map(|(due, ..)| *due);
        let next = gate.into_iter().chain(due).min();
        if self.timer.map(|(at, _)| at) == next {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            cx.timers.cancel(timer);
        }
        self.timer = next.map(|at| (at, cx.timers.set(at, token(self.id, TAG))));
    }
}

impl Image for Shaped {
    fn submit(&mut self, cx: &mut Cx, ticket: Ticket, op: ImageOp) {
        match op {
            ImageOp::Read { .. } | ImageOp::Write { .. } | ImageOp::Zero { .. } => {
                self.waiting.push_back((ticket, op));
            }
            // A clone would go past the shape.
            ImageOp::Clone { .. } => {
                cx.finished.push((ticket, Err(Errno(libc::EOPNOTSUPP))));
            }
            ImageOp::Flush | ImageOp::Extents { .. } | ImageOp::Cache { .. } => {
                self.below(cx, |inner, cx| inner.submit(cx, ticket, op));
            }
        }
        self.advance(cx);
    }

    fn completed(&mut self, cx: &mut Cx, completion: Completion) {
        self.below(cx, |inner, cx| inner.completed(cx, completion));
        self.advance(cx);
    }

    fn timer(&mut self, cx: &mut Cx, tag: u32) {
        if tag == TAG {
            self.timer = None;
        } else {
            self.below(cx, |inner, cx| inner.timer(cx, tag));
        }
        self.advance(cx);
    }

    fn info(&self) -> ImageInfo {
        self.inner.info()
    }

    fn has_forgotten(&mut self) -> bool {
        self.inner.has_forgotten()
    }

    fn is_in_reach(&self) -> bool {
        self.inner.is_in_reach()
    }

    fn in_flight(&self) -> usize {
        self.waiting.len() + self.answers.len() + self.inner.in_flight()
    }

    fn abort(&mut self, cx: &mut Cx) {
        // What has not begun ends here; what has is still kept back.
        for (ticket, _) in std::mem::take(&mut self.waiting) {
            cx.finished.push((ticket, Err(Errno(libc::ECANCELED))));
        }
        self.below(cx, |inner, cx| inner.abort(cx));
        self.advance(cx);
    }

    fn close(&mut self, cx: &mut Cx) {
        self.below(cx, |inner, cx| inner.close(cx));
        self.advance(cx);
    }

    fn idle(&self) -> bool {
        self.waiting.is_empty() && self.answers.is_empty() && self.inner.idle()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::buffer::{Pool, Slice};
    use crate::image::{Done, file};
    use crate::io::{Io, Op};
    use crate::timer::Timers;

    /// An image that answers at once.
    struct Instant;

    impl Image for Instant {
        fn submit(&mut self, cx: &mut Cx, ticket: Ticket, _op: ImageOp) {
            cx.finished.push((ticket, Ok(Done::Ok)));
        }

        fn completed(&mut self, _cx: &mut Cx, _completion: Completion) {}

        fn info(&self) -> ImageInfo {
            let (size, min_block) = (1 << 30, 1);
            let (direct, finds_holes, fast_zero) = (false, false, true);
            ImageInfo { size, min_block, direct, finds_holes, fast_zero }
        }

        fn in_flight(&self) -> usize {
            0
        }
    }

    /// No image here asks the kernel for anything.
    struct NoIo;

    impl Io for NoIo {
        fn submit(&mut self, _token: crate::io::Token, _op: Op) {}
        fn wait(&mut self, _timeout: Option<Duration>, _out: &mut Vec<Completion>) {}
        fn cancel(&mut self, _token: crate::io::Token) {}
        fn in_flight(&self) -> usize {
            0
        }
    }

    /// A shaped image under a clock that stands until it is moved.
    struct Rig {
        cx: Cx,
        image: Shaped,
        buffer: Slice,
    }

    impl Rig {
        fn new(shape: &str) -> Rig {
            let buffers = Pool::new(8 << 20).unwrap();
            let zeroes = buffers.get(file::ZEROES).unwrap().slice(0, file::ZEROES);
            let buffer = buffers.get(1 << 20).unwrap().slice(0, 1 << 20);
            let (timers, finished) = (Timers::default(), Vec::new());
            let io = Box::new(NoIo);
            let cx = Cx { io, timers, buffers, zeroes, now: Nanos(0), finished, lent: 0 };
            let id = ImageId { disk: 1, image: 1 };
            let shape = shape.parse().unwrap();
            let image = Shaped::new(Box::new(Instant), shape, id, Nanos(0));
            Rig { cx, image, buffer }
        }

        fn read(&mut self, id: u64, len: usize) {
            let op = ImageOp::Read { offset: 0, buf: self.buffer.part(0, len) };
            self.submit(id, op);
        }

        fn submit(&mut self, id: u64, op: ImageOp) {
            self.image.submit(&mut self.cx, Ticket { disk: 1, id }, op);
        }

        /// Lets time pass from timer to timer; gives each answer's moment (us).
        fn run(&mut self) -> Vec<(u64, u64)> {
            let mut answers = Vec::new();
            loop {
                let us = self.cx.now.0 / 1000;
                let finished = self.cx.finished.drain(..);
                answers.extend(finished.map(|(ticket, _)| (ticket.id, us)));
                let Some(next) = self.cx.timers.next() else { break };
                self.cx.now = next;
                while let Some(token) = self.cx.timers.due(next) {
                    self.image.timer(&mut self.cx, token.tag);
                }
            }
            assert!(self.image.idle());
            answers
        }
    }

    #[test]
    fn latency_is_added_to_every_answer_and_to_all_at_once() {
        let mut rig = Rig::new("latency=3ms");
        rig.read(1, 4096);
        rig.submit(2, ImageOp::Flush);
        rig.cx.now = Nanos::from_millis(1);
        rig.read(3, 1 << 20);
        assert_eq!(rig.run(), [(1, 3000), (2, 3000), (3, 4000)]);
    }

    #[test]
    fn requests_wait_for_their_rate_in_order_and_a_flush_passes() {
        // 100 IO/s: the bucket holds one; the second makes a debt of one, which
        // takes 10 ms, and so does each further one.
        let mut rig = Rig::new("iops=100");
        for id in 1..=4 {
            rig.read(id, 512);
        }
        rig.submit(5, ImageOp::Flush);
        assert_eq!(rig.run(), [(1, 0), (2, 0), (5, 0), (3, 10_000), (4, 20_000)]);
    }

    #[test]
    fn the_slower_of_both_rates_counts_and_then_the_latency() {
        // 100 MB/s hold 1 MB: a read of 1 MiB owes 48 576 bytes, 485.76 us; the
        // next 1 MiB takes 10 485.76 us. 1000 IO/s would allow all at once.
        let mut rig = Rig::new("mbps=100,iops=1000,latency=2ms");
        for id in 1..=3 {
            rig.read(id, 1 << 20);
        }
        assert_eq!(rig.run(), [(1, 2000), (2, 2485), (3, 12_971)]);
    }

    #[test]
    fn zeroes_cost_a_request_and_no_bytes() {
        let mut rig = Rig::new("mbps=1");
        let (offset, len) = (0, 1 << 30);
        let op = ImageOp::Zero { offset, len, unmap: true, fua: false, fast: false };
        rig.submit(1, op.clone());
        rig.submit(2, op);
        assert_eq!(rig.run(), [(1, 0), (2, 0)]);
    }

    #[test]
    fn what_waits_can_be_given_up() {
        let mut rig = Rig::new("iops=1");
        for id in 1..=3 {
            rig.read(id, 512);
        }
        rig.image.abort(&mut rig.cx);
        assert_eq!(rig.run(), [(1, 0), (2, 0), (3, 0)]);
    }
}
