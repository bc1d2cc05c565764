//! The machines of the experiment, so much smaller that one computer carries them.
//!
//! What each machine asks for stays as it was published; sizes and counts shrink. The
//! scenario that comes of it is the published one with fewer tiles and smaller disks, and
//! with what there is for real: each wave leaves a datastore of its own, as a plan empties
//! a datastore, and all go to one; each datastore is an array of its own.

use sterna_core::Bytes;
use sterna_sim::fluid::nas250::scenario;
use sterna_sim::fluid::{Scenario, Wave};
use sterna_workload::load::{Lengths, Order, Pace, Profile};

/// Disks are a multiple of this: what a datastore of any kind takes.
const GRAIN: u64 = 1 << 20;

/// The datastore that all go to.
pub(super) const NAS: &str = "nas";

/// A machine, which is a disk and who uses it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Machine {
    /// Its name, and its disk's.
    pub(super) name: String,
    /// The wave that it moves in.
    pub(super) wave: usize,
    /// What it does, of the scenario's profiles.
    pub(super) profile: usize,
    /// The same, as a load.
    pub(super) load: Profile,
    /// Bytes of its disk.
    pub(super) size: u64,
    /// How many of them are not zero.
    pub(super) written: u64,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Cast {
    /// What is to happen.
    pub(super) scenario: Scenario,
    /// Who is in it.
    pub(super) machines: Vec<Machine>,
}

impl Cast {
    /// The first so many tiles, with disks `scale` times smaller.
    pub(super) fn of(tiles: usize, scale: u64) -> Cast {
        let mut scenario = scenario();
        for profile in &mut scenario.profiles {
            let smaller = |bytes: u64| (bytes / scale).next_multiple_of(GRAIN);
            profile.size = smaller(profile.size);
            profile.written = smaller(profile.written);
        }
        let is_in = |vm: usize| scenario.vms[vm].set < tiles;
        let mut machines = Vec::new();
        let mut waves: Vec<Wave> = Vec::new();
        for wave in &scenario.waves {
            let moves: Vec<_> =
                wave.moves.iter().copied().filter(|(vm, _)| is_in(*vm)).collect();
            if moves.is_empty() {
                continue;
            }
            for (vm, _) in &moves {
                machines.push(machine(&scenario, *vm, waves.len()));
            }
            waves.push(Wave { moves, ..wave.clone() });
        }
        scenario.title =
            format!("{} machines move from block storage to a NAS", machines.len());
        scenario.vms.retain(|vm| vm.set < tiles);
        scenario.waves = waves;
        scenario.hosts = 1;
        // Datastores for real are no models.
        scenario.arrays.clear();
        scenario.datastores.truncate(scenario.waves.len() + 1);
        Cast { scenario, machines }
    }

    /// The datastore that a wave leaves.
    pub(super) fn block(wave: usize) -> String {
        format!("block-{}", wave + 1)
    }

    /// All datastores.
    pub(super) fn datastores(&self) -> Vec<String> {
        let blocks = (0..self.scenario.waves.len()).map(Cast::block);
        blocks.chain([NAS.to_owned()]).collect()
    }

    /// Bytes that the disks take, and take again where they go: what the loads write may
    /// fill them.
    pub(super) fn room(&self) -> u64 {
        2 * self.machines.iter().map(|machine| machine.size).sum::<u64>()
    }
}

fn machine(scenario: &Scenario, vm: usize, wave: usize) -> Machine {
    let profile = &scenario.profiles[scenario.vms[vm].profile];
    Machine {
        name: format!("{}-{}", profile.name, vm + 1),
        wave,
        profile: scenario.vms[vm].profile,
        load: Profile {
            // Three of four requests at random places cost what all of them do.
            order: Order::Random,
            reads: (profile.reads * 100.0).round() as u32,
            lengths: Lengths::always(profile.bytes as u32),
            pace: Pace::Open { rate: profile.iops },
            flush_every: None,
            bursts: None,
            span: Some(Bytes(profile.size)),
        },
        size: profile.size,
        written: profile.written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_as_published_but_for_its_size() {
        let cast = Cast::of(1, 1000);
        let rate = |machine: &Machine| match machine.load.pace {
            Pace::Open { rate } => rate,
            Pace::Closed { .. } => 0.0,
        };
        assert_eq!(cast.machines.len(), 25);
        assert_eq!(cast.machines.iter().map(rate).sum::<f64>(), 625.0);
        let bytes = cast.machines.iter().map(|it| it.size).sum::<u64>() as f64;
        let published = 1600.0 * f64::from(1 << 30) / 1000.0;
        assert!((bytes / published - 1.0).abs() < 0.02, "{bytes}");
        assert_eq!(cast.datastores(), ["block-1", "nas"]);
    }

    #[test]
    fn tiles_come_in_the_published_waves() {
        let waves = |tiles| {
            let cast = Cast::of(tiles, 1000);
            let moves = cast.scenario.waves.iter().map(|wave| wave.moves.len());
            moves.collect::<Vec<_>>()
        };
        assert_eq!(waves(1), [25]);
        assert_eq!(waves(4), [25, 75]);
        assert_eq!(waves(6), [25, 75, 50]);
        assert_eq!(waves(10), [25, 75, 75, 75]);
    }

    #[test]
    fn names_are_of_one_machine_each() {
        let cast = Cast::of(10, 1000);
        let names: std::collections::BTreeSet<_> =
            cast.machines.iter().map(|it| &it.name).collect();
        assert_eq!(names.len(), 250);
    }
}
