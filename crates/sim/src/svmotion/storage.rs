//! The two arrays: pools of spindles, each of an array's behind the one controller and
//! link that it has.
//!
//! A pool is a `core::array` with a LUN on it. What its requests wait for beside the
//! pool's own spindles and cache is the array's link, first come, first served: that is
//! where a copy of one disk meets the reads of all the others.

use sterna_core::Nanos;
use sterna_core::array::{Array, Completion, Kind, Model, Request};

/// The nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

/// A pool of spindles, of one of the arrays.
#[derive(Debug)]
struct Pool {
    array: Array,
    link: usize,
}

/// What all requests to an array pass.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Bytes per second.
    rate: u64,
    free: Nanos,
}

/// The arrays' pools, and their links.
#[derive(Debug, Default)]
pub(super) struct Storage {
    pools: Vec<Pool>,
    links: Vec<Link>,
}

impl Storage {
    /// Adds a link of so many bytes per second; gives its number.
    pub(super) fn add_link(&mut self, rate: u64) -> usize {
        self.links.push(Link { rate, free: Nanos(0) });
        self.links.len() - 1
    }

    /// Adds a pool behind a link; gives its number. The model's own link is to be one
    /// that does not count.
    pub(super) fn add_pool(&mut self, model: Model, link: usize, seed: u64) -> usize {
        self.pools.push(Pool { array: Array::new(model, seed), link });
        self.pools.len() - 1
    }

    /// When so many bytes to or from the pool, from now on, have passed its link.
    pub(super) fn pass(&mut self, now: Nanos, pool: usize, bytes: u64) -> Nanos {
        let link = &mut self.links[self.pools[pool].link];
        let takes = u128::from(bytes) * SECOND / u128::from(link.rate.max(1));
        link.free = link.free.max(now).plus(Nanos(takes as u64));
        link.free
    }

    /// Gives a request to the pool's spindles and cache.
    pub(super) fn submit(
        &mut self,
        now: Nanos,
        pool: usize,
        id: u64,
        kind: Kind,
        (offset, bytes): (u64, u64),
    ) {
        let request = Request { id, lun: 0, kind, offset, bytes };
        self.pools[pool].array.submit(now, request);
    }

    /// Lets time pass at a pool; adds what it is done with.
    pub(super) fn advance(
        &mut self,
        now: Nanos,
        pool: usize,
        done: &mut Vec<Completion>,
    ) {
        self.pools[pool].array.advance(now, done);
    }

    /// When something happens at a pool.
    pub(super) fn next_event(&self, pool: usize) -> Option<Nanos> {
        self.pools[pool].array.next_event()
    }
}
