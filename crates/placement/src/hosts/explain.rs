//! Why VMs stay where they are.

use super::Goal;
use super::advise::{asked, overfull, rules};
use super::bounds::Bounds;
use super::inventory::Inventory;
use super::step::{Because, Worth};
use super::world::World;

/// A VM that stays where something is not right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// The VM.
    pub vm: usize,
    /// What is not right.
    pub goal: Goal,
    /// The host that came nearest; nothing if there is no other, or it is all the same
    /// which.
    pub to: Option<usize>,
    /// Why it does not go there.
    pub because: Because,
}

/// Why a VM is not on each of the hosts, as things are now: what a move there would be
/// worth if it may be made, or what is in the way. What it would put right comes first.
pub fn explain(
    inventory: &Inventory,
    bounds: &Bounds,
    vm: usize,
) -> (Goal, Vec<Result<Worth, Because>>) {
    let world = World::of(inventory);
    let goals = rules(&world, true).into_iter().chain(overfull(&world));
    let mut goals = goals.chain(rules(&world, false));
    let goal = goals.find(|(_, vms)| vms.contains(&vm)).map(|(goal, _)| goal);
    let rests = goal.is_none() && asked(&world.imbalance(), bounds).is_none();
    let goal = goal.unwrap_or(Goal::Even);
    let why = |to: usize| match world.consider(vm, to, None, goal, bounds) {
        Ok(_) if rests => Err(Because::NothingWrong),
        other => other.map(|possible| possible.worth),
    };
    (goal, (0..inventory.hosts.len()).map(why).collect())
}

/// The VMs that cannot leave where something is not right: those of rules that do not
/// hold, those on hosts with too little, and where loads differ, those on the host with
/// the highest.
pub(super) fn refusals(world: &World<'_>, bounds: &Bounds) -> Vec<Refused> {
    let mut goals = rules(world, true);
    goals.extend(overfull(world));
    goals.extend(rules(world, false));
    if asked(&world.imbalance(), bounds).is_some() {
        let load = |host: usize| world.load(host).cpu.max(world.load(host).memory);
        let highest =
            (0..world.on.len()).max_by(|one, other| load(*one).total_cmp(&load(*other)));
        goals.extend(highest.map(|host| (Goal::Even, world.on[host].clone())));
    }
    let those = goals.into_iter().flat_map(|(goal, vms)| {
        vms.into_iter().filter_map(move |vm| refusal(world, vm, goal, bounds))
    });
    let mut refused: Vec<Refused> = Vec::new();
    for one in those {
        // What is most urgent comes first; once is enough.
        if refused.iter().all(|other| other.vm != one.vm) {
            refused.push(one);
        }
    }
    refused
}

/// Why a VM stays; nothing if it could go somewhere.
fn refusal(world: &World<'_>, vm: usize, goal: Goal, bounds: &Bounds) -> Option<Refused> {
    let mut nearest: Option<(usize, Because)> = None;
    for to in (0..world.on.len()).filter(|to| *to != world.at[vm]) {
        let because = world.consider(vm, to, None, goal, bounds).err()?;
        if nearest.is_none_or(|(_, it)| it.nearness() < because.nearness()) {
            nearest = Some((to, because));
        }
    }
    let (to, because) = match nearest {
        None => (None, Because::Here),
        Some((_, same @ (Because::Pinned(_) | Because::Idle))) => (None, same),
        Some((to, because)) => (Some(to), because),
    };
    Some(Refused { vm, goal, to, because })
}
