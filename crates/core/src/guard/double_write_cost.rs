//! The double-write cost: how much slower the source is because each write goes to both
//! images.
//!
//! # Rule
//!
//! If both images share a device, the second write takes time of the same device, and all
//! requests are slower for it. Nobody waits for the destination then, and no baseline
//! shows the cost: it lasts until the copy ends.
//!
//! A sequential writer shows it by itself. At one time all that it writes has been copied
//! and goes to both images, at another time nothing. The module compares stretches of the
//! one kind with stretches of the other right before and after them,
//!
//! ```text
//!   to one | to both | to one        loss = 1 - IO/s(to both) / IO/s(to one)
//!   to both | to one | to both
//! ```
//!
//! and the loss counts for that part of the writes that goes to both.
//!
//! # Special cases
//!
//! - An application that also reads, or writes anywhere, shows nothing: each of its
//!   windows has as many mirrored writes as the one before.
//! - What a log showed is forgotten when the application has been no log for a while.

use std::collections::VecDeque;

use super::Observation;

/// A window tells about writes if this part of its requests are.
const WRITES: f64 = 0.9;

/// It is one to both images from this part of its writes on, and one to the source alone
/// up to the rest; what is in between is the edge of a stretch.
const BOTH: f64 = 0.9;

/// Writes that a window needs to tell, and a stretch: few go to one side by chance, and
/// the fewer, the sooner.
const ANSWERS: u64 = 8;

/// Windows in a row that are not of a log after which it is none: five seconds.
const NO_LOG: u32 = 50;

/// Seconds after which what a stretch began with counts for half: it is compared with
/// what is near.
const NEAR: f64 = 2.0;

/// If the outer stretches differ by more than this part, something has happened in
/// between.
const JUMP: f64 = 0.3;

/// Comparisons before anything is said.
const FEW: f64 = 5.0;

/// Comparisons that count: a device changes while an application goes round its log.
const RECENT: f64 = 20.0;

/// So many standard errors are taken off: what may be chance is not said.
const DOUBT: f64 = 1.5;

/// The part of a new window in how many writes go to both: half a minute counts.
const SMOOTHING: f64 = 1.0 / 300.0;

/// Windows in a row whose writes went to the same images.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    to_both: bool,
    answers: f64,
    seconds: f64,
}

impl Stretch {
    fn iops(&self) -> f64 {
        self.answers / self.seconds.max(1e-9)
    }
}

/// A loop that compares writes to both images with those to one.
#[derive(Debug, Default)]
pub(super) struct DoubleWriteCost {
    /// The last three at most, the newest first.
    stretches: VecDeque<Stretch>,
    /// Comparisons, their mean and their variance, smoothed.
    count: f64,
    loss: f64,
    variance: f64,
    /// The part of the writes that goes to both, smoothed.
    part: f64,
    /// Windows in a row that were not of a log.
    strange: u32,
}

impl DoubleWriteCost {
    /// Looks at a window with hardly a copy.
    pub(super) fn look(&mut self, seen: &Observation<'_>) {
        let (all, writes) = (seen.guest.total().operations, seen.guest.write.operations);
        if all == 0 {
            return;
        }
        if !seen.is_busy() || (writes as f64) < WRITES * all as f64 {
            self.interrupt();
            self.strange += 1;
            if self.strange >= NO_LOG {
                *self = DoubleWriteCost::default();
            }
            return;
        }
        self.strange = 0;
        // An answer may be counted in the window after.
        let to_both = (seen.mirrored_writes as f64 / writes as f64).min(1.0);
        self.part += SMOOTHING * (to_both - self.part);
        let of_one_kind = to_both >= BOTH || to_both <= 1.0 - BOTH;
        if writes >= ANSWERS && of_one_kind {
            self.add(Stretch {
                to_both: to_both >= BOTH,
                answers: writes as f64,
                seconds: seen.guest.span.as_secs_f64(),
            });
        }
    }

    /// What was seen is not next to what comes.
    pub(super) fn interrupt(&mut self) {
        self.stretches.clear();
    }

    /// The part of its IO/s, 0 to 1, that the guest loses; nothing if it may be chance.
    pub(super) fn loss(&self) -> f64 {
        if self.count < FEW {
            return 0.0;
        }
        // Two in a row share two of their stretches.
        let error = (2.0 * self.variance / self.count.min(RECENT)).sqrt();
        self.part * (self.loss - DOUBT * error).clamp(0.0, 1.0)
    }

    fn add(&mut self, window: Stretch) {
        if let Some(last) = self.stretches.front_mut()
            && last.to_both == window.to_both
        {
            if last.seconds > NEAR {
                last.answers /= 2.0;
                last.seconds /= 2.0;
            }
            last.answers += window.answers;
            last.seconds += window.seconds;
            return;
        }
        self.compare();
        self.stretches.push_front(window);
        self.stretches.truncate(3);
    }

    /// The one before the last with the two around it.
    fn compare(&mut self) {
        let [after, between, before] = self.stretches.make_contiguous() else { return };
        let (first, last) = (before.iops(), after.iops());
        let around = (first + last) / 2.0;
        if (first - last).abs() > JUMP * around {
            return;
        }
        let (both, one) = match between.to_both {
            true => (between.iops(), around),
            false => (around, between.iops()),
        };
        self.learn((1.0 - both / one.max(1e-9)).max(-1.0));
    }

    fn learn(&mut self, loss: f64) {
        self.count += 1.0;
        let weight = 1.0 / self.count.min(RECENT);
        let off = loss - self.loss;
        self.loss += weight * off;
        self.variance += weight * (off * (loss - self.loss) - self.variance);
    }
}
