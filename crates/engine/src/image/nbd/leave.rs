//! The image's line in its disk's account, and its last flush.
//!
//! The last flush is an operation like any other, which nobody is answered. It covers what
//! was answered before, as nothing is submitted any more. A server that does not answer it
//! in time, or that is out of reach, is left as it is: the line then says that writes are
//! unflushed. A server that takes no flush keeps what it has answered, as far as anybody
//! can ask it to: leaving it in good order leaves nothing behind.

use sterna_core::Nanos;
use sterna_core::durability::Durability;
use sterna_nbd::TransmissionFlags;

use super::NbdImage;
use super::flight::Flight;
use crate::image::doubt::oldest_flush;
use crate::image::{Cx, Image, ImageOp, LEAVE_WITHIN, LEAVING, Ticket, token};
use crate::slab::Slab;

impl NbdImage {
    /// Has the line say what is so.
    pub(super) fn note(&mut self, cx: &mut Cx) {
        let NbdImage { line: Some(line), doubt, flights, .. } = self else { return };
        let owes = self.forgotten.is_some() || self.gone_back;
        line.set(owes || self.durability.has_unflushed());
        doubt.ends(cx, self.id, line, || oldest(flights));
    }

    /// A flush may be under way for long.
    pub(super) fn looks_for_long_flushes(&mut self, cx: &mut Cx) {
        let since = oldest(&self.flights);
        self.doubt.rings(cx, self.id, since, self.line.as_mut());
    }

    /// Nobody will ask for the image any more.
    pub(super) fn close_line(&mut self) {
        if let Some(mut line) = self.line.take() {
            line.set(false);
        }
    }

    /// Closes the image when all that was answered is durable, or cannot be made so.
    pub(super) fn flush_last(&mut self, cx: &mut Cx) {
        self.close_looks(cx);
        self.doubt.ends_for_good(cx, self.id);
        if !self.able.has(TransmissionFlags::SEND_FLUSH) && self.forgotten.is_none() {
            self.close_line();
        } else if self.durability.has_unflushed() {
            self.doubt.is_certain(self.line.as_mut());
            let at = cx.now.plus(LEAVE_WITHIN);
            self.leaving.set(&mut cx.timers, Some(at), token(self.id, LEAVING));
            let ticket = Ticket { disk: self.id.disk, id: Ticket::LAST };
            let key = self.flights.insert(Flight::new(ticket, ImageOp::Flush, cx.now));
            self.advance(cx, key);
            self.pump(cx);
        }
        self.say_goodbye(cx);
    }

    /// The last flush has taken for too long.
    pub(super) fn leave_as_it_is(&mut self, cx: &mut Cx) {
        self.leaving.fired();
        tracing::warn!(
            uri = %self.uri,
            "the NBD server has not flushed a disk's last writes in time; they may be lost \
             with the connection, and the next flush of each client fails then"
        );
        // These connections are not lost: the server may well have all of it.
        self.durability = Durability::new(self.links.len());
        self.abort(cx);
        self.say_goodbye(cx);
    }

    /// An operation has ended. Says whether somebody is to be answered.
    pub(super) fn is_asked_for(&mut self, cx: &mut Cx, ticket: Ticket) -> bool {
        if ticket.id == Ticket::LAST {
            self.leaving.set(&mut cx.timers, None, token(self.id, LEAVING));
            self.doubt.ends_for_good(cx, self.id);
        }
        ticket.id != Ticket::LAST
    }
}

/// When the oldest of those began that end with a flush.
fn oldest(flights: &Slab<Flight>) -> Option<Nanos> {
    oldest_flush(flights.iter().map(|(_, flight)| (&flight.op, flight.began)))
}
