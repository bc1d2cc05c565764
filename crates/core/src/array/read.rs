//! Reading: from the caches, from the spindles, and ahead of streams.

use super::raid::{ELEMENT, Element};
use super::read_cache::Lookup;
use super::spindle::Purpose;
use super::{Array, Event, Request, parts};

impl Array {
    /// Starts a read.
    pub(super) fn read(&mut self, token: u64, request: &Request) {
        let window = u64::from(self.model.prefetch);
        let ahead = self.streams.read(request.lun, request.offset, request.bytes, window);
        let hit = ahead.is_none() && self.dice.percent(self.model.hits);
        if request.bytes == 0 || hit {
            let at = self.over_link(request.bytes);
            self.at(at.plus(self.model.overhead), Event::Answered(token));
            return;
        }
        // One more than there are, so that none of them can be the last while the
        // others are still being asked for.
        let count = parts(request).count() as u64;
        if let Some(open) = self.requests.get_mut(&token) {
            open.parts = count + 1;
        }
        for (element, part) in parts(request) {
            self.read_part(token, element, part);
        }
        for number in ahead.into_iter().flatten() {
            self.prefetch(Element { lun: request.lun, number });
        }
        self.part(token);
    }

    fn read_part(&mut self, token: u64, element: Element, part: (u64, u64)) {
        let stripe = self.layout.stripe(element);
        if self.dirty.holds(stripe, element, part) {
            self.part(token);
            return;
        }
        match self.cache.look(element, part.1, token) {
            Lookup::There => self.part(token),
            Lookup::Coming => {}
            Lookup::Absent => self.fetch(element, part, Purpose::Request(token)),
        }
    }

    fn prefetch(&mut self, element: Element) {
        if self.cache.expect(element) {
            self.fetch(element, (0, ELEMENT), Purpose::Prefetch(element));
        }
    }

    /// Asks the spindle that has the element, or of two the one with less to do.
    fn fetch(&mut self, element: Element, part: (u64, u64), purpose: Purpose) {
        let (primary, mirror) = self.layout.copies(element);
        let load = |spindle: usize| self.spindles[spindle].load();
        let spindle = match mirror {
            Some(mirror) if load(mirror) < load(primary) => mirror,
            _ => primary,
        };
        let row = self.layout.stripe(element).row;
        let place = (row.saturating_mul(ELEMENT) + part.0, part.1 - part.0);
        self.ask(spindle, element.lun, place, purpose);
    }
}
