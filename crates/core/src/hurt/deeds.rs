//! Whom it has helped that somebody did something: made a limit, paused a move, or took
//! either back.
//!
//! A deed is held against the disks that were hurt, or slower than usual, where it could
//! matter. A disk that is neither any more was helped: after the deed, which is not always by
//! it. One that still is after [`NOT_YET`], and hardly faster, was not helped yet, and is told
//! of once more if it is later. Only the latest deed counts for a disk.
//!
//! What was done at about the same time cannot be told apart: it counts together, and proves
//! nothing of one alone.
//!
//! A limit that was taken back is worth to be made again for a disk that it had helped, and for
//! one whose requests take clearly longer since then; but not if a tighter one holds now.
//! A limit helps no disk that it slows.

use super::remedy::WORTH;
use super::watch::STEP;
use crate::{DiskId, Nanos};

/// After so long it is said that a deed has not helped yet.
const NOT_YET: Nanos = Nanos(12 * STEP.0);
/// After so long a disk that recovers does so by itself.
const FORGOTTEN: Nanos = Nanos::from_secs(600);
/// More deeds than people do in ten minutes.
const DEEDS_MOST: usize = 64;

/// Deeds within so long are at the same time: before two steps have ended, nobody can have seen
/// what came of the first.
const TOGETHER: Nanos = Nanos(2 * STEP.0);
/// What has helped is remembered for so long: a shift. After that the load is another one.
const PROVEN_FOR: Nanos = Nanos::from_secs(8 * 3600);
/// More than a screen of disks; the oldest goes for a new one.
const PROVEN_MOST: usize = 64;

/// What somebody does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// In words: `policy 5 of class batch was made`.
    pub what: String,
    /// What it does.
    pub kind: Kind,
    /// The disks that the policy slows, if it limits somebody: those of its class.
    pub holds: Vec<DiskId>,
}

/// What a deed does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It makes this policy.
    Makes(u64),
    /// It takes a policy back; a limit, if there is one, can be made again.
    TakesBack(Option<Again>),
    /// It is about a move.
    Other,
}

/// A limit that can be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The policy that it was.
    pub policy: u64,
    /// The class that it held.
    pub class: String,
    /// What it held the class to.
    pub bytes_per_second: u64,
    /// The command that makes it again.
    pub command: String,
}

/// Limits that were better for a disk than none, and were taken back at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Proven {
    /// The limits: if there are several, nobody knows which it was.
    pub limits: Vec<Again>,
    /// How long ago they were taken back.
    pub ago: Nanos,
    /// What requests of the disk took with them.
    pub took: Nanos,
}

/// What somebody has done, and the disks that it may help.
#[derive(Clone, Debug)]
struct Done {
    /// One, or those of the same time.
    deeds: Vec<Deed>,
    /// When the first of them was done.
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
    /// When it was taken back, and what makes it again.
    undone: Option<(Nanos, Again)>,
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
        deed: &Deed,
        ailing: impl IntoIterator<Item = (DiskId, Option<Nanos>)>,
    ) {
        if let Kind::TakesBack(Some(again)) = &deed.kind {
            let of = self.helped.iter_mut();
            for one in of.filter(|one| one.policy == again.policy) {
                one.undone = Some((now, again.clone()));
            }
        }
        // What helps already keeps the credit for it.
        let helped = |disk, took| {
            let of = self.done.iter().flat_map(|done| &done.disks);
            of.filter(|one| one.disk == disk).any(|one| helps(one.before, took))
        };
        let is_slowed = |disk: &DiskId| {
            matches!(deed.kind, Kind::Makes(_)) && deed.holds.contains(disk)
        };
        let ailing = ailing
            .into_iter()
            .filter(|(disk, took)| !is_slowed(disk) && !helped(*disk, *took));
        let wait = |(disk, before)| Waits { disk, before, is_told: false };
        let new: Vec<Waits> = ailing.map(wait).collect();
        self.joined(now, deed, &new);
        self.tidy();
    }

    /// Lets these disks wait for a deed: with what was done at the same time, or for it alone.
    fn joined(&mut self, now: Nanos, deed: &Deed, new: &[Waits]) {
        let is_new = |one: &Waits| new.iter().any(|new| new.disk == one.disk);
        let mut alone = new.to_vec();
        let mut together = Vec::new();
        for done in &mut self.done {
            let (moved, stay): (Vec<Waits>, _) = done.disks.drain(..).partition(is_new);
            done.disks = stay;
            if now.since(done.at) >= TOGETHER || moved.is_empty() {
                continue;
            }
            alone.retain(|one| !moved.iter().any(|moved| moved.disk == one.disk));
            let deeds = done.deeds.iter().chain([deed]).cloned().collect();
            together.push(Done { deeds, at: done.at, disks: moved });
        }
        let alone = Done { deeds: vec![deed.clone()], at: now, disks: alone };
        for done in together.into_iter().chain([alone]) {
            if done.disks.is_empty() {
                continue;
            }
            if self.done.len() == DEEDS_MOST {
                self.done.remove(0);
            }
            self.done.push(done);
        }
    }

    /// One step that ended now. Says what is to be said.
    pub fn step(&mut self, now: Nanos, of: impl Fn(DiskId) -> State) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut proven = Vec::new();
        for done in &mut self.done {
            let ago = now.since(done.at);
            let (deeds, is_old) = (&done.deeds, ago >= FORGOTTEN);
            done.disks.retain_mut(|one| {
                let State { ails, takes } = of(one.disk);
                let helped = !ails && takes.is_some();
                let in_vain = ails && !helps(one.before, takes);
                if helped || (in_vain && ago >= NOT_YET && !one.is_told) {
                    one.is_told = true;
                    let Waits { disk, before, .. } = *one;
                    let what = words(deeds);
                    if let ([Deed { kind: Kind::Makes(policy), .. }], true, Some(took)) =
                        (&deeds[..], helped, takes)
                    {
                        let (policy, undone) = (*policy, None);
                        proven.push(Helped { disk, policy, took, at: now, undone });
                    }
                    effects.push(Effect { what, ago, disk, before, now: takes, helped });
                }
                // A disk that asks for nothing, or waits for a policy's sake, was neither
                // helped nor not.
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

    /// The limits that were better for a disk than none, and were taken back last, of those
    /// that `would_hold`: tighter than what holds now. The disk's requests take `takes` now.
    pub fn taken_back(
        &self,
        now: Nanos,
        disk: DiskId,
        takes: Option<Nanos>,
        would_hold: impl Fn(&Again) -> bool,
    ) -> Option<Proven> {
        let missed = self.missed(now, disk, takes, &would_hold);
        missed.or_else(|| self.proven(now, disk, &would_hold))
    }

    /// Limits without which the disk is worse than with them, whether or not they were seen to
    /// help.
    fn missed(
        &self,
        now: Nanos,
        disk: DiskId,
        takes: Option<Nanos>,
        would_hold: &impl Fn(&Again) -> bool,
    ) -> Option<Proven> {
        self.done.iter().find_map(|done| {
            let one = done.disks.iter().find(|one| one.disk == disk)?;
            let limit = |deed: &Deed| match &deed.kind {
                Kind::TakesBack(Some(again)) if !deed.holds.contains(&disk) => {
                    Some(again.clone())
                }
                _ => None,
            };
            let limits = done.deeds.iter().filter_map(limit).filter(would_hold);
            Some(Proven {
                limits: Some(limits.collect::<Vec<_>>()).filter(|it| !it.is_empty())?,
                ago: now.since(done.at),
                took: one.before.filter(|_| harms(one.before, takes))?,
            })
        })
    }

    fn proven(
        &self,
        now: Nanos,
        disk: DiskId,
        would_hold: &impl Fn(&Again) -> bool,
    ) -> Option<Proven> {
        let of = self.helped.iter().filter(|one| one.disk == disk);
        let undone = of.filter_map(|one| Some((one, one.undone.as_ref()?)));
        let undone = undone.filter(|(_, (_, again))| would_hold(again));
        let (one, (at, again)) = undone.max_by_key(|(_, (at, _))| *at)?;
        Some(Proven { limits: vec![again.clone()], ago: now.since(*at), took: one.took })
    }

    /// The last thing that was done and may help a disk, how long ago, and what its requests
    /// took then.
    pub fn of(&self, now: Nanos, disk: DiskId) -> Option<(String, Nanos, Option<Nanos>)> {
        self.done.iter().find_map(|done| {
            let one = done.disks.iter().find(|one| one.disk == disk)?;
            Some((words(&done.deeds), now.since(done.at), one.before))
        })
    }

    fn tidy(&mut self) {
        self.done.retain(|done| !done.disks.is_empty());
    }
}

/// What was done, in words.
fn words(deeds: &[Deed]) -> String {
    let each: Vec<&str> = deeds.iter().map(|deed| deed.what.as_str()).collect();
    each.join(", and ")
}
