//! What of a disk waits: behind an earlier write of another client ([`order`]), then for
//! admission at the datastore; how many requests that are and what they hold of the reactor's
//! memory; and who goes on, is given up, or has waited for so long that somebody should look.

use sterna_core::Nanos;

use super::{Answer, Client, Core, Disk, ORDER_TIMER, Route, order};
use crate::image::{Cx, Image, ImageOp};
use crate::io::{Errno, Owner, Token};
use crate::qos::Item;
use crate::troubles::{Trouble, TroubleKind};

/// Connections that stand behind what waits begin one command each, in turn: so each has
/// the same part of the requests that its class lets through, whether it asks for 8 KiB at
/// a time or for 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nobody is served one command.
    #[default]
    Nobody,
    /// Who works now may begin one command.
    One,
    /// It has.
    Used,
}

/// How it stands with a disk whose client wants memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strain {
    /// So much of the pool is held by what waits on it for admission.
    pub(crate) waiting: usize,
    /// How long the oldest request at its datastore has been under way.
    pub(crate) oldest: Nanos,
}

#[derive(Default)]
pub(super) struct Waiting {
    requests: usize,
    memory: usize,
}

impl Waiting {
    pub(super) fn begin(&mut self, op: &ImageOp) {
        self.requests += 1;
        self.memory += op.memory();
    }

    pub(super) fn end(&mut self, op: &ImageOp) {
        self.requests -= 1;
        self.memory -= op.memory();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }
}

impl Disk {
    /// What waited for an earlier request of another client goes on, if that has ended; and
    /// writes go on whose blocks have been read. Whether less waits now, and somebody
    /// stands behind that.
    pub(crate) fn go_on(&mut self, cx: &mut Cx) -> bool {
        let mut less = false;
        loop {
            self.patch(cx);
            let Some(id) = self.core.order.next() else { break };
            less = true;
            self.enter(cx, id);
            self.core.set_order_alarm(cx);
        }
        less && !self.core.behind.is_empty()
    }

    /// A request gets in line for admission, or starts.
    pub(super) fn enter(&mut self, cx: &mut Cx, id: u32) {
        let Some(request) = self.core.requests.get(id) else { return };
        let hurries = self.core.hurrying.contains(&request.origin.client);
        let cost = self.core.cost(self.core.current, &request.op);
        let cost = cost.filter(|_| !hurries);
        match (cost, &self.core.flow) {
            (Some(cost), Some(flow)) => {
                let item = Item::Guest { disk: self.core.index, request: id };
                match cx.qos.arrive(cx.now, flow, cost, item) {
                    Some(admission) => self.start(cx, id, Some(admission)),
                    None => self.look_who_waits(cx),
                }
            }
            _ => self.start(cx, id, None),
        }
    }

    /// What waits for admission and is asked for by this client starts without it; and so
    /// does what is still behind an earlier write of another, when that has ended.
    pub(crate) fn hasten(&mut self, cx: &mut Cx, client: Client) {
        if !self.core.hurrying.contains(&client) {
            self.core.hurrying.push(client);
        }
        for id in self.core.take_waiting(cx, client) {
            self.start(cx, id, None);
        }
    }

    /// Drops what waits for admission and is asked for by a client that has gone.
    pub(crate) fn abandon(&mut self, cx: &mut Cx, client: Client) {
        self.core.abandon(cx, client);
        self.look_who_waits(cx);
    }

    /// A guest's request waits for admission, or has been dropped while it did.
    pub(super) fn look_who_waits(&mut self, cx: &mut Cx) {
        if let Route::Mirrored(driver) = &mut self.route {
            driver.look_who_waits(&mut self.core, cx);
            self.settle();
        }
    }
}

impl Core {
    /// How it stands with the memory that this disk's clients may have.
    pub(crate) fn strain(&self, cx: &Cx) -> Strain {
        let oldest = self.flow.as_ref().map(|flow| cx.qos.oldest(cx.now, flow));
        let oldest = oldest.unwrap_or_default();
        Strain { waiting: self.waiting.memory(), oldest }
    }

    /// Whether the guest waits for admission.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Nobody waits any more until nothing of this client is under way.
    pub(crate) fn hurries_no_more(&mut self, client: Client) {
        self.hurrying.retain(|hurrying| *hurrying != client);
    }

    fn abandon(&mut self, cx: &mut Cx, client: Client) {
        let mut gone = self.take_waiting(cx, client);
        gone.extend(self.order.give_up(client));
        for id in gone {
            let Some(request) = self.requests.remove(id) else { continue };
            self.order.ends(id);
            self.patches.forget(id);
            self.waiting.end(&request.op);
            let result = Err(Errno(libc::ECANCELED));
            self.answers.push(Answer { origin: request.origin, op: request.op, result });
        }
        self.set_order_alarm(cx);
    }

    /// Takes what waits for admission and is asked for by a client out of its flow.
    fn take_waiting(&self, cx: &mut Cx, client: Client) -> Vec<u32> {
        let Some(flow) = &self.flow else { return Vec::new() };
        let taken = cx.qos.give_up(cx.now, flow, |item| match item {
            Item::Guest { request, .. } => self
                .requests
                .get(*request)
                .is_some_and(|request| request.origin.client == client),
            Item::Copy { .. } => false,
        });
        let number = |item| match item {
            Item::Guest { request, .. } => Some(request),
            Item::Copy { .. } => None,
        };
        taken.into_iter().filter_map(number).collect()
    }

    /// Sets the timer for the moment from which somebody should look.
    pub(super) fn set_order_alarm(&mut self, cx: &mut Cx) {
        let next = self.order.waits().map(|(since, _)| since.plus(order::TOLD));
        let next = next.filter(|at| *at > cx.now);
        let token = Token { owner: Owner::Disk(self.index), tag: ORDER_TIMER };
        self.order_alarm.set(&mut cx.timers, next, token);
    }

    /// Somebody should look at what waits for another client's write.
    pub(super) fn tell_who_waits(&mut self, cx: &mut Cx) {
        self.order_alarm.fired();
        if let Some((since, requests)) = self.order.waits()
            && cx.now.since(since) >= order::TOLD
        {
            tracing::warn!(
                disk = self.name,
                requests,
                "requests wait for an earlier write of another client to the same place, \
                 and that write does not end; check the disk's datastore"
            );
        }
        self.set_order_alarm(cx);
    }

    /// What somebody should look at.
    pub(crate) fn troubles(&self, now: Nanos) -> impl Iterator<Item = Trouble> {
        let waits = self.order.waits().map(|(since, requests)| Trouble {
            kind: TroubleKind::Waits { requests },
            age: now.since(since).into(),
        });
        let waits = waits.filter(|trouble| trouble.age >= order::TOLD.into());
        let image = self.image(self.current);
        let another = image.and_then(Image::another_since).map(|since| Trouble {
            kind: TroubleKind::AnotherExport,
            age: now.since(since).into(),
        });
        let lacks = self.lacks().map(move |(since, lack, copy)| Trouble {
            kind: TroubleKind::Lacks { lack, copy },
            age: now.since(since).into(),
        });
        let unkept = self.without_account().map(|since| Trouble {
            kind: TroubleKind::Unkept,
            age: now.since(since).into(),
        });
        let failures = self.failures.trouble(now);
        let all = self.promise.troubles(now).chain(unkept).chain(another).chain(lacks);
        all.chain(waits).chain(failures)
    }
}
