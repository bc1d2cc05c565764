//! The world: from event to event.
//!
//! **Invariants.** Events happen in the order of their moments, and those of one
//! moment in the order in which they were made. Every request that came is answered
//! or open at the end: requests in flight, summed over time, are the sum of response
//! times (Little's law), exactly.
//!
//! **Bounds.** The queue of events holds one for each client, array and fault, and
//! those that were overtaken; the requests are those of the clients, each with a bound
//! of its own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sterna_core::array::{Kind, Model};
use sterna_core::measure::Window;
use sterna_core::{IdMap, Nanos};
use sterna_workload::random::{Random, scatter};

use crate::client::{Client, Worker};
use crate::controller::{Controller, Orders, Seen};
use crate::fault::{SlowDown, blurred};
use crate::gate::{Gate, Lane};
use crate::series::{Course, Series};

/// The shortest period: below it a window has no requests to speak of.
const PERIOD_MIN: Nanos = Nanos::from_millis(1);

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// How often the controller looks, and how long a window is: a millisecond or
    /// more (less counts as that).
    pub period: Nanos,
    /// How long it lasts; whole periods of it.
    pub span: Nanos,
    /// The arrays.
    pub arrays: Vec<Model>,
    /// Their clients, each on a LUN of its own. One whose array is not there is not
    /// there either.
    pub clients: Vec<Client>,
    /// What goes wrong.
    pub faults: Vec<SlowDown>,
    /// How far off the times are that the controller sees, as a part, either way.
    pub noise: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A client's clock strikes.
    Client(usize),
    /// Something happens at an array.
    Gate(usize),
    /// A slow-down begins.
    Slow(usize),
    /// It ends.
    Recover(usize),
    /// A period ends.
    Period,
}

/// A request that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Open {
    client: usize,
    kind: Kind,
    bytes: u64,
    since: Nanos,
}

/// A simulation under way.
pub struct World<'a> {
    plan: Plan,
    controller: &'a mut dyn Controller,
    workers: Vec<(Worker, Lane)>,
    gates: Vec<Gate>,
    /// When each gate is looked at next.
    armed: Vec<Option<Nanos>>,
    open: IdMap<u64, Open>,
    next_id: u64,
    /// The windows under way.
    clients: Vec<Window>,
    arrays: Vec<Window>,
    series: Series,
    /// When each client's requests in flight were last summed.
    summed: Vec<Nanos>,
    noise: Random,
    now: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    made: u64,
}

impl<'a> World<'a> {
    /// Runs a plan to its end.
    pub fn run(plan: Plan, controller: &'a mut dyn Controller) -> Series {
        let mut world = World::new(plan, controller);
        world.begin();
        while let Some(Reverse((at, _, event))) = world.events.pop()
            && at <= world.plan.span
        {
            world.now = at;
            world.happen(event);
        }
        world.end()
    }

    fn new(mut plan: Plan, controller: &'a mut dyn Controller) -> World<'a> {
        plan.period = plan.period.max(PERIOD_MIN);
        let arrays = plan.arrays.len();
        plan.clients.retain(|client| client.array < arrays);
        let seed = |number: usize| scatter(plan.seed ^ scatter(number as u64));
        let mut gates: Vec<Gate> = plan
            .arrays
            .iter()
            .enumerate()
            .map(|(number, model)| Gate::new(model.clone(), seed(number)))
            .collect();
        let workers = plan.clients.iter().enumerate().map(|(number, client)| {
            let lane = gates[client.array].lane(lun(number));
            (Worker::new(client.clone(), seed(arrays + number)), lane)
        });
        let workers: Vec<_> = workers.collect();
        let course = |name: String| Course { name, ..Course::default() };
        World {
            series: Series {
                clients: plan.clients.iter().map(|it| course(it.name.clone())).collect(),
                arrays: plan.arrays.iter().map(|it| course(it.to_string())).collect(),
            },
            clients: vec![Window::default(); workers.len()],
            arrays: vec![Window::default(); arrays],
            armed: vec![None; arrays],
            summed: vec![Nanos(0); workers.len()],
            noise: Random::new(seed(arrays + workers.len())),
            open: IdMap::default(),
            next_id: 0,
            now: Nanos(0),
            events: BinaryHeap::new(),
            made: 0,
            workers,
            gates,
            controller,
            plan,
        }
    }

    fn begin(&mut self) {
        for client in 0..self.workers.len() {
            self.at(self.workers[client].0.client.from, Event::Client(client));
        }
        for fault in 0..self.plan.faults.len() {
            let SlowDown { from, until, .. } = self.plan.faults[fault];
            self.at(from, Event::Slow(fault));
            self.at(until, Event::Recover(fault));
        }
        self.at(self.plan.period, Event::Period);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Client(client) => {
                let doing = self.workers[client].0.wake(self.now);
                self.ask(client, doing.requests);
                if let Some(again) = doing.again {
                    self.at(again, Event::Client(client));
                }
            }
            Event::Gate(gate) => self.look(gate),
            Event::Slow(fault) => {
                let SlowDown { array, times, .. } = self.plan.faults[fault];
                self.slow_down(array, times);
            }
            Event::Recover(fault) => self.slow_down(self.plan.faults[fault].array, 1.0),
            Event::Period => self.period(),
        }
    }

    fn slow_down(&mut self, array: usize, times: f64) {
        if let Some(gate) = self.gates.get_mut(array) {
            gate.slow_down(self.now, times);
            self.arm(array);
        }
    }

    /// So many requests of a client come.
    fn ask(&mut self, client: usize, requests: u32) {
        let gate = self.workers[client].0.client.array;
        for _ in 0..requests {
            self.sum(client);
            let id = self.next_id;
            self.next_id += 1;
            let (worker, lane) = &mut self.workers[client];
            let request = worker.request(id, lun(client));
            let (kind, bytes, since) = (request.kind, request.bytes, self.now);
            self.open.insert(id, Open { client, kind, bytes, since });
            self.gates[gate].arrive(self.now, lane, request);
        }
        self.arm(gate);
    }

    /// Takes what a gate has answered.
    fn look(&mut self, gate: usize) {
        if self.armed[gate] == Some(self.now) {
            self.armed[gate] = None;
        }
        for answer in self.gates[gate].advance(self.now) {
            let Some(open) = self.open.remove(&answer.id) else { continue };
            let response = self.now.since(open.since);
            let queue = response.since(answer.service);
            for window in [&mut self.clients[open.client], &mut self.arrays[gate]] {
                let traffic = match open.kind {
                    Kind::Read => &mut window.read,
                    Kind::Write => &mut window.write,
                };
                traffic.record(open.bytes, response, queue, answer.service);
                window.response.record(response);
            }
            self.sum(open.client);
            let instead = self.workers[open.client].0.answered(self.now);
            self.ask(open.client, instead);
        }
        self.arm(gate);
    }

    /// Sees to it that a gate is looked at when something happens there.
    fn arm(&mut self, gate: usize) {
        let next = self.gates[gate].next_event().map(|next| next.max(self.now));
        if let Some(next) = next
            && self.armed[gate].is_none_or(|armed| next < armed)
        {
            self.armed[gate] = Some(next);
            self.at(next, Event::Gate(gate));
        }
    }

    /// Sums a client's requests in flight up to now.
    fn sum(&mut self, client: usize) {
        let since = std::mem::replace(&mut self.summed[client], self.now);
        let in_flight = u64::from(self.workers[client].0.in_flight);
        let sum = &mut self.series.clients[client].in_flight;
        *sum = sum.plus(Nanos(self.now.since(since).0 * in_flight));
    }

    fn period(&mut self) {
        let span = self.plan.period;
        for window in self.clients.iter_mut().chain(&mut self.arrays) {
            window.span = span;
        }
        let (noise, random) = (self.plan.noise, &mut self.noise);
        let mut blur = |windows: &[Window]| -> Vec<Window> {
            windows.iter().map(|window| blurred(window, noise, random)).collect()
        };
        let (clients, arrays) = (blur(&self.clients), blur(&self.arrays));
        let seen = Seen { clients: &clients, arrays: &arrays };
        let orders = self.controller.step(self.now, seen);
        let clients = self.series.clients.iter_mut().zip(&mut self.clients);
        let arrays = self.series.arrays.iter_mut().zip(&mut self.arrays);
        for (course, window) in clients.chain(arrays) {
            course.windows.push(std::mem::take(window));
        }
        self.obey(&orders);
        self.at(self.now.plus(span), Event::Period);
    }

    fn obey(&mut self, orders: &Orders) {
        for (client, terms) in &orders.terms {
            let Some((worker, lane)) = self.workers.get(*client) else { continue };
            self.gates[worker.client.array].set_terms(self.now, lane, terms);
        }
        for (gate, window) in &orders.windows {
            if let Some(gate) = self.gates.get_mut(*gate) {
                gate.set_window(self.now, *window);
            }
        }
        (0..self.gates.len()).for_each(|gate| self.arm(gate));
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.made += 1;
        self.events.push(Reverse((at, self.made, event)));
    }

    fn end(mut self) -> Series {
        self.now = self.plan.span;
        (0..self.workers.len()).for_each(|client| self.sum(client));
        for open in self.open.values() {
            let course = &mut self.series.clients[open.client].open;
            *course = course.plus(self.now.since(open.since));
        }
        for ((worker, _), course) in self.workers.iter().zip(&mut self.series.clients) {
            course.refused = worker.refused;
        }
        self.series
    }
}

/// The LUN of a client.
fn lun(client: usize) -> u32 {
    u32::try_from(client).unwrap_or(u32::MAX)
}
