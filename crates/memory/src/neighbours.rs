//! Others that use the storage of a swap tier while a VM wakes: the disks on the tier's datastore
//! that this daemon serves, but those of the VM itself.
//!
//! A tier on a device has no datastore, and nobody else that Sterna knows of.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sterna_api::Result;
use sterna_core::DiskId;
use sterna_core::memory::Event;

use crate::Memory;
use crate::tiers::Tier;

/// Whoever has asked for something within this time is still there: a session of a database that
/// thinks asks a few times in a second.
const LATELY: Duration = Duration::from_secs(1);

/// The disks beside each swap device, by its number in the kernel.
pub(crate) struct Neighbours(BTreeMap<u8, Disks>);

struct Disks {
    all: Vec<DiskId>,
    requests: u64,
    /// When they asked for something last.
    asked: Option<Instant>,
}

impl Neighbours {
    /// Of a VM with these disks, beside these tiers.
    pub(crate) fn of(
        memory: &Memory,
        tiers: &[Tier],
        own: &[DiskId],
    ) -> Result<Neighbours> {
        let own: BTreeSet<DiskId> = own.iter().copied().collect();
        let disks = memory.storage.store.disks()?;
        let beside = |datastore: &str| {
            let there = disks.iter().filter(|disk| disk.datastore == datastore);
            let all: Vec<DiskId> =
                there.map(|disk| disk.id).filter(|id| !own.contains(id)).collect();
            Disks { requests: requests(memory, &all), all, asked: None }
        };
        let of_tier = tiers.iter().filter_map(|tier| {
            Some((tier.number?, beside(tier.record.datastore.as_deref()?)))
        });
        Ok(Neighbours(of_tier.filter(|(_, disks)| !disks.all.is_empty()).collect()))
    }

    /// Of each device, whether they have asked for something lately.
    pub(crate) fn look(&mut self, memory: &Memory) -> Vec<Event> {
        let look = |(device, disks): (&u8, &mut Disks)| Event::Others {
            device: *device,
            busy: disks.are_busy(memory),
        };
        self.0.iter_mut().map(look).collect()
    }
}

impl Disks {
    fn are_busy(&mut self, memory: &Memory) -> bool {
        let now = requests(memory, &self.all);
        if std::mem::replace(&mut self.requests, now) != now {
            self.asked = Some(Instant::now());
        }
        self.asked.is_some_and(|at| at.elapsed() < LATELY)
    }
}

/// How many requests these disks have had, of those that are served.
pub(crate) fn requests(memory: &Memory, disks: &[DiskId]) -> u64 {
    let stats = disks.iter().filter_map(|disk| memory.storage.engine.stats(*disk).ok());
    stats.map(|it| it.read.operations + it.write.operations + it.flushes).sum()
}
