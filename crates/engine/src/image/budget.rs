//! What a datastore lets through, for all of its images together: its shape, the
//! array that it emulates, and the pool that its schedulers share. With it go the threads
//! that wait for the datastore where the kernel would ([`Crew`]).
//!
//! The images of a datastore are on several reactors. They share one budget, which
//! is atomics alone: no image ever waits for another thread. Each takes for one
//! request at a time, so those that are busy at once get a turn each, request by
//! request, wherever they are and however long their queues. All of them must have
//! the same clock. (An emulated array is behind a lock; see [`Emulator`].)

use std::sync::Arc;

use sterna_core::array::Model;
use sterna_core::qos::{Bucket, Pool};
use sterna_core::{Nanos, Shape};

use super::emulator::Emulator;
use crate::io::Crew;

/// The budget of a datastore: shared by all its images.
#[derive(Debug, Default)]
pub struct Budget {
    shape: Shape,
    bytes: Option<Bucket>,
    requests: Option<Bucket>,
    array: Option<Arc<Emulator>>,
    pool: Arc<Pool>,
    crew: Arc<Crew>,
}

impl Budget {
    /// All that a shape lets through.
    pub fn new(shape: Shape) -> Budget {
        Budget {
            shape,
            bytes: shape.bytes_per_second.map(Bucket::new),
            requests: shape.iops.map(Bucket::new),
            array: None,
            pool: Arc::default(),
            crew: Arc::default(),
        }
    }

    /// The same, for a datastore whose images answer no sooner than this array would.
    #[must_use]
    pub fn emulating(mut self, model: Model) -> Budget {
        self.array = Some(Arc::new(Emulator::new(model)));
        self
    }

    /// The array that it emulates.
    pub(crate) fn array(&self) -> Option<&Arc<Emulator>> {
        self.array.as_ref()
    }

    /// What the datastore is slowed down to.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Who may be there at once, and in which order.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Who waits for it.
    pub(crate) fn crew(&self) -> &Arc<Crew> {
        &self.crew
    }

    /// Whether this is the budget with that pool.
    pub fn is(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
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
