//! Where the machines of a host that has failed are started again.
//!
//! Who does that is not Sterna, and what he goes by is not known. So the plainest thing is
//! assumed: one after the other, as they are in the file, each on the host that has the
//! most memory left for what it asks for, if no rule that must hold is broken by it.
//! Processors do not matter, as machines share them. One for which there is no room is tried
//! again each minute.

use sterna_placement::hosts::{Amounts, Kind, Rule};

use super::world::{Seat, World};

/// The host for a machine that does not run; nothing if there is none.
pub(super) fn choose(world: &World<'_>, asked: &[Amounts], vm: usize) -> Option<usize> {
    let rules = world.scenario.rules.iter();
    let rules: Vec<&Rule> =
        rules.filter(|rule| rule.must && rule.vms.contains(&vm)).collect();
    let room = |host: usize| {
        let held: f64 = world.on[host].iter().map(|vm| asked[*vm].memory).sum();
        let has = world.scenario.hosts[host].capacity.memory;
        has - held - world.copies.coming(host)
    };
    let hosts = (0..world.up.len()).filter(|host| world.up[*host]);
    let allowed =
        hosts.filter(|host| rules.iter().all(|it| allows(it, world, vm, *host)));
    let rooms = allowed.map(|host| (room(host), host));
    let fits = rooms.filter(|(room, _)| *room >= asked[vm].memory);
    fits.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, host)| host)
}

/// Whether a rule allows a machine on a host, beside those that run.
fn allows(rule: &Rule, world: &World<'_>, vm: usize, host: usize) -> bool {
    let mut others = rule.vms.iter().filter(|other| **other != vm).filter_map(|other| {
        match world.seats[*other] {
            Seat::On(host) => Some(host),
            Seat::Down(_) => None,
        }
    });
    match &rule.kind {
        Kind::On(hosts) => hosts.contains(&host),
        Kind::NotOn(hosts) => !hosts.contains(&host),
        Kind::Affinity => others.all(|other| other == host),
        Kind::AntiAffinity => others.all(|other| other != host),
    }
}
