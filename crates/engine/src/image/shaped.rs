//! A layer over any image that keeps it within its datastore's [`Budget`].
//!
//! Reads, writes and zeroes wait in one queue, in order; only the first of them
//! takes from the budget, and starts when that says it may (zeroes cost a request
//! and no bytes). Flushes and questions do not wait there: a flush covers only what
//! has been answered. Every answer is kept back for the latency.

use std::collections::VecDeque;
use std::sync::Arc;

use sterna_core::Nanos;

use super::budget::Budget;
use super::layer::{Answer, Layer, Request, under};
use super::{ImageOp, Opened, Ticket};

/// `opened`, kept within the budget; itself, if that knows no bounds.
pub(crate) fn shaped(opened: Box<dyn Opened>, budget: &Arc<Budget>) -> Box<dyn Opened> {
    if budget.shape().is_none() {
        return opened;
    }
    let budget = Arc::clone(budget);
    under(opened, move || Shaped::new(budget))
}

struct Shaped {
    latency: Nanos,
    budget: Arc<Budget>,
    /// For their start.
    waiting: VecDeque<Request>,
    /// From when on the first of them may start, since it has taken what it costs.
    starts_at: Option<Nanos>,
    /// For the latency; the moments never decrease.
    answers: VecDeque<(Nanos, Answer)>,
}

impl Shaped {
    fn new(budget: Arc<Budget>) -> Shaped {
        Shaped {
            latency: budget.shape().latency,
            budget,
            waiting: VecDeque::new(),
            starts_at: None,
            answers: VecDeque::new(),
        }
    }

    /// From when on the first that waits may start.
    fn first_start(&mut self, now: Nanos) -> Option<Nanos> {
        let bytes = match &self.waiting.front()?.1 {
            ImageOp::Read { buf, .. } | ImageOp::Write { buf, .. } => buf.len() as u64,
            _ => 0,
        };
        Some(*self.starts_at.get_or_insert_with(|| self.budget.take(now, bytes)))
    }
}

impl Layer for Shaped {
    const TAG: u32 = u32::MAX;

    fn arrived(&mut self, _now: Nanos, request: Request) -> Option<Request> {
        match request.1 {
            ImageOp::Flush | ImageOp::Extents { .. } | ImageOp::Cache { .. } => {
                return Some(request);
            }
            _ => self.waiting.push_back(request),
        }
        None
    }

    fn next(&mut self, now: Nanos) -> Option<Request> {
        self.first_start(now).filter(|start| *start <= now)?;
        self.starts_at = None;
        self.waiting.pop_front()
    }

    fn answered(&mut self, now: Nanos, answer: Answer) -> Option<Answer> {
        if self.latency == Nanos(0) {
            return Some(answer);
        }
        self.answers.push_back((now.plus(self.latency), answer));
        None
    }

    fn release(&mut self, now: Nanos, answers: &mut Vec<Answer>) -> Option<Nanos> {
        while self.answers.front().is_some_and(|(due, _)| *due <= now) {
            answers.extend(self.answers.pop_front().map(|(_, answer)| answer));
        }
        let due = self.answers.front().map(|(due, _)| *due);
        self.starts_at.into_iter().chain(due).min()
    }

    /// What has not begun ends here; what has is still kept back.
    fn abort(&mut self) -> Vec<Ticket> {
        self.starts_at = None;
        std::mem::take(&mut self.waiting).into_iter().map(|(ticket, _)| ticket).collect()
    }

    fn in_flight(&self) -> usize {
        self.waiting.len() + self.answers.len()
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
        // place when it came keep it.
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
