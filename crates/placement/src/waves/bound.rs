//! How long the moves take at least, in whichever order they are made.

use super::places::MOST;
use super::setup::{Setup, depths};
use sterna_core::Nanos;

/// The least time, the greatest of these:
///
/// - of each datastore, what is copied from and to it over its speed, and the times of
///   the moves there over how many may be at it;
/// - of the groups that wait for each other, the longest moves one after another; without
///   any, the longest move;
/// - the times of all over how many may be made at once.
///
/// A move is counted with the speed that it has by itself: it is never faster.
pub fn bound(setup: &Setup) -> Nanos {
    let ends = (0..setup.ends.len()).map(|end| at(setup, end));
    let total: f64 = setup.moves.iter().map(|one| one.time.as_secs_f64()).sum();
    let at_once = setup.at_once.map_or(0.0, |most| total / most.max(1) as f64);
    let seconds = ends.fold(at_once, f64::max).max(chain(setup));
    Nanos((seconds * 1e9) as u64)
}

/// What a datastore is busy for, in seconds.
fn at(setup: &Setup, end: usize) -> f64 {
    let there = setup.moves.iter().filter(|one| one.from == end || one.to == end);
    let (mut time, mut bytes) = (0.0, 0.0);
    for one in there {
        time += one.time.as_secs_f64();
        bytes += one.time.as_secs_f64() * one.rate;
    }
    let copying = setup.ends[end].speed.map_or(0.0, |speed| bytes / speed.max(1.0));
    copying.max(time / MOST as f64)
}

/// The longest moves of groups, one after another, in seconds.
fn chain(setup: &Setup) -> f64 {
    let longest = |group: Option<usize>| {
        let those = setup.moves.iter().filter(|one| one.group == group);
        those.map(|one| one.time.as_secs_f64()).fold(0.0, f64::max)
    };
    let Some(depths) = depths(&setup.groups) else { return 0.0 };
    let mut order: Vec<usize> = (0..setup.groups.len()).collect();
    order.sort_by_key(|group| depths[*group]);
    let mut ends = vec![0.0_f64; setup.groups.len()];
    for group in order {
        let before = setup.groups[group].after.iter().map(|one| ends[*one]);
        ends[group] = before.fold(0.0, f64::max) + longest(Some(group));
    }
    ends.into_iter().fold(longest(None), f64::max)
}
