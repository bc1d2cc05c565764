//! A trial: fewer and fewer requests at a datastore, and what that brings a class.

use super::attained::Attainment;

/// So many times what a class had is more, and the inverse is less: seconds vary by less.
pub(super) const MORE: f64 = 1.2;

/// Of requests that come by chance, the smoothed count of seconds is more than another by
/// this many roots of it once in a hundred times.
const CHANCE: f64 = 2.0;

/// Who has only this part of its requests under way when others have less was answered
/// sooner, and has asked for no more: else it would have as many.
pub(super) const FEWER: f64 = 0.8;

/// How many were let to it when it had so much.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) most: Option<f64>,
    pub(super) here: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) before: At,
    pub(super) best: At,
    /// The class's requests under way before, and the fewest since.
    pub(super) under_way: f64,
    pub(super) fewest: f64,
    /// Steps for which there have been as few as there can be.
    pub(super) at_least: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) here: f64,
    /// Its requests under way then, and why it has no more.
    pub(super) under_way: f64,
    pub(super) why: Attainment,
    /// Steps until it is tried again, and how many they were.
    pub(super) left: u32,
    pub(super) of: u32,
}

impl Trial {
    /// Why the class has no more than it had, if it asked for no more in the end or not,
    /// and does so much.
    pub(super) fn tells(&self, sated: bool, does: f64) -> Attainment {
        let fewer = self.fewest <= FEWER * self.under_way;
        let more = MORE.max(1.0 + CHANCE / does.max(1.0).sqrt());
        match (sated || fewer) && self.best.here < self.before.here * more {
            true => Attainment::Sated,
            false => Attainment::Lacking,
        }
    }
}
