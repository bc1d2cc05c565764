//! How far what is reserved for a class is attained, and if not, why.

use super::class::ClassId;
use super::terms::Rate;

/// What a class has of its reservation on one datastore, or on all of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attained {
    /// The class.
    pub class: ClassId,
    /// What is reserved for it.
    pub reserved: Rate,
    /// What it has, everywhere, in the same unit: the mean of some seconds.
    pub has: f64,
    /// Why it has no more.
    pub state: Attainment,
}

/// The states, from that with the least to worry about to that with the most: of a class on
/// two datastores the greater one is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attainment {
    /// It asks for nothing.
    Idle,
    /// It has all of it.
    Kept,
    /// A limit of its own leaves it less.
    Limited,
    /// It asks for less: it seldom has a request there, or fewer at a time than when it
    /// had all, or has asked for no more when it was answered sooner.
    Sated,
    /// It has less, with the datastore for itself: it asks for no more, or the datastore
    /// does no more.
    Alone,
    /// It has less, and others are slowed for it.
    Sought,
    /// It has less, and slowing others further brings it no more.
    Lacking,
}

/// Less than this part of what is reserved is less: seconds vary by as much.
pub(super) const LESS: f64 = 0.97;

impl Attained {
    /// Whether it has all of its reservation, as nearly as a second can tell.
    pub fn has_all(&self) -> bool {
        self.has >= LESS * self.reserved.number() as f64
    }

    /// The part of its reservation that it has, in whole percent.
    pub fn percent(&self) -> f64 {
        (self.has / self.reserved.number().max(1) as f64 * 100.0).floor()
    }
}
