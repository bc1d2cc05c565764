//! Several clients of a disk that write and flush, go, and come back, while its server
//! forgets and daemons are killed: a flush of a client is answered well only if each write
//! that the client was answered before the flush began is there, or the client was told.
//!
//! A *seat* is a client that has one connection at a time and always the same writes to
//! worry about; two seats may be of one machine, and then a flush on either covers the
//! writes of both. A *stranger* has no writes, and takes what others have left. Where there
//! are strangers, a client that has come back since a loss may have to be content that
//! somebody has heard of it.

use std::collections::HashSet;

use sterna_core::Nanos;
use sterna_core::durability::{BACK, Clients, Debts, Keeper, Line, Loss, Past};

use crate::random::Random;

/// What an implementation could get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// Whoever hears settles the debts of all.
    ClearedForAll,
    /// Clients that were there are not told, only those that come.
    OnlyLaterOnes,
    /// What a client leaves is forgotten.
    NothingIsLeft,
    /// A loss counts as heard when the answer is sent.
    HeardWhenSent,
    /// One has to hear what a daemon before has left.
    NotCounted,
    /// Clients that went before the loss are not thought of.
    NobodyIsAway,
}

/// Machines by seat: the first has two.
const MACHINES: [usize; 4] = [0, 0, 1, 2];

#[derive(Default)]
struct Machine {
    answered: Vec<u64>,
    told: HashSet<u64>,
}

/// A client that is connected.
#[derive(Clone, Copy)]
struct Client {
    /// It is connected as this one.
    number: u64,
    /// How many losses there had been when it came.
    came: u64,
}

/// A flush under way.
struct Flush {
    seat: usize,
    client: u64,
    began: u64,
    /// What had been answered to its machine before.
    covers: Vec<u64>,
}

struct World {
    random: Random,
    mistake: Option<Mistake>,
    strangers: bool,
    now: Nanos,
    shares: bool,
    cache: HashSet<u64>,
    durable: HashSet<u64>,
    debts: Debts<u64>,
    account: Past,
    why: Option<Loss>,
    seats: [Option<Client>; MACHINES.len()],
    stranger: Option<u64>,
    machines: [Machine; 3],
    flushes: Vec<Flush>,
    /// How many losses there were, and after how many of them somebody has heard.
    losses: u64,
    heard: u64,
    next: u64,
    failures: u32,
}

impl World {
    fn new(seed: u64, strangers: bool, mistake: Option<Mistake>) -> World {
        let mut random = Random::new(seed);
        let mut world = World {
            shares: random.one_in(2),
            random,
            mistake,
            strangers,
            now: Nanos(1),
            cache: HashSet::new(),
            durable: HashSet::new(),
            debts: Debts::default(),
            account: Past::Nothing,
            why: None,
            seats: [None; MACHINES.len()],
            stranger: None,
            machines: Default::default(),
            flushes: Vec::new(),
            losses: 0,
            heard: 0,
            next: 0,
            failures: 0,
        };
        // All are there at first, so that each is known of.
        (0..MACHINES.len()).for_each(|seat| world.comes(seat));
        world
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn seat(&mut self) -> usize {
        self.random.below(MACHINES.len() as u64) as usize
    }

    fn step(&mut self) {
        self.now = self.now.plus(Nanos::from_micros(1));
        let seat = self.seat();
        match self.random.below(32) {
            0 => self.server_forgets(),
            1 => self.is_killed(),
            2..=3 => self.goes(seat),
            4..=8 => self.comes(seat),
            9..=15 => self.writes(seat),
            16..=21 => self.begins_flush(seat),
            22 if self.strangers => self.stranger_calls(),
            _ => self.ends_flush(),
        }
        self.note();
    }

    fn comes(&mut self, seat: usize) {
        if self.seats[seat].is_none() {
            let number = self.number();
            self.debts.comes(self.now, number);
            self.seats[seat] = Some(Client { number, came: self.losses });
        }
    }

    fn goes(&mut self, seat: usize) {
        if let Some(client) = self.seats[seat].take() {
            self.leaves(client.number);
            self.flushes.retain(|flush| flush.client != client.number);
        }
    }

    fn leaves(&mut self, client: u64) {
        self.debts.leaves(self.now, client);
        if self.has(Mistake::NothingIsLeft) {
            self.settle_what_is_left();
        }
    }

    /// As if there were none.
    fn settle_what_is_left(&mut self) {
        let mut later = self.now.plus(BACK).plus(BACK);
        while self.debts.clients().all > self.here() {
            let nobody = self.number();
            self.debts.comes(self.now, nobody);
            self.hears(nobody);
            self.debts.leaves(self.now, nobody);
            self.debts.lapse(later);
            later = later.plus(BACK);
        }
    }

    fn here(&self) -> u32 {
        (self.seats.iter().flatten().count() + self.stranger.iter().count()) as u32
    }

    fn hears(&mut self, client: u64) {
        self.debts.settle(client, self.debts.now());
        self.debts.asks(client);
    }

    fn asks(&mut self, client: u64) {
        if self.debts.asks(client) {
            self.heard = self.losses;
            if self.has(Mistake::ClearedForAll) {
                self.clear_all();
            }
        }
    }

    fn clear_all(&mut self) {
        let seats = self.seats.iter().flatten().map(|client| client.number);
        let all: Vec<u64> = seats.chain(self.stranger).collect();
        all.into_iter().for_each(|client| self.hears(client));
    }

    fn writes(&mut self, seat: usize) {
        let Some(client) = self.seats[seat] else { return };
        self.asks(client.number);
        let write = self.number();
        self.cache.insert(write);
        self.machines[MACHINES[seat]].answered.push(write);
    }

    fn begins_flush(&mut self, seat: usize) {
        let Some(Client { number, .. }) = self.seats[seat] else { return };
        self.asks(number);
        let covers = self.machines[MACHINES[seat]].answered.clone();
        let began = self.debts.now();
        self.flushes.push(Flush { seat, client: number, began, covers });
    }

    fn flush_image(&mut self) {
        self.durable.extend(self.cache.drain());
    }

    fn ends_flush(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        let at = self.random.below(self.flushes.len() as u64) as usize;
        let flush = self.flushes.swap_remove(at);
        self.flush_image();
        let fails = self.debts.settle(flush.client, flush.began);
        if fails && self.has(Mistake::HeardWhenSent) {
            self.asks(flush.client);
        }
        match self.random.below(8) {
            // Before the client has its answer.
            0 => self.goes(flush.seat),
            1 => self.is_killed(),
            _ if fails => self.fails(&flush),
            _ => self.succeeds(&flush),
        }
    }

    fn fails(&mut self, flush: &Flush) {
        self.failures += 1;
        let machine = &mut self.machines[MACHINES[flush.seat]];
        let is_there =
            |write: &&u64| !self.durable.contains(write) && !self.cache.contains(write);
        machine.told.extend(machine.answered.iter().filter(is_there));
    }

    fn succeeds(&self, flush: &Flush) {
        let came = self.seats[flush.seat].map(|client| client.came);
        // Somebody has taken over what was meant for it.
        let is_excused = self.strangers
            && came.is_some_and(|came| came >= 1 && came == self.losses)
            && self.heard == self.losses;
        let machine = &self.machines[MACHINES[flush.seat]];
        for write in &flush.covers {
            let is_known = self.durable.contains(write) || machine.told.contains(write);
            assert!(is_known || is_excused, "write {write} is lost without a word");
        }
    }

    fn stranger_calls(&mut self) {
        match self.stranger {
            None => {
                let number = self.number();
                self.debts.comes(self.now, number);
                self.stranger = Some(number);
            }
            Some(stranger) if self.random.one_in(3) => {
                self.stranger = None;
                self.leaves(stranger);
            }
            Some(stranger) => {
                self.asks(stranger);
                self.debts.settle(stranger, self.debts.now());
            }
        }
    }

    fn server_forgets(&mut self) {
        if !std::mem::take(&mut self.cache).is_empty() {
            self.lose(Loss::ServerAway);
        }
    }

    fn lose(&mut self, why: Loss) {
        self.losses += 1;
        self.why = Some(why);
        if self.has(Mistake::NobodyIsAway) && self.debts.clients().owed == 0 {
            self.debts.lapse(self.now.plus(BACK).plus(BACK));
        }
        self.debts.lost(self.now);
        if self.has(Mistake::OnlyLaterOnes) {
            self.clear_all();
        }
    }

    /// The account says what is so.
    fn note(&mut self) {
        let clients = self.debts.clients();
        let owed = self.why.filter(|_| clients.owed > 0);
        let unflushed = !self.cache.is_empty();
        let lines = vec![Line { keeper: self.keeper(), unflushed, doubtful: false }];
        self.account = Past::Account { owed, clients, lines };
    }

    fn keeper(&self) -> Keeper {
        Keeper::Server { address: 1, shares: self.shares }
    }

    fn is_killed(&mut self) {
        self.note();
        self.flushes.clear();
        (self.seats, self.stranger) = ([None; MACHINES.len()], None);
        if !self.shares {
            self.losses += u64::from(!self.cache.is_empty());
            self.cache.clear();
        }
        let mut legacy = self.account.legacy(Some(self.keeper()));
        if self.has(Mistake::NotCounted) {
            let owed = legacy.clients.owed.min(1);
            legacy.clients = Clients { all: owed, owed };
        }
        (self.debts, self.why) = (Debts::default(), legacy.owes);
        self.debts.follow(self.now, legacy.clients);
        if legacy.owes.is_some() {
            self.heard = 0;
        }
    }
}

/// Runs worlds; says how many flushes have failed in all.
fn run(worlds: u64, strangers: bool, mistake: Option<Mistake>) -> u32 {
    let first =
        std::env::var("STERNA_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..worlds, |seed: u64| seed..seed + 1);
    let failures = seeds.map(|seed| {
        println!("seed {seed}");
        let mut world = World::new(seed, strangers, mistake);
        (0..400).for_each(|_| world.step());
        world.failures
    });
    failures.sum()
}

#[test]
fn each_client_is_told_before_its_flush_is_answered_well() {
    let told = run(3000, false, None);
    assert!(told > 10_000, "there was something to tell: {told}");
}

#[test]
fn where_strangers_come_between_somebody_has_heard() {
    let told = run(3000, true, None);
    assert!(told > 10_000, "there was something to tell: {told}");
}

#[test]
fn each_mistake_is_found() {
    use Mistake::*;
    let all = [
        ClearedForAll,
        OnlyLaterOnes,
        NothingIsLeft,
        HeardWhenSent,
        NotCounted,
        NobodyIsAway,
    ];
    for mistake in all {
        let found = std::panic::catch_unwind(|| run(300, false, Some(mistake)));
        assert!(found.is_err(), "{mistake:?} is not found");
    }
}
