//! Clients that ask as much as they may, in front of a device that takes a while for
//! each request, some more and some less: its capacity is its places over the mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::qos::{
    Class, ClassId, Cost, FlowId, Permit, Pool, SHARES, Scheduler, Terms,
};

/// A client: how many requests it keeps in flight, and of which size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) class: u32,
    pub(crate) scheduler: usize,
    pub(crate) outstanding: usize,
    pub(crate) bytes: u64,
    pub(crate) shares: u32,
}

/// A client of a class with many small requests.
pub(crate) fn busy(class: u32) -> Client {
    Client { class, scheduler: 0, outstanding: 256, bytes: 4096, shares: SHARES }
}

/// A request at the device.
struct AtDevice {
    client: usize,
    arrived: Nanos,
    started: Nanos,
    permit: Permit,
}

/// All of it.
pub(crate) struct World {
    now: Nanos,
    classes: BTreeMap<u32, Arc<Class>>,
    clients: Vec<(Client, FlowId)>,
    /// For each datastore, one for each thread.
    schedulers: Vec<Scheduler<(usize, Nanos)>>,
    threads: usize,
    service: Nanos,
    /// By when it will be done.
    device: BTreeMap<(Nanos, u64), AtDevice>,
    started: u64,
    /// Requests that were asked for and not answered, by client.
    asked: Vec<usize>,
    /// Answers by client, since the last `take`.
    answered: Vec<u64>,
    responses: Vec<Nanos>,
    /// Requests at the device, by client.
    there: Vec<usize>,
    /// The most at the device at once, by client.
    pub(crate) most: Vec<usize>,
}

impl World {
    /// A device that takes `service` for a request, and lets `window` be there at once.
    pub(crate) fn new(
        window: Option<u32>,
        service: Nanos,
        schedulers: usize,
        classes: &[(u32, Terms)],
        clients: &[Client],
    ) -> World {
        World::on(&[window], service, schedulers, classes, clients)
    }

    /// Several datastores with these windows, and so many threads. The schedulers of
    /// the first datastore come first.
    pub(crate) fn on(
        windows: &[Option<u32>],
        service: Nanos,
        threads: usize,
        classes: &[(u32, Terms)],
        clients: &[Client],
    ) -> World {
        let classes: BTreeMap<u32, Arc<Class>> = classes
            .iter()
            .map(|(id, terms)| (*id, Arc::new(Class::new(terms))))
            .collect();
        let mut schedulers = Vec::new();
        for window in windows {
            let pool = Arc::new(Pool::default());
            pool.set_window(*window);
            let numbers = 0..u32::try_from(threads).unwrap();
            let of = numbers.map(|number| Scheduler::new(Arc::clone(&pool), number));
            schedulers.extend(of);
        }
        let clients: Vec<_> = clients
            .iter()
            .map(|client| {
                let scheduler = &mut schedulers[client.scheduler];
                let (id, class) = (ClassId(client.class), &classes[&client.class]);
                let stake = scheduler.pool().stake(id, class);
                let flow = scheduler.add_flow(&stake, client.shares);
                (*client, flow)
            })
            .collect();
        let count = clients.len();
        let mut world = World {
            now: Nanos(0),
            classes,
            clients,
            schedulers,
            threads,
            service,
            device: BTreeMap::new(),
            started: 0,
            asked: vec![0; count],
            answered: vec![0; count],
            responses: vec![Nanos(0); count],
            there: vec![0; count],
            most: vec![0; count],
        };
        for client in 0..count {
            for _ in 0..world.clients[client].0.outstanding {
                world.ask(client);
            }
        }
        world.look(u64::MAX);
        world
    }

    /// Changes a class's terms, as the engine does.
    pub(crate) fn set_terms(&mut self, class: u32, terms: &Terms) {
        self.classes[&class].set_terms(self.now, terms);
        for scheduler in &mut self.schedulers {
            scheduler.terms_changed(self.now);
        }
        self.look(u64::MAX);
    }

    /// Lets a client leave that asks for nothing.
    pub(crate) fn leave(&mut self, client: usize) {
        assert_eq!(self.asked[client], 0, "it waits for nothing");
        let (Client { scheduler, .. }, flow) = self.clients[client];
        assert!(self.schedulers[scheduler].remove_flow(flow).is_empty());
    }

    /// Lets a client stop, or begin again.
    pub(crate) fn set_outstanding(&mut self, client: usize, outstanding: usize) {
        self.clients[client].0.outstanding = outstanding;
        for _ in self.asked[client]..outstanding {
            self.ask(client);
        }
        self.look(u64::MAX);
    }

    /// Runs for a while; gives each client's requests per second and mean response.
    pub(crate) fn run(&mut self, span: Nanos) -> Vec<(f64, Nanos)> {
        let end = self.now.plus(span);
        self.answered.fill(0);
        self.responses.fill(Nanos(0));
        loop {
            let done = self.device.first_key_value().map(|((at, _), _)| *at);
            let wake = self.schedulers.iter().filter_map(Scheduler::deadline).min();
            let Some(next) = done.into_iter().chain(wake).min().filter(|at| *at < end)
            else {
                break;
            };
            self.now = next.max(self.now);
            if done == Some(next) {
                self.answer();
            } else {
                self.look(u64::MAX);
            }
        }
        self.now = end;
        let seconds = span.as_secs_f64();
        let mean = |(count, sum): (&u64, &Nanos)| {
            (*count as f64 / seconds, Nanos(sum.0 / (*count).max(1)))
        };
        self.answered.iter().zip(&self.responses).map(mean).collect()
    }

    fn answer(&mut self) {
        let Some((_, first)) = self.device.pop_first() else { return };
        let AtDevice { client, arrived, started, permit } = first;
        self.answered[client] += 1;
        self.responses[client] = self.responses[client].plus(self.now.since(arrived));
        let scheduler = self.clients[client].0.scheduler;
        self.schedulers[scheduler].done(permit, self.now.since(started));
        self.asked[client] -= 1;
        self.there[client] -= 1;
        if self.asked[client] < self.clients[client].0.outstanding {
            self.ask(client);
        }
        self.look(1 << (scheduler % self.threads));
    }

    fn ask(&mut self, client: usize) {
        let (Client { scheduler, bytes, .. }, flow) = self.clients[client];
        self.asked[client] += 1;
        let scheduler = &mut self.schedulers[scheduler];
        let item = (client, self.now);
        if let Some((item, permit)) =
            scheduler.arrive(self.now, flow, Cost { bytes }, item)
        {
            self.begin(item, permit);
        }
    }

    /// Lets those threads look, and those that they wake.
    fn look(&mut self, who: u64) {
        let mut who = who;
        while who != 0 {
            let thread = who.trailing_zeros() as usize;
            who &= who - 1;
            if thread >= self.threads {
                return;
            }
            for at in (thread..self.schedulers.len()).step_by(self.threads) {
                while let Some((item, permit)) = self.schedulers[at].next(self.now) {
                    self.begin(item, permit);
                }
                who |= self.schedulers[at].take_wakes();
            }
        }
    }

    fn begin(&mut self, (client, arrived): (usize, Nanos), permit: Permit) {
        // From half to one and a half, and the mean over any 16 is the mean.
        self.started += 1;
        let part = self.started * 7 % 16;
        let takes = self.service.0 / 2 + self.service.0 * part / 15;
        let started = self.now;
        let at = (started.plus(Nanos(takes)), self.started);
        self.device.insert(at, AtDevice { client, arrived, started, permit });
        self.there[client] += 1;
        self.most[client] = self.most[client].max(self.there[client]);
    }
}
