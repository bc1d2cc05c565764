//! A host that runs short takes memory of its VMs and gives it back, in a model world.

use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::entitle::Terms;
use sterna_core::memory::{
    Activity, BALLOON_EVERY, Balloon, GuestSays, Holds, Host, HostState, reclaim, reserve,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn holds(gib: u64) -> Holds {
    Holds {
        terms: Terms::default(),
        size: gib * GIB,
        resident: gib * GIB,
        out: 0,
        taken: 0,
        cap: gib * GIB * 65 / 100,
        spare: gib * GIB / 2,
        active: 1.0,
        idle: Nanos(0),
        asleep: false,
        can_sleep: true,
    }
}

fn host(total: u64, available: u64) -> Host {
    Host { reserve: reserve(total), available, going: 0 }
}

#[test]
fn a_host_with_its_reserve_takes_nothing() {
    let found =
        reclaim(HostState::High, host(64 * GIB, 8 * GIB), &[holds(16), holds(32)]);
    assert_eq!((found.lacks, found.short), (0, 0));
    assert!(found.vms.iter().all(|due| due.balloon == 0 && due.out == 0), "{found:?}");
}

#[test]
fn a_vm_that_does_not_use_its_memory_gives_more_of_it() {
    let busy = holds(8);
    let idle = Holds { active: 0.1, ..busy };
    let found = reclaim(HostState::Soft, host(17 * GIB, 200 * MIB), &[busy, idle]);
    assert!(found.vms[1].price < 0.3, "{found:?}");
    assert!(found.vms[1].balloon > 3 * found.vms[0].balloon.max(1), "{found:?}");
}

#[test]
fn idle_vms_go_to_swap_once_the_host_is_hard_pressed_the_least_worth_first() {
    let idle = Holds { active: 0.0, idle: Nanos::from_secs(90), cap: 0, ..holds(8) };
    let dear = Holds { terms: Terms { shares: 4000, ..Terms::default() }, ..idle };
    let busy = Holds { cap: 0, ..holds(8) };
    let all = [dear, idle, busy];
    let soft = reclaim(HostState::Soft, host(25 * GIB, 400 * MIB), &all);
    assert!(soft.vms.iter().all(|due| due.out == 0), "{soft:?}");
    let hard = reclaim(HostState::Hard, host(25 * GIB, 400 * MIB), &all);
    let out: Vec<u64> = hard.vms.iter().map(|due| due.out).collect();
    assert_eq!((out[0], out[2]), (0, 0), "{hard:?}");
    assert_eq!(out[1], hard.lacks, "no more than the host lacks");
    let going = Host { going: hard.lacks, ..host(25 * GIB, 400 * MIB) };
    assert_eq!(reclaim(HostState::Hard, going, &all).lacks, 0, "it is on its way");
}

#[test]
fn what_no_means_gives_is_said() {
    let busy = Holds { cap: 0, ..holds(16) };
    let found = reclaim(HostState::Low, host(17 * GIB, 100 * MIB), &[busy]);
    assert_eq!(found.short, found.lacks);
    assert!(found.short > 400 * MIB, "{found:?}");
}

#[test]
fn a_limit_holds_in_any_state() {
    let limit = |bytes: u64| Terms { limit: Some(bytes as f64), ..Terms::default() };
    let over = Holds { terms: limit(6 * GIB), ..holds(8) };
    let found = reclaim(HostState::High, host(64 * GIB, 40 * GIB), &[over]);
    assert_eq!(found.vms[0].balloon, 2 * GIB, "{found:?}");
    let resting = Holds { resident: 6 * GIB, taken: 2 * GIB, ..over };
    let found = reclaim(HostState::High, host(64 * GIB, 42 * GIB), &[resting]);
    assert_eq!(found.vms[0].balloon, 2 * GIB, "{found:?}");
    let idle = Holds { cap: 0, idle: Nanos::from_secs(61), ..over };
    let found = reclaim(HostState::High, host(64 * GIB, 40 * GIB), &[idle]);
    assert_eq!(found.vms[0].out, 2 * GIB, "{found:?}");
}

#[test]
fn a_guest_is_idle_from_when_it_ceased_to_do_anything() {
    let at = Nanos::from_secs;
    let mut activity = Activity::default();
    assert_eq!((activity.active(), activity.idle(at(5))), (1.0, Nanos(0)));
    activity.look(at(10), 0.0, None);
    activity.look(at(40), 0.5, None);
    activity.look(at(50), 0.01, None);
    assert_eq!(activity.idle(at(70)), at(30));
    let mut uses = Activity::default();
    uses.look(at(0), 0.0, Some(0.2));
    uses.look(at(30), 0.0, Some(0.9));
    assert!(uses.active() > 0.6, "at once: {uses:?}");
    uses.look(at(60), 0.0, Some(0.2));
    uses.look(at(300), 0.0, Some(0.2));
    assert!(uses.active() > 0.2 && uses.active() < 0.5, "slowly: {uses:?}");
}

/// A VM of the model world: what its programs use, in parts of its memory, and its terms.
#[derive(Clone, Debug)]
struct Guest {
    gib: u64,
    uses: f64,
    reservation: f64,
    shares: u32,
    has_balloon: bool,
    is_idle: bool,
}

fn any_guest() -> impl Strategy<Value = Guest> {
    let guest = (1..17_u64, 0.05..0.95_f64, 0.0..0.8_f64, 1..4000_u32, any::<bool>());
    (guest, proptest::bool::weighted(0.3)).prop_map(
        |((gib, uses, reservation, shares, has_balloon), is_idle)| Guest {
            gib,
            uses,
            reservation,
            shares,
            has_balloon,
            is_idle,
        },
    )
}

impl Guest {
    /// What its programs could have.
    fn available(&self, balloon: &Balloon) -> u64 {
        let size = self.gib * GIB;
        size.saturating_sub((self.uses * size as f64) as u64 + balloon.taken())
    }

    /// What of that it can do without.
    fn spare(&self, balloon: &Balloon) -> u64 {
        let spare = self.available(balloon).saturating_sub(balloon.floor());
        if self.has_balloon { spare } else { 0 }
    }
}

/// A host with guests that have touched all their memory, and what was taken from each.
struct World {
    total: u64,
    others: u64,
    guests: Vec<(Guest, Balloon, Activity)>,
    out: Vec<u64>,
    state: HostState,
    now: Nanos,
}

impl World {
    fn new(guests: Vec<Guest>, presses: f64) -> World {
        let sizes: u64 = guests.iter().map(|it| it.gib * GIB).sum();
        let total = 64 * GIB + sizes;
        // What others need of the host leaves less than the guests have.
        let others = (total as f64 * presses).min((total - sizes / 2) as f64) as u64;
        let balloon = |it: &Guest| Balloon::new(it.gib * GIB, it.gib * GIB * 65 / 100, 0);
        let guests: Vec<_> = guests
            .into_iter()
            .map(|it| (it.clone(), balloon(&it), Activity::default()))
            .collect();
        let out = vec![0; guests.len()];
        World { total, others, guests, out, state: HostState::High, now: Nanos(0) }
    }

    fn holds(&self) -> Vec<Holds> {
        let one =
            |(at, (guest, balloon, activity)): (usize, &(Guest, Balloon, Activity))| {
                let size = guest.gib * GIB;
                Holds {
                    terms: Terms {
                        reservation: guest.reservation * size as f64,
                        limit: None,
                        shares: guest.shares,
                    },
                    size,
                    resident: size - balloon.taken() - self.out[at],
                    out: self.out[at],
                    taken: balloon.taken(),
                    cap: if guest.has_balloon { size * 65 / 100 } else { 0 },
                    spare: guest.spare(balloon),
                    active: activity.active(),
                    idle: activity.idle(self.now),
                    asleep: self.out[at] > 0,
                    can_sleep: true,
                }
            };
        self.guests.iter().enumerate().map(one).collect()
    }

    fn available(&self) -> u64 {
        let held: u64 = self.holds().iter().map(|it| it.resident).sum();
        self.total.saturating_sub(self.others + held)
    }

    /// Ten seconds pass; gives how often a balloon turned from giving to taking or back.
    fn pass(&mut self) -> Result<Vec<Ordering>, TestCaseError> {
        self.now = self.now.plus(BALLOON_EVERY);
        for (guest, _, activity) in &mut self.guests {
            let processors = if guest.is_idle { 0.0 } else { 1.0 };
            activity.look(self.now, processors, guest.has_balloon.then_some(guest.uses));
        }
        let (holds, available) = (self.holds(), self.available());
        self.state = self.state.next(reserve(self.total), available);
        let host = Host { reserve: reserve(self.total), available, going: 0 };
        let found = reclaim(self.state, host, &holds);
        let mut changes = Vec::new();
        for (at, (vm, due)) in holds.iter().zip(&found.vms).enumerate() {
            prop_assert!(due.out <= vm.resident);
            let keeps = vm.terms.reservation as u64;
            let left = vm.resident.saturating_sub(due.out);
            prop_assert!(due.out == 0 || left >= keeps, "{vm:?} {due:?}");
            let (guest, balloon, _) = &mut self.guests[at];
            let before = balloon.taken();
            if guest.has_balloon {
                let available = guest.available(balloon);
                let says = GuestSays { available, at: self.now, has: before };
                balloon.step(self.now, Some(says), due.balloon);
                let now = vm.resident + before - balloon.taken();
                prop_assert!(balloon.taken() <= before || now >= keeps, "{vm:?} {due:?}");
            }
            self.out[at] += due.out;
            changes.push(balloon.taken().cmp(&before));
        }
        let taken: u64 = found.vms.iter().map(|due| due.out).sum();
        prop_assert!(taken <= found.lacks, "no more than the host lacks");
        Ok(changes)
    }
}

proptest! {
    #[test]
    fn nobody_goes_below_a_reservation_and_what_vms_hold_fits_and_rests(
        guests in vec(any_guest(), 1..8),
        presses in 0.3..1.0_f64,
    ) {
        let mut world = World::new(guests, presses);
        let mut turns = 0;
        let mut last = vec![Ordering::Equal; world.guests.len()];
        for step in 0..360 {
            for (at, change) in world.pass()?.into_iter().enumerate() {
                if change.is_ne() {
                    turns += usize::from(change == last[at].reverse());
                    last[at] = change;
                }
            }
            if step == 180 {
                turns = 0;
            }
        }
        prop_assert!(turns <= world.guests.len(), "{turns} turns in the last half hour");
        // Whoever could give has given all of it before the host lacks anything.
        let cap = |it: &Guest| it.gib * GIB * 65 / 100;
        let gives = |(guest, balloon, _): &(Guest, Balloon, Activity)| {
            let size = guest.gib * GIB;
            let kept = size - (guest.reservation * size as f64) as u64;
            let most = cap(guest).min(kept).saturating_sub(balloon.taken());
            guest.has_balloon && !guest.is_idle && guest.spare(balloon).min(most) > size / 50
        };
        let somebody = world.guests.iter().any(gives);
        let has = world.available();
        prop_assert!(!somebody || has >= reserve(world.total), "{has} are available");
    }
}
