//! Whom it has helped that somebody did something: made a limit, paused a move, or took
//! either back.
//!
//! A deed is held against the disks that were hurt, or slower than usual, where it could
//! matter. A disk that is neither any more was helped: after the deed, which is not always by
//! it. One that still is after [`NOT_YET`] was not helped yet, and is told of once more if it
//! is later. Only the latest deed counts for a disk.

use super::watch::STEP;
use crate::{DiskId, Nanos};

/// After so long it is said that a deed has not helped yet.
const NOT_YET: Nanos = Nanos(12 * STEP.0);
/// After so long a disk that recovers does so by itself.
const FORGOTTEN: Nanos = Nanos::from_secs(600);
/// More deeds than people do in ten minutes.
const DEEDS_MOST: usize = 64;

/// What somebody has done, and the disks that it may help.
#[derive(Clone, Debug)]
struct Deed {
    what: String,
    at: Nanos,
    disks: Vec<Waits>,
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

/// What was done lately.
#[derive(Clone, Debug, Default)]
pub struct Deeds(Vec<Deed>);

impl Deeds {
    /// Something was done. These disks ail, and their requests take so long.
    pub fn note(
        &mut self,
        now: Nanos,
        what: String,
        ailing: impl IntoIterator<Item = (DiskId, Option<Nanos>)>,
    ) {
        let wait = |(disk, before)| Waits { disk, before, is_told: false };
        let disks: Vec<Waits> = ailing.into_iter().map(wait).collect();
        if disks.is_empty() {
            return;
        }
        let is_new = |one: &Waits| !disks.iter().any(|new| new.disk == one.disk);
        self.0.iter_mut().for_each(|deed| deed.disks.retain(is_new));
        self.tidy();
        if self.0.len() == DEEDS_MOST {
            self.0.remove(0);
        }
        self.0.push(Deed { what, at: now, disks });
    }

    /// One step that ended now. Says what is to be said.
    pub fn step(&mut self, now: Nanos, of: impl Fn(DiskId) -> State) -> Vec<Effect> {
        let mut effects = Vec::new();
        for deed in &mut self.0 {
            let ago = now.since(deed.at);
            let (what, is_old) = (&deed.what, ago >= FORGOTTEN);
            deed.disks.retain_mut(|one| {
                let State { ails, takes } = of(one.disk);
                let helped = !ails && takes.is_some();
                if helped || (ails && ago >= NOT_YET && !one.is_told) {
                    one.is_told = true;
                    let Waits { disk, before, .. } = *one;
                    let what = what.clone();
                    effects.push(Effect { what, ago, disk, before, now: takes, helped });
                }
                // A disk that asks for nothing was neither helped nor not.
                ails && !is_old
            });
        }
        self.tidy();
        effects
    }

    /// The last thing that was done and may help a disk, how long ago, and what its requests
    /// took then.
    pub fn of(&self, now: Nanos, disk: DiskId) -> Option<(&str, Nanos, Option<Nanos>)> {
        self.0.iter().find_map(|deed| {
            let one = deed.disks.iter().find(|one| one.disk == disk)?;
            Some((deed.what.as_str(), now.since(deed.at), one.before))
        })
    }

    fn tidy(&mut self) {
        self.0.retain(|deed| !deed.disks.is_empty());
    }
}
