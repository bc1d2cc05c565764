//! Who shares a device with a disk that is hurt.

use std::collections::HashMap;

use sterna_api::{HurtBy, HurtDisk, Migration};
use sterna_core::DiskId;
use sterna_core::Nanos;
use sterna_core::hurt::{Cause, Hurt, Share, Shared, Watch, cause};
use sterna_core::measure::Summary;
use sterna_core::qos::Rate;
use sterna_os::{Local, lock};
use sterna_service_levels::PolicySnapshot;
use sterna_state::DiskRecord;

use super::remedy::Case;
use super::tried;
use super::words::{self, Around};
use crate::Planner;

/// Who does how much is seen over so long: a second is chance.
pub(super) const SHARES_OF: Nanos = Nanos::from_secs(30);

/// All disks, with what they did lately.
pub(super) struct HurtScene<'a> {
    disks: Vec<DiskRecord>,
    did: HashMap<DiskId, Summary>,
    /// Those that have not ended.
    moves: Vec<Migration>,
    planner: &'a Planner,
}

impl<'a> HurtScene<'a> {
    pub(super) fn new(planner: &'a Planner, disks: Vec<DiskRecord>) -> HurtScene<'a> {
        // First: it looks at the samples itself, and a look keeps out the next one.
        let mut moves = planner.moves.list_recent(u64::MAX).unwrap_or_default();
        moves.retain(|one| !one.state.ended());
        let look = planner.storage.samples.look(SHARES_OF);
        let did = disks.iter().map(|disk| (disk.id, look.disk(disk.id))).collect();
        drop(look);
        HurtScene { disks, did, moves, planner }
    }

    pub(super) fn disk(&self, id: DiskId) -> Option<&DiskRecord> {
        self.disks.iter().find(|disk| disk.id == id)
    }

    /// What all ask of the device of a disk, and which disks the others are.
    fn shared(&self, disk: &DiskRecord) -> (Shared, Vec<&DiskRecord>, Summary) {
        let there: Vec<&DiskRecord> = self
            .disks
            .iter()
            .filter(|it| it.datastore == disk.datastore && it.id != disk.id)
            .collect();
        let share = |summary: &Summary| Share {
            iops: summary.iops(),
            bytes_per_second: summary.bytes_per_second(),
            since: None,
        };
        let own = self.did[&disk.id];
        let watches = lock(&self.planner.hurt.watches);
        let since = |id: DiskId| watches.of(id).and_then(Watch::loaded);
        let other =
            |it: &&DiskRecord| Share { since: since(it.id), ..share(&self.did[&it.id]) };
        let others: Vec<Share> = there.iter().map(other).collect();
        let usual_iops = watches.of(disk.id).and_then(|watch| watch.usual().rate());
        drop(watches);
        let device =
            self.planner.storage.samples.of_datastore(&disk.datastore, SHARES_OF);
        let all = share(&device);
        let rest = |all: f64, of: fn(&Share) -> f64| {
            let disks: f64 = others.iter().map(of).sum();
            (all - disks - of(&share(&own))).max(0.0)
        };
        let copies = Share {
            iops: rest(all.iops, |it| it.iops),
            bytes_per_second: rest(all.bytes_per_second, |it| it.bytes_per_second),
            since: None,
        };
        let (queue, service) =
            (own.queue.unwrap_or_default(), own.service.unwrap_or_default());
        let queued = queue.0 as f64 / (queue.0 + service.0).max(1) as f64;
        let shared = Shared { own: share(&own), others, copies, queued, usual_iops };
        (shared, there, device)
    }
}

impl Planner {
    /// A disk that is hurt, as the API shows it.
    pub(super) fn told(
        &self,
        scene: &HurtScene<'_>,
        disk: DiskId,
        hurt: &Hurt,
    ) -> Option<HurtDisk> {
        let record = scene.disk(disk)?;
        let (shared, ..) = scene.shared(record);
        self.tell(scene, record, hurt, cause(hurt, &shared))
    }

    /// A disk that is slowed on purpose, in the same form: its wait is what matters.
    pub(super) fn told_slowed(
        &self,
        scene: &HurtScene<'_>,
        disk: DiskId,
        slowed: &Hurt,
    ) -> Option<HurtDisk> {
        let record = scene.disk(disk)?;
        let (Shared { queued: part, .. }, ..) = scene.shared(record);
        let told = self.tell(scene, record, slowed, Cause::Queued { part })?;
        Some(HurtDisk { help: words::help_slowed(told.help), ..told })
    }

    fn tell(
        &self,
        scene: &HurtScene<'_>,
        record: &DiskRecord,
        hurt: &Hurt,
        found: Cause,
    ) -> Option<HurtDisk> {
        let (shared, others, device) = scene.shared(record);
        let disk = record.id;
        let neighbour = match found {
            Cause::Neighbour { at, .. } => Some(others[at]),
            _ => None,
        };
        let mut around = self.around(record, neighbour, &scene.moves);
        around.has_rivals = self.has_rivals(scene, record);
        if let Cause::Neighbour { later: Some(began), .. } = found {
            around.later = Some(self.hurt.now().since(began));
        }
        let micros = |span: Nanos| span.0 as f64 / 1e3;
        let by = match found {
            Cause::Hangs => HurtBy::Hangs,
            Cause::Queued { .. } => HurtBy::Queued,
            Cause::Itself { .. } => HurtBy::Itself,
            Cause::Neighbour { .. } => HurtBy::Neighbour,
            Cause::Copies { .. } => HurtBy::Copies,
            Cause::Device => HurtBy::Device,
        };
        Some(HurtDisk {
            disk: record.name.clone(),
            datastore: record.datastore.clone(),
            since: self.hurt.of_people(hurt.since),
            response_us: hurt.took.map(micros),
            usual_us: hurt.usual.map(micros),
            promised_us: hurt.promised.map(micros),
            by,
            neighbour: neighbour.map(|one| one.name.clone()),
            recovers: hurt.recovers,
            why: words::why(&found, &around),
            help: self.help(&Case {
                disk,
                hurt,
                found,
                shared: &shared,
                neighbour: neighbour.map(|one| one.id),
                around: &around,
                device: &device,
            }),
            tried: lock(&self.hurt.deeds)
                .of(self.hurt.now(), disk)
                .map(|(what, ago, before)| tried::not_yet(&what, ago, before, hurt.took)),
        })
    }

    /// Whether a disk of another class is on the same datastore, and is asked for something.
    fn has_rivals(&self, scene: &HurtScene<'_>, disk: &DiskRecord) -> bool {
        let snapshot = self.levels.snapshot();
        let class = |id: DiskId| snapshot.class_of(id).map(|entry| &entry.record.name);
        let is_rival = |other: &&DiskRecord| {
            other.datastore == disk.datastore
                && class(other.id) != class(disk.id)
                && scene.did[&other.id].iops() > 0.0
        };
        scene.disks.iter().any(|other| is_rival(&other))
    }

    /// What words need to know around a disk.
    fn around(
        &self,
        disk: &DiskRecord,
        neighbour: Option<&DiskRecord>,
        moves: &[Migration],
    ) -> Around {
        let snapshot = self.levels.snapshot();
        let class = |disk: &DiskRecord| {
            snapshot.class_of(disk.id).map(|entry| entry.record.name.clone())
        };
        let there = |name: &str| *name == disk.datastore;
        let copies = moves.iter().filter(|one| there(&one.from) || there(&one.to));
        Around {
            disk: disk.name.clone(),
            datastore: disk.datastore.clone(),
            class: class(disk),
            binds: self.levels.holding(&snapshot, disk.id),
            is_ruled: snapshot.entries().any(|entry| !entry.is_built_in())
                || self.levels.list_policies().is_ok_and(|all| !all.is_empty()),
            neighbour: neighbour.map(|one| (one.name.clone(), class(one))),
            reserved: neighbour.and_then(|one| self.reserved(&snapshot, one.id)),
            has_rivals: false,
            later: None,
            copies: copies.map(|one| (one.id, one.disk.clone())).collect(),
            datastores: self.storage.all_handles().len(),
        }
    }

    /// What is reserved for the class of a disk, and how many bytes per second that is with
    /// requests as long as now.
    fn reserved(&self, snapshot: &PolicySnapshot, disk: DiskId) -> Option<(Rate, f64)> {
        let entry = snapshot.class_of(disk)?;
        let rate = entry.reserved(Local::now().moment())?;
        let did = self.storage.samples.look(SHARES_OF).class(entry.record.id);
        Some((rate, rate.in_bytes(&did)?))
    }
}
