//! What a guard has found out, for the guard of a later move beside an application like
//! that one.
//!
//! **Rule.** An experience is a guess: it says where the next guard begins, and never what
//! is so. That guard takes the price of copying for as uncertain as it is high, so that its
//! first comparison counts for more than all of the experience; it begins slower than the
//! last one ended; and it says that it is learning until it has compared for itself. A
//! guard that has given up, or has seen too little, has no experience.
//!
//! What was at once too much is found out as without it: in the first turn, of a tenth of
//! a second. So a wrong experience costs a turn, and a right one saves the search.

use super::{LEAST, MOST};
use crate::mirror::Manner;

/// What a guard has found out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Experience {
    /// Where a part of the guest's IO/s was kept.
    pub turns: Option<Turned>,
    /// Bytes per second beside which response times stayed within their bound, where they
    /// had one.
    pub within: Option<f64>,
}

/// What turns of a copy beside a guest have shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turned {
    /// How the copier went.
    pub manner: Manner,
    /// Bytes per second in a turn.
    pub rate: f64,
    /// The part of the guest's IO/s that a byte per second cost.
    pub price: f64,
    /// What that cost in response time: 1 where it was twice as long.
    pub slowing: f64,
    /// What a comparison varied by itself, as a part of the guest's IO/s.
    pub noise: f64,
    /// The guest's IO/s without the copy.
    pub iops: f64,
}

impl Experience {
    /// Whether there is nothing in it.
    pub fn is_none(&self) -> bool {
        self.turns.is_none() && self.within.is_none()
    }

    /// Without what cannot be: it may come from a database that somebody has edited.
    pub fn sound(self) -> Experience {
        Experience {
            turns: self.turns.filter(Turned::is_sound),
            within: self.within.filter(|rate| (LEAST..=MOST).contains(rate)),
        }
    }
}

impl Turned {
    fn is_sound(&self) -> bool {
        let Turned { manner: _, rate, price, slowing, noise, iops } = *self;
        let is_part = |value: f64| (0.0..=1.0).contains(&value);
        let may_be = |value: f64| value.is_finite() && value >= 0.0;
        (LEAST..=MOST).contains(&rate)
            && [price, slowing].into_iter().all(|it| is_part(it * LEAST))
            && is_part(noise)
            && may_be(iops)
    }
}
