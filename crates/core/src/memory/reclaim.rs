//! What a host that runs short of memory takes from which of its VMs, and by which means.
//!
//! # Rule
//!
//! A host keeps a reserve available (`HostState`). If it cannot, what its VMs hold is divided anew,
//! by reservations, limits and shares ([`divide`]); memory that a guest does not use costs more
//! shares. Who holds more than it is entitled to gives what is beyond, by these means:
//!
//! 1. its balloon, up to the cap: the guest chooses best what it can do without;
//! 2. swap, once the host is hard pressed ([`HostState::Hard`]): a guest that has done nothing for
//!    [`IDLE`] waits for nothing. First the one whose memory is worth least, in shares for what it
//!    holds.
//!
//! If that is not enough, balloons of guests that have memory to spare give it though they are
//! entitled to it: it costs them nothing, and the kernel would take it at random. What is lacking
//! then nobody on this host can give: a VM should go to another one.
//!
//! What the host has beyond its reserve is given back, first to the VM whose memory is worth most,
//! and no faster than the host has it: so balloons come to rest.
//!
//! A VM above its limit gives what is beyond it in any state.
//!
//! # Invariants
//!
//! 1. No VM is asked for what its reservation promises it.
//! 2. While the host has its reserve, nothing is taken but what is above a limit.
//! 3. Swap is asked for no more than the host lacks, but for what is above a limit.

use super::balloon::STEP;
use super::host::{HostState, LEAVE};
use crate::Nanos;
use crate::entitle::{IDLE_TAX, Part, Terms, divide, idle_price};

/// A guest that has done nothing for so long may sleep, ...
pub const IDLE: Nanos = Nanos::from_secs(60);

/// ... and one on a host that has next to nothing left.
const IDLE_LOW: Nanos = Nanos::from_secs(10);

/// Less is not worth a request: a batch or two of many that a VM's memory consists of.
pub const TAKE_LEAST: u64 = 16 << 20;

/// The memory of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// What it is to keep available ([`super::reserve`]), in bytes.
    pub reserve: u64,
    /// What programs could have without swapping, in bytes.
    pub available: u64,
    /// What of VMs is on its way out, in bytes.
    pub going: u64,
}

/// The memory of a VM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holds {
    /// What it is promised and held to, in bytes.
    pub terms: Terms,
    /// All of it, in bytes.
    pub size: u64,
    /// What of it is in the host's memory, in bytes.
    pub resident: u64,
    /// What of it is on swap, in bytes.
    pub out: u64,
    /// What its balloon was asked for, in bytes.
    pub taken: u64,
    /// What its balloon may take at most, in bytes; 0 of a VM without one.
    pub cap: u64,
    /// What its guest can do without, as it says, in bytes: beyond what is to stay available there.
    pub spare: u64,
    /// The part of its memory that its guest uses, from 0 to 1. (Not of what a balloon has left
    /// to it: what is taken would make it look busier, and be given back.)
    pub active: f64,
    /// For how long its guest has done nothing.
    pub idle: Nanos,
    /// Whether it sleeps.
    pub asleep: bool,
    /// Whether its memory can go out now: it is not on its way already, and somebody can move it.
    pub can_sleep: bool,
}

/// What a VM gets and gives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Due {
    /// What it could make use of, in bytes.
    pub wants: u64,
    /// What one of its shares is worth: less for memory that is not used.
    pub price: f64,
    /// What it is entitled to, in bytes.
    pub entitled: u64,
    /// What its balloon is to have taken, in bytes.
    pub balloon: u64,
    /// What is to go out to swap now, in bytes.
    pub out: u64,
}

/// What a host takes and gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reclaim {
    /// What VMs may hold together, in bytes.
    pub room: u64,
    /// What the host lacks, in bytes: nothing while it keeps its reserve.
    pub lacks: u64,
    /// What of that nobody gives, in bytes.
    pub short: u64,
    /// What each VM gets and gives.
    pub vms: Vec<Due>,
}

/// What a host in such a state takes from which of its VMs.
pub fn reclaim(state: HostState, host: Host, vms: &[Holds]) -> Reclaim {
    let target = (host.reserve as f64 * LEAVE) as u64;
    let held: u64 = vms.iter().map(|vm| vm.resident).sum();
    let room = (host.available + held).saturating_sub(target);
    let parts: Vec<Part> = vms.iter().map(Holds::part).collect();
    let entitled = divide(&parts, room as f64);
    let mut dues: Vec<Due> = (vms.iter().zip(parts).zip(entitled))
        // What is reserved is promised, whatever others than VMs have taken of the host.
        .map(|((vm, part), entitled)| {
            vm.due(state, part, entitled.max(part.floor) as u64)
        })
        .collect();
    // Those whose memory is worth least come first.
    let mut order: Vec<usize> = (0..vms.len()).collect();
    let worth = |at: usize| vms[at].worth();
    order.sort_by(|one, other| worth(*one).total_cmp(&worth(*other)));
    let will_be = host.available + host.going;
    let lacks = match state {
        HostState::High => 0,
        _ => target.saturating_sub(will_be),
    };
    give_back(will_be.saturating_sub(target), &order, vms, &mut dues);
    let out = take_out(state, lacks, &order, vms, &mut dues);
    let grown = |dues: &[Due]| -> u64 {
        vms.iter().zip(dues).map(|(vm, due)| due.balloon.saturating_sub(vm.taken)).sum()
    };
    let left = lacks.saturating_sub(out + grown(&dues));
    let short = ask_all(left, &order, vms, &mut dues);
    Reclaim { room, lacks, short, vms: dues }
}

/// Gives back so much of what balloons have beyond what is to be taken.
fn give_back(mut surplus: u64, order: &[usize], vms: &[Holds], dues: &mut [Due]) {
    for at in order.iter().rev() {
        let (vm, due) = (&vms[*at], &mut dues[*at]);
        let back = due.balloon.saturating_sub(vm.beyond(due.entitled)).min(surplus);
        due.balloon -= back;
        surplus -= back;
    }
}

/// Has memory go out that is more than VMs are entitled to; gives how much goes out.
fn take_out(
    state: HostState,
    lacks: u64,
    order: &[usize],
    vms: &[Holds],
    dues: &mut [Due],
) -> u64 {
    // What balloons take at once need not go out.
    let soon = |(vm, due): (&Holds, &Due)| {
        due.balloon.saturating_sub(vm.taken).min((vm.size as f64 * STEP) as u64)
    };
    let by_balloons: u64 = vms.iter().zip(dues.iter()).map(soon).sum();
    let left = lacks.saturating_sub(by_balloons);
    let mut out = 0;
    for at in order {
        let (vm, due) = (&vms[*at], &mut dues[*at]);
        if !vm.may_sleep(state) {
            continue;
        }
        let spare = vm.resident.saturating_sub(vm.keeps(due.entitled));
        let goes = spare.min(left - out).max(vm.above_limit().min(spare));
        if goes >= TAKE_LEAST {
            due.out = goes;
            out = left.min(out + goes);
        }
    }
    dues.iter().map(|due| due.out).sum()
}

/// Has balloons give so much that guests have to spare; gives what is left.
fn ask_all(mut left: u64, order: &[usize], vms: &[Holds], dues: &mut [Due]) -> u64 {
    for at in order {
        let (vm, due) = (&vms[*at], &mut dues[*at]);
        if due.out > 0 || vm.asleep {
            continue;
        }
        let most = (vm.resident + vm.taken).saturating_sub(vm.terms.reservation as u64);
        let more = most.min(vm.can_take()).saturating_sub(due.balloon).min(left);
        due.balloon += more;
        left -= more;
    }
    left
}

impl Holds {
    /// What it has a right to, and could make use of.
    fn part(&self) -> Part {
        let more = if self.asleep { 0 } else { self.taken + self.out };
        let wants = (self.resident + more).min(self.size);
        Part::new(&self.terms, self.price(), wants as f64, 0.0)
    }

    fn price(&self) -> f64 {
        idle_price(self.active, IDLE_TAX)
    }

    /// What its memory is worth: shares for each byte that it holds.
    fn worth(&self) -> f64 {
        f64::from(self.terms.shares) * self.price() / self.resident.max(1) as f64
    }

    /// What stays with it in any case.
    fn keeps(&self, entitled: u64) -> u64 {
        entitled.max(self.terms.reservation as u64)
    }

    fn above_limit(&self) -> u64 {
        self.terms.limit.map_or(0, |limit| self.resident.saturating_sub(limit as u64))
    }

    /// Whether its memory may go out in such a state of its host.
    fn may_sleep(&self, state: HostState) -> bool {
        let idle = match state {
            HostState::Low => IDLE_LOW,
            _ => IDLE,
        };
        let asked = state >= HostState::Hard || self.above_limit() > 0;
        asked && self.can_sleep && self.idle >= idle
    }

    /// What its balloon could have taken.
    fn can_take(&self) -> u64 {
        self.cap.min(self.taken + self.spare)
    }

    /// What a balloon is to have of it, as it is more than it is entitled to.
    fn beyond(&self, entitled: u64) -> u64 {
        (self.resident + self.taken).saturating_sub(self.keeps(entitled))
    }

    fn due(&self, state: HostState, part: Part, entitled: u64) -> Due {
        let beyond = self.beyond(entitled);
        let most = match state {
            // What is above a limit is beyond in any state.
            HostState::High => self.taken + self.above_limit(),
            _ => u64::MAX,
        };
        // What it has stays, until the host has something to give back.
        let wanted = beyond.min(most).min(self.can_take()).max(self.taken.min(self.cap));
        Due {
            wants: part.wants as u64,
            price: self.price(),
            entitled,
            balloon: if self.asleep { 0 } else { wanted },
            out: 0,
        }
    }
}
