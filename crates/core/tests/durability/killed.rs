//! Daemons that are killed, or end well, on servers that share one cache among their
//! connections, or drop with a connection what was not flushed on it: whatever a client was
//! answered is durable when its flush is answered well, or it was told of a loss before. And
//! nobody is told of a loss where there was none.
//!
//! A daemon is a model of what an image, a disk and its account do: each write that is
//! answered, each flush, and each answer to a client is a step, and a kill comes between any
//! two. What only the memory of a daemon knew is gone with it; the account stays, unless its
//! memory is lost, too.

use std::collections::HashSet;

use sterna_core::Nanos;
use sterna_core::durability::{
    Debts, Durability, Goes, Keeper, Legacy, Line, Loss, Past,
};

use crate::random::Random;

/// The client is back before any of it lapses.
const NOW: Nanos = Nanos(1);

/// What an implementation could get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A kill is taken for a good end.
    NothingIsLeft,
    /// What clients are still to be told is left out.
    OwedForgotten,
    /// A loss counts as told when the answer is sent.
    ToldWhenSent,
    /// What a shared cache has of a daemon before is left out.
    NotInherited,
    /// What was unflushed counts as lost everywhere.
    LostEverywhere,
    /// Of a flush that takes long it is assumed that it ends well.
    LongFlushForgotten,
}

/// A storage server; it lives longer than its clients' connections.
struct Storage {
    shares: bool,
    durable: HashSet<u64>,
    /// What is unflushed, with the connection that wrote it.
    cache: Vec<(usize, u64)>,
}

impl Storage {
    fn flush(&mut self, connection: usize) {
        let shares = self.shares;
        let covered = self.cache.extract_if(.., |(by, _)| shares || *by == connection);
        self.durable.extend(covered.map(|(_, write)| write));
    }

    fn closes(&mut self, connection: usize) {
        let shares = self.shares;
        self.cache.retain(|(by, _)| shares || *by != connection);
    }
}

struct World {
    random: Random,
    mistake: Option<Mistake>,
    storage: Storage,
    /// What a kill leaves.
    account: Past,
    durability: Durability,
    /// The client is connected as this one.
    debts: Debts<u64>,
    client: u64,
    why: Option<Loss>,
    /// The server has been at a flush for long.
    is_long: bool,
    next: u64,
    /// Writes that the client was answered, and those that it knows may be lost.
    answered: Vec<u64>,
    told: HashSet<u64>,
    /// Something has happened since the client was last told that may have cost writes.
    may_fail: bool,
    failures: u32,
}

impl World {
    fn new(seed: u64, mistake: Option<Mistake>) -> World {
        let mut random = Random::new(seed);
        let shares = random.one_in(2);
        let storage = Storage { shares, durable: HashSet::new(), cache: Vec::new() };
        let mut world = World {
            random,
            mistake,
            storage,
            account: Past::Nothing,
            durability: Durability::new(1),
            debts: Debts::default(),
            client: 0,
            why: None,
            is_long: false,
            next: 0,
            answered: Vec::new(),
            told: HashSet::new(),
            may_fail: false,
            failures: 0,
        };
        world.daemon_begins();
        world
    }

    fn links(&self) -> usize {
        if self.storage.shares { 3 } else { 1 }
    }

    fn keeper(&self) -> Keeper {
        Keeper::Server { address: 1, shares: self.storage.shares }
    }

    /// The account says what is so.
    fn note(&mut self) {
        let clients = self.debts.clients();
        let open = clients.owed > 0 && !self.has(Mistake::OwedForgotten);
        let owed = self.why.filter(|_| open);
        let unflushed = self.durability.has_unflushed();
        let doubtful = self.is_long && !self.has(Mistake::LongFlushForgotten);
        let lines = vec![Line { keeper: self.keeper(), unflushed, doubtful }];
        self.account = Past::Account { owed, clients, lines };
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn lose(&mut self, why: Loss) {
        self.debts.lost(NOW);
        self.why = Some(why);
    }

    fn daemon_begins(&mut self) {
        let mut legacy = self.account.legacy(Some(self.keeper()));
        match self.mistake {
            Some(Mistake::NothingIsLeft) => legacy = Legacy::default(),
            Some(Mistake::NotInherited) => legacy.unflushed = false,
            Some(Mistake::LostEverywhere) if legacy.unflushed => {
                legacy.owes = Some(Loss::DaemonEnded);
                legacy.clients.owed = legacy.clients.all;
            }
            _ => {}
        }
        (self.debts, self.why) = (Debts::default(), legacy.owes);
        self.debts.follow(NOW, legacy.clients);
        self.durability = Durability::new(self.links());
        (0..self.links()).for_each(|link| self.durability.came_up(link));
        if legacy.unflushed {
            let sent = self.durability.sent();
            assert!(!self.durability.wrote(0, sent));
        }
        self.note();
        // And the client is back.
        self.client += 1;
        self.debts.comes(NOW, self.client);
        self.note();
    }

    /// The daemon is gone, and its connections with it.
    fn daemon_ends(&mut self) {
        // What was answered and is not flushed may be lost, unless the cache is shared.
        self.may_fail |= !self.storage.shares && self.durability.has_unflushed();
        // Nobody knows whether the client has read what it was told.
        self.may_fail |= self.debts.clients().owed > 0;
        (0..self.links()).for_each(|link| self.storage.closes(link));
    }

    fn is_killed(&mut self) {
        self.daemon_ends();
        self.while_no_daemon_is_there();
        self.daemon_begins();
    }

    fn link(&mut self) -> usize {
        self.random.below(self.links() as u64) as usize
    }

    fn client_asks(&mut self) {
        self.debts.asks(self.client);
        self.note();
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..=8 => self.write(),
            9..=13 => self.flush(),
            14 | 15 => self.connection_breaks(),
            16 if self.random.one_in(2) => self.flush_fails(),
            16 => self.power_fails(),
            17 => self.is_killed(),
            18 => self.flush_hangs(),
            _ => self.good_end(),
        }
    }

    fn write(&mut self) {
        self.client_asks();
        let link = self.link();
        self.next += 1;
        self.storage.cache.push((link, self.next));
        let sent = self.durability.sent();
        self.durability.answered(link, sent);
        assert!(!self.durability.wrote(link, sent), "nothing has failed meanwhile");
        self.note();
        if self.random.one_in(8) {
            self.is_killed(); // Before the client has its answer.
        } else {
            self.answered.push(self.next);
        }
    }

    /// The disk's image is flushed: what becomes of it without a word from the server's
    /// side is that all is covered.
    fn flush_image(&mut self) {
        let mut flushing = self.durability.flushing();
        loop {
            let on = match self.durability.goes(&flushing) {
                Goes::On(on) => on,
                Goes::Anywhere => vec![self.link()],
                Goes::Nowhere => return,
            };
            for link in on {
                let flush = self.durability.flush_sent(link);
                self.storage.flush(link);
                self.durability.flushed(flush);
                flushing.flushed();
                self.note();
            }
        }
    }

    fn flush(&mut self) {
        self.client_asks();
        let (began, owed) = (self.debts.now(), self.answered.clone());
        self.flush_image();
        let fails = self.debts.settle(self.client, began);
        if self.has(Mistake::ToldWhenSent) {
            self.debts.asks(self.client);
        }
        self.note();
        if self.random.one_in(8) {
            return self.is_killed(); // Before the client has its answer.
        }
        if fails {
            assert!(self.may_fail, "a client is told of a loss that cannot have been");
            self.told.extend(owed);
            (self.may_fail, self.failures) = (false, self.failures + 1);
            return;
        }
        for write in owed {
            let kept = self.storage.durable.contains(&write);
            assert!(kept || self.told.contains(&write), "write {write} is lost");
        }
    }

    /// The server fails the client's flush, and has dropped what it should have kept.
    fn flush_fails(&mut self) {
        self.client_asks();
        let sent = self.durability.sent();
        self.storage.cache.clear();
        if self.durability.failed(sent) {
            self.lose(Loss::FlushFailed);
        }
        // The answer is an error, whatever is owed.
        self.debts.settle(self.client, self.debts.now());
        self.note();
        self.told.extend(&self.answered);
        self.may_fail = false;
    }

    /// The server is at a flush for long, whoever has asked for it; the daemon is killed, and
    /// the flush fails, or not.
    fn flush_hangs(&mut self) {
        self.is_long = true;
        self.note();
        self.is_long = false;
        self.may_fail |= self.durability.has_unflushed();
        if self.random.one_in(2) {
            self.storage.cache.clear();
        }
        self.is_killed();
    }

    fn connection_breaks(&mut self) {
        let link = self.link();
        self.storage.closes(link);
        if self.durability.lost(link) {
            self.may_fail = true;
            self.lose(Loss::ServerAway);
        }
        self.durability.came_up(link);
        self.note();
    }

    fn power_fails(&mut self) {
        self.storage.cache.clear();
        for link in 0..self.links() {
            if self.durability.lost(link) {
                self.may_fail = true;
                self.lose(Loss::ServerAway);
            }
            self.durability.came_up(link);
        }
        self.note();
    }

    /// What nobody sees: a server that is another one afterwards, or an account that is
    /// gone. (A shared cache that is lost now is found out by nobody.)
    fn while_no_daemon_is_there(&mut self) {
        match self.random.below(6) {
            0 => {
                // It is started anew, with another configuration: all of it shows.
                self.may_fail |= self.account_has_unflushed();
                self.storage.shares = !self.storage.shares;
                self.storage.cache.clear();
            }
            1 if !self.storage.shares => {
                let Past::Account { owed, .. } = self.account else { return };
                let gone = Past::MemoryGone { owed: owed.is_some(), kernel: None };
                let is_damaged = self.random.one_in(2);
                self.account = if is_damaged { Past::Unreadable } else { gone };
                self.may_fail = true;
            }
            _ => {}
        }
    }

    fn account_has_unflushed(&self) -> bool {
        let Past::Account { lines, .. } = &self.account else { return true };
        lines.iter().any(|line| line.unflushed)
    }

    fn good_end(&mut self) {
        self.flush_image();
        let Past::Account { owed, lines, .. } = &self.account else { return };
        let is_open = owed.is_some() || lines.iter().any(|line| line.unflushed);
        self.daemon_ends();
        if !is_open {
            self.account = Past::Nothing;
        }
        self.daemon_begins();
    }
}

/// Runs worlds; says how many flushes have failed in all.
fn run(seeds: std::ops::Range<u64>, mistake: Option<Mistake>) -> u32 {
    let failures = seeds.map(|seed| {
        println!("seed {seed}");
        let mut world = World::new(seed, mistake);
        (0..200).for_each(|_| world.step());
        world.failures
    });
    failures.sum()
}

#[test]
fn no_flush_is_answered_well_over_what_a_daemon_took_with_it() {
    assert!(run(0..3000, None) > 1000, "there was something to tell");
}

#[test]
fn each_mistake_is_found() {
    use Mistake::*;
    for mistake in [
        NothingIsLeft,
        OwedForgotten,
        ToldWhenSent,
        NotInherited,
        LostEverywhere,
        LongFlushForgotten,
    ] {
        let found = std::panic::catch_unwind(|| run(0..300, Some(mistake)));
        assert!(found.is_err(), "{mistake:?} is not found");
    }
}
