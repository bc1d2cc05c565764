//! The findings, and what each of them is found by.

use super::facts::{Datastore, Disk, Facts, Way};
use super::nature::Nature;
use crate::Nanos;
use crate::measure::LqFit;
use crate::room::share_room;

/// A disk that asks for something in this part of the time is seldom quiet.
const SELDOM_QUIET: f64 = 0.5;

/// Requests of so many bytes at most are those that somebody waits for, ...
const SMALL: f64 = (16 << 10) as f64;

/// ... if there are not more of them under way than this.
const ONE_BY_ONE: f64 = 2.0;

/// A device whose requests take less by themselves does not seek.
const FLASH: Nanos = Nanos::from_millis(1);

/// Who moves this part of a datastore's bytes is felt by the others.
const MOST: f64 = 0.5;

/// Of a response time, so much spent waiting for admission is somebody's policy.
const WAITS: f64 = 0.5;

/// QEMU's NBD client has 16 requests under way at most; on average it has nearly so many
/// if it is held back by that.
const NBD_DEPTH: f64 = 14.0;

/// Past this part of a device's peak, waiting grows faster than what is done.
const BUSY: f64 = 0.8;

/// Of a datastore's room, what may be taken: Storage DRS's usual bound.
const TAKEN: f64 = 0.8;

/// What something is said about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A datastore, by its place in the facts.
    Datastore(usize),
    /// A disk.
    Disk(usize),
}

/// Something that is advised, and what it was found by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// A datastore is nearly full.
    Full {
        /// The part that is taken.
        taken: f64,
    },
    /// A datastore's device is at its limits: it is the weakest link.
    NearPeak {
        /// What it does, as a part of what it can.
        part: f64,
        /// What it can, in requests per second.
        peak: f64,
    },
    /// What a datastore's device can do has not been seen.
    Unmeasured,
    /// A disk's requests wait for admission most of the time: something that was asked
    /// for holds them.
    Queued {
        /// The part of the response time.
        part: f64,
    },
    /// A disk has as many requests under way as QEMU's NBD client lets through.
    Narrow {
        /// How many that are.
        outstanding: f64,
    },
    /// A disk that is read or written in order shares spindles with one that breaks that
    /// order.
    Broken {
        /// The busiest of those that do.
        by: usize,
    },
    /// A stream takes most of what a datastore does, and nothing holds it.
    Ungoverned {
        /// Its part of the bytes.
        part: f64,
        /// The busiest of the others.
        beside: usize,
    },
    /// A disk that is read at random is best moved when it is quiet.
    MoveWhenQuiet {
        /// The part of its requests that go anywhere.
        random: f64,
        /// The part of the time in which it asks for something.
        there: f64,
        /// A datastore on flash: there the application feels a copy least.
        flash: Option<usize>,
    },
    /// Somebody waits for each of a disk's small requests: a bound on how long they take
    /// is what to move it with.
    MoveWithBound {
        /// Bytes of a request.
        length: f64,
        /// What one takes.
        response: Nanos,
    },
    /// A disk that is read and written in order can be moved at any time.
    MoveAnyTime {
        /// The part of its requests that are in order.
        in_order: f64,
    },
}

/// Advice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// What it is about.
    pub about: About,
    /// What was found.
    pub finding: Finding,
}

/// Says what should be done: first what is wrong with datastores, then with disks, then
/// how to move those.
pub fn advise(facts: &Facts) -> Vec<Advice> {
    let datastores = (0..facts.datastores.len()).flat_map(|at| {
        let found = of_datastore(facts, at).into_iter();
        found.map(move |finding| Advice { about: About::Datastore(at), finding })
    });
    let disks = |find: fn(&Facts, usize) -> Vec<Finding>| {
        (0..facts.disks.len()).flat_map(move |at| {
            let found = find(facts, at).into_iter();
            found.map(move |finding| Advice { about: About::Disk(at), finding })
        })
    };
    datastores.chain(disks(of_disk)).chain(disks(of_its_move)).collect()
}

fn of_datastore(facts: &Facts, at: usize) -> Vec<Finding> {
    let one = &facts.datastores[at];
    let full = one.taken.filter(|taken| *taken > TAKEN);
    let full = full.map(|taken| Finding::Full { taken });
    let device = match one.device {
        LqFit::Line(line) => {
            let part = one.iops / line.peak();
            (part > BUSY).then(|| Finding::NearPeak { part, peak: line.peak() })
        }
        LqFit::Flat { .. } => None,
        LqFit::TooFew { .. } | LqFit::NoVariation { .. } => {
            let asks = |disk: &Disk| Nature::of(disk) != Nature::Idle;
            on(facts, at)
                .any(|disk| asks(&facts.disks[disk]))
                .then_some(Finding::Unmeasured)
        }
    };
    full.into_iter().chain(device).collect()
}

fn of_disk(facts: &Facts, at: usize) -> Vec<Finding> {
    let disk = &facts.disks[at];
    let nature = Nature::of(disk);
    if nature == Nature::Idle {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some((queue, service)) = disk.queue.zip(disk.service) {
        let part = queue.0 as f64 / (queue.0 as f64 + service.0 as f64).max(1.0);
        if part > WAITS {
            found.push(Finding::Queued { part });
        }
    }
    if disk.way == Way::Nbd && disk.outstanding >= NBD_DEPTH {
        found.push(Finding::Narrow { outstanding: disk.outstanding });
    }
    let seeks = !is_flash(&facts.datastores[disk.datastore]);
    if nature.is_in_order() && seeks && !disk.moving {
        let breaks = |other: &Disk| Nature::of(other) == Nature::Random;
        found.extend(busiest(facts, at, breaks).map(|by| Finding::Broken { by }));
    }
    found.extend(ungoverned(facts, at, nature));
    found
}

fn ungoverned(facts: &Facts, at: usize, nature: Nature) -> Option<Finding> {
    let disk = &facts.disks[at];
    if nature != Nature::Stream || disk.governed {
        return None;
    }
    let beside = busiest(facts, at, |other| Nature::of(other) != Nature::Idle)?;
    let all: f64 =
        on(facts, disk.datastore).map(|one| facts.disks[one].bytes_per_second()).sum();
    let part = disk.bytes_per_second() / all.max(f64::MIN_POSITIVE);
    (part > MOST).then_some(Finding::Ungoverned { part, beside })
}

fn of_its_move(facts: &Facts, at: usize) -> Vec<Finding> {
    let disk = &facts.disks[at];
    let (nature, in_order) = (Nature::of(disk), disk.in_order().unwrap_or_default());
    // How a disk is best moved is no advice while it moves.
    if nature == Nature::Idle || disk.moving {
        return Vec::new();
    }
    let mut found = Vec::new();
    if nature == Nature::Random && disk.there > SELDOM_QUIET {
        // Another directory of the same file system is no other device.
        let from = &facts.datastores[disk.datastore];
        let flash = facts.datastores.iter().enumerate().position(|(at, to)| {
            let is_from = at == disk.datastore;
            !is_from && is_flash(to) && !share_room(from.shared_room, to.shared_room)
        });
        let random = 1.0 - in_order;
        found.push(Finding::MoveWhenQuiet { random, there: disk.there, flash });
    }
    let waits_for_each = disk.outstanding <= ONE_BY_ONE && disk.length() <= SMALL;
    if let Some(response) = disk.service.filter(|_| waits_for_each) {
        let length = disk.length();
        found.push(Finding::MoveWithBound { length, response });
    }
    let busy = of_datastore(facts, disk.datastore);
    let needed = busy.iter().any(|it| matches!(it, Finding::NearPeak { .. }));
    if nature.is_in_order() && !needed {
        found.push(Finding::MoveAnyTime { in_order });
    }
    found
}

/// The disks on a datastore.
fn on(facts: &Facts, datastore: usize) -> impl Iterator<Item = usize> {
    let disks = facts.disks.iter().enumerate();
    disks.filter(move |(_, disk)| disk.datastore == datastore).map(|(at, _)| at)
}

/// Of the others on a disk's datastore that are such, the one with the most requests.
fn busiest(facts: &Facts, at: usize, is: impl Fn(&Disk) -> bool) -> Option<usize> {
    let others = on(facts, facts.disks[at].datastore).filter(|other| *other != at);
    let iops = |other: usize| facts.disks[other].iops();
    others
        .filter(|other| is(&facts.disks[*other]))
        .max_by(|a, b| iops(*a).total_cmp(&iops(*b)).then(b.cmp(a)))
}

/// Whether a datastore is known to answer as only flash does.
fn is_flash(datastore: &Datastore) -> bool {
    match datastore.device {
        LqFit::Line(line) => line.unloaded < FLASH,
        LqFit::Flat { latency, .. } => latency < FLASH,
        LqFit::TooFew { .. } | LqFit::NoVariation { .. } => false,
    }
}
