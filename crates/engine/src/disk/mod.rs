//! A disk on its reactor: requests come in, go to its image, and are answered.
//!
//! A `Request` is one operation of a guest, at most one piece of what the client
//! asked for (see `export`), with its buffer. It is in the table from `submit`
//! to `answer`, under a number that is its name everywhere: in the `Ticket` of
//! the image operation, and as the mirror's `RequestId`.
//!
//! **The route.** Without a migration a request goes straight to the current
//! image. With one, the route is a `Driver`, and the disk hands it every new
//! request and every answer of an image; the driver uses the rest of the disk
//! (`Core`) to carry requests out on one image or two and to answer them. Its
//! tickets for anything that is not simply "this request on the current image"
//! carry numbers from `Core::OWN` up, which the disk itself never uses: when
//! the driver is gone, late answers to such tickets are dropped.
//!
//! **Admission.** Before that, a request waits for admission at the datastore of the
//! current image (`qos`). What waits is in the table and not yet on any route; a
//! driver hears of it when it starts, and before that only that something waits: a guest
//! that does is there. The operations of a driver's copier wait in
//! the same way, at the datastore of the image they are for.
//!
//! **Two images, the same bytes.** A guest may change its memory while a write out of it
//! is under way. One image takes it as it comes; two would differ. So what a driver
//! is given is `private`.
//!
//! **Several clients.** Requests that overlap an earlier write of another client wait until
//! it has ended, before they are in line for admission (`order`). What clients were told to be
//! durable, and what becomes of it, is in `promise`.
//!
//! **Parts of blocks.** A write that does not cover whole blocks is made one that does, and
//! is alone there meanwhile (`patch`).
//!
//! **Requests that nobody waits for.** When a connection is closed, those of its
//! requests that still wait for admission are dropped: a machine that was killed must
//! not be held up, when it is back, by what it had asked for before. Nobody was told
//! that such a write was done, so its bytes may be the old ones, as after a loss of
//! power; what has started is carried out.
//!
//! **Requests that a whole machine waits for.** A machine that stops, or starts anew,
//! stands still until nothing of it is under way any more, and its hypervisor with it.
//! What it asked for and still waits is started at once then, and counts for no limit:
//! the machine that comes back is not held up by it either.
//!
//! **The end.** A disk that is being detached takes no more connections; its
//! connections close; when no request is left its images close; when they are
//! idle it is gone.

mod bounce;
mod copies;
mod core;
mod failures;
mod images;
mod order;
mod patch;
mod promise;
mod request;
mod route;
mod waiting;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use sterna_core::{DiskId, Nanos};

use self::bounce::BounceBuffers;
use self::copies::Copying;
use self::failures::Failures;
use self::images::Held;
pub(crate) use self::images::Placed;
use self::order::Order;
use self::patch::Patches;
pub(crate) use self::patch::{BLOCK, Edges};
use self::promise::Promise;
use self::request::Progress;
pub(crate) use self::request::{Answer, Client, Origin, Request};
pub(crate) use self::route::{Driver, Migrates, Route};
use self::waiting::Waiting;
pub(crate) use self::waiting::{Entry, Strain};
use self::watch::Watches;
use crate::holds::Holds;
use crate::image::{Cx, ImageOp, ImageResult, Ticket};
use crate::qos::{Admission, Flow, Membership};
use crate::slab::Slab;
use crate::stats::Counters;
use crate::timer::Alarm;

/// The tag of the timer for requests that wait in `order`; a driver has the others.
const ORDER_TIMER: u32 = u32::MAX;

/// A disk.
pub(crate) struct Disk {
    pub(crate) core: Core,
    route: Route,
}

/// A disk without its route: what the driver works with.
pub(crate) struct Core {
    /// The disk's number on its reactor.
    pub(crate) index: u32,
    pub(crate) id: DiskId,
    name: String,
    pub(crate) size: u64,
    /// Clients that are there, as the reactor says.
    pub(crate) connections: u32,
    /// Being detached.
    pub(crate) closing: bool,
    pub(crate) counters: Counters,
    requests: Slab<Request>,
    /// Those of them that wait for admission.
    waiting: Waiting,
    /// Clients whose requests need no admission: their machines stand still until they end.
    hurrying: Vec<Client>,
    order: Order,
    order_alarm: Alarm,
    patches: Patches,
    promise: Promise,
    /// A flush of the image has failed, and the migration has not heard of it yet.
    unheard_loss: bool,
    failures: Failures,
    /// Commands that connections have read and cannot start, kept by these.
    pub(crate) ahead: usize,
    /// Connections that wait until those hold less memory, in order of their coming.
    pub(crate) behind: VecDeque<u32>,
    /// Whether one of those is served one command.
    pub(crate) entry: Entry,
    answers: Vec<Answer>,
    images: Vec<Held>,
    current: u16,
    next_image: u16,
    /// The guest's class, and its flow at the current image's datastore.
    class: Membership,
    flow: Option<Flow>,
    /// The copier's operations, by their tickets.
    copies: HashMap<u64, Copying>,
    bounce: BounceBuffers,
    /// What its clients' commands hold of the reactor's memory.
    pub(crate) holds: Rc<Holds>,
    pub(crate) watches: Watches,
}

impl Core {
    /// Ticket ids from here on are the driver's own.
    pub(crate) const OWN: u64 = 1 << 32;

    /// A disk without images, clients and requests.
    fn new(index: u32, id: DiskId, name: String, size: u64) -> Core {
        Core {
            index,
            id,
            name,
            size,
            connections: 0,
            closing: false,
            counters: Counters::default(),
            requests: Slab::new(),
            waiting: Waiting::default(),
            hurrying: Vec::new(),
            order: Order::default(),
            order_alarm: Alarm::default(),
            patches: Patches::default(),
            promise: Promise::default(),
            unheard_loss: false,
            failures: Failures::default(),
            ahead: 0,
            behind: VecDeque::new(),
            entry: Entry::default(),
            answers: Vec::new(),
            images: Vec::new(),
            current: 0,
            next_image: 0,
            class: Membership::default(),
            flow: None,
            copies: HashMap::new(),
            bounce: BounceBuffers::default(),
            holds: Rc::default(),
            watches: Watches::default(),
        }
    }
}

impl Disk {
    pub(crate) fn new(index: u32, id: DiskId, name: String, size: u64) -> Disk {
        let core = Core::new(index, id, name, size);
        Disk { core, route: Route::Direct }
    }

    /// A guest request, which its client has waited for since it `came`. Answered
    /// exactly once, in `take_answers`.
    pub(crate) fn submit(
        &mut self,
        cx: &mut Cx,
        origin: Origin,
        op: ImageOp,
        came: Nanos,
    ) {
        self.submit_within(cx, origin, op, Edges::default(), came);
    }

    /// The same of a write that does not change all bytes of its blocks.
    pub(crate) fn submit_within(
        &mut self,
        cx: &mut Cx,
        origin: Origin,
        op: ImageOp,
        edges: Edges,
        came: Nanos,
    ) {
        let (core, client) = (&mut self.core, origin.client);
        let progress = Progress::Waiting;
        core.watches.comes(&op);
        core.waiting.begin(&op);
        let promised = core.promise.now();
        let request = Request { origin, op, arrived: came, progress, promised };
        let id = core.requests.insert(request);
        core.count_arrival(id);
        let alone = !edges.are_whole();
        if alone {
            core.patches.arrives(id, edges);
        }
        let held = core.requests.get(id).is_some_and(|request| {
            core.order.arrives(cx.now, id, client, &request.op, alone)
        });
        if held {
            core.set_order_alarm(cx);
            self.look_who_waits(cx);
        } else {
            self.enter(cx, id);
        }
    }

    /// A guest's request is admitted, or needs none.
    pub(crate) fn start(&mut self, cx: &mut Cx, id: u32, admission: Option<Admission>) {
        let Core { requests, patches, waiting, .. } = &mut self.core;
        let Some(request) = requests.get_mut(id) else {
            return admission.map_or((), |admission| cx.qos.done(cx.now, admission));
        };
        waiting.end(&request.op);
        match patches.begins(id, &request.op) {
            None => {
                request.progress = Progress::Started(cx.now, admission);
                self.send(cx, id);
            }
            Some(read) => {
                request.progress = Progress::Patching(cx.now, admission);
                self.read_for(cx, id, read);
            }
        }
    }

    /// Sends a request that has started on its route.
    fn send(&mut self, cx: &mut Cx, id: u32) {
        let Core { requests, bounce, .. } = &mut self.core;
        let Some(request) = requests.get_mut(id) else { return };
        match &mut self.route {
            Route::Direct => {
                self.core.carry_out(cx, id, self.core.current, u64::from(id));
            }
            Route::Mirrored(driver) => {
                if let Err(errno) = bounce.make(&mut request.op) {
                    return self.core.answer(cx, id, Err(errno));
                }
                driver.arrived(&mut self.core, cx, id);
                self.settle();
            }
        }
    }

    /// An image has answered.
    pub(crate) fn finished(&mut self, cx: &mut Cx, id: u64, result: ImageResult) {
        match &mut self.route {
            Route::Direct if id == Ticket::NEWS => {
                self.core.has_forgotten(cx, self.core.current);
                self.core.has_gone_back(cx, self.core.current);
            }
            Route::Direct => {
                if let Ok(request) = u32::try_from(id) {
                    self.core.answer(cx, request, result);
                }
            }
            Route::Mirrored(driver) => {
                driver.finished(&mut self.core, cx, id, result);
                self.settle();
            }
        }
    }

    /// An operation of the copier is admitted.
    pub(crate) fn start_copy(
        &mut self,
        cx: &mut Cx,
        image: u16,
        ticket: u64,
        admission: Admission,
    ) {
        if !self.core.start_copy(cx, image, ticket, admission) {
            return;
        }
        if let Route::Mirrored(driver) = &mut self.route {
            driver.copy_started(&mut self.core, cx, ticket);
            self.settle();
        }
    }

    /// A timer of the disk has fired.
    pub(crate) fn timer(&mut self, cx: &mut Cx, tag: u32) {
        if tag == ORDER_TIMER {
            return self.core.tell_who_waits(cx);
        }
        if let Route::Mirrored(driver) = &mut self.route {
            driver.timer(&mut self.core, cx, tag);
            self.settle();
        }
    }

    /// Begins a migration. Requests in flight go on; their answers go to the
    /// driver, with the request's number as ticket.
    pub(crate) fn set_driver(&mut self, driver: Box<dyn Driver>) {
        self.route = Route::Mirrored(driver);
    }

    /// The driver, if it is a `T`, together with the rest of the disk. Call
    /// `settle` afterwards.
    pub(crate) fn driver_mut<T: 'static>(&mut self) -> Option<(&mut T, &mut Core)> {
        match &mut self.route {
            Route::Mirrored(driver) => {
                Some((driver.as_any().downcast_mut()?, &mut self.core))
            }
            Route::Direct => None,
        }
    }

    /// Whether a migration is under way, or not yet gone.
    pub(crate) fn migrates(&self) -> Option<Migrates> {
        match &self.route {
            Route::Mirrored(driver) if driver.awaits_source() => {
                Some(Migrates::AwaitsSource)
            }
            Route::Mirrored(_) => Some(Migrates::Now),
            Route::Direct => None,
        }
    }

    /// Drops a driver that has nothing left to do.
    pub(crate) fn settle(&mut self) {
        if matches!(&self.route, Route::Mirrored(driver) if !driver.active()) {
            self.route = Route::Direct;
            self.core.bounce = BounceBuffers::default();
        }
    }

    /// Takes the answers there are, leaving `spare` (empty) in their place.
    pub(crate) fn take_answers(&mut self, spare: Vec<Answer>) -> Vec<Answer> {
        std::mem::replace(&mut self.core.answers, spare)
    }
}
