//! Who shares a device with a disk that is hurt.

use std::collections::HashMap;

use sterna_api::{AskStorageDrs, HurtBy, HurtDisk, HurtHelp, Migration, RecommendedMove};
use sterna_core::DiskId;
use sterna_core::Nanos;
use sterna_core::hurt::{Cause, Help, Hurt, Neighbour, Share, Shared, cause, help};
use sterna_core::measure::{LqFit, Summary};
use sterna_os::{Local, lock};
use sterna_state::DiskRecord;

use super::RECOMMENDED_FOR;
use super::tried;
use super::words::{self, Around};
use crate::Planner;

/// Who does how much is seen over so long: a second is chance.
const SHARES_OF: Nanos = Nanos::from_secs(30);
/// What Storage DRS recommends is asked by the load of so many seconds: the disk is hurt now.
const RECOMMENDED_BY_S: f64 = 60.0;

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
        let look = planner.storage.samples.look(SHARES_OF);
        let did = disks.iter().map(|disk| (disk.id, look.disk(disk.id))).collect();
        let mut moves = planner.moves.list_recent(u64::MAX).unwrap_or_default();
        moves.retain(|one| !one.state.ended());
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
        };
        let own = self.did[&disk.id];
        let others: Vec<Share> =
            there.iter().map(|other| share(&self.did[&other.id])).collect();
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
        };
        let (queue, service) =
            (own.queue.unwrap_or_default(), own.service.unwrap_or_default());
        let queued = queue.0 as f64 / (queue.0 + service.0).max(1) as f64;
        let watches = lock(&self.planner.hurt.watches);
        let usual_iops = watches.of(disk.id).and_then(|watch| watch.usual().rate());
        drop(watches);
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
        let (shared, others, device) = scene.shared(record);
        let found = cause(hurt, &shared);
        let neighbour = match found {
            Cause::Neighbour { at, .. } => Some(others[at]),
            _ => None,
        };
        let around = self.around(record, neighbour, &scene.moves);
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
            why: words::why(&found, &around),
            help: self.help(hurt, &found, &shared, &around, &device),
            tried: lock(&self.hurt.deeds)
                .of(self.hurt.now(), disk)
                .map(|(what, ago, before)| tried::not_yet(what, ago, before, hurt.took)),
        })
    }

    /// What words need to know around a disk.
    fn around(
        &self,
        disk: &DiskRecord,
        neighbour: Option<&DiskRecord>,
        moves: &[Migration],
    ) -> Around {
        let (snapshot, now) = (self.levels.snapshot(), Local::now().moment());
        let class = |disk: &DiskRecord| {
            snapshot.class_of(disk.id).map(|entry| entry.record.name.clone())
        };
        let there = |name: &str| *name == disk.datastore;
        let copies = moves.iter().filter(|one| there(&one.from) || there(&one.to));
        Around {
            disk: disk.name.clone(),
            datastore: disk.datastore.clone(),
            class: class(disk),
            limited: snapshot
                .class_of(disk.id)
                .is_some_and(|entry| !entry.limit(now).is_none()),
            held: self.levels.view_held_disk(&snapshot, disk.id),
            neighbour: neighbour.map(|one| (one.name.clone(), class(one))),
            copies: copies.map(|one| (one.id, one.disk.clone())).collect(),
            datastores: self.storage.all_handles().len(),
        }
    }

    /// What would help: what Storage DRS would move, else a limit on the neighbour.
    fn help(
        &self,
        hurt: &Hurt,
        found: &Cause,
        shared: &Shared,
        around: &Around,
        device: &Summary,
    ) -> HurtHelp {
        let by_moving = || self.would_move(around, device);
        match found {
            Cause::Hangs | Cause::Queued { .. } | Cause::Copies { .. } => {
                words::help_without(found, around)
            }
            Cause::Neighbour { at, .. } => {
                if let Some(one) = by_moving() {
                    return words::help_by_move(&one);
                }
                let service = device.service.unwrap_or_default();
                let neighbour = Neighbour { at: *at, service };
                let line = self.storage.samples.device(&around.datastore);
                let line = line.unwrap_or(LqFit::TooFew { points: 0 });
                match help(hurt, shared, neighbour, &line) {
                    Help::InVain => words::help_without(found, around),
                    limit => words::help_by_limit(hurt, limit, around),
                }
            }
            Cause::Itself { .. } | Cause::Device => match by_moving() {
                Some(one) => words::help_by_move(&one),
                None => words::help_without(found, around),
            },
        }
    }

    /// The first move away from a datastore that Storage DRS would recommend if the bound for
    /// response times were half of what its requests take now.
    fn would_move(&self, around: &Around, device: &Summary) -> Option<RecommendedMove> {
        let away = |found: &sterna_api::Recommendations| {
            let mut moves = found.moves.iter();
            moves.find(|one| one.from == around.datastore && one.step <= 1).cloned()
        };
        let mut kept = lock(&self.hurt.recommended);
        let still = kept.as_ref().filter(|(at, datastore, _)| {
            at.elapsed() < RECOMMENDED_FOR && *datastore == around.datastore
        });
        if let Some((_, _, found)) = still {
            return away(found);
        }
        // Of several datastores, the worst disk's is asked about; the others wait.
        if kept.as_ref().is_some_and(|(at, ..)| at.elapsed() < RECOMMENDED_FOR) {
            return None;
        }
        let bound = device.p95?.0 / 2_000;
        let asked = AskStorageDrs {
            window_s: Some(RECOMMENDED_BY_S),
            latency_us: Some(bound.max(1)),
            ignore_rest: true,
            ..AskStorageDrs::default()
        };
        let found = self.recommend(&asked).ok()?;
        let first = away(&found);
        *kept = Some((std::time::Instant::now(), around.datastore.clone(), found));
        first
    }
}
