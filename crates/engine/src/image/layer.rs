//! A layer over an image: requests pass it on their way down, answers on their way up.
//!
//! A [`Layer`] decides what waits in it, and until when. All else is here, the same
//! for each: the image below, the timer, and what is asked of any image. How much
//! waits is bounded by what the caller has in flight.

use std::sync::Arc;

use sterna_core::durability::{Keeper, Lack, Loss};
use sterna_core::{DiskId, Nanos};

use super::{
    Cx, HeldFile, Image, ImageInfo, ImageOp, ImageResult, Memory, OpenError, Opened,
    Ticket, token,
};
use crate::account::Line;
use crate::io::{Completion, Errno, ImageId};
use crate::timer::Alarm;

/// A request on its way down.
pub(super) type Request = (Ticket, ImageOp);

/// An answer on its way up.
pub(super) type Answer = (Ticket, ImageResult);

/// What waits between an image and its disk.
pub(super) trait Layer {
    /// The tag of its timer, which neither the image below uses nor another layer.
    const TAG: u32;

    /// A request comes; given back if it goes on at once. Never a `Clone`, which
    /// would go past the layer.
    fn arrived(&mut self, now: Nanos, request: Request) -> Option<Request>;

    /// The next of the requests that wait here, if it may go on.
    fn next(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    /// The image below has answered; given back if that goes on at once.
    fn answered(&mut self, now: Nanos, answer: Answer) -> Option<Answer>;

    /// Lets go on what has waited for long enough. Gives when it has to be looked at
    /// again, if nothing happens before.
    fn release(&mut self, now: Nanos, answers: &mut Vec<Answer>) -> Option<Nanos>;

    /// Gives up the requests that wait here.
    fn abort(&mut self) -> Vec<Ticket> {
        Vec::new()
    }

    /// What waits here and not below.
    fn in_flight(&self) -> usize;

    /// Whether nothing waits here, or will.
    fn is_idle(&self) -> bool {
        self.in_flight() == 0
    }
}

/// `opened` under the layer that `make` makes where it works.
pub(super) fn under<L: Layer + 'static>(
    opened: Box<dyn Opened>,
    make: impl FnOnce() -> L + Send + 'static,
) -> Box<dyn Opened> {
    Box::new(OpenedUnder { inner: opened, make })
}

struct OpenedUnder<F> {
    inner: Box<dyn Opened>,
    make: F,
}

impl<L: Layer + 'static, F: FnOnce() -> L + Send> Opened for OpenedUnder<F> {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn keeper(&self) -> Option<Keeper> {
        self.inner.keeper()
    }

    fn keep(&mut self, line: Line) {
        self.inner.keep(line);
    }

    fn belong(&mut self, disk: DiskId, size: u64) -> Result<(), OpenError> {
        self.inner.belong(disk, size)
    }

    fn recall(&mut self, memory: Memory) {
        self.inner.recall(memory);
    }

    fn start(self: Box<Self>, cx: &mut Cx, id: ImageId) -> Box<dyn Image> {
        Box::new(Under::new(self.inner.start(cx, id), (self.make)(), id))
    }
}

/// An image and the layer over it.
pub(super) struct Under<L> {
    inner: Box<dyn Image>,
    layer: L,
    id: ImageId,
    alarm: Alarm,
}

impl<L: Layer> Under<L> {
    pub(super) fn new(inner: Box<dyn Image>, layer: L, id: ImageId) -> Under<L> {
        Under { inner, layer, id, alarm: Alarm::default() }
    }

    /// Calls the image below, and lets the layer keep back what it answers.
    fn below(&mut self, cx: &mut Cx, call: impl FnOnce(&mut dyn Image, &mut Cx)) {
        let before = cx.finished.len();
        call(self.inner.as_mut(), cx);
        let answers = cx.finished.split_off(before);
        let now = cx.now;
        let on = answers.into_iter().filter_map(|answer| match answer.0.id {
            // No answer: it must not come after those of operations that it is about.
            Ticket::NEWS => Some(answer),
            _ => self.layer.answered(now, answer),
        });
        cx.finished.extend(on);
    }

    /// Lets go on what may, both ways, and sets the timer for the rest.
    fn advance(&mut self, cx: &mut Cx) {
        while let Some((ticket, op)) = self.layer.next(cx.now) {
            self.below(cx, |inner, cx| inner.submit(cx, ticket, op));
        }
        let next = self.layer.release(cx.now, &mut cx.finished);
        self.alarm.set(&mut cx.timers, next, token(self.id, L::TAG));
    }
}

impl<L: Layer> Image for Under<L> {
    fn submit(&mut self, cx: &mut Cx, ticket: Ticket, op: ImageOp) {
        if matches!(op, ImageOp::Clone { .. }) {
            cx.finished.push((ticket, Err(Errno(libc::EOPNOTSUPP))));
        } else if let Some((ticket, op)) = self.layer.arrived(cx.now, (ticket, op)) {
            self.below(cx, |inner, cx| inner.submit(cx, ticket, op));
        }
        self.advance(cx);
    }

    fn completed(&mut self, cx: &mut Cx, completion: Completion) {
        self.below(cx, |inner, cx| inner.completed(cx, completion));
        self.advance(cx);
    }

    fn timer(&mut self, cx: &mut Cx, tag: u32) {
        if tag == L::TAG {
            self.alarm.fired();
        } else {
            self.below(cx, |inner, cx| inner.timer(cx, tag));
        }
        self.advance(cx);
    }

    fn info(&self) -> ImageInfo {
        self.inner.info()
    }

    fn moves_bytes(&self, op: &ImageOp) -> bool {
        self.inner.moves_bytes(op)
    }

    fn named(&self) -> Option<Arc<HeldFile>> {
        self.inner.named()
    }

    fn has_forgotten(&mut self) -> Option<Loss> {
        self.inner.has_forgotten()
    }

    fn has_gone_back(&mut self) -> bool {
        self.inner.has_gone_back()
    }

    fn lacks_line(&self) -> Option<Keeper> {
        self.inner.lacks_line()
    }

    fn keep_late(&mut self, cx: &mut Cx, line: Line) {
        self.inner.keep_late(cx, line);
    }

    fn another_since(&self) -> Option<Nanos> {
        self.inner.another_since()
    }

    fn lacks(&self) -> Option<(Nanos, Lack)> {
        self.inner.lacks()
    }

    fn memory(&self) -> Option<Memory> {
        self.inner.memory()
    }

    fn has_lost(&mut self) -> bool {
        self.inner.has_lost()
    }

    fn is_in_reach(&self) -> bool {
        self.inner.is_in_reach()
    }

    fn ways_lost(&self) -> u64 {
        self.inner.ways_lost()
    }

    fn in_flight(&self) -> usize {
        self.layer.in_flight() + self.inner.in_flight()
    }

    fn abort(&mut self, cx: &mut Cx) {
        for ticket in self.layer.abort() {
            cx.finished.push((ticket, Err(Errno(libc::ECANCELED))));
        }
        self.below(cx, |inner, cx| inner.abort(cx));
        self.advance(cx);
    }

    fn close(&mut self, cx: &mut Cx) {
        self.below(cx, |inner, cx| inner.close(cx));
        self.advance(cx);
    }

    fn take_leave(&mut self, cx: &mut Cx) {
        self.below(cx, |inner, cx| inner.take_leave(cx));
        self.advance(cx);
    }

    fn idle(&self) -> bool {
        self.layer.is_idle() && self.inner.idle()
    }
}
