//! A server with a write cache, clients' connections that break one by one, and everything
//! in a random order: a flush that is answered without a word about a loss must have made
//! all of it durable.
//!
//! The server is a model: runs that follow one another, a cache that ends with its run, and
//! replies that still arrive from a run that has ended. It fails a flush now and then, drops
//! what the flush should have made durable, and says nothing of that to the next one. The
//! client does what an image on an NBD server does: it writes on any connection, sends flushes
//! where it is told to, takes a lost connection's unanswered requests to another one.

#[path = "../random/mod.rs"]
mod random;

mod another;
mod clients;
mod killed;

use std::collections::{HashMap, HashSet, VecDeque};

use random::Random;
use sterna_core::durability::{Durability, Flush, Flushing, Goes, Moment};

const CONNECTIONS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Asked {
    /// A part of a write, by its number.
    Write(u64),
    Read,
    /// A flush of the client's operation with this number.
    Flush(u64, Flush),
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    asked: Asked,
    at: Moment,
    /// The reply is an error.
    fails: bool,
}

/// A connection as both sides have it.
#[derive(Default)]
struct Connection {
    /// The run that it leads to; none while it is down.
    run: Option<u64>,
    requests: VecDeque<Sent>,
    replies: VecDeque<Sent>,
}

/// A flush of the client: what was answered before it began.
struct Operation {
    flushing: Flushing,
    owes: Vec<u64>,
    under_way: usize,
}

struct World {
    random: Random,
    durability: Durability,
    run: u64,
    cache: HashSet<u64>,
    durable: HashSet<u64>,
    connections: Vec<Connection>,
    next: u64,
    /// Writes that the client has an answer to.
    answered: Vec<u64>,
    /// On which connection, while that is up.
    where_answered: HashMap<u64, usize>,
    operations: HashMap<u64, Operation>,
    /// Writes of which a loss has told.
    told: HashSet<u64>,
    /// Writes that were dropped by flushes whose errors are on their way, and how many those
    /// are: who is answered well meanwhile hears of it later.
    dropped: HashSet<u64>,
    errors: u32,
    flushes: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            random: Random::new(seed),
            durability: Durability::new(CONNECTIONS),
            run: 0,
            cache: HashSet::new(),
            durable: HashSet::new(),
            connections: (0..CONNECTIONS).map(|_| Connection::default()).collect(),
            next: 0,
            answered: Vec::new(),
            where_answered: HashMap::new(),
            operations: HashMap::new(),
            told: HashSet::new(),
            dropped: HashSet::new(),
            errors: 0,
            flushes: 0,
        };
        world.come_up(0);
        world
    }

    fn come_up(&mut self, number: usize) {
        if self.connections[number].run.is_none() {
            self.connections[number].run = Some(self.run);
            self.durability.came_up(number);
        }
    }

    fn up(&mut self) -> Option<usize> {
        let up: Vec<usize> =
            (0..CONNECTIONS).filter(|at| self.connections[*at].run.is_some()).collect();
        (!up.is_empty()).then(|| up[self.random.below(up.len() as u64) as usize])
    }

    fn send(&mut self, number: usize, asked: Asked) {
        let at = self.durability.sent();
        let sent = Sent { asked, at, fails: false };
        self.connections[number].requests.push_back(sent);
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0 => self.server_ends(),
            1 => self.lose_any(),
            2..=4 => {
                let number = self.random.below(CONNECTIONS as u64) as usize;
                self.come_up(number);
            }
            5..=7 => self.begin_flush(),
            8..=15 => {
                let Some(number) = self.up() else { return };
                self.next += 1;
                let write = self.random.below(4) > 0;
                let asked = if write { Asked::Write(self.next) } else { Asked::Read };
                self.send(number, asked);
            }
            16..=27 => self.serve(),
            _ => self.receive(),
        }
    }

    /// The run ends: the cache is gone. Connections find out later.
    fn server_ends(&mut self) {
        self.cache.clear();
        self.run += 1;
    }

    /// A connection breaks: if its run has ended, or for itself.
    fn lose_any(&mut self) {
        let Some(number) = self.up() else { return };
        let dead = self.connections[number].run != Some(self.run);
        if dead || self.random.one_in(3) {
            self.lose(number);
        }
    }

    fn lose(&mut self, number: usize) {
        let connection = std::mem::take(&mut self.connections[number]);
        if self.durability.lost(number) {
            let gone = self.where_answered.iter().filter(|(_, at)| **at == number);
            self.told.extend(gone.map(|(write, _)| *write));
        }
        self.where_answered.retain(|_, at| *at != number);
        // What was not answered is sent again, or planned anew.
        for sent in connection.replies.into_iter().chain(connection.requests) {
            if sent.fails {
                self.error_ends(); // Nobody hears of it.
            }
            match sent.asked {
                Asked::Flush(id, _) => self.flush_ended(id, false),
                Asked::Read => {}
                Asked::Write(_) => {
                    if let Some(other) = self.up() {
                        self.send(other, sent.asked);
                    }
                }
            }
        }
    }

    fn serve(&mut self) {
        let Some(number) = self.up() else { return };
        let connection = &mut self.connections[number];
        if connection.run != Some(self.run) {
            return; // Nobody is there.
        }
        let Some(mut sent) = connection.requests.pop_front() else { return };
        match sent.asked {
            Asked::Write(write) => drop(self.cache.insert(write)),
            Asked::Flush(..) if self.random.one_in(16) => {
                sent.fails = true;
                self.errors += 1;
                self.dropped.extend(self.cache.difference(&self.durable));
                self.cache.clear();
            }
            Asked::Flush(..) => self.durable.extend(&self.cache),
            Asked::Read => {}
        }
        self.connections[number].replies.push_back(sent);
    }

    /// The error of a flush is there, or will never be.
    fn error_ends(&mut self) {
        self.told.extend(&self.dropped);
        self.errors -= 1;
        if self.errors == 0 {
            self.dropped.clear();
        }
    }

    /// A flush was answered with an error: if something was answered and dropped, it says so,
    /// and that may be anything that is not durable.
    fn flush_failed(&mut self, id: u64, sent: Moment) {
        let is_known = self.durability.failed(sent);
        let answered: HashSet<u64> = self.answered.iter().copied().collect();
        let mut told = &answered - &self.durable;
        let is_lost = |write: &&u64| told.contains(write) && !self.told.contains(write);
        let lost = self.dropped.iter().filter(is_lost).count();
        assert!(is_known || lost == 0, "{lost} writes were dropped without a word");
        if !is_known {
            told.clear();
        }
        // Those that are still to be answered are not told of by this.
        let unanswered = &self.dropped - &answered;
        self.error_ends();
        self.told.retain(|write| !unanswered.contains(write));
        self.told.extend(told);
        self.operations.remove(&id);
    }

    fn receive(&mut self) {
        let Some(number) = self.up() else { return };
        let Some(sent) = self.connections[number].replies.pop_front() else { return };
        self.durability.answered(number, sent.at);
        match sent.asked {
            Asked::Write(write) => {
                if self.durability.wrote(number, sent.at) {
                    self.told.insert(write);
                }
                self.answered.push(write);
                self.where_answered.insert(write, number);
            }
            Asked::Flush(id, _) if sent.fails => self.flush_failed(id, sent.at),
            Asked::Flush(id, flush) => {
                self.durability.flushed(flush);
                self.flush_ended(id, true);
            }
            Asked::Read => {}
        }
    }

    fn begin_flush(&mut self) {
        self.flushes += 1;
        let flushing = self.durability.flushing();
        let operation = Operation { flushing, owes: self.answered.clone(), under_way: 0 };
        self.operations.insert(self.flushes, operation);
        self.go_on(self.flushes);
    }

    fn flush_ended(&mut self, id: u64, well: bool) {
        // It may have failed.
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.under_way -= 1;
        if well {
            operation.flushing.flushed();
        }
        self.go_on(id);
    }

    fn go_on(&mut self, id: u64) {
        let operation = &self.operations[&id];
        if operation.under_way > 0 {
            return;
        }
        let on = match self.durability.goes(&operation.flushing) {
            Goes::On(on) => on,
            Goes::Anywhere => self.up().into_iter().collect(),
            Goes::Nowhere => return self.complete(id),
        };
        for number in on {
            self.operations.get_mut(&id).expect("it is there").under_way += 1;
            let flush = self.durability.flush_sent(number);
            self.send(number, Asked::Flush(id, flush));
        }
    }

    /// The rule: all that was answered before it began is durable, or was told of.
    fn complete(&mut self, id: u64) {
        let operation = self.operations.remove(&id).expect("it is there");
        for write in operation.owes {
            let durable = self.durable.contains(&write);
            let told = self.told.contains(&write) || self.dropped.contains(&write);
            assert!(durable || told, "write {write} is forgotten");
        }
    }
}

#[test]
fn no_flush_is_answered_over_a_loss_that_nobody_was_told_of() {
    for seed in 0..3000 {
        let mut world = World::new(seed);
        for _ in 0..600 {
            world.step();
        }
    }
}

#[test]
fn flushes_come_to_an_end_when_the_trouble_does() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step();
        }
        for number in 0..CONNECTIONS {
            if world.connections[number].run != Some(world.run) {
                if world.connections[number].run.is_some() {
                    world.lose(number);
                }
                world.come_up(number);
            }
        }
        for id in world.operations.keys().copied().collect::<Vec<_>>() {
            world.go_on(id);
        }
        for _ in 0..20_000 {
            world.serve();
            world.receive();
        }
        assert!(world.operations.is_empty(), "seed {seed}");
    }
}

fn wrote(it: &mut Durability, connection: usize) {
    let sent = it.sent();
    assert!(!it.wrote(connection, sent));
}

#[test]
fn a_flush_that_fails_loses_what_was_unflushed_and_what_was_under_way_once() {
    let mut it = Durability::new(2);
    it.came_up(0);
    it.came_up(1);
    let flush = it.sent();
    assert!(!it.failed(flush), "there was nothing to lose");
    wrote(&mut it, 1);
    let (flush, under_way) = (it.sent(), it.sent());
    assert!(it.failed(flush) && !it.has_unflushed());
    assert!(!it.failed(flush), "told once");
    assert!(it.wrote(0, under_way), "the server may have had it before the flush");
    let flush = it.flush_sent(0);
    it.flushed(flush);
    // What is written from then on is as durable as ever.
    wrote(&mut it, 0);
    let flush = it.flush_sent(0);
    it.flushed(flush);
    let flush = it.sent();
    assert!(!it.failed(flush) && !it.lost(0) && !it.lost(1));
}

#[test]
fn a_flush_that_fails_beside_one_that_succeeds_is_a_loss() {
    let mut it = Durability::new(1);
    it.came_up(0);
    wrote(&mut it, 0);
    let fails = it.sent();
    let flush = it.flush_sent(0);
    it.flushed(flush);
    assert!(it.failed(fails), "the server has told only one of the two");
}

#[test]
fn one_flush_is_enough_while_all_connections_are_known_to_lead_to_one_run() {
    let mut it = Durability::new(2);
    it.came_up(0);
    wrote(&mut it, 0);
    it.came_up(1);
    wrote(&mut it, 1);
    let flushing = it.flushing();
    // Nobody knows whether the first one is still alive: it may lead to an earlier run.
    assert_eq!(it.goes(&flushing), Goes::On(vec![0, 1]));
    let sent = it.sent();
    it.answered(0, sent);
    assert_eq!(it.goes(&flushing), Goes::On(vec![0]));
    let flush = it.flush_sent(1);
    it.flushed(flush);
    let mut flushing = flushing;
    flushing.flushed();
    assert_eq!(it.goes(&flushing), Goes::Nowhere);
    assert!(!it.lost(0) && !it.lost(1));
}

#[test]
fn a_flush_covers_nothing_that_was_answered_after_it_was_sent() {
    let mut it = Durability::new(1);
    it.came_up(0);
    wrote(&mut it, 0);
    let flush = it.flush_sent(0);
    wrote(&mut it, 0);
    it.flushed(flush);
    assert!(it.lost(0));
    assert!(!it.lost(0), "told once");
}

#[test]
fn an_idle_connection_that_is_lost_late_tells_what_was_answered_on_it() {
    let mut it = Durability::new(2);
    it.came_up(0);
    it.came_up(1);
    wrote(&mut it, 0);
    // The server's host loses power and is back; the other connection finds out first.
    assert!(!it.lost(1));
    it.came_up(1);
    wrote(&mut it, 1);
    let flush = it.flush_sent(1);
    it.flushed(flush);
    let mut flushing = it.flushing();
    flushing.flushed();
    assert_eq!(it.goes(&flushing), Goes::On(vec![0]), "that flush was another run's");
    assert!(it.lost(0));
    assert_eq!(it.goes(&flushing), Goes::Nowhere);
}
