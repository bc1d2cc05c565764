//! All disks, and what is said of them.
//!
//! A disk's turn that begins something (it is hurt, a load begins) costs two of its budget:
//! with it the end is paid for, so whatever was said to begin is said to end, and what was
//! not said to begin is not said to end.

use std::collections::{BTreeMap, BTreeSet};

use super::budget::Budget;
use super::held::{Did, Slowed};
use super::slower::Slower;
use super::usual::{KeptUsual, Usual};
use super::watch::{Hurt, Turn, Watch};
use crate::{DiskId, Nanos};

/// A disk has so many turns at once, ...
const DISK_MOST: u32 = 8;
/// ... and one more after each ten minutes.
const DISK_EACH: Nanos = Nanos::from_secs(600);
/// All disks together have so many, ...
const ALL_MOST: u32 = 100;
/// ... and one more after each two seconds.
const ALL_EACH: Nanos = Nanos::from_secs(2);
/// For so long after the daemon's start no load begins: clients that were there before come
/// back.
const COMES_BACK: Nanos = Nanos::from_secs(60);

/// What is to be said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// Of which disk.
    pub disk: DiskId,
    /// What has changed.
    pub turn: Turn,
    /// How many turns of the disk before this one were not said, as there were too many.
    pub unsaid: u32,
}

/// All disks that are watched.
#[derive(Debug)]
pub struct Watches {
    disks: BTreeMap<DiskId, One>,
    budget: Budget,
    born: Option<Nanos>,
}

#[derive(Debug)]
struct One {
    watch: Watch,
    budget: Budget,
    unsaid: u32,
    /// Whether it was said that the disk is hurt, and that its load has begun.
    said: [bool; 2],
}

impl Default for Watches {
    fn default() -> Self {
        let budget = Budget::new(ALL_MOST, ALL_EACH);
        Watches { disks: BTreeMap::new(), budget, born: None }
    }
}

impl Default for One {
    fn default() -> Self {
        let budget = Budget::new(DISK_MOST, DISK_EACH);
        One { watch: Watch::default(), budget, unsaid: 0, said: [false; 2] }
    }
}

impl Watches {
    /// One step that ended now: all disks that are served, and what each did. Says what is to be
    /// said. Of a disk that is not served it
    /// stays known what is usual.
    pub fn step(&mut self, now: Nanos, disks: &[(DiskId, Did)]) -> Vec<Said> {
        let born = *self.born.get_or_insert(now);
        let is_new = now.since(born) < COMES_BACK;
        let there: BTreeSet<DiskId> = disks.iter().map(|(disk, _)| *disk).collect();
        let away = self.disks.iter_mut().filter(|(disk, _)| !there.contains(disk));
        away.for_each(|(_, one)| one.rests());
        let mut said = Vec::new();
        for (disk, did) in disks {
            let one = self.disks.entry(*disk).or_default();
            for turn in one.watch.step(now, did).into_iter().flatten() {
                let comes_back = is_new && matches!(turn, Turn::Began { .. });
                if !comes_back && one.may_say(now, &turn, &mut self.budget) {
                    let unsaid = std::mem::take(&mut one.unsaid);
                    said.push(Said { disk: *disk, turn, unsaid });
                }
            }
        }
        said
    }

    /// Forgets all disks but these.
    pub fn forget_others(&mut self, these: &BTreeSet<DiskId>) {
        self.disks.retain(|disk, _| these.contains(disk));
    }

    /// The disks that are hurt, the longest first.
    pub fn hurt(&self) -> Vec<(DiskId, Hurt)> {
        let hurt = |(disk, one): (&DiskId, &One)| Some((*disk, one.watch.hurt()?));
        let mut all: Vec<_> = self.disks.iter().filter_map(hurt).collect();
        all.sort_by_key(|(_, hurt)| hurt.since);
        all
    }

    /// The disks that are slower than usual and not hurt, the longest first.
    pub fn slower(&self) -> Vec<(DiskId, Slower)> {
        let slower = |(disk, one): (&DiskId, &One)| Some((*disk, one.watch.slower()?));
        let mut all: Vec<_> = self.disks.iter().filter_map(slower).collect();
        all.sort_by_key(|(_, slower)| slower.since);
        all
    }

    /// The disks that are slowed on purpose and not hurt, the longest first.
    pub fn slowed(&self) -> Vec<(DiskId, Slowed)> {
        let slowed = |(disk, one): (&DiskId, &One)| Some((*disk, one.watch.slowed()?));
        let mut all: Vec<_> = self.disks.iter().filter_map(slowed).collect();
        all.sort_by_key(|(_, slowed)| slowed.since);
        all
    }

    /// What was learned of all disks, to be kept.
    pub fn kept(&self) -> Vec<(DiskId, KeptUsual)> {
        let kept =
            |(disk, one): (&DiskId, &One)| Some((*disk, one.watch.usual().kept()?));
        self.disks.iter().filter_map(kept).collect()
    }

    /// Disks of which it was learned before what is usual.
    pub fn knowing(kept: &[(DiskId, KeptUsual)]) -> Watches {
        let known = |(disk, kept): &(DiskId, KeptUsual)| {
            let watch = Watch::knowing(Usual::restored(kept));
            (*disk, One { watch, ..One::default() })
        };
        Watches { disks: kept.iter().map(known).collect(), ..Watches::default() }
    }

    /// What is known of a disk.
    pub fn of(&self, disk: DiskId) -> Option<&Watch> {
        self.disks.get(&disk).map(|one| &one.watch)
    }
}

impl One {
    /// The disk is not served: whatever was so of it is over.
    fn rests(&mut self) {
        let usual = self.watch.usual().clone();
        (self.watch, self.said) = (Watch::knowing(usual), [false; 2]);
    }

    fn may_say(&mut self, now: Nanos, turn: &Turn, all: &mut Budget) -> bool {
        let (at, begins) = match turn {
            Turn::Rose(_) => (0, true),
            Turn::Fell { .. } => (0, false),
            Turn::Began { .. } => (1, true),
            Turn::Ended { .. } => (1, false),
        };
        if begins {
            let says = self.budget.take(now, 2) && all.take(now, 2);
            self.unsaid += u32::from(!says);
            self.said[at] = says;
            return says;
        }
        std::mem::take(&mut self.said[at])
    }
}
