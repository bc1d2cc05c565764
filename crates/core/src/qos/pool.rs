//! A datastore as its schedulers share it: how much may be there at once, and how
//! far each class has come in the order of shares.
//!
//! Shares are held by start-time fair queueing (Goyal, Vin, Chen, 1996): a request
//! has a tag, the later of the pool's virtual time and the end of its class's
//! previous request; the smallest goes first, virtual time is the tag of what went
//! last, and each request moves its class on by what it weighs over the class's
//! shares. Tags are numbers that all schedulers of the pool read and move, so they
//! mean the same everywhere.
//!
//! A scheduler with requests that could start says what its smallest tag is, and those
//! with the smallest of all go first (`line`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::class::{Class, ClassId, Cost};
use super::line::Line;
use super::slots::Slots;

/// A weight of one at one share, in units of virtual time: so large that a share of
/// 100 000 still tells requests of different size apart.
pub(super) const UNIT: u64 = 1 << 20;

/// Shares at most: see `UNIT`.
pub const SHARES_MAX: u32 = 100_000;

/// How far a class may be ahead of virtual time, in requests of its own, by what its
/// reservation gives it. Past that it is forgotten, so that a class that was carried
/// by its reservation for long is not put off for long afterwards. A single request that
/// weighs more counts whole.
const AHEAD_MAX: u64 = 64;

/// What starts for the sake of reservations while somebody waits for long is so many times
/// what else does: a reservation loses a twentieth at most, as much as it may be late by.
const IN_A_ROW: i64 = 19;

/// A request's weight at most, here: of a mebibyte. A longer one, which only a machine's own
/// driver asks for, is not paid for by seconds without a start.
const WEIGHT_MAX: i64 = 17;

/// The requests at a datastore, shared by its schedulers.
#[derive(Debug)]
pub struct Pool {
    pub(super) slots: Slots,
    virtual_time: AtomicU64,
    /// By how much reservations are ahead: what starts for their sake adds its weight, and
    /// what else starts takes [`IN_A_ROW`] times its own.
    lead: AtomicI64,
    pub(super) line: Line,
    /// What each class has here. Looked up when a disk comes or changes its class,
    /// never for a request.
    stakes: Mutex<BTreeMap<ClassId, Weak<Stake>>>,
}

impl Default for Pool {
    fn default() -> Self {
        Pool {
            slots: Slots::new(None),
            virtual_time: AtomicU64::new(0),
            lead: AtomicI64::new(0),
            line: Line::default(),
            stakes: Mutex::default(),
        }
    }
}

impl Pool {
    /// Lets so many requests be at the datastore at once, or any number. Schedulers
    /// with requests that wait must be told to look again.
    pub fn set_window(&self, window: Option<u32>) {
        self.slots.set(window);
    }

    /// How many requests may be there at once.
    pub fn window(&self) -> Option<u32> {
        self.slots.max()
    }

    /// Whether the next start is for a class that has waited for long, though there are
    /// reservations.
    pub(super) fn is_for_starved(&self) -> bool {
        self.lead.load(Relaxed) >= IN_A_ROW
    }

    /// A request has started. Two that do so at once may count as one.
    pub(super) fn started(&self, reserved: bool, cost: Cost) {
        let weight = i64::try_from(cost.weight()).unwrap_or(WEIGHT_MAX).min(WEIGHT_MAX);
        let before = self.lead.load(Relaxed);
        let now = match reserved {
            true => (before + weight).min(IN_A_ROW),
            false => (before - IN_A_ROW * weight).max(-IN_A_ROW * WEIGHT_MAX),
        };
        // Where nobody has a reservation nothing is written, as threads share this.
        if now != before {
            self.lead.store(now, Relaxed);
        }
    }

    /// What `class` has here.
    pub fn stake(&self, id: ClassId, class: &Arc<Class>) -> Arc<Stake> {
        let mut stakes = self.stakes.lock().unwrap_or_else(PoisonError::into_inner);
        stakes.retain(|_, stake| stake.strong_count() > 0);
        let known = stakes.get(&id).and_then(Weak::upgrade);
        let known = known.filter(|stake| Arc::ptr_eq(&stake.class, class));
        known.unwrap_or_else(|| {
            let stake = Arc::new(Stake::new(Arc::clone(class)));
            stakes.insert(id, Arc::downgrade(&stake));
            stake
        })
    }

    pub(super) fn virtual_time(&self) -> u64 {
        self.virtual_time.load(Relaxed)
    }

    pub(super) fn advance(&self, tag: u64) {
        raise(&self.virtual_time, tag);
    }
}

/// What a class has on one datastore.
#[derive(Debug)]
pub struct Stake {
    pub(super) class: Arc<Class>,
    /// Where its next request begins, in the pool's virtual time.
    finish: AtomicU64,
    /// What its last request weighs.
    weight: AtomicU64,
    /// The virtual time of its members among each other.
    member_time: AtomicU64,
}

impl Stake {
    /// Of a class of its own: a disk that is in none.
    pub fn new(class: Arc<Class>) -> Stake {
        let [finish, weight, member_time] = [(); 3].map(|()| AtomicU64::new(0));
        Stake { class, finish, weight, member_time }
    }

    /// The tag of its next request.
    pub(super) fn tag(&self, pool: &Pool) -> u64 {
        let virtual_time = pool.virtual_time();
        let ahead = AHEAD_MAX.max(self.weight.load(Relaxed)) * UNIT / self.class.shares();
        let furthest = virtual_time.saturating_add(ahead);
        let finish = self.finish.load(Relaxed);
        if finish > furthest {
            self.finish.store(furthest, Relaxed);
        }
        finish.clamp(virtual_time, furthest)
    }

    /// A request that had this tag starts.
    pub(super) fn charge(&self, pool: &Pool, tag: u64, cost: Cost, reserved: bool) {
        if !reserved {
            pool.advance(tag);
        }
        let weight = cost.weight();
        self.weight.store(weight, Relaxed);
        let step = UNIT * weight / self.class.shares();
        self.finish.store(tag.saturating_add(step), Relaxed);
    }

    /// The tag of a member's next request, given where its last one ended.
    pub(super) fn member_tag(&self, finish: u64) -> u64 {
        finish.max(self.member_time.load(Relaxed))
    }

    /// A member's request that had this tag starts; gives where it ends.
    pub(super) fn charge_member(&self, tag: u64, cost: Cost, shares: u32) -> u64 {
        raise(&self.member_time, tag);
        tag.saturating_add(UNIT * cost.weight() / u64::from(shares.max(1)))
    }
}

/// Raises a time to a tag. It is often there already, and looking costs less.
fn raise(time: &AtomicU64, tag: u64) {
    if time.load(Relaxed) < tag {
        time.fetch_max(tag, Relaxed);
    }
}
