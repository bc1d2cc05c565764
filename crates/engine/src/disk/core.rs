//! What a disk without its route does: its requests start on images, and are answered.

use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::qos::Cost;

use super::request::{Answer, Client, Progress, Request, is_declined};
use super::{Core, Entry};
use crate::account::Keep;
use crate::image::{Cx, ImageOp, ImageResult, Ticket};
use crate::io::Errno;
use crate::qos::{Item, Membership, Qos};
use crate::stats::Took;

impl Core {
    /// A request of the table.
    pub(crate) fn request(&self, id: u32) -> Option<&Request> {
        self.requests.get(id)
    }

    /// Requests in the table.
    pub(crate) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Whether a connection that takes memory may begin a command: the others that stand
    /// behind are not overtaken, however little it needs.
    pub(crate) fn may_begin(&self) -> bool {
        self.entry == Entry::One || self.behind.is_empty()
    }

    /// A command that takes memory has begun.
    pub(crate) fn begun(&mut self) {
        if self.entry == Entry::One {
            self.entry = Entry::Used;
        }
    }

    /// Where it is kept from now on what clients are still to be told; what a daemon before
    /// has left there, they are told now.
    pub(crate) fn keep_account(&mut self, now: Nanos, keep: Arc<Keep>) {
        self.promise.keep_account(now, &self.name, keep);
    }

    /// The disk may have an account that it did not have before.
    pub(crate) fn notes_what_is_owed(&mut self, now: Nanos) {
        self.promise.note(now);
    }

    /// A client is there.
    pub(crate) fn has_come(&mut self, now: Nanos, client: Client) {
        self.connections += 1;
        self.promise.comes(now, client);
    }

    /// A client that is there asks for something, or says good-bye.
    pub(crate) fn hears(&mut self, now: Nanos, client: Client) {
        self.promise.asks(now, client);
    }

    /// A client has gone, and nothing of it is under way any more.
    pub(crate) fn has_gone(&mut self, now: Nanos, client: Client) {
        self.connections -= 1;
        self.hurries_no_more(client);
        self.promise.leaves(now, client);
    }

    /// The number of its datastore among those of the reactor.
    pub(crate) fn store(&self) -> Option<u32> {
        self.flow.as_ref().map(Qos::store_of)
    }

    pub(super) fn count_arrival(&mut self, id: u32) {
        let outstanding = self.requests.len() + self.ahead;
        if let Some(Request { arrived, op, .. }) = self.requests.get(id) {
            self.counters.arrived(*arrived, op, outstanding);
        }
    }

    /// The numbers of the requests that have started.
    pub(crate) fn started(&self) -> Vec<u32> {
        let started =
            |request: &Request| matches!(request.progress, Progress::Started(..));
        let all = self.requests.iter();
        all.filter(|(_, request)| started(request)).map(|(id, _)| id).collect()
    }

    /// Carries a request out on an image. The answer comes under `ticket`.
    pub(crate) fn carry_out(&mut self, cx: &mut Cx, id: u32, image: u16, ticket: u64) {
        if let Some(request) = self.requests.get(id) {
            let op = request.op.clone();
            self.submit(cx, image, ticket, op);
        }
    }

    /// Starts any operation on an image. The answer comes under `ticket`.
    pub(crate) fn submit(&mut self, cx: &mut Cx, image: u16, ticket: u64, op: ImageOp) {
        let ticket = Ticket { disk: self.index, id: ticket };
        match self.held(image) {
            Some(held) => {
                let op = held.asked(op);
                held.image.submit(cx, ticket, op);
            }
            None => cx.finished.push((ticket, Err(Errno(libc::ENODEV)))),
        }
    }

    /// What an operation costs on an image; none for what need not wait.
    pub(super) fn cost(&self, image: u16, op: &ImageOp) -> Option<Cost> {
        let held = self.images.iter().find(|held| held.number == image)?;
        match op {
            ImageOp::Zero { .. } => held.asked(op.clone()).cost(&*held.image),
            op => op.cost(&*held.image),
        }
    }

    /// Whether the datastore will be busy with an operation's bytes.
    pub(crate) fn moves_bytes(&self, op: &ImageOp) -> bool {
        self.image(self.current).is_some_and(|image| image.moves_bytes(op))
    }

    /// Puts the guest into a class; what waits goes with it.
    pub(crate) fn set_class(&mut self, cx: &mut Cx, class: Membership) {
        if let Some(flow) = &self.flow {
            cx.qos.set_class(cx.now, flow, &class);
        }
        self.class = class;
    }

    /// Answers a request; it leaves the table.
    pub(crate) fn answer(&mut self, cx: &mut Cx, id: u32, result: ImageResult) {
        let Some(request) = self.requests.remove(id) else { return };
        if self.patches.has_read(id, &result) {
            return;
        }
        self.order.ends(id);
        self.patches.forget(id);
        self.look_for_loss(cx, self.current);
        if let Err(errno) = &result
            && !self.closing
            && !is_declined(&request.op, &result)
        {
            self.failures.add(cx.now, &request.op, *errno);
        }
        let result = self.promise.answer(
            request.origin.client,
            &request.op,
            request.promised,
            result,
        );
        let mut started = request.arrived;
        match request.progress {
            Progress::Started(at, admission) | Progress::Patching(at, admission) => {
                started = at;
                if let Some(admission) = admission {
                    cx.qos.done(cx.now, admission);
                }
            }
            Progress::Waiting => self.waiting.end(&request.op),
        }
        let queue = started.since(request.arrived);
        let took = Took { queue, service: cx.now.since(started) };
        if !is_declined(&request.op, &result) {
            self.counters.answered(&request.op, result.is_ok(), took);
        }
        self.answers.push(Answer { origin: request.origin, op: request.op, result });
    }

    /// One more step towards the end of a disk that is closing; true at the end.
    pub(crate) fn close(&mut self, cx: &mut Cx) -> bool {
        for request in self.order.give_up_all() {
            self.answer(cx, request, Err(Errno(libc::ESHUTDOWN)));
        }
        let waiting = self.flow.take().map(|flow| cx.qos.remove(&flow));
        for item in waiting.into_iter().flatten() {
            if let Item::Guest { request, .. } = item {
                self.answer(cx, request, Err(Errno(libc::ESHUTDOWN)));
            }
        }
        if self.connections > 0 || !self.requests.is_empty() {
            return false;
        }
        self.promise.looks(cx.now);
        self.leave_images(cx);
        self.images.is_empty()
    }
}
