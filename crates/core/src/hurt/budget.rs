//! How often something is said.

use crate::Nanos;

/// So much may be said at once, and one more thing after each `each`.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    most: f64,
    each: Nanos,
    left: f64,
    at: Nanos,
}

impl Budget {
    /// A full one.
    pub fn new(most: u32, each: Nanos) -> Budget {
        Budget { most: most.into(), each, left: most.into(), at: Nanos(0) }
    }

    /// Takes so much, if there is so much.
    pub fn take(&mut self, now: Nanos, count: u32) -> bool {
        let more = now.since(self.at).0 as f64 / self.each.0.max(1) as f64;
        (self.left, self.at) = ((self.left + more).min(self.most), now.max(self.at));
        let enough = self.left >= count.into();
        if enough {
            self.left -= f64::from(count);
        }
        enough
    }
}
