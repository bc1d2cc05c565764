//! Disks that are hurt: who they are is decided in `core`, here it is fed, and said.
//!
//! Every five seconds `core` sees what each disk did. What it says has changed is in the log,
//! and so among the events. Of the disks that are hurt, the `scene` says who shares their
//! device, and `words` by what they are hurt and what would help; who asks is told what was
//! found last.

mod scene;
mod words;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::{HurtDisk, Recommendations, Result};
use sterna_core::hurt::{Hurt, STEP, Said, Turn, Watches};
use sterna_core::{DiskId, Nanos};
use sterna_os::{Local, clock, lock};
use sterna_runtime::tasks::Task;
use sterna_state::DiskRecord;

use self::scene::HurtScene;
use crate::Planner;

/// So many are told of: more than a screen shows.
const TOLD_MOST: usize = 50;
/// How long recommendations count.
const RECOMMENDED_FOR: Duration = Duration::from_secs(30);

/// Who looks for disks that are hurt.
#[derive(Debug)]
pub(crate) struct Lookout {
    epoch: Instant,
    watches: Mutex<Watches>,
    found: Mutex<(u64, Vec<HurtDisk>)>,
    recommended: Mutex<Option<(Instant, String, Recommendations)>>,
}

impl Default for Lookout {
    fn default() -> Self {
        let (watches, found, recommended) = Default::default();
        Lookout { epoch: Instant::now(), watches, found, recommended }
    }
}

/// Looks for disks that are hurt.
pub fn watching(planner: &Arc<Planner>) -> Task {
    let every = Duration::from_nanos(STEP.0);
    let watch = |planner: &Arc<Planner>| planner.watch();
    Task::every("hurt", "see which disks are slower than usual", every, planner, watch)
}

impl Planner {
    /// How many disks are hurt, and the worst of them.
    pub fn hurt_disks(&self) -> (u64, Vec<HurtDisk>) {
        lock(&self.hurt.found).clone()
    }

    /// All disks that are hurt.
    pub fn hurt_ids(&self) -> HashSet<DiskId> {
        lock(&self.hurt.watches).hurt().into_iter().map(|(disk, _)| disk).collect()
    }

    fn watch(&self) -> Result<()> {
        let (disks, now) = (self.storage.store.disks()?, self.hurt.now());
        let (snapshot, moment) = (self.levels.snapshot(), Local::now().moment());
        let served = |disk: &&DiskRecord| self.storage.problem_of(disk.id).is_none();
        let served: Vec<&DiskRecord> = disks.iter().filter(served).collect();
        let did: Vec<_> = {
            let look = self.storage.samples.look(STEP);
            let did = |disk: &DiskRecord| {
                let class = snapshot.class_of(disk.id);
                let promised = class.and_then(|class| class.promised_response(moment));
                (disk.id, look.disk(disk.id), promised)
            };
            served.into_iter().map(did).collect()
        };
        let (said, mut hurt) = {
            let mut watches = lock(&self.hurt.watches);
            (watches.step(now, &did), watches.hurt())
        };
        if said.is_empty() && hurt.is_empty() {
            *lock(&self.hurt.found) = (0, Vec::new());
            return Ok(());
        }
        let scene = HurtScene::new(self, disks);
        for one in said {
            self.say(&scene, &one);
        }
        let count = hurt.len() as u64;
        hurt.sort_by(|(_, a), (_, b)| badness(b).total_cmp(&badness(a)));
        let told = hurt.iter().take(TOLD_MOST);
        let found = told.filter_map(|(disk, hurt)| self.told(&scene, *disk, hurt));
        *lock(&self.hurt.found) = (count, found.collect());
        Ok(())
    }

    /// Says what has changed for a disk.
    fn say(&self, scene: &HurtScene<'_>, said: &Said) {
        let Some(record) = scene.disk(said.disk) else { return };
        let disk = record.name.as_str();
        let before = match said.unsaid {
            0 => String::new(),
            count => format!("; {count} times before this was not told"),
        };
        match &said.turn {
            Turn::Rose(hurt) => {
                let what = words::takes(hurt);
                let why =
                    self.told(scene, said.disk, hurt).map_or(String::new(), |it| it.why);
                tracing::info!(disk, "{what}. {why}{before}");
            }
            Turn::Fell { lasted, quiet, .. } => {
                let how = match quiet {
                    true => "the disk asks for hardly anything now",
                    false => "requests are as quick as they should be again",
                };
                let worst = words::worst(&said.turn);
                let lasted = words::span(*lasted);
                tracing::info!(disk, "{how}, after {lasted}{worst}{before}");
            }
            Turn::Began { iops } => {
                tracing::info!(disk, "a load begins: {iops:.0} IO/s{before}");
            }
            Turn::Ended { lasted } => {
                let lasted = words::span(*lasted);
                tracing::info!(disk, "the load has ended, after {lasted}{before}");
            }
        }
    }
}

impl Lookout {
    fn now(&self) -> Nanos {
        Nanos::from(self.epoch.elapsed())
    }

    /// That moment (seconds since 1970).
    fn of_people(&self, at: Nanos) -> u64 {
        let ago = self.now().since(at);
        clock::now().saturating_sub(ago.0 / 1_000_000_000)
    }
}

/// How bad it is: hanging is the worst, then by how many times it takes longer than it should.
fn badness(hurt: &Hurt) -> f64 {
    let Some(took) = hurt.took else { return f64::INFINITY };
    let should = hurt.promised.or(hurt.usual).map_or(1, |should| should.0.max(1));
    took.0 as f64 / should as f64
}
