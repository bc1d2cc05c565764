//! Service levels on a reactor: the schedulers of its datastores.
//!
//! Two kinds of requests pass here before they reach an image: those of guests, as
//! they come in (so what waits is not yet in flight for a mirror), and the copier's
//! operations on either image. The destination's part of a mirrored write does not: its
//! guest was admitted, and waits. Nor do questions, which cost a datastore little, and
//! flushes: a database that commits holds everything up for one, and a limit is to slow a
//! guest, not to stop it. They are counted, so who makes nothing else is seen
//! (`measure::Window::flush`). What each costs, its image says (`ImageOp::cost`).
//!
//! What may start and did not at once goes to `ready`; the loop gives it to its disk.
//! A guest's requests are scheduled where the disk's current image is, and move with
//! it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::{Class, ClassId, Cost, FlowId, Permit, Pool, SHARES, Stake};
use sterna_core::qos::{SCHEDULERS_MAX, Scheduler};

use crate::holds::Sum;
use crate::io::{Owner, Token};
use crate::slab::Slab;
use crate::timer::{Alarm, Timers};

/// Reactors at most: each is one scheduler of a datastore.
pub(crate) const REACTORS_MAX: usize = SCHEDULERS_MAX as usize;

/// The tag of the timer, which the reactor owns.
pub(crate) const TIMER: u32 = 2;

/// How long requests wait for a place without anybody looking: far longer than any
/// place is held. It only bounds what a wake that went astray would cost.
const LOOK_AGAIN: Nanos = Nanos::from_secs(1);

/// What waits for admission.
#[derive(Debug)]
pub(crate) enum Item {
    /// A guest's request.
    Guest { disk: u32, request: u32 },
    /// An operation of the copier, under this ticket.
    Copy { disk: u32, image: u16, ticket: u64 },
}

/// The scheduler of a datastore here, and what was copied from and to it.
#[derive(Debug)]
struct Store {
    scheduler: Scheduler<Item>,
    /// Since it was last taken: the copier's reads and writes, and what guests'
    /// writes were mirrored here.
    copied: Window,
    /// Since when.
    since: Nanos,
    under_way: UnderWay,
    /// What commands that are under way here hold of the reactor's memory.
    held: Sum,
}

/// The requests that were admitted and not ended, by the time of it: so many in
/// each tenth of a second, of which there are no more than requests.
#[derive(Debug, Default)]
struct UnderWay(BTreeMap<u64, u32>);

impl UnderWay {
    const TENTH: u64 = 100_000_000;

    fn begin(&mut self, at: Nanos) {
        *self.0.entry(at.0 / Self::TENTH).or_default() += 1;
    }

    fn end(&mut self, at: Nanos) {
        let tenth = at.0 / Self::TENTH;
        if let Some(count) = self.0.get_mut(&tenth) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&tenth);
            }
        }
    }

    /// How long the oldest has been under way, to a tenth of a second.
    fn oldest(&self, now: Nanos) -> Nanos {
        let first = self.0.keys().next();
        first.map_or(Nanos(0), |tenth| now.since(Nanos((tenth + 1) * Self::TENTH)))
    }
}

/// What the copier has done: which way, how much, and when it asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) write: bool,
    pub(crate) bytes: u64,
    pub(crate) arrived: Nanos,
}

/// A request's admission: where it was given, and what has to be given back.
#[derive(Debug)]
pub(crate) struct Admission {
    store: u32,
    permit: Permit,
    /// When it started.
    pub(crate) at: Nanos,
}

/// The class of a disk's guest; a disk in no class is one by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership(Option<(ClassId, Arc<Class>)>);

impl Membership {
    pub(crate) fn of(id: ClassId, class: Arc<Class>) -> Membership {
        Membership(Some((id, class)))
    }

    fn stake(&self, pool: &Pool) -> Arc<Stake> {
        match &self.0 {
            Some((id, class)) => pool.stake(*id, class),
            None => Arc::new(Stake::new(Arc::default())),
        }
    }
}

/// A flow of one of the reactor's schedulers.
#[derive(Debug)]
pub(crate) struct Flow {
    store: u32,
    id: FlowId,
}

/// The schedulers of a reactor.
pub(crate) struct Qos {
    number: u32,
    migration: Arc<Class>,
    stores: Slab<Store>,
    ready: VecDeque<(Item, Admission)>,
    wakes: u64,
    alarm: Alarm,
}

impl Qos {
    /// Of the reactor `number`; `migration` is the class of all copies.
    pub(crate) fn new(number: usize, migration: Arc<Class>) -> Qos {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Qos {
            number,
            migration,
            stores: Slab::new(),
            ready: VecDeque::new(),
            wakes: 0,
            alarm: Alarm::default(),
        }
    }

    /// A flow for a disk's guest.
    pub(crate) fn add_guest(&mut self, pool: &Arc<Pool>, of: &Membership) -> Flow {
        self.add(pool, &of.stake(pool))
    }

    /// A flow for what is copied from or to an image.
    pub(crate) fn add_copies(&mut self, pool: &Arc<Pool>) -> Flow {
        self.add(pool, &pool.stake(ClassId::MIGRATION, &self.migration))
    }

    fn add(&mut self, pool: &Arc<Pool>, stake: &Arc<Stake>) -> Flow {
        let is = |store: &Store| Arc::ptr_eq(store.scheduler.pool(), pool);
        let known = self.stores.iter().find(|(_, store)| is(store)).map(|(at, _)| at);
        let number = known.unwrap_or_else(|| {
            let scheduler = Scheduler::new(Arc::clone(pool), self.number);
            let (copied, since) = (Window::default(), Nanos(0));
            let (under_way, held) = (UnderWay::default(), Rc::default());
            self.stores.insert(Store { scheduler, copied, since, under_way, held })
        });
        let store = self.stores.get_mut(number).expect("just found");
        Flow { store: number, id: store.scheduler.add_flow(stake, SHARES) }
    }

    /// The datastore of a flow, by its number here.
    pub(crate) fn store_of(flow: &Flow) -> u32 {
        flow.store
    }

    /// How long the oldest request at a flow's datastore has been under way.
    pub(crate) fn oldest(&self, now: Nanos, flow: &Flow) -> Nanos {
        let store = self.stores.get(flow.store);
        store.map_or(Nanos(0), |store| store.under_way.oldest(now))
    }

    /// What commands that are under way at a flow's datastore hold of the memory.
    pub(crate) fn held(&self, flow: &Flow) -> Sum {
        self.stores
            .get(flow.store)
            .map(|store| Rc::clone(&store.held))
            .unwrap_or_default()
    }

    /// Moves a guest to another class, with what waits.
    pub(crate) fn set_class(&mut self, now: Nanos, flow: &Flow, of: &Membership) {
        let Some(store) = self.scheduler(flow.store) else { return };
        let stake = of.stake(store.pool());
        store.set_stake(flow.id, &stake);
        self.look(now, flow.store);
    }

    /// Ends a flow; gives what waited in it.
    pub(crate) fn remove(&mut self, flow: &Flow) -> Vec<Item> {
        let Some(store) = self.scheduler(flow.store) else { return Vec::new() };
        let waiting = store.remove_flow(flow.id);
        self.drop_if_unused(flow.store);
        waiting
    }

    /// Takes out of what waits in a flow what is `unwanted`.
    pub(crate) fn give_up(
        &mut self,
        now: Nanos,
        flow: &Flow,
        unwanted: impl Fn(&Item) -> bool,
    ) -> Vec<Item> {
        let Some(store) = self.scheduler(flow.store) else { return Vec::new() };
        let gone = store.take_waiting(flow.id, unwanted);
        // Others may have waited for what came before them.
        self.look(now, flow.store);
        gone
    }

    /// A request has come: its admission, if that is now. Else it will be `ready`.
    pub(crate) fn arrive(
        &mut self,
        now: Nanos,
        flow: &Flow,
        cost: Cost,
        item: Item,
    ) -> Option<Admission> {
        let Store { scheduler: store, under_way, .. } =
            self.stores.get_mut(flow.store)?;
        if let Some((_, permit)) = store.arrive(now, flow.id, cost, item) {
            under_way.begin(now);
            return Some(Admission { store: flow.store, permit, at: now });
        }
        self.look(now, flow.store);
        None
    }

    /// A request that waited elsewhere comes here; it will be `ready`.
    pub(crate) fn arrive_again(
        &mut self,
        now: Nanos,
        flow: &Flow,
        cost: Cost,
        item: Item,
    ) {
        let Some(store) = self.stores.get_mut(flow.store) else { return };
        match store.scheduler.arrive(now, flow.id, cost, item) {
            Some((item, permit)) => {
                store.under_way.begin(now);
                let admission = Admission { store: flow.store, permit, at: now };
                self.ready.push_back((item, admission));
            }
            None => self.look(now, flow.store),
        }
    }

    /// A request is done.
    pub(crate) fn done(&mut self, now: Nanos, admission: Admission) {
        let Admission { store: number, permit, at } = admission;
        let Some(Store { scheduler: store, under_way, .. }) = self.stores.get_mut(number)
        else {
            return;
        };
        under_way.end(at);
        store.done(permit, now.since(at));
        self.wakes |= store.take_wakes();
        if store.is_waiting() {
            self.look(now, number);
        }
        self.heed(now);
        self.drop_if_unused(number);
    }

    /// The copier has done something that was admitted.
    pub(crate) fn copied(&mut self, now: Nanos, admission: Admission, copied: Copied) {
        let (store, started) = (admission.store, admission.at);
        self.done(now, admission);
        self.count(now, store, copied, started);
    }

    /// A guest's write was mirrored to an image whose copies are this flow.
    pub(crate) fn mirrored(&mut self, now: Nanos, flow: &Flow, copied: Copied) {
        self.count(now, flow.store, copied, copied.arrived);
    }

    fn count(&mut self, now: Nanos, store: u32, copied: Copied, started: Nanos) {
        let Some(store) = self.stores.get_mut(store) else { return };
        let Copied { write, bytes, arrived } = copied;
        let window = &mut store.copied;
        let traffic = if write { &mut window.write } else { &mut window.read };
        let response = now.since(arrived);
        traffic.record(bytes, response, started.since(arrived), now.since(started));
        window.response.record(response);
    }

    /// What was copied from and to each datastore since the last time.
    pub(crate) fn take_copied(&mut self, now: Nanos) -> Vec<(Arc<Pool>, Window)> {
        let mut all = Vec::new();
        for number in self.stores.keys() {
            let Some(store) = self.stores.get_mut(number) else { continue };
            let since = std::mem::replace(&mut store.since, now);
            if store.copied.total().operations > 0 {
                let mut window = std::mem::take(&mut store.copied);
                window.span = now.since(since);
                all.push((Arc::clone(store.scheduler.pool()), window));
            }
        }
        all
    }

    fn scheduler(&mut self, number: u32) -> Option<&mut Scheduler<Item>> {
        self.stores.get_mut(number).map(|store| &mut store.scheduler)
    }

    fn look(&mut self, now: Nanos, number: u32) {
        self.look_at(now, number);
        self.heed(now);
    }

    /// Looks at all datastores here if one of them has to be looked at again: a class
    /// may be on several. It ends, as each time somebody has either started something
    /// or left what others wait for.
    fn heed(&mut self, now: Nanos) {
        while self.wakes & 1 << self.number != 0 {
            self.wakes &= !(1 << self.number);
            for number in self.stores.keys() {
                self.look_at(now, number);
            }
        }
    }

    fn look_at(&mut self, now: Nanos, number: u32) {
        let Some(Store { scheduler: store, under_way, .. }) = self.stores.get_mut(number)
        else {
            return;
        };
        while let Some((item, permit)) = store.next(now) {
            under_way.begin(now);
            self.ready.push_back((item, Admission { store: number, permit, at: now }));
        }
        self.wakes |= store.take_wakes();
    }

    /// Looks at everything that waits: places were given back elsewhere, or time has
    /// come.
    pub(crate) fn look_again(&mut self, now: Nanos) {
        for number in self.stores.keys() {
            self.look_at(now, number);
        }
        self.heed(now);
    }

    /// The terms of classes, or what a datastore lets through, have changed.
    pub(crate) fn terms_changed(&mut self, now: Nanos) {
        for number in self.stores.keys() {
            if let Some(store) = self.scheduler(number) {
                store.terms_changed(now);
            }
        }
        self.look_again(now);
    }

    /// The next that may start.
    pub(crate) fn next_ready(&mut self) -> Option<(Item, Admission)> {
        self.ready.pop_front()
    }

    /// Whether nothing is ready.
    pub(crate) fn is_settled(&self) -> bool {
        self.ready.is_empty()
    }

    /// The other reactors that have to look again, a bit each.
    pub(crate) fn take_wakes(&mut self) -> u64 {
        std::mem::take(&mut self.wakes)
    }

    /// Sets the timer for what is due next.
    pub(crate) fn set_timer(&mut self, now: Nanos, timers: &mut Timers) {
        let due = |store: &Scheduler<Item>| {
            let waits = store.is_waiting().then(|| now.plus(LOOK_AGAIN));
            store.deadline().into_iter().chain(waits).min()
        };
        let all = self.stores.iter();
        let next = all.filter_map(|(_, store)| due(&store.scheduler)).min();
        // An alarm that is early enough is left alone: setting one costs more.
        if self.alarm.at().is_some_and(|held| next.is_some_and(|next| held <= next)) {
            return;
        }
        let token = Token { owner: Owner::Reactor, tag: TIMER };
        self.alarm.set(timers, next, token);
    }

    /// The timer has fired.
    pub(crate) fn fired(&mut self, now: Nanos) {
        self.alarm.fired();
        self.look_again(now);
    }

    fn drop_if_unused(&mut self, number: u32) {
        if self.stores.get(number).is_some_and(|store| store.scheduler.is_unused()) {
            self.stores.remove(number);
        }
    }
}
