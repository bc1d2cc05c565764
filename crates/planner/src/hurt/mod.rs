//! Disks that are hurt: who they are is decided in `core`, here it is fed, and said.
//!
//! Every five seconds `core` sees what each disk did. What it says has changed is in the log,
//! and so among the events. Of the disks that are hurt, the `scene` says who shares their
//! device, `remedy` what would help, and `words` has the sentences; who asks is told what was
//! found last. What is usual is kept in the history file (`usual`), and what somebody did is
//! held against the disks that it may help (`tried`).

mod remedy;
mod scene;
mod tried;
mod usual;
mod words;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::{HurtDisk, Result};
use sterna_core::hurt::{
    Deeds, Did, End, Held, Hurt, STEP, Said, Slowed, Slower, Turn, Watches,
};
use sterna_core::{DiskId, Nanos};
use sterna_os::{Local, clock, lock};
use sterna_runtime::tasks::Task;
use sterna_state::DiskRecord;

use self::remedy::Remedies;
use self::scene::HurtScene;
pub(crate) use self::usual::KEEP;
use crate::Planner;

/// So many are told of: more than a screen shows.
const TOLD_MOST: usize = 50;

/// Who looks for disks that are hurt.
#[derive(Debug)]
pub(crate) struct Lookout {
    epoch: Instant,
    /// When that was, since 1970: what is usual is kept longer than a daemon lives.
    born: Nanos,
    watches: Mutex<Watches>,
    deeds: Mutex<Deeds>,
    found: Mutex<FoundHurt>,
    remedies: Mutex<Remedies>,
}

/// How many disks are hurt, or slower than usual, and the worst of each.
#[derive(Clone, Debug, Default)]
pub struct FoundHurt {
    /// How many are hurt.
    pub count: u64,
    /// The worst of them.
    pub hurt: Vec<HurtDisk>,
    /// How many are slower than usual, and not hurt.
    pub count_slower: u64,
    /// The slowest of them.
    pub slower: Vec<HurtDisk>,
    /// Those that are slowed on purpose, the slowest of them.
    pub slowed: Vec<HurtDisk>,
}

impl Default for Lookout {
    fn default() -> Self {
        let (watches, deeds, found, remedies) = Default::default();
        let born = Nanos::from_secs(clock::now());
        Lookout { epoch: Instant::now(), born, watches, deeds, found, remedies }
    }
}

/// Looks for disks that are hurt.
pub fn watching(planner: &Arc<Planner>) -> Task {
    let every = Duration::from_nanos(STEP.0);
    let watch = |planner: &Arc<Planner>| planner.watch();
    Task::every("hurt", "see which disks are slower than usual", every, planner, watch)
}

impl Planner {
    /// The disks that are hurt, or slower than usual.
    pub fn hurt_disks(&self) -> FoundHurt {
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
        let asked = |disk: &DiskRecord| {
            let class = snapshot.class_of(disk.id);
            let promised = class.and_then(|class| class.promised_response(moment));
            // A limit that its class does not reach makes no disk wait.
            let held = self.levels.holding(&snapshot, disk.id);
            let held = held.map(|bound| match bound.target_of {
                Some(_) => Held::Target,
                None => Held::Limit,
            });
            (disk.id, Did { promised, held, ..Did::default() })
        };
        let mut did: Vec<_> = served.into_iter().map(asked).collect();
        let look = self.storage.samples.look(STEP);
        did.iter_mut().for_each(|(disk, did)| did.summary = look.disk(*disk));
        drop(look);
        let (said, hurt, slower, slowed) = {
            let mut watches = lock(&self.hurt.watches);
            watches.forget_others(&disks.iter().map(|disk| disk.id).collect());
            let said = watches.step(now, &did);
            (said, watches.hurt(), watches.slower(), watches.slowed())
        };
        let slower: Vec<_> =
            slower.iter().map(|(disk, one)| (*disk, as_hurt(one))).collect();
        let slowed: Vec<_> =
            slowed.iter().map(|(disk, one)| (*disk, held_as_hurt(one))).collect();
        let held: HashSet<DiskId> = slowed.iter().map(|(disk, _)| *disk).collect();
        let effects = self.effects(now, &did, [&hurt, &slower], &held);
        let ailing: HashSet<DiskId> =
            hurt.iter().chain(&slower).map(|(disk, _)| *disk).collect();
        lock(&self.hurt.remedies).forget_others(|disk| ailing.contains(&disk));
        if said.is_empty()
            && effects.is_empty()
            && hurt.len() + slower.len() + slowed.len() == 0
        {
            *lock(&self.hurt.found) = FoundHurt::default();
            return Ok(());
        }
        let scene = HurtScene::new(self, disks);
        for one in said {
            self.say(&scene, &one);
        }
        for effect in &effects {
            let Some(record) = scene.disk(effect.disk) else { continue };
            let disk = record.name.as_str();
            tracing::info!(disk, "{}", tried::effect(effect));
        }
        let (count, count_slower) = (hurt.len() as u64, slower.len() as u64);
        let tell = |mut these: Vec<(DiskId, Hurt)>| -> Vec<HurtDisk> {
            these.sort_by(|(_, a), (_, b)| badness(b).total_cmp(&badness(a)));
            let worst = these.iter().take(TOLD_MOST);
            let told = |(disk, hurt): &(DiskId, Hurt)| match held.contains(disk) {
                true => self.told_slowed(&scene, *disk, hurt),
                false => self.told(&scene, *disk, hurt),
            };
            worst.filter_map(told).collect()
        };
        let (hurt, slower, slowed) = (tell(hurt), tell(slower), tell(slowed));
        *lock(&self.hurt.found) = FoundHurt { count, hurt, count_slower, slower, slowed };
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
            Turn::Fell { lasted, end, .. } => {
                let how = match end {
                    End::Quiet => "the disk asks for hardly anything now",
                    End::Well => "requests are as quick as they should be again",
                    End::OnPurpose => "a policy slows the disk on purpose now",
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
        self.born.plus(Nanos::from(self.epoch.elapsed()))
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

/// A disk that is slower than usual, as one that is hurt by that alone.
fn as_hurt(one: &Slower) -> Hurt {
    let Slower { since, took, usual } = *one;
    let (took, usual) = (Some(took), Some(usual));
    Hurt { since, took, usual, promised: None, recovers: false }
}

/// A disk that is slowed on purpose, in the same form.
fn held_as_hurt(one: &Slowed) -> Hurt {
    let Slowed { since, took, usual } = *one;
    Hurt { since, took: Some(took), usual, promised: None, recovers: false }
}
