//! What is known of a guard's trials before there are any: predictions are made of it, so
//! that they change when a guard does.

use super::{START, iops_loop, trials, tuned_mode};
use crate::mirror::CopyMode;

/// Seconds of a window of comparisons, at least and at most.
pub(crate) const WINDOW: (f64, f64) =
    (CopyMode::SAMPLE.as_secs_f64(), trials::LONG.as_secs_f64());

/// A window has so many answers, unless it would be too long,
pub(crate) const ANSWERS: f64 = trials::ANSWERS as f64;

/// and is so many times as long as a request takes.
pub(crate) const RESPONSES: f64 = trials::RESPONSES;

/// Bytes per second over the first trials and pauses together.
pub(crate) const FIRST_RATE: f64 = START * iops_loop::DUTY_FIRST;

/// The next trial has at most so many times the rate of one.
pub(crate) const UP: f64 = tuned_mode::UP;

/// Manners of copying that are tried in trials.
pub(crate) const MODES: f64 = 2.0;

/// Bytes per second in a trial in which what is due comes at once.
pub(crate) const BURST: f64 = CopyMode::BURST_MAX as f64 / CopyMode::SAMPLE.as_secs_f64();

/// The part of the time that trials have at most.
pub(crate) const DUTY_MAX: f64 = tuned_mode::DUTY_MAX;

/// The part of what the guest may lose that is aimed at.
pub(crate) const AIM: f64 = tuned_mode::AIM;

/// By how much longer than without a copy requests take in a trial at most, in times of
/// that.
pub(crate) const SLOWER: f64 = tuned_mode::AIM * (tuned_mode::GROWTH_MAX - 1.0);
