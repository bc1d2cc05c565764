//! What each client of a disk has to be told: that writes which clients had been answered may
//! be lost.
//!
//! There is one way to tell a client, and every file system and database knows it: a flush
//! that fails (`EIO`), as `fsync` fails once for each loss since Linux 4.13, on each file
//! that was open. A write that must be durable when it is answered (FUA) counts as a flush.
//!
//! # Rule
//!
//! A *client* is a connection, or a device. A loss makes a *debt* to each client that is
//! there, whether the client has written or not: a flush may cover what the same machine
//! wrote on another connection.
//!
//! - A client to which there is a debt is told by its next flush, which fails, once. The
//!   flush after that succeeds: what was written since the loss is durable.
//! - Each flush that had begun before the loss was known fails as well: its client relies on
//!   what is lost.
//! - A client that was told has *heard* it when it asks for something after that; this
//!   settles its own debt and no other. An answer that was sent may have reached nobody.
//! - A debt stays when its client goes without having heard: it is *left* for a client that
//!   comes, which may be the same one, connected anew.
//! - While nobody has heard of the last loss, each client that comes gets a debt, be one left
//!   or not: it may stand for one that is there in name only.
//! - When somebody has heard, a debt that is left lapses [`BACK`] after its client went: so
//!   long a client tries to reconnect. Without this bound a client could be alarmed a year
//!   later over what concerned another.
//! - Clients that went without a debt may come back as well, for as long: they are *away*. A
//!   loss makes a debt for each of them, which is left at once.
//! - A client that comes counts as one that is away, if there is one, and else takes over a
//!   debt that is left. While one is left, it gets a debt in both cases: nobody knows which
//!   client has come back.
//!
//! A daemon that is killed takes all clients with it. For the next daemon they are away, or
//! their debts are left ([`Clients`]).
//!
//! # Invariants
//!
//! - While nobody has heard of the last loss, there is a debt: to a client that is there, or
//!   left. No client that is there is without one.
//! - A debt is settled, left or taken over, and else only lapses: if clients come back after a
//!   loss, in whatever order, each is told.
//! - Memory is needed for clients that are there; the others are counted.
//!
//! # What remains
//!
//! A client that is new, and comes between, may take over a debt for another one; if it hears
//! before that other one comes back, the other one is not told. Nor is a client that comes
//! back later than after [`BACK`], if somebody has heard by then. Nor is a connection that is
//! opened when somebody has heard, by a client of which another connection has still a debt.

use super::Clients;
use crate::Nanos;

/// So long a client that has gone may come back: QEMU tries for that long.
pub const BACK: Nanos = Nanos::from_secs(300);

/// Losses, and which clients are to be told of them.
#[derive(Clone, Debug)]
pub struct Debts<C> {
    losses: u64,
    /// Nobody has heard of the last one.
    unheard: bool,
    here: Vec<Here<C>>,
    /// How many of those that are here are told, and have not heard yet.
    told: usize,
    /// Debts whose clients have gone, and until when they pass to others.
    left: u32,
    left_until: Nanos,
    /// Clients that have gone without a debt, and until when they may come back.
    away: u32,
    away_until: Nanos,
}

/// A client that is there.
#[derive(Clone, Copy, Debug)]
struct Here<C> {
    client: C,
    debt: Debt,
    /// It was there at the last loss.
    was_there: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Debt {
    Nothing,
    Owed,
    /// The answer was sent.
    Told,
}

impl<C> Default for Debts<C> {
    fn default() -> Self {
        Debts {
            losses: 0,
            unheard: false,
            here: Vec::new(),
            told: 0,
            left: 0,
            left_until: Nanos(0),
            away: 0,
            away_until: Nanos(0),
        }
    }
}

impl<C: Copy + PartialEq> Debts<C> {
    /// A daemon before has left these clients.
    pub fn follow(&mut self, now: Nanos, clients: Clients) {
        if clients.owed > 0 {
            self.owe_all(now);
            self.left = self.left.saturating_add(clients.owed);
        }
        let away = clients.all.saturating_sub(clients.owed);
        self.away = self.away.saturating_add(away);
        self.away_until = now.plus(BACK);
    }

    /// Writes that clients were answered may be lost.
    pub fn lost(&mut self, now: Nanos) {
        self.lapse(now);
        self.owe_all(now);
        self.left = self.left.saturating_add(std::mem::take(&mut self.away));
        if self.here.is_empty() {
            self.left = self.left.max(1);
        }
    }

    fn owe_all(&mut self, now: Nanos) {
        self.losses += 1;
        self.unheard = true;
        self.told = 0;
        for here in &mut self.here {
            (here.debt, here.was_there) = (Debt::Owed, true);
        }
        self.left_until = now.plus(BACK);
    }

    /// A client is there.
    pub fn comes(&mut self, now: Nanos, client: C) {
        self.lapse(now);
        let debt = match self.left > 0 || self.unheard {
            true => Debt::Owed,
            false => Debt::Nothing,
        };
        match self.away {
            0 => self.left = self.left.saturating_sub(1),
            _ => self.away -= 1,
        }
        self.here.push(Here { client, debt, was_there: false });
    }

    /// A client has gone.
    pub fn leaves(&mut self, now: Nanos, client: C) {
        let at = self.here.iter().position(|here| here.client == client);
        let Some(gone) = at.map(|at| self.here.swap_remove(at)) else { return };
        self.told -= usize::from(gone.debt == Debt::Told);
        if gone.debt == Debt::Nothing {
            self.away = self.away.saturating_add(1);
            self.away_until = now.plus(BACK);
        } else {
            self.left = self.left.saturating_add(1);
            // Else clients that come and go would keep it for ever.
            if gone.was_there {
                self.left_until = now.plus(BACK);
            }
        }
        self.lapse(now);
    }

    /// A client asks for something: it has heard what it was told. Says whether it had not
    /// heard it before.
    pub fn asks(&mut self, client: C) -> bool {
        // Nearly always there is nothing to hear.
        if self.told == 0 {
            return false;
        }
        let here = self.here.iter_mut().find(|here| here.client == client);
        if let Some(here) = here.filter(|here| here.debt == Debt::Told) {
            here.debt = Debt::Nothing;
            self.told -= 1;
            self.unheard = false;
            return true;
        }
        false
    }

    /// What a flush that begins has to remember.
    pub fn now(&self) -> u64 {
        self.losses
    }

    /// Whether a client's flush that began at `began`, and would succeed, must fail.
    pub fn settle(&mut self, client: C, began: u64) -> bool {
        let here = self.here.iter_mut().find(|here| here.client == client);
        let owed = here.filter(|here| here.debt == Debt::Owed);
        let is_told = owed.map(|here| here.debt = Debt::Told).is_some();
        self.told += usize::from(is_told);
        is_told || began < self.losses
    }

    /// What concerns clients that do not come back any more is over. Says whether something
    /// was.
    pub fn lapse(&mut self, now: Nanos) -> bool {
        let left = self.left > 0 && !self.unheard && now >= self.left_until;
        let away = self.away > 0 && now >= self.away_until;
        self.left = if left { 0 } else { self.left };
        self.away = if away { 0 } else { self.away };
        left || away
    }

    /// Whether a client is still to be told.
    pub fn is_owed(&self, now: Nanos) -> bool {
        let is_left = self.left > 0 && (self.unheard || now < self.left_until);
        is_left || self.here.iter().any(|here| here.debt == Debt::Owed)
    }

    /// What a daemon after this one has to know.
    pub fn clients(&self) -> Clients {
        let unsettled = self.here.iter().filter(|here| here.debt != Debt::Nothing);
        let count = |clients| u32::try_from(clients).unwrap_or(u32::MAX);
        let all = count(self.here.len()).saturating_add(self.left);
        Clients {
            all: all.saturating_add(self.away),
            owed: count(unsettled.count()).saturating_add(self.left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Nanos = Nanos(1);
    const LATE: Nanos = Nanos(BACK.0 + 2);

    /// A disk of which a client for each name is there.
    fn disk(clients: &str) -> Debts<char> {
        let mut debts = Debts::default();
        clients.chars().for_each(|client| debts.comes(SOON, client));
        debts
    }

    /// Whether a client's flush fails, from its beginning to its answer.
    fn fails(debts: &mut Debts<char>, client: char) -> bool {
        debts.asks(client);
        debts.settle(client, debts.now())
    }

    #[test]
    fn one_flush_of_each_client_fails_for_each_loss() {
        let mut debts = disk("ab");
        for losses in 0..3 {
            (0..losses).for_each(|_| debts.lost(SOON));
            for client in ['b', 'a'] {
                assert_eq!(fails(&mut debts, client), losses > 0);
                assert!(!fails(&mut debts, client));
            }
            assert!(!debts.is_owed(SOON));
        }
    }

    #[test]
    fn each_flush_that_was_under_way_fails() {
        let mut debts = disk("a");
        let began = debts.now();
        debts.lost(SOON);
        let later = debts.now();
        assert!(debts.settle('a', began) && debts.settle('a', began));
        assert!(!debts.settle('a', later), "the client has been told");
    }

    #[test]
    fn a_client_that_comes_is_told_while_nobody_has_heard_and_not_later() {
        let mut debts = disk("a");
        debts.lost(SOON);
        debts.comes(SOON, 'b');
        assert!(fails(&mut debts, 'b') && !fails(&mut debts, 'b'));
        debts.comes(SOON, 'c');
        assert!(!fails(&mut debts, 'c'));
        assert!(fails(&mut debts, 'a'));
    }

    #[test]
    fn a_debt_passes_from_one_that_goes_to_one_that_comes() {
        let mut debts = disk("ab");
        debts.lost(SOON);
        assert!(fails(&mut debts, 'b') && !fails(&mut debts, 'b'));
        // It was told, and goes without a word.
        assert!(fails(&mut debts, 'a'));
        debts.leaves(SOON, 'a');
        assert!(debts.is_owed(SOON));
        debts.comes(SOON, 'c');
        assert!(fails(&mut debts, 'c') && !fails(&mut debts, 'c'));
        debts.comes(SOON, 'd');
        assert!(!fails(&mut debts, 'd') && !debts.is_owed(SOON));
    }

    #[test]
    fn clients_that_come_back_in_whatever_order_are_all_told() {
        for order in ["ab", "ba"] {
            let mut debts = disk("ab");
            // One goes before the loss, the other one after it.
            debts.leaves(SOON, 'a');
            debts.lost(SOON);
            debts.leaves(SOON, 'b');
            for client in order.chars() {
                debts.comes(SOON, client);
                assert!(fails(&mut debts, client) && !fails(&mut debts, client));
            }
        }
    }

    #[test]
    fn what_is_left_lapses_if_somebody_has_heard() {
        let mut debts = disk("ab");
        debts.lost(SOON);
        assert!(fails(&mut debts, 'b') && !fails(&mut debts, 'b'));
        debts.leaves(SOON, 'a');
        // Others that come and go do not keep it.
        debts.comes(BACK, 'm');
        debts.leaves(BACK, 'm');
        assert!(debts.is_owed(BACK) && !debts.is_owed(LATE));
        assert!(debts.lapse(LATE) && debts.clients().owed == 0);
        debts.comes(LATE, 'c');
        assert!(!fails(&mut debts, 'c'));
    }

    #[test]
    fn a_loss_that_nobody_has_heard_of_does_not_lapse() {
        let mut debts = disk("");
        debts.lost(SOON);
        for round in 0..3 {
            let now = Nanos(LATE.0 * (round + 1));
            debts.comes(now, 'a');
            assert!(fails(&mut debts, 'a'));
            debts.leaves(now, 'a');
        }
        assert_eq!(debts.clients(), Clients { all: 1, owed: 1 });
    }

    #[test]
    fn the_next_daemon_tells_those_that_had_not_heard() {
        let mut debts = disk("abc");
        debts.lost(SOON);
        for client in ['a', 'b'] {
            assert!(fails(&mut debts, client) && !fails(&mut debts, client));
        }
        let left = debts.clients();
        assert_eq!(left, Clients { all: 3, owed: 1 });
        let mut next = Debts::default();
        next.follow(SOON, left);
        assert_eq!(next.clients(), left);
        // Nobody knows which one it is.
        for client in ['a', 'b', 'c'] {
            next.comes(SOON, client);
            assert!(fails(&mut next, client) && !fails(&mut next, client));
        }
        next.comes(SOON, 'd');
        assert!(!fails(&mut next, 'd'));
    }
}
