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
mod failures;
mod images;
mod order;
mod patch;
mod promise;
mod waiting;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use sterna_core::qos::Cost;
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
use self::waiting::Waiting;
pub(crate) use self::waiting::{Entry, Strain};
use self::watch::Watches;
use crate::account::Account;
use crate::holds::Holds;
use crate::image::{Cx, Done, ImageOp, ImageResult, Ticket};
use crate::io::Errno;
use crate::qos::{Admission, Flow, Item, Membership, Qos};
use crate::slab::Slab;
use crate::stats::{Counters, Took};
use crate::timer::Alarm;

/// The tag of the timer for requests that wait in `order`; a driver has the others.
const ORDER_TIMER: u32 = u32::MAX;

/// A guest's operation.
pub(crate) struct Request {
    pub(crate) origin: Origin,
    pub(crate) op: ImageOp,
    pub(crate) arrived: Nanos,
    progress: Progress,
    /// What had been promised when it came.
    promised: u64,
}

/// How far a request is.
enum Progress {
    /// It waits for admission.
    Waiting,
    /// It is admitted since then; what it has to read before is being read.
    Patching(Nanos, Option<Admission>),
    /// It is on its way since then, without admission if it needed none.
    Started(Nanos, Option<Admission>),
}

/// Who waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) client: Client,
    /// The client's number for the command.
    pub(crate) command: u32,
}

/// A client of the disk, by its number on the reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Over NBD.
    Connection(u32),
    /// A machine with its own driver.
    Device(u32),
}

/// A request that is done.
pub(crate) struct Answer {
    pub(crate) origin: Origin,
    pub(crate) op: ImageOp,
    pub(crate) result: Result<Done, Errno>,
}

/// Where requests go.
pub(crate) enum Route {
    /// To the current image.
    Direct,
    /// To the driver of a migration.
    Mirrored(Box<dyn Driver>),
}

/// What a migration's driver is told. It is never called from within itself:
/// whatever it starts is reported in a later call.
pub(crate) trait Driver {
    /// A guest request has come; it is in the table under this number.
    fn arrived(&mut self, core: &mut Core, cx: &mut Cx, request: u32);

    /// Whether the guest waits for admission may have changed.
    fn look_who_waits(&mut self, core: &mut Core, cx: &mut Cx);

    /// An image has answered the ticket with this id, or has news
    /// ([`Ticket::NEWS`]).
    fn finished(&mut self, core: &mut Core, cx: &mut Cx, id: u64, result: ImageResult);

    /// An operation of the copier that waited for admission has started.
    fn copy_started(&mut self, core: &mut Core, cx: &mut Cx, id: u64);

    /// A timer with `Owner::Disk(core.index)` has fired.
    fn timer(&mut self, core: &mut Core, cx: &mut Cx, tag: u32);

    /// Called after each of the above, and after any call from outside: whether
    /// the driver is still needed. If not, the route is direct from now on.
    fn active(&self) -> bool;

    /// For `Disk::driver_mut::<T>()`.
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}

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

impl Disk {
    pub(crate) fn new(index: u32, id: DiskId, name: String, size: u64) -> Disk {
        let core = Core {
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
        };
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

    /// Whether a migration is under way.
    pub(crate) fn is_mirrored(&self) -> bool {
        matches!(self.route, Route::Mirrored(_))
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

impl Core {
    /// Ticket ids from here on are the driver's own.
    pub(crate) const OWN: u64 = 1 << 32;

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
    pub(crate) fn take_account(&mut self, now: Nanos, account: Arc<Account>) {
        self.promise.take_account(now, &self.name, account);
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

    fn count_arrival(&mut self, id: u32) {
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
    fn cost(&self, image: u16, op: &ImageOp) -> Option<Cost> {
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
        if self.held(self.current).is_some_and(|held| held.image.has_lost()) {
            self.promise.lost(cx.now, &self.name);
        }
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

/// Whether a request was declined, as it asked to be: whoever asks for zeroes that must be
/// fast writes them otherwise. That is neither an answer nor an error.
fn is_declined(op: &ImageOp, result: &ImageResult) -> bool {
    let fast = matches!(op, ImageOp::Zero { fast: true, .. });
    fast && matches!(result, Err(Errno(libc::EOPNOTSUPP)))
}
