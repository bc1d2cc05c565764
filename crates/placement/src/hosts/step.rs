//! A move in thought: what it brings, what it costs, and what may go wrong with it.
//!
//! All three are in the same unit: parts of a host, times seconds. A move of one VM, or
//! of two that change places, changes two hosts, and nothing else.

use super::amounts::{Amounts, Resource};
use super::bounds::Bounds;
use super::inventory::Pinned;

/// What a move brings and costs, in parts of a host times seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worth {
    /// By how much the two hosts are nearer to each other, or the one is relieved, over
    /// the time that loads last.
    pub benefit: f64,
    /// What the copy takes of both.
    pub cost: f64,
    /// What of the benefit is lost if the VM asks for as much less or more as it varies
    /// by.
    pub risk: f64,
    /// How long the copy takes, in seconds.
    pub seconds: f64,
}

/// Why a VM does not go to a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Because {
    /// It stays, whatever there is elsewhere.
    Pinned(Pinned),
    /// It is there.
    Here,
    /// This rule would be broken, or broken more.
    Rule(usize),
    /// More would be reserved there than it has.
    Reserved(Resource),
    /// Its load would be this part of what it has.
    Full(Resource, f64),
    /// The VM asks for nothing that matters.
    Idle,
    /// Loads would differ no less.
    NoGain,
    /// Loads would differ less by only this part of what is possible between the two.
    Little(f64),
    /// It costs more than it brings.
    Dear(Worth),
    /// It brings less than it costs if the VM asks for as much more or less as it varies
    /// by.
    Risky(Worth),
    /// Nothing is to be put right there that the threshold asks for.
    NothingWrong,
}

impl Because {
    /// How near it came to a move: of the reasons, the highest says most.
    pub(super) fn nearness(&self) -> u8 {
        match self {
            Because::Here => 0,
            Because::Rule(_) => 1,
            Because::Reserved(_) => 2,
            Because::Full(..) => 3,
            Because::NoGain => 4,
            Because::Little(_) => 5,
            Because::Dear(_) => 6,
            Because::Risky(_) => 7,
            // These are the same for all hosts.
            Because::Idle | Because::Pinned(_) | Because::NothingWrong => 8,
        }
    }
}

/// Two hosts, and what goes from the first to the second, as far as it differs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// What each has.
    pub(super) capacity: [Amounts; 2],
    /// The load of each before.
    pub(super) load: [Amounts; 2],
    /// What goes over, less what comes back.
    pub(super) shift: Amounts,
    /// How much that varies.
    pub(super) varies: Amounts,
    /// What is copied, in bytes.
    pub(super) bytes: f64,
}

impl Step {
    /// The loads of both, with so much more of what is shifted on whichever host it is.
    fn loads(&self, moved: bool, more: Amounts) -> [Amounts; 2] {
        let shifted = self.shift.plus(more);
        let here = match moved {
            true => [Amounts::default().minus(self.shift), shifted],
            false => [more, Amounts::default()],
        };
        let load = |at: usize| self.load[at].plus(here[at].over(self.capacity[at]));
        [load(0), load(1)]
    }

    /// The loads of both after it.
    pub(super) fn after(&self) -> [Amounts; 2] {
        self.loads(true, Amounts::default())
    }

    /// By how much the mean square of all hosts' loads about their mean falls.
    pub(super) fn gain(&self, all: Amounts) -> f64 {
        self.each(all, |shift, gap, inverse| 2.0 * shift * gap - shift * shift * inverse)
    }

    /// The most that this could be with another shift between the two.
    pub(super) fn possible(&self, all: Amounts) -> f64 {
        self.each(all, |_, gap, inverse| gap * gap / inverse)
    }

    /// The mean over the resources, of what is made of the shift, the gap between the two
    /// loads and the sum of the inverse capacities.
    fn each(&self, all: Amounts, of: impl Fn(f64, f64, f64) -> f64) -> f64 {
        let one = |resource: Resource| {
            let capacity = self.capacity.map(|it| it.get(resource));
            let all = all.get(resource);
            if capacity.iter().any(|it| *it <= 0.0) || all <= 0.0 {
                return 0.0;
            }
            let gap = self.load[0].get(resource) - self.load[1].get(resource);
            let inverse = 1.0 / capacity[0] + 1.0 / capacity[1];
            of(self.shift.get(resource), gap, inverse) / all
        };
        f64::midpoint(one(Resource::Cpu), one(Resource::Memory))
    }

    /// What it is worth, by how bad each state of the two hosts is.
    pub(super) fn worth(
        &self,
        bounds: &Bounds,
        bad: impl Fn([Amounts; 2]) -> f64,
    ) -> Worth {
        let brings =
            |more: Amounts| bad(self.loads(false, more)) - bad(self.loads(true, more));
        let lasts = bounds.stable.as_secs_f64();
        let benefit = brings(Amounts::default()) * lasts;
        let none = Amounts::default();
        let worst =
            [self.varies, none.minus(self.varies)].map(|more| brings(more) * lasts);
        let worst = worst[0].min(worst[1]).min(benefit);
        let seconds = self.bytes / bounds.speed.max(1.0);
        let each = |at: usize| {
            let processors = self.capacity[at].cpu;
            if processors > 0.0 { bounds.copier / processors } else { 0.0 }
        };
        let cost = seconds * (each(0) + each(1));
        Worth { benefit, cost, risk: benefit - worst, seconds }
    }
}

/// How far two hosts' loads are apart.
pub(super) fn gap(loads: [Amounts; 2]) -> f64 {
    let apart = loads[0].minus(loads[1]);
    f64::midpoint(apart.cpu * apart.cpu, apart.memory * apart.memory).sqrt()
}

/// Refuses what costs more than it brings, surely or possibly.
pub(super) fn pays(worth: Worth) -> Result<Worth, Because> {
    if worth.benefit <= worth.cost {
        return Err(Because::Dear(worth));
    }
    if worth.benefit - worth.risk <= worth.cost {
        return Err(Because::Risky(worth));
    }
    Ok(worth)
}
