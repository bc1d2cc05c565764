//! The mirroring cost: what mirrored writes cost the guest, whatever is copied.

use super::Observation;
use super::double_write_cost::DoubleWriteCost;

/// How long writes waited for the destination alone in a window, and how long all
/// requests took, in nanoseconds and smoothed; and how much slower the source is for
/// them.
#[derive(Debug, Default)]
pub(super) struct MirroringCost {
    waited: f64,
    took: f64,
    double_writes: DoubleWriteCost,
}

impl MirroringCost {
    /// Looks at a window, which has this weight, for what writes wait.
    pub(super) fn look(&mut self, seen: &Observation<'_>, weight: f64) {
        self.waited += weight * (seen.mirror_wait.0 as f64 - self.waited);
        let took = seen.guest.total().response.0 as f64;
        self.took += weight * (took - self.took);
    }

    /// Looks at a window with hardly a copy for how much slower writes to both images
    /// are.
    pub(super) fn compare(&mut self, seen: &Observation<'_>) {
        self.double_writes.look(seen);
    }

    /// What was seen says nothing of what comes.
    pub(super) fn interrupt(&mut self) {
        self.double_writes.interrupt();
    }

    /// The part of its time, 0 to 1. Where writes to both images are slower than those to
    /// one, that is known of all, with what they wait.
    pub(super) fn part(&self) -> f64 {
        let waited = (self.waited / self.took.max(1.0)).min(1.0);
        waited.max(self.double_writes.loss())
    }
}
