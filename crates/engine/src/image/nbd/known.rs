//! What the image is known by: its sidecar, and witnesses.
//!
//! [`sterna_core::durability::Witnesses`] has the rule. Here are the reads that it lives
//! from: many when the image comes up, and some whenever a flush has succeeded, one after
//! the other and no more than [`CREDIT_EVERY`] allows. They are operations like any other,
//! into memory that no guest has, and are answered to nobody.
//!
//! The sidecar is not there where the disk fills its export: there the last block is the
//! guest's. Its role and generation change, as other connections write them. Only a copy
//! that was under way (`Partial`) never becomes active with a generation below its own:
//! that is another image of the same disk, such as the source.

use std::sync::Arc;

use sterna_core::durability::{STRETCH, Standing, WITNESSES};
use sterna_core::{DiskId, Nanos};

use super::examine::{Examination, Examined};
use super::flight::{Flight, changes};
use super::{Memory, NbdImage};
use crate::image::{Cx, Image, ImageOp, Ticket};
use crate::sidecar::trailer::{self, Trailer};
use crate::sidecar::{Identity, Role};

/// The ticket of a look.
pub(super) const LOOK: u64 = Ticket::NEWS - 2;
/// Looks that may follow a flush at once.
const CREDIT: usize = 16;
/// How long it takes until one more may.
const CREDIT_EVERY: Nanos = Nanos::from_millis(125);

/// The looks of an image.
#[derive(Default)]
pub(super) struct Looks {
    /// The operation under way.
    pub(super) under_way: Option<u32>,
    left: usize,
    /// From when on the credit grows.
    since: Nanos,
}

impl NbdImage {
    /// There is a way to the server, for the first time or again: looks at many places if
    /// little is known of it.
    pub(super) fn look_first(&mut self, cx: &mut Cx) {
        self.looks.left = WITNESSES - self.witnesses.strength();
        self.look(cx);
    }

    /// A flush has succeeded that covers so many looks.
    pub(super) fn look_after_flush(&mut self, cx: &mut Cx, covers: u64) {
        self.witnesses.flushed(covers);
        let whole = cx.now.since(self.looks.since).0 / CREDIT_EVERY.0;
        let credit = usize::try_from(whole).unwrap_or(CREDIT).min(CREDIT);
        if credit > 0 {
            self.looks.since = cx.now;
            self.looks.left = self.looks.left.max(credit);
            self.look(cx);
        }
    }

    fn look(&mut self, cx: &mut Cx) {
        let may = self.looks.left > 0 && self.looks.under_way.is_none();
        if !may || self.closing || !self.is_in_reach() {
            return;
        }
        let Some(buf) = cx.links.get(STRETCH as usize) else { return };
        self.looks.left -= 1;
        let NbdImage { flights, held, witnesses, .. } = self;
        let range = witnesses.look(|range| {
            let changes = |op| changes(op).is_some_and(|it| it.overlaps(range));
            flights.iter().any(|(_, flight)| changes(&flight.op))
                || held.iter().any(|(_, op)| changes(op))
        });
        let Some(range) = range else {
            self.looks.left = 0;
            return;
        };
        let buf = buf.slice(0, STRETCH as usize);
        let op = ImageOp::Read { offset: range.offset, buf };
        let ticket = Ticket { disk: self.id.disk, id: LOOK };
        let key = self.flights.insert(Flight::new(ticket, op, cx.now));
        self.looks.under_way = Some(key);
        self.advance(cx, key);
        self.pump(cx);
    }

    /// A look has ended.
    pub(super) fn has_looked(&mut self, cx: &mut Cx, flight: &Flight) {
        self.looks.under_way = None;
        match (&flight.op, flight.error) {
            (ImageOp::Read { buf, .. }, None) => {
                let all_is_flushed = !self.durability.has_unflushed();
                self.witnesses.saw(&buf.bytes(), all_is_flushed);
            }
            _ => {
                self.witnesses.saw_nothing();
                self.looks.left = 0;
            }
        }
        self.look(cx);
    }

    /// A look that is under way brings nothing, and is not sent again.
    pub(super) fn look_no_more(&mut self, cx: &mut Cx) {
        self.looks.left = 0;
        let Some(key) = self.looks.under_way else { return };
        if let Some(flight) = self.flights.get_mut(key) {
            flight.error = flight.error.or(Some(crate::io::Errno(libc::ECANCELED)));
        }
        let parts = &self.parts;
        let is_its = |part: &u32| parts.get(*part).is_some_and(|part| part.flight == key);
        let waits: Vec<u32> = self.queue.iter().copied().filter(is_its).collect();
        self.queue.retain(|part| !waits.contains(part));
        for part in waits {
            self.finish(cx, part);
        }
    }

    /// What is to be read over a new connection.
    pub(super) fn examination(&self) -> Examination {
        let sidecar = self.sidecar.as_ref().map(|(at, _)| *at);
        let sidecar = sidecar.or_else(|| trailer::offset(self.capacity, 0));
        Examination { sidecar, questions: self.witnesses.questions() }
    }

    /// Whether nothing says that what answers next is the same export: it has no sidecar,
    /// and nothing that was read there is known to be durable.
    pub(super) fn is_unknown(&self) -> bool {
        self.sidecar.is_none() && self.witnesses.strength() == 0
    }

    /// Whether somebody who knows the other disks is to be asked about a new connection. One
    /// beside others that are up leads where they lead.
    pub(super) fn needs_voucher(&self) -> bool {
        self.is_unknown() && !self.is_in_reach()
    }

    /// What a new connection leads to; of another export, why it is that.
    pub(super) fn recognise(&mut self, examined: &Examined) -> Result<Standing, String> {
        match (&self.sidecar, &examined.sidecar) {
            (Some((_, known)), Some(bytes)) => is_of(known, bytes)?,
            (None, Some(bytes)) if self.is_unknown() => is_of_nobody(bytes, self.left)?,
            _ => {}
        }
        examined.vouched.clone().unwrap_or(Ok(()))?;
        match self.witnesses.judge(&examined.answers) {
            Standing::Another { read } => Err(format!(
                "of {read} places that Sterna remembers, (nearly) none holds what it held"
            )),
            standing => Ok(standing),
        }
    }

    /// Another export has answered, which is not used.
    pub(super) fn is_another(&mut self, cx: &mut Cx, reason: &str) {
        if self.another.is_some() {
            return;
        }
        self.another = Some(cx.now);
        tracing::error!(
            uri = %self.uri, reason,
            "another export answers at this address; Sterna does not use it, and requests \
             wait for the right one"
        );
        self.tell_news(cx);
    }

    /// The server is back without what it had flushed.
    pub(super) fn goes_back(&mut self, cx: &mut Cx) {
        self.gone_back = true;
        tracing::error!(
            uri = %self.uri,
            "the NBD server is back without writes that it had flushed, as if an older \
             state had been put back"
        );
        self.note(cx);
        self.tell_news(cx);
    }

    /// What the image is known by, as far as a server may not forget it.
    pub(super) fn remember(&self) -> Memory {
        let mut witnesses = self.witnesses.clone();
        witnesses.lost();
        let (sidecar, left) = (self.sidecar.clone(), self.left);
        Memory { sidecar, left, witnesses: Arc::new(witnesses) }
    }
}

/// Whether these bytes, of an export without a sidecar, are none, or one that a disk has
/// `left` there: what is there is the disk's own, which nobody knows yet.
fn is_of_nobody(bytes: &[u8], left: Option<DiskId>) -> Result<(), String> {
    let read = <&Trailer>::try_from(bytes).ok().map(trailer::read);
    match read {
        Some(Ok(found)) if left != Some(found.id) => {
            Err(format!("it is the image of disk {}", found.name))
        }
        _ => Ok(()),
    }
}

/// Whether these bytes are the sidecar of an image that was `known`.
fn is_of(known: &Identity, bytes: &[u8]) -> Result<(), String> {
    let read = <&Trailer>::try_from(bytes).ok().map(trailer::read);
    let Some(Ok(found)) = read else {
        return Err(format!("it lacks the sidecar of disk {}", known.name));
    };
    let was_copy = known.role == Role::Partial && found.role == Role::Active;
    if found.id != known.id {
        return Err(format!("it is the image of disk {}", found.name));
    }
    match was_copy && found.generation < known.generation {
        true => Err(format!("it is another image of disk {}", found.name)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecar::trailer::TRAILER_LEN;

    fn identity(id: u128, role: Role, generation: u64) -> Identity {
        Identity { id: DiskId(id), name: "db".into(), size: 1 << 20, generation, role }
    }

    fn trailer_of(identity: &Identity) -> Trailer {
        let record = identity.encode().unwrap();
        *trailer::steps(&[0; TRAILER_LEN], &record).last().unwrap()
    }

    #[test]
    fn a_sidecar_of_the_same_image_may_change_as_sterna_changes_it() {
        let copy = identity(1, Role::Partial, 7);
        let table = [
            (identity(1, Role::Partial, 7), true),
            (identity(1, Role::Partial, 9), true),
            (identity(1, Role::Active, 7), true),
            (identity(1, Role::Active, 9), true),
            // The source of the copy.
            (identity(1, Role::Active, 6), false),
            (identity(2, Role::Partial, 7), false),
        ];
        for (found, is) in table {
            assert_eq!(is_of(&copy, &trailer_of(&found)).is_ok(), is, "{found:?}");
        }
        let active = identity(1, Role::Active, 7);
        assert!(is_of(&active, &trailer_of(&identity(1, Role::Active, 6))).is_ok());
        assert!(is_of(&active, &[0; TRAILER_LEN]).is_err());
    }
}
