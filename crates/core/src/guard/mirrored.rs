//! The part of the guest's time that goes into waiting for the destination.

use super::Observation;

/// How long writes waited for the destination alone in a window, and how long all
/// requests took, in nanoseconds and smoothed.
#[derive(Debug, Default)]
pub(super) struct Mirrored {
    waited: f64,
    took: f64,
}

impl Mirrored {
    /// Looks at a window, which has this weight.
    pub(super) fn look(&mut self, seen: &Observation<'_>, weight: f64) {
        self.waited += weight * (seen.mirrored.0 as f64 - self.waited);
        let took = seen.guest.total().response.0 as f64;
        self.took += weight * (took - self.took);
    }

    /// The part, 0 to 1.
    pub(super) fn part(&self) -> f64 {
        (self.waited / self.took.max(1.0)).min(1.0)
    }
}
