//! Two images of one slowed datastore, under a clock that stands until it is moved.
//! What is below the layers answers at once.

use std::sync::Arc;
use std::time::Duration;

use super::{Budget, Cx, Done, Image, ImageInfo, ImageOp, Opened, Ticket, slowed};
use crate::buffer::{Pool, Slice};
use crate::io::{Completion, ImageId, Io, Op, Owner, Token};
use crate::qos::Qos;

/// An image that answers at once.
struct Instant;

impl Opened for Instant {
    fn size(&self) -> u64 {
        1 << 30
    }

    fn start(self: Box<Self>, _cx: &mut Cx, _id: ImageId) -> Box<dyn Image> {
        self
    }
}

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
    fn submit(&mut self, _token: Token, _op: Op) {}
    fn wait(&mut self, _timeout: Option<Duration>, _out: &mut Vec<Completion>) {}
    fn cancel(&mut self, _token: Token) {}
    fn in_flight(&self) -> usize {
        0
    }
}

/// The images, and what they share.
pub(super) struct Rig {
    pub(super) cx: Cx,
    pub(super) images: Vec<Box<dyn Image>>,
    pub(super) buffer: Slice,
}

impl Rig {
    pub(super) fn new(budget: Budget) -> Rig {
        let buffers = Pool::new(8 << 20).unwrap();
        let buffer = buffers.get(1 << 20).unwrap().slice(0, 1 << 20);
        let others = [Pool::new(1 << 20).unwrap(), Pool::new(1 << 20).unwrap()];
        let (io, qos) = (Box::new(NoIo), Qos::new(0, Arc::default()));
        let mut cx = Cx::new(io, buffers, others, qos, Default::default()).unwrap();
        let budget = Arc::new(budget);
        let images = (0..2).map(|image| {
            let id = ImageId { disk: 1, image };
            slowed(Box::new(Instant), &budget).start(&mut cx, id)
        });
        let images = images.collect();
        Rig { cx, images, buffer }
    }

    /// A read from the first image.
    pub(super) fn read(&mut self, id: u64, len: usize) {
        self.read_from(0, id, len);
    }

    pub(super) fn read_from(&mut self, image: usize, id: u64, len: usize) {
        let op = ImageOp::Read { offset: 0, buf: self.buffer.part(0, len) };
        self.images[image].submit(&mut self.cx, Ticket { disk: 1, id }, op);
    }

    pub(super) fn submit(&mut self, id: u64, op: ImageOp) {
        self.images[0].submit(&mut self.cx, Ticket { disk: 1, id }, op);
    }

    /// Lets time pass from timer to timer; gives each answer's moment (us).
    pub(super) fn run(&mut self) -> Vec<(u64, u64)> {
        let mut answers = Vec::new();
        loop {
            let us = self.cx.now.0 / 1000;
            let finished = self.cx.finished.drain(..);
            answers.extend(finished.map(|(ticket, _)| (ticket.id, us)));
            let Some(next) = self.cx.timers.next() else { break };
            self.cx.now = next;
            while let Some(token) = self.cx.timers.due(next) {
                let Owner::Image(id) = token.owner else { continue };
                self.images[id.image as usize].timer(&mut self.cx, token.tag);
            }
        }
        assert!(self.images.iter().all(|image| image.idle()));
        answers
    }
}
