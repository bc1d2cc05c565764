//! What goes between users, the move and the arrays.

use sterna_core::array::{Completion, Kind};
use sterna_core::{ByteRange, Nanos};

use super::{Event, Open, Purpose, STEP, Waiting, World};
use crate::mover::{Mover, Order};
use crate::svmotion::scene::Disk;

impl World {
    /// Tells the move something, and does what it orders.
    pub(super) fn with_mover(
        &mut self,
        tell: impl FnOnce(&mut Mover, Nanos, &mut Vec<Order>),
    ) {
        let Some(mover) = &mut self.mover else { return };
        let mut orders = std::mem::take(&mut self.orders);
        tell(mover, self.now, &mut orders);
        if let Some(deadline) = mover.deadline().map(|at| at.max(self.now))
            && self.ticking.is_none_or(|ticking| deadline < ticking)
        {
            self.ticking = Some(deadline);
            self.at(deadline, Event::Tick);
        }
        for order in orders.drain(..) {
            self.obey(order);
        }
        self.orders = orders;
    }

    fn obey(&mut self, order: Order) {
        let source = self.scene.disk.map_or(0, Disk::number);
        match order {
            Order::Source(id) => {
                let Some(&Waiting { ask, .. }) = self.guests.get(&id) else { return };
                self.submit(source, Purpose::Source(id), ask.kind, ask.place);
            }
            Order::Destination(id) => {
                let Some(&Waiting { ask, .. }) = self.guests.get(&id) else { return };
                let to = self.destination;
                self.submit(to, Purpose::Destination(id), ask.kind, ask.place);
            }
            Order::Answer(id) => self.guest_answered(id),
            Order::Read(job, ByteRange { offset, len }) => {
                self.submit(source, Purpose::Read(job), Kind::Read, (offset, len));
            }
            Order::Later(reply) => self.at(self.now.plus(STEP), Event::Reply(reply)),
            Order::Held(true) => self.holding = self.now,
            Order::Held(false) => {}
            Order::Ended => self.moved(),
        }
    }

    fn moved(&mut self) {
        let Some(disk) = self.scene.disk else { return };
        let part = disk.bytes().min(self.extent.bytes) as f64 / disk.bytes() as f64;
        let took = self.now.since(self.moving);
        self.course.moved = Some(took.as_secs_f64() / part);
        self.course.held_ms = self.now.since(self.holding).as_millis_f64();
        self.ended = true;
    }

    pub(super) fn submit(
        &mut self,
        pool: usize,
        purpose: Purpose,
        kind: Kind,
        place: (u64, u64),
    ) {
        let id = self.next_id();
        self.requests.insert(id, Open { purpose, pool, kind, place, since: self.now });
        match kind {
            Kind::Read => {
                self.storage.submit(self.now, pool, id, kind, place);
                self.arm(pool);
            }
            Kind::Write => {
                let at = self.storage.pass(self.now, pool, place.1);
                self.at(at, Event::Sent(id));
            }
        }
    }

    /// Takes what a pool is done with.
    pub(super) fn look(&mut self, pool: usize) {
        if self.armed[pool] == Some(self.now) {
            self.armed[pool] = None;
        }
        let mut done = std::mem::take(&mut self.done);
        self.storage.advance(self.now, pool, &mut done);
        for Completion { id, .. } in done.drain(..) {
            let Some(&open) = self.requests.get(&id) else { continue };
            let at = match open.kind {
                Kind::Read => self.storage.pass(self.now, pool, open.place.1),
                Kind::Write => self.now,
            };
            self.at(at, Event::Answered(id));
        }
        self.done = done;
        self.arm(pool);
    }

    pub(super) fn answered(&mut self, id: u64) {
        let Some(open) = self.requests.remove(&id) else { return };
        let took = self.now.since(open.since);
        match open.purpose {
            Purpose::Guest(id) => self.guest_answered(id),
            Purpose::Source(id) => {
                self.with_mover(|mover, now, orders| mover.source_done(now, id, orders));
            }
            Purpose::Destination(id) => {
                self.with_mover(|mover, now, orders| {
                    mover.destination_done(now, id, orders);
                });
            }
            Purpose::Read(job) => {
                self.stretch.copy_read.add(took);
                let to = self.destination;
                self.submit(to, Purpose::Write(job), Kind::Write, open.place);
                self.with_mover(|mover, now, orders| mover.read(now, job, orders));
            }
            Purpose::Write(job) => {
                self.stretch.copy_write.add(took);
                self.host.interrupt(self.parameters.chunk_cycles);
                self.with_mover(|mover, now, orders| {
                    mover.written(now, job, open.place.1, orders);
                });
            }
        }
    }

    /// Sees to it that a pool is looked at when something happens there.
    pub(super) fn arm(&mut self, pool: usize) {
        let next = self.storage.next_event(pool).map(|next| next.max(self.now));
        if let Some(next) = next
            && self.armed[pool].is_none_or(|armed| next < armed)
        {
            self.armed[pool] = Some(next);
            self.at(next, Event::Pool(pool));
        }
    }
}
