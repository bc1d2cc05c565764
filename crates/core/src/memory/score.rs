//! How right predictions of wakes were, and the range that the next one is given with.
//!
//! **Rule.** What a wake takes is predicted from what its devices were measured to do alone.
//! Others use them as well, and the guest's own faults come between: so each wake of this host is
//! compared with what was predicted of it, and the next prediction gets the range in which nine of
//! ten of those would have been. Of few wakes nothing can be learned: then the range is wide.

/// So many wakes are kept: devices and what else uses them change.
pub const SCORES_KEPT: usize = 32;

/// Of fewer wakes nothing is learned.
const ENOUGH: usize = 5;

/// The range before anything was learned, in parts of what is predicted: a device that is shared
/// with another user has half its rate.
const UNKNOWN: (f64, f64) = (0.5, 2.0);

/// What is left out at each end, in parts of the wakes.
const OUTSIDE: f64 = 0.05;

/// By how much the range is wider than what was seen: the next wake may be a little worse.
const WIDER: f64 = 1.1;

/// Wakes that were predicted, and what they took: the part that each took of what was predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WakeScores {
    ratios: Vec<f64>,
}

impl WakeScores {
    /// From what was predicted and what it took, each in seconds; those of no time are left out.
    pub fn new(wakes: impl IntoIterator<Item = (f64, f64)>) -> WakeScores {
        let usable = |(predicted, took): &(f64, f64)| *predicted > 0.0 && *took > 0.0;
        let wakes = wakes.into_iter().filter(usable).take(SCORES_KEPT);
        let mut ratios: Vec<f64> =
            wakes.map(|(predicted, took)| took / predicted).collect();
        ratios.sort_by(f64::total_cmp);
        WakeScores { ratios }
    }

    /// How many wakes it is known of.
    pub fn wakes(&self) -> usize {
        self.ratios.len()
    }

    /// From when to when a wake ends of which this is predicted, in seconds.
    pub fn range(&self, predicted: f64) -> (f64, f64) {
        let (low, high) = match self.ratios.as_slice() {
            few if few.len() < ENOUGH => UNKNOWN,
            all => {
                let last = all.len() - 1;
                let outside = (all.len() as f64 * OUTSIDE) as usize;
                (all[outside] / WIDER, all[last - outside] * WIDER)
            }
        };
        (predicted * low, predicted * high)
    }

    /// By what part predictions were wrong: half of them by less. Nothing before there was any.
    pub fn error(&self) -> Option<f64> {
        let mut errors: Vec<f64> =
            self.ratios.iter().map(|it| (it - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied()
    }
}
