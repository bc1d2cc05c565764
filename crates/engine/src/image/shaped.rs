//! A layer over any image that keeps it within its datastore's [`Budget`].
//!
//! Reads, writes and zeroes wait in one queue, in order; only the first of them
//! takes from the budget, and starts when that says it may (zeroes cost a request
//! and no bytes). Flushes and questions do not wait there: a flush covers only what
//! has been answered. Every answer is kept back for the latency. The queue is as
//! long as the caller lets it become: each entry is a request that it has in flight.

use std::collections::VecDeque;
use std::sync::Arc;

use sterna_core::Nanos;

use super::budget::Budget;
use super::{Cx, Image, ImageInfo, ImageOp, ImageResult, Opened, Ticket, token};
use crate::io::{Completion, Errno, ImageId};
use crate::timer::TimerId;

/// The tag of this layer's timers. The image below must not use it.
const TAG: u32 = u32::MAX;

/// `opened`, kept within the budget; itself, if that knows no bounds.
pub(crate) fn shaped(opened: Box<dyn Opened>, budget: &Arc<Budget>) -> Box<dyn Opened> {
    if budget.shape().is_none() {
        return opened;
    }
    Box::new(OpenedShaped { inner: opened, budget: Arc::clone(budget) })
}

struct OpenedShaped {
    inner: Box<dyn Opened>,
    budget: Arc<Budget>,
}

impl Opened for OpenedShaped {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn start(self: Box<Self>, cx: &mut Cx, id: ImageId) -> Box<dyn Image> {
        let inner = self.inner.start(cx, id);
        Box::new(Shaped::new(inner, self.budget, id))
    }
}

struct Shaped {
    inner: Box<dyn Image>,
    id: ImageId,
    latency: Nanos,
    budget: Arc<Budget>,
    /// For their turn.
    waiting: VecDeque<(Ticket, ImageOp)>,
    /// From when on the first of them may start, since it has taken what it costs.
    turn: Option<Nanos>,
    /// For the latency; the moments never decrease.
    answers: VecDeque<(Nanos, Ticket, ImageResult)>,
    timer: Option<(Nanos, TimerId)>,
}

impl Shaped {
    fn new(inner: Box<dyn Image>, budget: Arc<Budget>, id: ImageId) -> Shaped {
        Shaped {
            inner,
            id,
            latency: budget.shape().latency,
            budget,
            waiting: VecDeque::new(),
            turn: None,
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
        while self.first_turn(cx.now).is_some_and(|turn| turn <= cx.now)
            && let Some((ticket, op)) = self.waiting.pop_front()
        {
            self.turn = None;
            self.below(cx, |inner, cx| inner.submit(cx, ticket, op));
        }
        while self.answers.front().is_some_and(|(due, ..)| *due <= cx.now)
            && let Some((_, ticket, result)) = self.answers.pop_front()
        {
            cx.finished.push((ticket, result));
        }
        self.set_timer(cx);
    }

    /// From when on the first that waits may start.
    fn first_turn(&mut self, now: Nanos) -> Option<Nanos> {
        let bytes = match &self.waiting.front()?.1 {
            ImageOp::Read { buf, .. } | ImageOp::Write { buf, .. } => buf.len() as u64,
            _ => 0,
        };
        Some(*self.turn.get_or_insert_with(|| self.budget.take(now, bytes)))
    }

    fn set_timer(&mut self, cx: &mut Cx) {
        let due = self.answers.front().map(|(due, ..)| *due);
        let next = self.turn.into_iter().chain(due).min();
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
        self.turn = None;
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
    use super::*;
    use crate::image::rig::Rig;

    fn rig(shape: &str) -> Rig {
        Rig::new(Budget::new(shape.parse().unwrap()))
    }

    #[test]
    fn latency_is_added_to_every_answer_and_to_all_at_once() {
        let mut rig = rig("latency=3ms");
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
        let mut rig = rig("iops=100");
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
        let mut rig = rig("mbps=100,iops=1000,latency=2ms");
        for id in 1..=3 {
            rig.read(id, 1 << 20);
        }
        assert_eq!(rig.run(), [(1, 2000), (2, 2485), (3, 12_971)]);
    }

    #[test]
    fn zeroes_cost_a_request_and_no_bytes() {
        let mut rig = rig("mbps=1");
        let (offset, len) = (0, 1 << 30);
        let op = ImageOp::Zero { offset, len, unmap: true, fua: false, fast: false };
        rig.submit(1, op.clone());
        rig.submit(2, op);
        assert_eq!(rig.run(), [(1, 0), (2, 0)]);
    }

    #[test]
    fn what_waits_can_be_given_up() {
        let mut rig = rig("iops=1");
        for id in 1..=3 {
            rig.read(id, 512);
        }
        rig.images[0].abort(&mut rig.cx);
        assert_eq!(rig.run(), [(1, 0), (2, 0), (3, 0)]);
    }

    #[test]
    fn the_images_of_a_datastore_take_turns_however_long_their_queues() {
        // 100 IO/s: two come with the burst, then one every 10 ms. The first image
        // has four requests when the second comes with two; those that had their
        // turn when it came keep it.
        let mut rig = rig("iops=100");
        for id in 1..=4 {
            rig.read_from(0, id, 512);
        }
        for id in 11..=12 {
            rig.read_from(1, id, 512);
        }
        let expected = [(1, 0), (2, 0), (3, 10), (11, 20), (4, 30), (12, 40)];
        assert_eq!(rig.run(), expected.map(|(id, ms)| (id, ms * 1000)));
    }
}
