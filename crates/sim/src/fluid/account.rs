//! What each machine gets, and whether it is what it wants.
//!
//! Disks that do the same in the same place get the same, so what they get is summed once
//! for all of them (a *class*: a profile on a datastore). A disk remembers where the sum
//! was when it came, and takes the difference when it goes.

use super::outcome::{Done, Phase};
use super::scenario::{Profile, Scenario};

/// What counts as having got what one wanted.
const HELD: f64 = 0.99;

/// Sums of one disk of a class since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    wanted: f64,
    done: f64,
}

/// Disks that do the same in the same place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Class {
    pub(super) disks: u32,
    /// Requests per second of one of them, and the seconds of each.
    pub(super) rate: f64,
    pub(super) wanted: f64,
    pub(super) response: f64,
    sums: Sums,
}

/// A machine's disk.
#[derive(Clone, Copy, Debug)]
struct Disk {
    at: u32,
    works: bool,
    since: Sums,
}

/// What a machine got in this phase, and wrote in all.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    wanted: f64,
    done: f64,
    /// Requests that it has written since the beginning.
    writes: f64,
}

/// The accounts of all machines.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    classes: Vec<Class>,
    datastores: usize,
    disks: Vec<Disk>,
    got: Vec<Got>,
    /// The first disk of each machine, and one more.
    first: Vec<usize>,
    /// The profile of each machine.
    profile: Vec<usize>,
    reads: Vec<f64>,
    done: Vec<Done>,
}

impl Accounts {
    /// All machines at work where they are.
    pub(super) fn new(scenario: &Scenario) -> Accounts {
        let datastores = scenario.datastores.len();
        let mut it = Accounts {
            classes: vec![Class::default(); scenario.profiles.len() * datastores],
            datastores,
            disks: Vec::new(),
            got: vec![Got::default(); scenario.vms.len()],
            first: vec![0],
            profile: scenario.vms.iter().map(|vm| vm.profile).collect(),
            reads: scenario.profiles.iter().map(|it| it.reads).collect(),
            done: vec![Done::default(); scenario.profiles.len()],
        };
        for vm in &scenario.vms {
            let disks = scenario.profiles[vm.profile].disks;
            it.classes[vm.profile * datastores + vm.datastore].disks += disks;
            let at = vm.datastore as u32;
            let disk = Disk { at, works: true, since: Sums::default() };
            it.disks.extend((0..disks).map(|_| disk));
            it.first.push(it.disks.len());
        }
        it
    }

    /// All classes, with their profile and datastore.
    pub(super) fn classes(&self) -> impl Iterator<Item = (usize, usize, &Class)> {
        let datastores = self.datastores;
        let places = self.classes.iter().enumerate();
        places.map(move |(at, class)| (at / datastores, at % datastores, class))
    }

    pub(super) fn class(&mut self, profile: usize, datastore: usize) -> &mut Class {
        &mut self.classes[profile * self.datastores + datastore]
    }

    /// Takes what a disk got, into its machine's account.
    fn settle(&mut self, vm: usize, disk: usize) {
        let Disk { at, works, since } = self.disks[disk];
        let profile = self.profile[vm];
        let sums = self.classes[profile * self.datastores + at as usize].sums;
        if works {
            let got = &mut self.got[vm];
            got.wanted += sums.wanted - since.wanted;
            got.done += sums.done - since.done;
            got.writes += (sums.done - since.done) * (1.0 - self.reads[profile]);
        }
        self.disks[disk].since = sums;
    }

    /// A machine works from now on, or stands still.
    pub(super) fn work(&mut self, vm: usize, works: bool) {
        for disk in self.first[vm]..self.first[vm + 1] {
            self.settle(vm, disk);
            let Disk { at, works: worked, .. } = self.disks[disk];
            let class = self.class(self.profile[vm], at as usize);
            class.disks += u32::from(works && !worked);
            class.disks -= u32::from(!works && worked);
            self.disks[disk].works = works;
        }
    }

    /// One of a machine's disks is elsewhere from now on.
    pub(super) fn moved(&mut self, vm: usize, number: usize, to: usize) {
        let disk = self.first[vm] + number;
        self.settle(vm, disk);
        let Disk { at, works, .. } = self.disks[disk];
        let profile = self.profile[vm];
        if works {
            self.class(profile, at as usize).disks -= 1;
            self.class(profile, to).disks += 1;
        }
        self.disks[disk].at = to as u32;
        self.disks[disk].since = self.class(profile, to).sums;
    }

    /// Where a machine's disk is.
    pub(super) fn place(&self, vm: usize, number: usize) -> usize {
        self.disks[self.first[vm] + number].at as usize
    }

    pub(super) fn works(&self, vm: usize) -> bool {
        self.disks[self.first[vm]].works
    }

    /// The part of a machine's disks that is not zero: what was written before, and what
    /// it has touched since. Requests fall anywhere in what was zero, and touch a chunk
    /// each at least; the chunks that were never hit become fewer by a part with each.
    pub(super) fn written(&mut self, vm: usize, profile: &Profile, chunk: f64) -> f64 {
        for disk in self.first[vm]..self.first[vm + 1] {
            self.settle(vm, disk);
        }
        let size = profile.size as f64;
        let zero = size - profile.written as f64;
        let touched = self.got[vm].writes * profile.bytes.max(chunk);
        let still_zero = if zero > 0.0 { zero * (-touched / zero).exp() } else { 0.0 };
        1.0 - still_zero / size
    }

    /// So many seconds go by.
    pub(super) fn pass(&mut self, seconds: f64) {
        for (at, class) in self.classes.iter_mut().enumerate() {
            if class.disks == 0 {
                continue;
            }
            class.sums.wanted += class.wanted * seconds;
            class.sums.done += class.rate * seconds;
            let done = &mut self.done[at / self.datastores];
            let requests = class.rate * seconds * f64::from(class.disks);
            done.wanted += class.wanted * seconds * f64::from(class.disks);
            done.requests += requests;
            done.seconds += requests * class.response;
        }
    }

    /// Ends a phase: tells it who got what, and begins anew.
    pub(super) fn tell(&mut self, phase: &mut Phase) {
        for vm in 0..self.got.len() {
            for disk in self.first[vm]..self.first[vm + 1] {
                self.settle(vm, disk);
            }
            let got = &mut self.got[vm];
            if got.wanted > 0.0 && got.wanted.is_finite() {
                let part = got.done / got.wanted;
                phase.working += 1;
                phase.held += usize::from(part >= HELD);
                phase.least =
                    Some(phase.least.map_or(part, |least: f64| least.min(part)));
            }
            (got.wanted, got.done) = (0.0, 0.0);
        }
        let fresh = vec![Done::default(); self.done.len()];
        phase.profiles = std::mem::replace(&mut self.done, fresh);
    }
}
