//! What is done by itself, with a carrier in virtual time: loads are seen, the first
//! recommendation is carried out, its copy takes its time, and what came of it is seen.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_placement::hosts::{
    Acted, Advice, Amounts, Bounds, Carrier, CooldownSettings, Cooldowns, Inventory,
    Kind, Pinned, Recommended, Vm, Wish, act, advise, imbalance,
};

use super::building::{GIB, eager, host, inventory, rule, vm};
use super::random::Random;

const ROUND: Nanos = Nanos::from_secs(60);

/// Who moves machines in virtual time.
struct Simulated {
    random: Random,
    now: Nanos,
    /// Bytes per second.
    speed: f64,
    /// One move of so many fails.
    fails: Option<u64>,
    /// Machines on their way: to where, and when each comes there, if it does.
    going: Vec<(usize, usize, Nanos, bool)>,
    /// All that was begun.
    begun: Vec<Recommended>,
}

impl Simulated {
    fn new(seed: u64, fails: Option<u64>) -> Simulated {
        Simulated {
            random: Random::new(seed),
            now: Nanos(0),
            speed: Bounds::default().speed,
            fails,
            going: Vec::new(),
            begun: Vec::new(),
        }
    }
}

/// What the carrier is told of the memory that it copies.
struct Order<'a> {
    carrier: &'a mut Simulated,
    all: &'a Inventory,
}

impl Carrier for Order<'_> {
    fn carry(&mut self, one: &Recommended) -> Result<(), String> {
        let both = [Some((one.vm, one.to)), one.back.map(|back| (back, one.from))];
        for (vm, to) in both.into_iter().flatten() {
            let bytes = self.all.vms[vm].demand.mean.memory;
            let takes = Nanos((bytes / self.carrier.speed * 1e9) as u64);
            let fails = self.carrier.fails;
            let fails = fails.is_some_and(|of| self.carrier.random.one_in(of));
            let at = self.carrier.now.plus(takes);
            self.carrier.going.push((vm, to, at, !fails));
        }
        self.carrier.begun.push(*one);
        Ok(())
    }
}

/// Hosts and machines, and DRS that acts by itself.
struct Hall {
    all: Inventory,
    carrier: Simulated,
    cooldowns: Cooldowns,
    hold: CooldownSettings,
    bounds: Bounds,
    wish: Wish,
}

fn name(vm: usize) -> String {
    format!("vm{vm}")
}

fn name_of(host: usize) -> String {
    format!("host{host}")
}

impl Hall {
    /// Some hosts, of which the first has all machines: enough for a move to pay.
    fn lopsided(seed: u64, fails: Option<u64>) -> Hall {
        let mut random = Random::new(seed);
        let hosts: Vec<_> = (0..2 + random.below(4)).map(|_| host(32.0, 256.0)).collect();
        let vms: Vec<Vm> = (0..12 + random.below(12))
            .map(|_| vm(0, 0.5 + 0.7 * random.unit(), 1.0 + random.unit() * 6.0))
            .collect();
        Hall {
            all: inventory(&hosts, &vms),
            carrier: Simulated::new(seed, fails),
            cooldowns: Cooldowns::default(),
            hold: CooldownSettings::default(),
            bounds: eager(),
            wish: Wish::All,
        }
    }

    /// As the inventory is while some are on their way.
    fn seen(&self) -> Inventory {
        let mut seen = self.all.clone();
        for (at, vm) in seen.vms.iter_mut().enumerate() {
            let cooling = self.cooldowns.pinned(self.carrier.now, &name(at), &self.hold);
            vm.pinned = cooling.map(|(pinned, _)| pinned);
        }
        for (vm, to, ..) in &self.carrier.going {
            (seen.vms[*vm].host, seen.vms[*vm].pinned) = (*to, Some(Pinned::Moving));
        }
        seen
    }

    /// Copies that have come to their end by now.
    fn land(&mut self) {
        let now = self.carrier.now;
        let (landed, going): (Vec<_>, Vec<_>) =
            self.carrier.going.drain(..).partition(|(_, _, at, _)| *at <= now);
        self.carrier.going = going;
        for (vm, to, _, comes) in landed {
            if comes {
                self.all.vms[vm].host = to;
                self.cooldowns.moved(now, &name(vm), &name_of(to), &self.hold);
            } else {
                let from = name_of(self.all.vms[vm].host);
                self.cooldowns.failed(now, &name(vm), &from, &self.hold);
            }
        }
    }

    fn round(&mut self) -> Acted {
        self.carrier.now = self.carrier.now.plus(ROUND);
        self.land();
        for (at, vm) in self.all.vms.iter().enumerate() {
            self.cooldowns.see(self.carrier.now, &name(at), &name_of(vm.host));
        }
        let seen = self.seen();
        let advice: Advice = advise(&seen, &self.bounds);
        self.cooldowns.round(!advice.moves.is_empty());
        let (held, under_way) =
            (self.cooldowns.is_held(&self.hold), self.carrier.going.len());
        let mut order = Order { carrier: &mut self.carrier, all: &seen };
        act(&advice, self.wish, held, under_way, &mut order)
    }

    fn deviation(&self) -> f64 {
        let capacities: Vec<Amounts> =
            self.all.hosts.iter().map(|host| host.capacity).collect();
        let mut loads = vec![Amounts::default(); capacities.len()];
        for vm in &self.all.vms {
            let part = vm.demand.mean.over(capacities[vm.host]);
            loads[vm.host] = loads[vm.host].plus(part);
        }
        imbalance(&loads, &capacities).deviation
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn it_evens_loads_out_and_then_rests(seed in any::<u64>()) {
        let mut hall = Hall::lopsided(seed, None);
        let before = hall.deviation();
        (0..200).for_each(|_| drop(hall.round()));
        let (after, begun) = (hall.deviation(), hall.carrier.begun.len());
        prop_assert!(after < before.min(0.1), "{before} to {after}");
        // Each machine has moved once or not at all: nothing was moved to and fro.
        let mut moved: Vec<usize> =
            hall.carrier.begun.iter().flat_map(|one| [Some(one.vm), one.back]).flatten().collect();
        moved.sort_unstable();
        let all = moved.len();
        moved.dedup();
        prop_assert_eq!(moved.len(), all);
        // A day later it is as it was.
        (0..24 * 60).for_each(|_| drop(hall.round()));
        prop_assert_eq!(hall.carrier.begun.len(), begun);
    }

    #[test]
    fn one_move_is_under_way_at_a_time(seed in any::<u64>()) {
        let mut hall = Hall::lopsided(seed, None);
        // A copy takes some rounds.
        hall.carrier.speed = GIB / 60.0;
        for _ in 0..100 {
            let busy = hall.carrier.going.iter().any(|(_, _, at, _)| {
                *at > hall.carrier.now.plus(ROUND)
            });
            let acted = hall.round();
            prop_assert!(!busy || acted == Acted::Nothing, "{acted:?}");
        }
    }

    #[test]
    fn what_fails_is_tried_again_later_and_later(seed in any::<u64>()) {
        let mut hall = Hall::lopsided(seed, Some(2));
        let before = hall.deviation();
        (0..600).for_each(|_| drop(hall.round()));
        prop_assert!(hall.deviation() < before, "{}", hall.deviation());
        // Half of the moves fail; of ten hours no machine takes more than these tries:
        // after 10, 20, 40, 80, 160 and 320 minutes.
        for vm in 0..hall.all.vms.len() {
            let tries = hall.carrier.begun.iter().filter(|one| one.vm == vm).count();
            prop_assert!(tries <= 7, "vm{vm}: {tries}");
        }
    }
}

#[test]
fn what_is_not_wished_is_not_done() {
    let mut hall = Hall::lopsided(1, None);
    hall.wish = Wish::Repairs;
    assert!((0..20).all(|_| hall.round() == Acted::Nothing), "loads only differ");
    hall.all.rules.push(rule(Kind::NotOn(vec![0]), &[3], true));
    // A rule that must hold waits for nothing.
    let acted = hall.round();
    assert!(matches!(acted, Acted::Begun(one) if one.vm == 3), "{acted:?}");
    hall.wish = Wish::Nothing;
    hall.all.rules.push(rule(Kind::NotOn(vec![0]), &[4], true));
    assert!((0..20).all(|_| hall.round() == Acted::Nothing));
}

#[test]
fn what_cannot_begin_says_why() {
    struct Refuses;
    impl Carrier for Refuses {
        fn carry(&mut self, _: &Recommended) -> Result<(), String> {
            Err("there is no way".into())
        }
    }
    let all = inventory(&[host(16.0, 64.0), host(16.0, 64.0)], &[vm(0, 4.0, 8.0)]);
    let mut all = Inventory { rules: vec![rule(Kind::On(vec![1]), &[0], true)], ..all };
    let advice = advise(&all, &eager());
    let acted = act(&advice, Wish::All, false, 0, &mut Refuses);
    let Acted::Refused(one, why) = acted else { panic!("{acted:?}") };
    assert_eq!((one.vm, one.to, why.as_str()), (0, 1, "there is no way"));
    all.vms[0].pinned = Some(Pinned::Failed);
    assert!(advise(&all, &eager()).moves.is_empty(), "it is left alone for a while");
}
