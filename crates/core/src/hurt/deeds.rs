//! Whom it has helped that somebody did something: made a limit, paused a move, or took
//! either back.
//!
//! A deed is held against the disks that were hurt, or slower than usual, where it could
//! matter. A disk that is neither any more was helped: after the deed, which is not always by
//! it. One that still is after [`NOT_YET`], and hardly faster, was not helped yet, and is told
//! of once more if it is later. Only the latest deed counts for a disk.
//!
//! A policy that was taken back is worth to be made again for a disk that it had helped, and for
//! one whose requests take clearly longer since then.

use super::remedy::WORTH;
use super::watch::STEP;
use crate::{DiskId, Nanos};

/// After so long it is said that a deed has not helped yet.
const NOT_YET: Nanos = Nanos(12 * STEP.0);
/// After so long a disk that recovers does so by itself.
const FORGOTTEN: Nanos = Nanos::from_secs(600);
/// More deeds than people do in ten minutes.
const DEEDS_MOST: usize = 64;

/// What has helped is remembered for so long: a shift. After that the load is another one.
const PROVEN_FOR: Nanos = Nanos::from_secs(8 * 3600);
/// More than a screen of disks; the oldest goes for a new one.
const PROVEN_MOST: usize = 64;

/// What somebody does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// In words: `policy 5 of class batch was made`.
    pub what: String,
    /// The policy that it is about, if it is about one.
    pub policy: Option<u64>,
    /// The command that does it again, if the deed takes something back.
    pub again: Option<String>,
    /// The disks of the policy's class: a limit was theirs, and made them slower.
    pub holds: Vec<DiskId>,
}

/// A policy that was better for a disk than none, and was taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Proven {
    /// The policy.
    pub policy: u64,
    /// What its removal was called.
    pub what: String,
    /// The command that makes it again.
    pub again: String,
    /// How long ago it was taken back.
    pub ago: Nanos,
    /// What requests of the disk took with it.
    pub took: Nanos,
}

/// What somebody has done, and the disks that it may help.
#[derive(Clone, Debug)]
struct Done {
    deed: Deed,
    at: Nanos,
    disks: Vec<Waits>,
}

/// A policy that has helped a disk.
#[derive(Clone, Debug)]
struct Helped {
    disk: DiskId,
    policy: u64,
    took: Nanos,
    at: Nanos,
    /// When it was taken back, by what, and the command that makes it again.
    undone: Option<(Nanos, String, String)>,
}

/// A disk that waits to be helped.
#[derive(Clone, Copy, Debug)]
struct Waits {
    disk: DiskId,
    before: Option<Nanos>,
    is_told: bool,
}

/// How a disk is now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Whether it is hurt, or slower than usual.
    pub ails: bool,
    /// What its requests take; nothing without any.
    pub takes: Option<Nanos>,
}

/// What came of a deed for a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// What was done.
    pub what: String,
    /// How long ago.
    pub ago: Nanos,
    /// The disk.
    pub disk: DiskId,
    /// What its requests took before; nothing if they hung.
    pub before: Option<Nanos>,
    /// What they take now.
    pub now: Option<Nanos>,
    /// Whether it has helped.
    pub helped: bool,
}

/// Whether requests take clearly less than before; without any they do not.
pub fn helps(before: Option<Nanos>, now: Option<Nanos>) -> bool {
    let Some(now) = now else { return false };
    before.is_none_or(|before| now.0 as f64 <= before.0 as f64 * WORTH)
}

/// Whether requests take clearly more than before. Of a disk that asks for nothing now, or
/// hangs, nobody knows that.
pub fn harms(before: Option<Nanos>, now: Option<Nanos>) -> bool {
    before.zip(now).is_some_and(|(before, now)| before.0 as f64 <= now.0 as f64 * WORTH)
}

/// What was done lately.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    done: Vec<Done>,
    helped: Vec<Helped>,
}

impl Deeds {
    /// Something was done. These disks ail, and their requests take so long.
    pub fn note(
        &mut self,
        now: Nanos,
        deed: Deed,
        ailing: impl IntoIterator<Item = (DiskId, Option<Nanos>)>,
    ) {
        if let (Some(policy), Some(again)) = (deed.policy, &deed.again) {
            for one in self.helped.iter_mut().filter(|one| one.policy == policy) {
                one.undone = Some((now, deed.what.clone(), again.clone()));
            }
        }
        // What helps already keeps the credit for it.
        let helped = |disk, took| {
            let of = self.done.iter().flat_map(|done| &done.disks);
            of.filter(|one| one.disk == disk).any(|one| helps(one.before, took))
        };
        let ailing = ailing.into_iter().filter(|(disk, took)| !helped(*disk, *took));
        let wait = |(disk, before)| Waits { disk, before, is_told: false };
        let disks: Vec<Waits> = ailing.map(wait).collect();
        if disks.is_empty() {
            return;
        }
        let is_new = |one: &Waits| !disks.iter().any(|new| new.disk == one.disk);
        self.done.iter_mut().for_each(|done| done.disks.retain(is_new));
        self.tidy();
        if self.done.len() == DEEDS_MOST {
            self.done.remove(0);
        }
        self.done.push(Done { deed, at: now, disks });
    }

    /// One step that ended now. Says what is to be said.
    pub fn step(&mut self, now: Nanos, of: impl Fn(DiskId) -> State) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut proven = Vec::new();
        for done in &mut self.done {
            let ago = now.since(done.at);
            let (deed, is_old) = (&done.deed, ago >= FORGOTTEN);
            done.disks.retain_mut(|one| {
                let State { ails, takes } = of(one.disk);
                let helped = !ails && takes.is_some();
                let in_vain = ails && !helps(one.before, takes);
                if helped || (in_vain && ago >= NOT_YET && !one.is_told) {
                    one.is_told = true;
                    let Waits { disk, before, .. } = *one;
                    let what = deed.what.clone();
                    let made = deed.policy.filter(|_| helped && deed.again.is_none());
                    if let (Some(policy), Some(took)) = (made, takes) {
                        let undone = None;
                        proven.push(Helped { disk, policy, took, at: now, undone });
                    }
                    effects.push(Effect { what, ago, disk, before, now: takes, helped });
                }
                // A disk that asks for nothing was neither helped nor not.
                ails && !is_old
            });
        }
        self.tidy();
        self.helped.retain(|one| now.since(one.at) < PROVEN_FOR);
        for one in proven {
            self.helped.retain(|old| (old.disk, old.policy) != (one.disk, one.policy));
            if self.helped.len() == PROVEN_MOST {
                self.helped.remove(0);
            }
            self.helped.push(one);
        }
        effects
    }

    /// The policy that was better for a disk than none, and was taken back last. Its requests
    /// take `takes` now.
    pub fn taken_back(
        &self,
        now: Nanos,
        disk: DiskId,
        takes: Option<Nanos>,
    ) -> Option<Proven> {
        self.missed(now, disk, takes).or_else(|| self.proven(now, disk))
    }

    /// A policy without which the disk is worse than with it, whether or not it was seen to
    /// help.
    fn missed(&self, now: Nanos, disk: DiskId, takes: Option<Nanos>) -> Option<Proven> {
        self.done.iter().find_map(|done| {
            let is_held = done.deed.holds.contains(&disk);
            let one = done.disks.iter().find(|one| one.disk == disk && !is_held)?;
            Some(Proven {
                policy: done.deed.policy?,
                what: done.deed.what.clone(),
                again: done.deed.again.clone()?,
                ago: now.since(done.at),
                took: one.before.filter(|_| harms(one.before, takes))?,
            })
        })
    }

    fn proven(&self, now: Nanos, disk: DiskId) -> Option<Proven> {
        let of = self.helped.iter().filter(|one| one.disk == disk);
        let undone = of.filter_map(|one| Some((one, one.undone.as_ref()?)));
        let (one, (at, what, again)) = undone.max_by_key(|(_, (at, ..))| *at)?;
        Some(Proven {
            policy: one.policy,
            what: what.clone(),
            again: again.clone(),
            ago: now.since(*at),
            took: one.took,
        })
    }

    /// The last thing that was done and may help a disk, how long ago, and what its requests
    /// took then.
    pub fn of(&self, now: Nanos, disk: DiskId) -> Option<(&str, Nanos, Option<Nanos>)> {
        self.done.iter().find_map(|done| {
            let one = done.disks.iter().find(|one| one.disk == disk)?;
            Some((done.deed.what.as_str(), now.since(done.at), one.before))
        })
    }

    fn tidy(&mut self) {
        self.done.retain(|done| !done.disks.is_empty());
    }
}
