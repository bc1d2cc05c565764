//! A storage array as a machine in virtual time: what its requests take.
//!
//! It is given requests (`submit`), says when something will happen next
//! (`next_event`) and which requests have been answered by then (`advance`). It moves
//! no bytes. The simulator runs it in virtual time, the engine's emulated datastore
//! in real time, the predictor asks it what would be.
//!
//! **Parts.** A request comes over the *link* (controller and cable, one after the
//! other, at one rate). A read is answered when the elements of 64 KiB that it
//! touches have come: from a *spindle*, or from the *read cache*, into which the
//! elements ahead of a *stream* are fetched. A write is acknowledged by the *write
//! cache* in a fixed time while there is room, else when destaging has made some;
//! without a cache, when it is on the spindles. Destaging costs what the *RAID* level
//! costs. Answers go back over the link.
//!
//! **Invariants.** No request is answered before it came, and each exactly once. No
//! spindle is idle while something waits for it. The same seed and the same calls
//! give the same answers. Time never goes back: a call with an earlier moment counts
//! as now.
//!
//! **Bounds.** It holds as many requests as the caller has not been answered, and
//! caches as large as the model says.
//!
//! **Known gaps.** A disk's own command reordering is not modelled, nor are the zones
//! of its tracks, nor the distance of a seek. Nothing is kept in the read cache after
//! it was read; `hits` stands for what would be. A flush costs nothing: the write
//! cache is taken to survive a loss of power. The model's presets are fitted to one
//! published direction (old to new array); the other way round the old array's
//! write side probably limits, which it does not show.

mod device;
mod model;
mod preset;
mod raid;
mod read;
mod read_cache;
mod spindle;
mod stream;
mod text;
mod write;
mod write_cache;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::{IdMap, Nanos};

pub use device::Device;
pub use model::Model;
pub use preset::Preset;
pub use raid::{Groups, Level, ParseGroupsError, SPINDLES_MAX};
pub use text::ParseModelError;

use crate::dice::Dice;
use device::span;
use raid::{ELEMENT, Element, Layout};
use read_cache::ReadCache;
use spindle::{Operation, Purpose, Spindle};
use stream::Streams;
use write::Job;
use write_cache::WriteCache;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// A request to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the caller calls it; its answer carries it.
    pub id: u64,
    /// The address space that it is in.
    pub lun: u32,
    /// What it does.
    pub kind: Kind,
    /// Where, in bytes.
    pub offset: u64,
    /// Bytes; zero costs the fixed time alone. Each 64 KiB of them is an operation
    /// of its own, so a caller keeps its requests to some MiB.
    pub bytes: u64,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's.
    pub id: u64,
    /// When it was answered.
    pub at: Nanos,
}

/// What happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The bytes of this write have come over the link.
    Arrived(u64),
    /// A spindle has ended its operation.
    Served(usize),
    /// This request is answered.
    Answered(u64),
    /// A stripe has waited for its rest long enough.
    Lingered,
}

/// A request that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Open {
    request: Request,
    /// Parts that are missing.
    parts: u64,
}

/// A modelled array.
#[derive(Clone, Debug)]
pub struct Array {
    model: Model,
    layout: Layout,
    spindles: Vec<Spindle>,
    streams: Streams,
    cache: ReadCache,
    dirty: WriteCache,
    /// Writes that wait for room.
    full: VecDeque<u64>,
    jobs: IdMap<u64, Job>,
    /// Operations of all jobs that have not ended.
    destaging: u64,
    /// Where coalesced writes go next.
    log: u64,
    /// When a `Lingered` is due.
    linger: Option<Nanos>,
    requests: IdMap<u64, Open>,
    /// The next token of a request or a job.
    token: u64,
    dice: Dice,
    link_free: Nanos,
    /// How many times slower the spindles are than the model.
    slower: f64,
    now: Nanos,
    /// By their moment, then in the order of their making.
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    made: u64,
    answered: VecDeque<Completion>,
}

impl Array {
    /// An array with nothing to do, at moment zero. What it does follows from the
    /// seed and from the calls.
    pub fn new(model: Model, seed: u64) -> Array {
        let layout = Layout::new(&model.groups);
        Array {
            spindles: vec![Spindle::default(); layout.spindles()],
            streams: Streams::default(),
            cache: ReadCache::new(model.cache.0),
            dirty: WriteCache::new(model.write_cache.0),
            full: VecDeque::new(),
            jobs: IdMap::default(),
            destaging: 0,
            log: 0,
            linger: None,
            requests: IdMap::default(),
            token: 0,
            dice: Dice::new(seed),
            link_free: Nanos(0),
            slower: 1.0,
            now: Nanos(0),
            events: BinaryHeap::new(),
            made: 0,
            answered: VecDeque::new(),
            layout,
            model,
        }
    }

    /// What it is.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Takes a request. Its answer comes out of a later `advance`.
    pub fn submit(&mut self, now: Nanos, request: Request) {
        self.run(now);
        let token = self.next_token();
        self.requests.insert(token, Open { request, parts: 0 });
        match request.kind {
            Kind::Read => self.read(token, &request),
            Kind::Write => {
                let at = self.over_link(request.bytes);
                self.at(at, Event::Arrived(token));
            }
        }
    }

    /// When to call `advance` next; never, if nothing is under way.
    pub fn next_event(&self) -> Option<Nanos> {
        if !self.answered.is_empty() {
            return Some(self.now);
        }
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets time pass up to `now`; adds what has been answered, in order.
    pub fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        self.run(now);
        completions.extend(self.answered.drain(..));
    }

    /// Requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// How long its spindles have worked, all together.
    pub fn busy(&self) -> Nanos {
        self.spindles.iter().fold(Nanos(0), |sum, spindle| sum.plus(spindle.busy))
    }

    /// Bytes that are acknowledged and not on the spindles yet.
    pub fn dirty(&self) -> u64 {
        self.dirty.used()
    }

    /// From now on every operation of a spindle takes so many times as long as the
    /// model says: a rebuild, or a neighbour on the same spindles. One is normal;
    /// what is not above zero counts as one.
    pub fn slow_down(&mut self, now: Nanos, times: f64) {
        self.run(now);
        self.slower = if times > 0.0 && times.is_finite() { times } else { 1.0 };
    }

    fn run(&mut self, now: Nanos) {
        while let Some(&Reverse((at, _, event))) = self.events.peek()
            && at <= now
        {
            self.events.pop();
            self.now = at;
            match event {
                Event::Arrived(token) => self.write(token),
                Event::Served(spindle) => self.served(spindle),
                Event::Answered(token) => {
                    if let Some(open) = self.requests.remove(&token) {
                        self.answered.push_back(Completion { id: open.request.id, at });
                    }
                }
                Event::Lingered => {
                    self.linger = None;
                    self.destage();
                }
            }
        }
        self.now = self.now.max(now);
    }

    fn served(&mut self, spindle: usize) {
        if let Some(operation) = self.spindles[spindle].end() {
            match operation.purpose {
                Purpose::Request(token) => self.part(token),
                Purpose::Prefetch(element) => {
                    for token in self.cache.come(element) {
                        self.part(token);
                    }
                }
                Purpose::Destage(job) => self.destaged(job),
            }
        }
        self.start(spindle);
    }

    /// A part of a request is there (or, of a write without a cache, written).
    fn part(&mut self, token: u64) {
        let Some(open) = self.requests.get_mut(&token) else { return };
        open.parts = open.parts.saturating_sub(1);
        if open.parts == 0 {
            let request = open.request;
            let at = match request.kind {
                Kind::Read => self.over_link(request.bytes),
                Kind::Write => self.now,
            };
            self.at(at.plus(self.model.overhead), Event::Answered(token));
        }
    }

    /// Queues an operation, and starts it if the spindle is idle.
    fn ask(&mut self, spindle: usize, lun: u32, place: (u64, u64), purpose: Purpose) {
        let (position, bytes) = place;
        let since = self.now;
        self.spindles[spindle].push(Operation { since, lun, position, bytes, purpose });
        self.start(spindle);
    }

    fn start(&mut self, spindle: usize) {
        let (pressed, device) = (self.dirty.is_pressed(), self.model.device);
        let (ageing, channels) = (self.model.ageing, device.channels());
        let slower = self.slower;
        let slowed = |model: Nanos| Nanos((model.0 as f64 * slower) as u64);
        while let Some((operation, gap)) =
            self.spindles[spindle].begin(self.now, ageing, pressed, channels)
        {
            let (access, transfer) = device.service(operation.bytes, gap, &mut self.dice);
            let ends =
                self.spindles[spindle].ends(self.now, slowed(access), slowed(transfer));
            self.at(ends, Event::Served(spindle));
        }
    }

    /// When so many bytes, from now on, have passed the link.
    fn over_link(&mut self, bytes: u64) -> Nanos {
        let from = self.link_free.max(self.now);
        self.link_free = from.plus(span(bytes, self.model.link));
        self.link_free
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.made += 1;
        self.events.push(Reverse((at, self.made, event)));
    }

    fn next_token(&mut self) -> u64 {
        self.token += 1;
        self.token
    }
}

/// The elements that a request touches, with what it touches of each.
fn parts(request: &Request) -> impl Iterator<Item = (Element, (u64, u64))> + use<> {
    let (lun, offset) = (request.lun, request.offset);
    let end = offset.saturating_add(request.bytes);
    let numbers = offset / ELEMENT..end.div_ceil(ELEMENT);
    numbers.filter(move |_| end > offset).map(move |number| {
        let start = number * ELEMENT;
        let (from, to) = (offset.max(start), end.min(start.saturating_add(ELEMENT)));
        (Element { lun, number }, (from - start, to - start))
    })
}
