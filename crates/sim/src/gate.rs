//! What stands before an array: the scheduler of `core::qos`, with a class for each
//! client.

use std::sync::Arc;

use sterna_core::array::{Array, Completion, Model, Request};
use sterna_core::qos::{Class, ClassId, Cost, FlowId, Permit, Pool, Scheduler, Terms};
use sterna_core::{IdMap, Nanos};

/// An array, and the turns that its clients take.
#[derive(Debug)]
pub(crate) struct Gate {
    array: Array,
    scheduler: Scheduler<Request>,
    /// The requests at the array, with when they got there.
    started: IdMap<u64, (Nanos, Permit)>,
}

/// A client's class, and its flow through one gate.
#[derive(Debug)]
pub(crate) struct Lane {
    class: Arc<Class>,
    flow: FlowId,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) id: u64,
    /// How long it was at the array.
    pub(crate) service: Nanos,
}

impl Gate {
    pub(crate) fn new(model: Model, seed: u64) -> Gate {
        let scheduler = Scheduler::new(Arc::new(Pool::default()), 0);
        Gate { array: Array::new(model, seed), scheduler, started: IdMap::default() }
    }

    /// A lane for the client of this number.
    pub(crate) fn lane(&mut self, client: u32) -> Lane {
        let class = Arc::new(Class::default());
        // Class 0 is that of migrations.
        let stake = self.scheduler.pool().stake(ClassId(client + 1), &class);
        let flow = self.scheduler.add_flow(&stake, 1);
        Lane { class, flow }
    }

    /// Changes a client's terms.
    pub(crate) fn set_terms(&mut self, now: Nanos, lane: &Lane, terms: &Terms) {
        lane.class.set_terms(now, terms);
        self.scheduler.terms_changed(now);
        self.start(now);
    }

    /// Changes how many requests may be at the array.
    pub(crate) fn set_window(&mut self, now: Nanos, window: Option<u32>) {
        self.scheduler.pool().set_window(window);
        self.start(now);
    }

    pub(crate) fn slow_down(&mut self, now: Nanos, times: f64) {
        self.array.slow_down(now, times);
    }

    /// A request has come.
    pub(crate) fn arrive(&mut self, now: Nanos, lane: &Lane, request: Request) {
        let cost = Cost { bytes: request.bytes };
        match self.scheduler.arrive(now, lane.flow, cost, request) {
            Some((request, permit)) => self.submit(now, request, permit),
            None => self.start(now),
        }
    }

    /// Lets time pass up to `now`; gives what was answered.
    pub(crate) fn advance(&mut self, now: Nanos) -> Vec<Answer> {
        let mut completions: Vec<Completion> = Vec::new();
        self.array.advance(now, &mut completions);
        let mut answers = Vec::with_capacity(completions.len());
        for Completion { id, at } in completions {
            let Some((since, permit)) = self.started.remove(&id) else { continue };
            let service = at.since(since);
            self.scheduler.done(permit, service);
            answers.push(Answer { id, service });
        }
        self.start(now);
        answers
    }

    /// When `advance` is to be called next.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let turn = self.scheduler.deadline();
        self.array.next_event().into_iter().chain(turn).min()
    }

    fn start(&mut self, now: Nanos) {
        while let Some((request, permit)) = self.scheduler.next(now) {
            self.submit(now, request, permit);
        }
    }

    fn submit(&mut self, now: Nanos, request: Request, permit: Permit) {
        self.started.insert(request.id, (now, permit));
        self.array.submit(now, request);
    }
}
