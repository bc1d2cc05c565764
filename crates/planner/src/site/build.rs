//! Sites that tests make up: datastores of 100 GiB that answer, and disks that are idle.

use sterna_api::Provision;
use sterna_core::DiskId;
use sterna_core::measure::{LqFit, Summary};
use sterna_core::predict::Work;
use sterna_state::DiskRecord;
use sterna_storage::Space;

use super::{Site, SiteDatastore, SiteDisk, SiteMove};

/// A gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

impl Site {
    /// A site with these datastores, each with so much that is taken.
    pub(crate) fn made(now: u64, datastores: &[(&str, u64)]) -> Site {
        let made = |(name, taken): &(&str, u64)| SiteDatastore {
            name: (*name).into(),
            is_shared: true,
            is_in_maintenance: false,
            space: Some(Space {
                capacity: 100 * GIB,
                free: 100 * GIB - taken,
                room: None,
            }),
            did: Summary::default(),
            device: LqFit::TooFew { points: 0 },
        };
        Site { now, datastores: datastores.iter().map(made).collect(), ..Site::default() }
    }

    /// The same site with one more thin disk, whose image takes its whole size.
    pub(crate) fn with_disk(mut self, name: &str, datastore: &str, size: u64) -> Site {
        let record = DiskRecord {
            id: DiskId(self.disks.len() as u128 + 1),
            name: name.into(),
            size,
            datastore: datastore.into(),
            image: format!("{name}.raw"),
            provision: Provision::Thin,
            imported: false,
            generation: 1,
            created: 0,
            vhost_user: None,
        };
        let (work, problem) = (Work::default(), None);
        self.disks.push(SiteDisk { record, taken: size, work, problem });
        self
    }

    /// A datastore.
    pub(crate) fn datastore(&mut self, name: &str) -> &mut SiteDatastore {
        let mut all = self.datastores.iter_mut();
        all.find(|one| one.name == name).expect("a datastore of the site")
    }

    /// A disk.
    pub(crate) fn disk(&mut self, name: &str) -> &mut SiteDisk {
        let mut all = self.disks.iter_mut();
        all.find(|one| one.record.name == name).expect("a disk of the site")
    }

    /// The same site with a move of a disk.
    pub(crate) fn with_move(
        mut self,
        disk: &str,
        [from, to]: [&str; 2],
        ended: Option<u64>,
    ) -> Site {
        let SiteDisk { record, .. } = self.disk(disk).clone();
        self.moves.push(SiteMove {
            id: self.moves.len() as u64 + 1,
            disk: record.id,
            ends: Some([from.into(), to.into()]),
            size: record.size,
            ended,
            has_moved: ended.is_some(),
            is_balancing: true,
        });
        self
    }
}
