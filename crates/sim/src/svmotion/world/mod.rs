//! The run: from event to event. (`traffic` is what goes between its parts.)
//!
//! **Bounds.** Requests under way are those of the users (one each), of the copier (its
//! depth), and the mirrored writes of the former; the queue of events holds one for each, for
//! each core, user and pool, and those that were overtaken.

mod traffic;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use sterna_core::Nanos;
use sterna_core::array::{Completion, Kind};
use sterna_core::mirror::{Config, CopyStep, JobId};
use sterna_workload::random::scatter;

use crate::mover::{Mover, Order, Reply};
use crate::svmotion::course::{Course, Stretch};
use crate::svmotion::extent::Extent;
use crate::svmotion::host::{Begun, Found, Host};
use crate::svmotion::parameters::Parameters;
use crate::svmotion::scene::{Disk, Load, Scene};
use crate::svmotion::storage::Storage;
use crate::svmotion::users::{Ask, Crowd, Next};

/// How long the database runs before anything is measured: hundreds of times what an
/// order takes at high load.
const WARM_UP: Nanos = Nanos::from_secs(10);

/// How long a stretch is.
const STRETCH: Nanos = Nanos::from_secs(1);

/// What a step of the state store or of a sidecar takes; assumed.
const STEP: Nanos = Nanos::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Something happens at a pool.
    Pool(usize),
    /// A write's bytes have passed the link.
    Sent(u64),
    /// A request is answered.
    Answered(u64),
    /// A core is to be asked.
    Core(usize),
    /// A user comes with an order.
    User(usize),
    /// The state machine of the move is to be told the time.
    Tick,
    Reply(Reply),
    /// A stretch ends.
    Stretch,
    /// Everything has warmed up.
    Warm,
}

/// What a request to an array is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// A guest's, of a disk that does not move.
    Guest(u64),
    /// A guest's, at the source of the move.
    Source(u64),
    /// A guest's, at its destination.
    Destination(u64),
    /// A chunk that is read.
    Read(JobId),
    /// A chunk that is written.
    Write(JobId),
}

#[derive(Clone, Copy, Debug)]
struct Open {
    purpose: Purpose,
    pool: usize,
    kind: Kind,
    place: (u64, u64),
    since: Nanos,
}

/// What a user waits for.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    user: usize,
    ask: Ask,
    since: Nanos,
}

/// A run under way.
pub(in crate::svmotion) struct World {
    scene: Scene,
    extent: Extent,
    parameters: Parameters,
    storage: Storage,
    /// The pool of the destination.
    destination: usize,
    host: Host,
    crowd: Crowd,
    /// Since when each user's order is under way.
    begun: Vec<Nanos>,
    mover: Option<Mover>,
    orders: Vec<Order>,
    requests: BTreeMap<u64, Open>,
    guests: BTreeMap<u64, Waiting>,
    next_id: u64,
    armed: Vec<Option<Nanos>>,
    ticking: Option<Nanos>,
    done: Vec<Completion>,
    stretch: Stretch,
    busy: f64,
    course: Course,
    moving: Nanos,
    holding: Nanos,
    ended: bool,
    now: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    made: u64,
}

impl World {
    pub(in crate::svmotion) fn run(
        scene: Scene,
        extent: Extent,
        parameters: &Parameters,
        seed: u64,
    ) -> Course {
        let mut world = World::new(scene, extent, parameters, seed);
        world.begin();
        while !world.ended
            && let Some(Reverse((at, _, event))) = world.events.pop()
        {
            world.now = at;
            world.happen(event);
        }
        world.end()
    }

    fn new(scene: Scene, extent: Extent, parameters: &Parameters, seed: u64) -> World {
        let seed = |number: usize| scatter(seed ^ scatter(number as u64));
        let mut storage = Storage::default();
        let here = storage.add_link(parameters.link(scene.from));
        let there = storage.add_link(parameters.link(scene.from.other()));
        for disk in Disk::ALL {
            let number = disk.number();
            storage.add_pool(disk.model(scene.from), here, seed(number));
        }
        let moved = scene.disk.unwrap_or(Disk::Data);
        let model = moved.model(scene.from.other());
        let destination = storage.add_pool(model, there, seed(Disk::ALL.len()));
        let Parameters { cores, clock, background, .. } = *parameters;
        let log = match scene.disk {
            Some(Disk::Log) => extent.bytes.min(Disk::Log.bytes()),
            _ => Disk::Log.bytes(),
        };
        let crowd = Crowd::new(parameters, scene.load, log, seed(100));
        World {
            scene,
            extent,
            parameters: *parameters,
            storage,
            destination,
            host: Host::new(cores, clock, background),
            begun: vec![Nanos(0); crowd.count()],
            crowd,
            mover: None,
            orders: Vec::new(),
            requests: BTreeMap::new(),
            guests: BTreeMap::new(),
            next_id: 0,
            armed: vec![None; destination + 1],
            ticking: None,
            done: Vec::new(),
            stretch: Stretch::default(),
            busy: 0.0,
            course: Course::default(),
            moving: Nanos(0),
            holding: Nanos(0),
            ended: false,
            now: Nanos(0),
            events: BinaryHeap::new(),
            made: 0,
        }
    }

    fn begin(&mut self) {
        for user in 0..self.crowd.count() {
            let first = self.crowd.pause();
            self.at(first, Event::User(user));
        }
        let warm = if self.scene.load == Load::Off { Nanos(0) } else { WARM_UP };
        self.at(warm, Event::Warm);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Pool(pool) => self.look(pool),
            Event::Sent(id) => {
                let Some(&open) = self.requests.get(&id) else { return };
                self.storage.submit(self.now, open.pool, id, open.kind, open.place);
                self.arm(open.pool);
            }
            Event::Answered(id) => self.answered(id),
            Event::Core(core) => self.core(core),
            Event::User(user) => {
                self.begun[user] = self.now;
                let next = self.crowd.begin(user);
                self.go_on(user, next);
            }
            Event::Tick => {
                if self.ticking == Some(self.now) {
                    self.ticking = None;
                }
                self.with_mover(|mover, now, orders| mover.tick(now, orders));
            }
            Event::Reply(reply) => {
                self.with_mover(|mover, now, orders| mover.reply(now, reply, orders));
            }
            Event::Stretch => self.stretch_ends(),
            Event::Warm => self.warm(),
        }
    }

    /// From now on it counts; and the move begins, if there is one.
    fn warm(&mut self) {
        self.stretch = Stretch::default();
        self.busy = self.host.busy();
        self.moving = self.now;
        self.at(self.now.plus(STRETCH), Event::Stretch);
        if let Some(disk) = self.scene.disk {
            let bytes = disk.bytes().min(self.extent.bytes);
            let Parameters { chunk, in_flight: depth, .. } = self.parameters;
            let step = Some(CopyStep { chunk, depth });
            let config = Config { step, ..Config::new(bytes) };
            self.mover = Some(Mover::new(self.now, config));
            self.with_mover(|mover, now, orders| mover.tick(now, orders));
        }
    }

    fn stretch_ends(&mut self) {
        let since =
            self.moving.plus(Nanos::from_secs(self.course.stretches.len() as u64));
        let mut stretch = std::mem::take(&mut self.stretch);
        stretch.seconds = self.now.since(since).as_secs_f64();
        let busy = self.host.busy();
        stretch.cycles = self.host.cycles(busy - self.busy)
            + self.parameters.background * stretch.seconds;
        self.busy = busy;
        self.course.whole.extend(&stretch);
        self.course.stretches.push(stretch);
        let alone = self.scene.disk.is_none();
        self.ended |= alone && self.now.since(self.moving) >= self.extent.alone;
        self.at(self.now.plus(STRETCH), Event::Stretch);
    }

    fn go_on(&mut self, user: usize, next: Next) {
        match next {
            Next::Compute(cycles) => {
                if let Some(begun) = self.host.work(self.now, user, cycles) {
                    self.core_begins(begun);
                }
            }
            Next::Ask(ask) => self.ask(user, ask),
            Next::Pause(pause) => {
                self.stretch.orders.add(self.now.since(self.begun[user]));
                self.at(self.now.plus(pause), Event::User(user));
            }
        }
    }

    fn core_begins(&mut self, begun: Begun) {
        self.at(begun.until, Event::Core(begun.core));
    }

    fn core(&mut self, core: usize) {
        match self.host.ask(self.now, core) {
            None => {}
            Some(Found::Later(begun)) => self.core_begins(begun),
            Some(Found::Ended(user, begun)) => {
                begun.into_iter().for_each(|begun| self.core_begins(begun));
                let next = self.crowd.next(user);
                self.go_on(user, next);
            }
        }
    }

    fn ask(&mut self, user: usize, ask: Ask) {
        let id = self.next_id();
        self.guests.insert(id, Waiting { user, ask, since: self.now });
        let moves = self.scene.disk == Some(ask.disk);
        let concerned = self.mover.as_ref().is_some_and(|it| it.concerns(ask.place));
        if moves && concerned {
            self.with_mover(|mover, now, orders| {
                mover.arrive(now, id, ask.kind, ask.place, orders);
            });
        } else {
            self.submit(ask.disk.number(), Purpose::Guest(id), ask.kind, ask.place);
        }
    }

    fn guest_answered(&mut self, id: u64) {
        let Some(Waiting { user, ask, since }) = self.guests.remove(&id) else { return };
        let took = self.now.since(since);
        match ask.disk {
            Disk::Data => self.stretch.data.add(took),
            Disk::Index(_) => self.stretch.index.add(took),
            Disk::Log => self.stretch.log.add(took),
        }
        let next = self.crowd.next(user);
        self.go_on(user, next);
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.made += 1;
        self.events.push(Reverse((at, self.made, event)));
    }

    fn end(mut self) -> Course {
        let counted = Nanos::from_secs(self.course.stretches.len() as u64);
        if self.now > self.moving.plus(counted) {
            self.stretch_ends();
        }
        self.course
    }
}
