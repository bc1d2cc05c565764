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
