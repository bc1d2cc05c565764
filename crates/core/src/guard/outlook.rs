//! What is known of a guard's turns before there are any: predictions are made of it, so
//! that they change when a guard does.

use super::{START, gear, keep, turns};
use crate::mirror::Manner;

/// Seconds of a window of comparisons, at least and at most.
pub(crate) const WINDOW: (f64, f64) =
    (Manner::SAMPLE.as_secs_f64(), turns::LONG.as_secs_f64());

/// A window has so many answers, unless it would be too long,
pub(crate) const ANSWERS: f64 = turns::ANSWERS as f64;

/// and is so many times as long as a request takes.
pub(crate) const RESPONSES: f64 = turns::RESPONSES;

/// Bytes per second over the first turns and pauses together.
pub(crate) const FIRST_RATE: f64 = START * keep::PART_FIRST;

/// The next turn has at most so many times the rate of one.
pub(crate) const UP: f64 = gear::UP;

/// Manners of copying that are tried in turns.
pub(crate) const MANNERS: f64 = 2.0;

/// Bytes per second in a turn in which what is due comes at once.
pub(crate) const AT_ONCE: f64 = Manner::AT_ONCE_MAX as f64 / Manner::SAMPLE.as_secs_f64();

/// The part of the time that turns have at most.
pub(crate) const PART_MAX: f64 = gear::PART_MAX;

/// The part of what the guest may lose that is aimed at.
pub(crate) const AIM: f64 = gear::AIM;

/// By how much longer than without a copy requests take in a turn at most, in times of
/// that.
pub(crate) const SLOWER: f64 = gear::AIM * (gear::GROWTH_MAX - 1.0);
