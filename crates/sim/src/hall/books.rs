//! Who got what of what he was entitled to.
//!
//! What a machine gets beyond that does not make up for what it lacked before: so it does
//! not count.

use sterna_placement::hosts::{Amounts, Resource};

use super::outcome::Total;

/// What counts as having got what one is entitled to.
const HELD: f64 = 0.99;

/// A machine's account.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    entitled: Amounts,
    got: Amounts,
}

impl Account {
    fn add(&mut self, other: Account) {
        self.entitled = self.entitled.plus(other.entitled);
        self.got = self.got.plus(other.got);
    }

    /// The part that it got, of processors or memory.
    fn part(&self) -> f64 {
        let parts = self.got.over(self.entitled);
        let of = |resource: Resource| match self.entitled.get(resource) > 0.0 {
            true => parts.get(resource),
            false => 1.0,
        };
        of(Resource::Cpu).min(of(Resource::Memory))
    }
}

/// All accounts.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    /// Of this period.
    now: Vec<Account>,
    /// Of those before it.
    before: Vec<Account>,
    /// What copies took, in both.
    copier: [f64; 2],
}

impl Books {
    pub(super) fn new(vms: usize) -> Books {
        let none = vec![Account::default(); vms];
        Books { now: none.clone(), before: none, copier: [0.0; 2] }
    }

    /// So many seconds go by, in which each was entitled to this and got that.
    pub(super) fn pass(&mut self, seconds: f64, entitled: &[Amounts], got: &[Amounts]) {
        let times = |amounts: Amounts| Amounts::of(|it| amounts.get(it) * seconds);
        for ((account, entitled), got) in self.now.iter_mut().zip(entitled).zip(got) {
            let got = Amounts::of(|it| got.get(it).min(entitled.get(it)));
            account.add(Account { entitled: times(*entitled), got: times(got) });
        }
    }

    /// Copies took so much of processors, times seconds.
    pub(super) fn copied(&mut self, copier: f64) {
        self.copier[0] += copier;
    }

    /// A period is over: what was got in it.
    pub(super) fn close(&mut self) -> Total {
        let total = sum(&self.now, self.copier[0]);
        for (before, now) in self.before.iter_mut().zip(&mut self.now) {
            before.add(std::mem::take(now));
        }
        self.copier = [0.0, self.copier.iter().sum()];
        total
    }

    /// What was got in all periods that are over.
    pub(super) fn total(&self) -> Total {
        sum(&self.before, self.copier[1])
    }
}

fn sum(accounts: &[Account], copier: f64) -> Total {
    let parts = || accounts.iter().map(Account::part);
    Total {
        entitled: Amounts::sum(accounts.iter().map(|it| it.entitled)),
        got: Amounts::sum(accounts.iter().map(|it| it.got)),
        least: parts().fold(1.0, f64::min),
        held: parts().filter(|part| *part >= HELD).count(),
        copier,
    }
}
