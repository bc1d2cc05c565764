//! The baseline tail: how many of the guest's requests are slower than a bound with
//! hardly a copy beside them.
//!
//! # Rule
//!
//! If these are more than the hundredth that the bound leaves, no copier can hold the
//! bound, and the guard says so: only the operator who set the bound can change it. The
//! module counts requests, not percentiles, which remember for seconds. Requests that are
//! slow beside more of a copy count as *doubtful*, until
//! [`attribution`](super::attribution) says whose doing they were.
//!
//! # Special case
//!
//! Writes that wait for the destination are slow because of the move, but not because of
//! what is copied at the moment. Less copying does not help them; it makes them last.

use super::Observation;
use super::mirroring_cost::MirroringCost;
use crate::Nanos;

/// Hardly a copy, bytes per second: twice the least.
const HARDLY: f64 = 2.0 * super::LEAST;

/// The weight of a window in the copy's rate, which goes by chunks: a second.
const SECOND: f64 = 0.1;

/// The weight of a window where storms of a second shall not count for much: a minute.
const MINUTE: f64 = 1.0 / 600.0;

/// The weight of a window in what is so lately: five seconds.
const LATELY: f64 = 1.0 / 50.0;

/// The weight of a window where it is a little too much all the time: five minutes.
const LONG: f64 = 1.0 / 3000.0;

/// It is said from this part of the requests on, over a minute: a second and a half in
/// which all are slow, so that one such second is not enough, nor two in four minutes.
const OFTEN: f64 = 0.025;

/// And from this one on, over five.
const MORE: f64 = 0.012;

/// And until it was no more than this: what the bound leaves.
const SELDOM: f64 = 0.01;

/// Waiting for the destination counts from this part of the response times on.
const MIRRORED: f64 = 0.05;

/// The part of the requests that are slow, window by window, lately and over longer.
#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    lately: f64,
    minute: f64,
    long: f64,
}

impl Slow {
    fn look(&mut self, part: f64) {
        self.lately += LATELY * (part - self.lately);
        self.minute += MINUTE * (part - self.minute);
        self.long += LONG * (part - self.long);
    }
}

/// The slow requests of the guest itself.
#[derive(Debug, Default)]
pub(super) struct BaselineTail {
    /// What is copied, bytes per second.
    copied: f64,
    /// Slow for reasons of their own, as is known.
    slow: Slow,
    /// The same, if the doubtful ones are so, too.
    doubtful: Slow,
    /// That is too much: by what it was over a minute, and over more.
    often: bool,
    always: bool,
    mirroring: MirroringCost,
}

impl BaselineTail {
    /// Looks at a window; slow is what takes longer than the bound.
    pub(super) fn look(&mut self, seen: &Observation<'_>, bound: Nanos) {
        self.copied += SECOND * (seen.copy_rate() - self.copied);
        let answers = &seen.guest.response;
        if answers.is_empty() {
            return;
        }
        let slow = answers.longer_than(bound) as f64 / answers.len() as f64;
        let part = if self.is_baseline() { slow } else { 0.0 };
        self.doubtful.look(slow);
        self.slow.look(part);
        let Slow { lately, minute, long } = self.slow;
        let bar = if self.always { SELDOM } else { MORE };
        self.always = long > bar && minute > SELDOM / 2.0;
        let was = self.often;
        self.often = lately > SELDOM && (was || minute > OFTEN);
        if was && !self.often {
            (self.slow.minute, self.doubtful.minute) = (0.0, 0.0);
        }
        self.mirroring.look(seen, LATELY);
        if self.is_baseline() {
            self.mirroring.compare(seen);
        }
    }

    /// The doubtful requests were not the copy's doing: they count, too.
    pub(super) fn count_doubtful(&mut self) {
        self.slow = self.doubtful;
    }

    /// The doubtful requests may have been the copy's doing: they do not count.
    pub(super) fn drop_doubtful(&mut self) {
        self.doubtful = self.slow;
    }

    /// What was seen says nothing of what comes.
    pub(super) fn interrupt(&mut self) {
        self.mirroring.interrupt();
    }

    /// Whether there is hardly a copy.
    fn is_baseline(&self) -> bool {
        self.copied <= HARDLY
    }

    /// The part of its requests, 0 to 1, that are slow, if those are often too many.
    pub(super) fn slow_part(&self) -> Option<f64> {
        let Slow { lately, minute, long } = self.slow;
        let often = self.often.then_some(minute.max(lately));
        often.or_else(|| self.always.then_some(long))
    }

    /// Whether its writes wait for the destination for so long that it tells.
    pub(super) fn is_mirrored(&self) -> bool {
        self.mirroring.part() > MIRRORED
    }
}
