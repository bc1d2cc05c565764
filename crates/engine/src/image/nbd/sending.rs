//! An operation's way to the server: it is cut into requests, these go out on the connections
//! that are free, and when the last is answered the operation is.

use sterna_core::durability::Goes;
use sterna_nbd::Command;

use super::flight::{self, Part};
use super::link::{HEADS_KEPT, Link};
use super::{BATCH, NbdImage, SEND, known};
use crate::image::{Cx, Image, ImageOp};
use crate::io::{Completion, Errno, Op};

impl NbdImage {
    /// Cuts what may be cut of an operation, and answers it if it is done.
    pub(super) fn advance(&mut self, cx: &mut Cx, key: u32) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        while let Some(request) = flight.next(&self.able, &cx.zeroes) {
            self.queue.push_back(self.parts.insert(Part::new(key, request)));
        }
        if flight.parts > 0 || self.flush(key) {
            return;
        }
        let Some(flight) = self.flights.remove(key) else { return };
        if flight.ticket.id == known::LOOK {
            return self.has_looked(cx, &flight);
        }
        match (flight.error, &flight.flushing) {
            // Refused as a whole, such as zeroes that would not be fast.
            (Some(Errno(libc::EOPNOTSUPP)), _) => {}
            (Some(_), _) => {
                if let Some(range) = flight::changes(&flight.op) {
                    self.witnesses.failed(range);
                }
            }
            (None, Some(_)) => self.look_after_flush(cx, flight.covers),
            (None, None) => {}
        }
        let resent = flight.resent;
        if self.is_asked_for(cx, flight.ticket) {
            cx.finished.push((flight.ticket, flight.answer()));
        }
        if resent {
            // In their order, and each held back only by those before it.
            for (ticket, op) in std::mem::take(&mut self.held) {
                self.submit(cx, ticket, op);
            }
        }
    }

    /// Goes on with the flush that an operation ends with; false if it needs none any
    /// more.
    pub(super) fn flush(&mut self, key: u32) -> bool {
        let Some(flight) = self.flights.get_mut(key) else { return false };
        if !flight.ends_with_flush(&self.able) {
            return false;
        }
        let flushing = flight.flushing.get_or_insert_with(|| {
            flight.covers = self.witnesses.flush_begins();
            self.durability.flushing()
        });
        let mut part = || self.parts.insert(Part::new(key, (Command::Flush, None)));
        match self.durability.goes(flushing) {
            Goes::Nowhere => return false,
            Goes::Anywhere => {
                flight.parts += 1;
                self.queue.push_back(part());
            }
            Goes::On(links) => {
                for link in links {
                    flight.parts += 1;
                    self.links[link].own.push_back(part());
                }
            }
        }
        true
    }

    /// Whether an operation has to wait for an older one that was sent again.
    pub(super) fn must_wait(&self, op: &ImageOp) -> bool {
        let Some(range) = flight::changes(op) else { return false };
        let meets =
            |other: &ImageOp| flight::changes(other).is_some_and(|it| it.overlaps(range));
        self.flights.iter().any(|(_, flight)| flight.resent && meets(&flight.op))
            || self.held.iter().any(|(_, op)| meets(op))
    }

    /// Sends what waits, on the connections that are free.
    pub(super) fn pump(&mut self, cx: &mut Cx) {
        loop {
            let shared = !self.queue.is_empty();
            let has_work = |link: &Link| shared || !link.own.is_empty();
            let links = self.links.iter().enumerate();
            let free = links.filter(|(_, link)| link.can_send() && has_work(link));
            let Some((at, _)) = free.min_by_key(|(_, link)| link.outstanding) else {
                return;
            };
            self.send(cx, at);
        }
    }

    /// Sends a batch from the queue on a connection that is free.
    pub(super) fn send(&mut self, cx: &mut Cx, at: usize) {
        let link = &mut self.links[at];
        let (Some(mut message), Some(fd)) = (link.message.take(), link.fd.clone()) else {
            return;
        };
        while message.has_room() && link.sent.len() < BATCH {
            let next = link.own.pop_front().or_else(|| self.queue.pop_front());
            let Some(key) = next else { break };
            let Some(part) = self.parts.get_mut(key) else { continue };
            part.sent = self.durability.sent();
            if matches!(part.command, Command::Flush) {
                part.flush = Some(self.durability.flush_sent(at));
            }
            self.sequence = self.sequence.wrapping_add(1);
            part.cookie = u64::from(self.sequence) << 32 | u64::from(key);
            part.link = Some(at);
            part.sending = true;
            let head = part.command.request(part.cookie).encode();
            message.head(|bytes| bytes.extend_from_slice(&head));
            if let (Command::Write { .. }, Some(payload)) = (part.command, &part.buf) {
                message.payload(payload.clone());
            }
            link.sent.push(key);
            link.outstanding += 1;
        }
        cx.io.submit(self.token(at, SEND), Op::Send { fd, message });
    }

    /// The kernel is done with a message, well or not.
    pub(super) fn sent(&mut self, cx: &mut Cx, at: usize, completion: Completion) {
        let Op::Send { mut message, .. } = completion.op else { return };
        // The payloads are let go of before anybody is answered.
        message.clear(HEADS_KEPT);
        self.links[at].message = Some(message);
        for key in std::mem::take(&mut self.links[at].sent) {
            let Some(part) = self.parts.get_mut(key) else { continue };
            part.sending = false;
            if part.answered {
                self.finish(cx, key);
            }
        }
        match completion.result {
            Err(errno) => self.lose(cx, at, &errno.to_string()),
            Ok(_) => self.settle(cx, at),
        }
    }

    /// A request is answered and its buffers are free.
    pub(super) fn finish(&mut self, cx: &mut Cx, key: u32) {
        let Some(part) = self.parts.remove(key) else { return };
        let Some(flight) = self.flights.get_mut(part.flight) else { return };
        flight.parts -= 1;
        match (part.error, part.command) {
            // A server that cannot tell: everything may be data.
            (Some(_), Command::BlockStatus { .. }) => flight.take_extents(&[]),
            (Some(errno), _) => flight.error = flight.error.or(Some(errno)),
            (None, Command::Flush) if part.answered => {
                if let Some(flushing) = &mut flight.flushing {
                    flushing.flushed();
                }
            }
            (None, _) => {}
        }
        self.advance(cx, part.flight);
    }

    /// Fails every operation that is under way. Each is answered as soon as the
    /// kernel has given its buffers back.
    pub(super) fn fail_all(&mut self, cx: &mut Cx, errno: Errno) {
        for (ticket, _) in std::mem::take(&mut self.held) {
            cx.finished.push((ticket, Err(errno)));
        }
        for key in self.flights.keys() {
            if let Some(flight) = self.flights.get_mut(key) {
                flight.error = flight.error.or(Some(errno));
            }
        }
        let own = self.links.iter_mut().flat_map(|link| std::mem::take(&mut link.own));
        let waiting: Vec<u32> = own.chain(std::mem::take(&mut self.queue)).collect();
        for key in waiting {
            self.finish(cx, key);
        }
    }
}
