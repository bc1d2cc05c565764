//! The site: what there is at one moment, as whoever plans is told of it.
//!
//! Storage DRS and plans decide from a site alone. It is plain data, so they are tested
//! without an engine, a socket or a state; here alone it is read from those. What a
//! datastore or an image says that does not answer in time is left out, not waited for.

use std::collections::HashSet;

use sterna_api::Result;
use sterna_core::measure::{LqFit, Summary};
use sterna_core::predict::Work;
use sterna_core::{DiskId, Nanos};
use sterna_os::clock;
use sterna_state::{DiskRecord, Step};
use sterna_storage::Space;

use crate::Planner;
use crate::plans::StillPlanned;

/// What there is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    /// Seconds since 1970.
    pub(crate) now: u64,
    /// All datastores, by name.
    pub(crate) datastores: Vec<SiteDatastore>,
    /// All disks, by name.
    pub(crate) disks: Vec<SiteDisk>,
    /// All moves of disks that the state knows, by number.
    pub(crate) moves: Vec<SiteMove>,
    /// What plans under way have still to move.
    pub(crate) planned: Vec<StillPlanned>,
}

/// A datastore.
#[derive(Clone, Debug)]
pub(crate) struct SiteDatastore {
    pub(crate) name: String,
    /// Whether images share its room. A device, or an export, is all its image's.
    pub(crate) is_shared: bool,
    pub(crate) is_in_maintenance: bool,
    /// What it has; nothing if it does not answer.
    pub(crate) space: Option<Space>,
    /// What it did.
    pub(crate) did: Summary,
    /// What its device is known to do.
    pub(crate) device: LqFit,
}

/// A disk.
#[derive(Clone, Debug)]
pub(crate) struct SiteDisk {
    pub(crate) record: DiskRecord,
    /// What its image takes, in bytes: its size, if that was not asked, or not answered.
    pub(crate) taken: u64,
    /// What its application asks for.
    pub(crate) work: Work,
    /// Why it is not served, if it is not.
    pub(crate) problem: Option<String>,
}

/// A move of a disk to, from or between datastores.
#[derive(Clone, Debug)]
pub(crate) struct SiteMove {
    pub(crate) id: u64,
    pub(crate) disk: DiskId,
    /// The datastores; nothing of an adoption or release, which QEMU carries out.
    pub(crate) ends: Option<[String; 2]>,
    /// The disk's size in bytes.
    pub(crate) size: u64,
    /// When it ended (seconds since 1970), if it did.
    pub(crate) ended: Option<u64>,
    /// Whether the disk is at the destination: a move that was cancelled has ended as well.
    pub(crate) has_moved: bool,
    /// Whether Storage DRS has begun it.
    pub(crate) is_balancing: bool,
}

impl SiteMove {
    /// Whether its source or its destination is on a datastore.
    pub(crate) fn is_on(&self, datastore: &str) -> bool {
        self.ends.iter().flatten().any(|end| end == datastore)
    }
}

impl Planner {
    /// The site, by what was seen in the last `window`. What an image takes is asked of the
    /// disks that are wanted, where their datastore answers.
    pub(crate) fn site(
        &self,
        window: Nanos,
        wants: impl Fn(&DiskRecord) -> bool,
    ) -> Result<Site> {
        let mut site = self.site_at_rest(window, wants)?;
        self.see_what_is_under_way(&mut site)?;
        Ok(site)
    }

    /// The same without what moves and is planned: for whoever must ask no storage later, and
    /// then sees what is under way.
    pub(crate) fn site_at_rest(
        &self,
        window: Nanos,
        wants: impl Fn(&DiskRecord) -> bool,
    ) -> Result<Site> {
        let looks = self.storage.look_at_handles();
        let datastores = looks.into_iter().map(|(handle, found)| SiteDatastore {
            name: handle.name().to_owned(),
            is_shared: handle.is_shared(),
            is_in_maintenance: handle.is_in_maintenance(),
            space: found.ok(),
            did: self.storage.samples.of_datastore(handle.name(), window),
            device: {
                let device = self.storage.samples.device(handle.name());
                device.unwrap_or(LqFit::TooFew { points: 0 })
            },
        });
        let datastores: Vec<SiteDatastore> = datastores.collect();
        let answers: HashSet<&str> = datastores
            .iter()
            .filter(|one| one.space.is_some_and(|space| space.capacity > 0))
            .map(|one| one.name.as_str())
            .collect();
        let disks = self.storage.store.disks()?.into_iter().map(|record| SiteDisk {
            taken: match answers.contains(record.datastore.as_str()) && wants(&record) {
                true => self.moves.to_copy(&record),
                false => record.size,
            },
            work: Work::of(&self.storage.samples.of_disk(record.id, window)),
            problem: self.storage.problem_of(record.id),
            record,
        });
        let disks = disks.collect();
        Ok(Site { now: clock::now(), disks, datastores, ..Site::default() })
    }

    /// Sees what moves, and what plans have still to move. No storage is asked.
    pub(crate) fn see_what_is_under_way(&self, site: &mut Site) -> Result<()> {
        site.moves = self.site_moves()?;
        site.planned = self.still_planned();
        Ok(())
    }

    fn site_moves(&self) -> Result<Vec<SiteMove>> {
        let moves = self.moves.migration_records()?.into_iter().map(|one| SiteMove {
            id: one.id,
            disk: one.disk,
            is_balancing: self.balancer.has_begun(one.id),
            ends: Some([one.from.datastore, one.to.datastore]),
            size: one.size,
            ended: one.ended,
            has_moved: one.step == Step::Completed,
        });
        let by_qemu = self.storage.store.open_vm_moves()?.into_iter().filter_map(|one| {
            let disk = one.kind.disk()?;
            Some(SiteMove {
                id: one.id,
                disk: disk.id,
                ends: None,
                size: one.size,
                ended: None,
                has_moved: false,
                is_balancing: false,
            })
        });
        Ok(moves.chain(by_qemu).collect())
    }
}

#[cfg(test)]
pub(crate) mod build;
