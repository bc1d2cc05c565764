//! What each of several is entitled to of something that they share.
//!
//! Each gets its shares' worth, but no less than its floor and no more than it wants. So what one
//! leaves goes to those beside it, and nothing is left over while anybody wants it.
//!
//! Memory that is held and not used costs more shares than memory that is used
//! ([`idle_price`]), so under pressure it goes to whoever uses it.
//!
//! DRS divides what all hosts have by this, and a host what it has by the same.

/// What part of a VM's idle memory may be taken for others: ESX Server's 75 %.
pub const IDLE_TAX: f64 = 0.75;

/// What somebody is promised of a resource and held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// What it gets before anybody gets by shares, as far as it asks for it.
    pub reservation: f64,
    /// What it gets at most.
    pub limit: Option<f64>,
    /// Its part of what is left, against the shares of those beside it; 1 at least.
    pub shares: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { reservation: 0.0, limit: None, shares: 1000 }
    }
}

/// One who gets a part of something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Its shares, against those of the others.
    pub shares: f64,
    /// What it gets in any case.
    pub floor: f64,
    /// What it gets at most.
    pub wants: f64,
}

impl Part {
    /// On such terms, of one that can use so much and has so much promised below it; a share is
    /// worth `price`.
    pub fn new(terms: &Terms, price: f64, wants: f64, below: f64) -> Part {
        let shares = f64::from(terms.shares.max(1)) * price;
        let wants = wants.min(terms.limit.unwrap_or(f64::INFINITY));
        let floor = terms.reservation.max(below).min(wants);
        Part { shares, floor, wants }
    }
}

/// What a share is worth for memory of which this part is in use, against memory that is
/// in use as a whole: 1 for all, a quarter for none, with a tax of 0.75.
pub fn idle_price(active: f64, tax: f64) -> f64 {
    let idle = 1.0 - active.clamp(0.0, 1.0);
    let costs = 1.0 / (1.0 - tax.clamp(0.0, 0.99));
    1.0 / (1.0 - idle + costs * idle)
}

/// What each of these gets of so much, in their order.
pub fn divide(parts: &[Part], amount: f64) -> Vec<f64> {
    let level = level(parts, amount);
    parts.iter().map(|part| level.of(part)).collect()
}

/// How much each gets.
#[derive(Clone, Copy, Debug)]
enum Level {
    /// Not even the floors can be had: this part of each.
    Floors(f64),
    /// So much for each share.
    Shares(f64),
}

impl Level {
    fn of(self, part: &Part) -> f64 {
        match self {
            Level::Floors(times) => part.floor * times,
            Level::Shares(each) => (each * part.shares).clamp(part.floor, part.wants),
        }
    }
}

fn level(parts: &[Part], amount: f64) -> Level {
    let floors: f64 = parts.iter().map(|part| part.floor).sum();
    if floors > amount {
        return Level::Floors((amount / floors).max(0.0));
    }
    // Where each begins to get more than its floor, and where it has all that it wants.
    let begins = parts.iter().map(|part| (part.floor / part.shares, part.shares));
    let ends = parts.iter().map(|part| (part.wants / part.shares, -part.shares));
    let mut events: Vec<(f64, f64)> = begins.chain(ends).collect();
    events.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut at, mut given, mut rises) = (0.0, floors, 0.0_f64);
    for (next, change) in events {
        let more = rises.max(0.0) * (next - at);
        if more > 0.0 && given + more >= amount {
            return Level::Shares(at + (amount - given) / rises);
        }
        (at, given, rises) = (next, given + more, rises + change);
    }
    Level::Shares(at)
}
