//! What a datastore's shape lets through, for all of its images together.
//!
//! The images of a datastore are on several reactors. They share one budget, which
//! is atomics alone: no image ever waits for another thread. Each takes for one
//! request at a time, so those that are busy at once get a turn each, request by
//! request, wherever they are and however long their queues. All of them must have
//! the same clock.

use sterna_core::Nanos;
use sterna_core::qos::Bucket;

use super::shape::Shape;

/// The budget of a datastore: shared by all its images.
#[derive(Debug, Default)]
pub struct Budget {
    shape: Shape,
    bytes: Option<Bucket>,
    requests: Option<Bucket>,
}

impl Budget {
    /// All that a shape lets through.
    pub fn new(shape: Shape) -> Budget {
        Budget {
            shape,
            bytes: shape.bytes_per_second.map(Bucket::new),
            requests: shape.iops.map(Bucket::new),
        }
    }

    /// What the datastore is slowed down to.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Takes for one request that reads or writes so many bytes; gives the moment
    /// from which on it may start: `now` or later. A request that is given up
    /// after this has cost what it cost.
    pub(crate) fn take(&self, now: Nanos, bytes: u64) -> Nanos {
        let bytes = self.bytes.as_ref().map(|bucket| bucket.take(now, bytes));
        let request = self.requests.as_ref().map(|bucket| bucket.take(now, 1));
        bytes.max(request).unwrap_or(now)
    }
}
