//! Writing: into the cache, out of it to the spindles, or straight to them.

use super::raid::{ELEMENT, Element, Stripe};
use super::spindle::Purpose;
use super::write_cache::Dirty;
use super::{Array, Event, parts};

/// Operations of destaging that are queued at once, for each spindle on average:
/// enough to keep all busy where chance spreads them unevenly.
const DESTAGE_DEPTH: u64 = 8;

/// The address space of what was coalesced: no caller's, as nothing is read from it.
const LOG: u32 = u32::MAX;

/// Some bytes on their way from the cache to the spindles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    bytes: u64,
    /// Operations that have not ended.
    left: u64,
}

impl Array {
    /// The bytes of a write have come.
    pub(super) fn write(&mut self, token: u64) {
        if self.dirty.exists() {
            self.full.push_back(token);
            self.admit();
            self.destage();
        } else {
            self.write_through(token);
        }
    }

    /// Takes the writes that there is room for, in order.
    fn admit(&mut self) {
        while let Some(&token) = self.full.front()
            && let Some(open) = self.requests.get(&token)
            && self.dirty.has_room(open.request.bytes)
        {
            self.full.pop_front();
            for (element, part) in parts(&open.request) {
                let stripe = self.layout.stripe(element);
                let whole = self.layout.data(stripe.group) * ELEMENT;
                self.dirty.add(self.now, stripe, whole, element.number, part);
            }
            self.at(self.now.plus(self.model.ack), Event::Answered(token));
        }
    }

    /// Starts as much destaging as is due and as the spindles take.
    pub(super) fn destage(&mut self) {
        let most = DESTAGE_DEPTH * self.spindles.len() as u64;
        while self.destaging < most
            && let Some((stripe, dirty)) = self.dirty.next(self.now)
        {
            if self.model.coalesce {
                self.write_log(&dirty);
            } else {
                self.write_stripe(stripe, &dirty);
            }
        }
        let full = self.destaging >= most;
        if let Some(due) = self.dirty.due().filter(|_| !full)
            && self.linger.is_none_or(|linger| due < linger)
        {
            self.linger = Some(due);
            self.at(due, Event::Lingered);
        }
    }

    /// Writes a stripe's spans where they belong.
    fn write_stripe(&mut self, stripe: Stripe, dirty: &Dirty) {
        let mut targets = Vec::new();
        let start = stripe.row.saturating_mul(ELEMENT);
        if dirty.is_whole(self.layout.data(stripe.group)) {
            let members = self.layout.full_write(stripe);
            targets.extend(members.map(|spindle| (spindle, (start, ELEMENT))));
        } else {
            for (&number, &(from, to)) in &dirty.spans {
                let element = Element { lun: stripe.lun, number };
                let place = (start + from, to - from);
                let spindles = self.layout.small_write(element).into_iter();
                targets.extend(spindles.map(|spindle| (spindle, place)));
            }
        }
        self.job(stripe.lun, dirty.bytes, &targets);
    }

    /// Writes as many spans as make a stripe, wherever they belong, as one stripe
    /// in the next place of the log.
    fn write_log(&mut self, first: &Dirty) {
        let groups = self.layout.groups() as u64;
        let (row, group) = (self.log / groups, (self.log % groups) as usize);
        self.log += 1;
        let data = self.layout.data(group);
        let mut bytes = first.bytes;
        while bytes < data * ELEMENT
            && let Some((_, more)) = self.dirty.next(self.now)
        {
            bytes += more.bytes;
        }
        let stripe = Stripe { lun: LOG, row, group };
        let place = (row.saturating_mul(ELEMENT), bytes.div_ceil(data));
        let members = self.layout.full_write(stripe);
        let targets: Vec<_> = members.map(|spindle| (spindle, place)).collect();
        self.job(LOG, bytes, &targets);
    }

    fn job(&mut self, lun: u32, bytes: u64, targets: &[(usize, (u64, u64))]) {
        let (job, left) = (self.next_token(), targets.len() as u64);
        self.destaging += left;
        self.jobs.insert(job, Job { bytes, left });
        for (spindle, place) in targets {
            self.ask(*spindle, lun, *place, Purpose::Destage(job));
        }
    }

    /// An operation of a job has ended.
    pub(super) fn destaged(&mut self, token: u64) {
        let Some(job) = self.jobs.get_mut(&token) else { return };
        job.left -= 1;
        self.destaging -= 1;
        if job.left == 0 {
            let bytes = job.bytes;
            self.jobs.remove(&token);
            self.dirty.free(bytes);
            self.admit();
        }
        self.destage();
    }

    /// Writes straight to the spindles: whole stripes where there are any.
    fn write_through(&mut self, token: u64) {
        let Some(open) = self.requests.get(&token) else { return };
        let request = open.request;
        let mut targets = Vec::new();
        for (element, (from, to)) in parts(&request) {
            let stripe = self.layout.stripe(element);
            let elements = self.layout.elements(stripe);
            let start = stripe.row.saturating_mul(ELEMENT);
            let begins = element.number == elements.start;
            let whole = request.offset <= elements.start.saturating_mul(ELEMENT)
                && elements.end.saturating_mul(ELEMENT)
                    <= request.offset.saturating_add(request.bytes);
            if !whole {
                let spindles = self.layout.small_write(element).into_iter();
                targets
                    .extend(spindles.map(|spindle| (spindle, (start + from, to - from))));
            } else if begins {
                let members = self.layout.full_write(stripe);
                targets.extend(members.map(|spindle| (spindle, (start, ELEMENT))));
            }
        }
        if let Some(open) = self.requests.get_mut(&token) {
            open.parts = targets.len() as u64 + 1;
        }
        for (spindle, place) in targets {
            self.ask(spindle, request.lun, place, Purpose::Request(token));
        }
        self.part(token);
    }
}
