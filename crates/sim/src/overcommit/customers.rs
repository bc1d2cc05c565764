//! The customers: what their orders ask of processors and memory.
//!
//! There is always somebody who wants to order, so a processor goes from one order to the next. An
//! order computes a little, touches memory, and so on. Most touches are of the *core*: what every
//! order needs, code, small tables and the upper levels of indexes. A few are *places*: a
//! customer's own rows, anywhere in the database's cache, which has pages of its own size.

use sterna_core::Nanos;
use sterna_workload::random::Random;

use super::guest::{Guest, pages_of};
use super::parameters::Parameters;
use crate::dice;

/// Where the core is: the same in all wakes of a guest.
#[derive(Clone, Debug)]
pub(super) struct Core {
    granules: Vec<u32>,
}

impl Core {
    /// Some of the guest's granules.
    pub(super) fn new(guest: &Guest, parameters: &Parameters, seed: u64) -> Core {
        let mut random = Random::new(seed);
        let mut in_core = |_: &u32| dice::part(&mut random) < parameters.core;
        let mut granules: Vec<u32> = (0..guest.granules()).collect();
        granules.retain(|granule| in_core(granule));
        // There is no order without it.
        if granules.is_empty() {
            granules.push(0);
        }
        Core { granules }
    }

    /// A page of it.
    fn page(&self, random: &mut Random) -> u32 {
        let granule = self.granules[random.below(self.granules.len() as u64) as usize];
        let pages = pages_of(granule);
        pages.start + random.below(u64::from(pages.end - pages.start)) as u32
    }
}

/// A processor of the guest.
#[derive(Clone, Debug)]
pub(super) struct Processor {
    random: Random,
    /// Touches of the core, and places, that its order still needs.
    core: u32,
    places: u32,
    /// Pages of a place that follow the one that it touches now.
    rest: u32,
    /// The page that it is about to touch, or waits for.
    pub(super) page: u32,
    /// How long it computes before each touch of the core or of a place, on average.
    mean: f64,
}

impl Processor {
    /// One that is about to begin with an order.
    pub(super) fn new(parameters: &Parameters, seed: u64) -> Processor {
        let touches = f64::from(parameters.core_touches) + parameters.places;
        let mean = parameters.order.0 as f64 / touches;
        let random = Random::new(seed);
        Processor { random, core: 0, places: 0, rest: 0, page: 0, mean }
    }

    /// Whether its order is done.
    pub(super) fn is_done(&self) -> bool {
        (self.core, self.places, self.rest) == (0, 0, 0)
    }

    /// Goes on after a touch: how long it computes until it touches its next page.
    pub(super) fn next(
        &mut self,
        parameters: &Parameters,
        guest: &Guest,
        core: &Core,
    ) -> Nanos {
        if self.rest > 0 {
            self.rest -= 1;
            self.page += 1;
            return Nanos(0);
        }
        if self.is_done() {
            self.core = parameters.core_touches;
            // A whole number that is right on average.
            let part = dice::part(&mut self.random) < parameters.places.fract();
            self.places = parameters.places as u32 + u32::from(part);
        }
        let all = u64::from(self.core + self.places);
        if self.random.below(all) < u64::from(self.core) {
            self.core -= 1;
            self.page = core.page(&mut self.random);
        } else {
            self.places -= 1;
            let length = parameters.place_pages;
            let count = guest.pages() / u64::from(length);
            self.page = self.random.below(count) as u32 * length;
            self.rest = length - 1;
        }
        Nanos((self.mean * dice::exponential(&mut self.random)) as u64)
    }
}
