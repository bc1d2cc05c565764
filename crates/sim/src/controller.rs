//! What looks on and gives orders: a loop of the core, or none.

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::Terms;

/// What a controller sees of the period that has just ended.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What each client got, by its number in the plan.
    pub clients: &'a [Window],
    /// What each array did.
    pub arrays: &'a [Window],
}

/// What a controller orders; what it does not mention stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// The terms of clients.
    pub terms: Vec<(usize, Terms)>,
    /// How many requests may be at an array at once, or any number.
    pub windows: Vec<(usize, Option<u32>)>,
}

/// A loop: called at the end of each period.
pub trait Controller {
    /// Looks at a period that has ended `now`, and says what is to hold from now on.
    fn step(&mut self, now: Nanos, seen: Seen<'_>) -> Orders;
}

/// No control at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncontrolled;

impl Controller for Uncontrolled {
    fn step(&mut self, _now: Nanos, _seen: Seen<'_>) -> Orders {
        Orders::default()
    }
}

impl<F: FnMut(Nanos, Seen<'_>) -> Orders> Controller for F {
    fn step(&mut self, now: Nanos, seen: Seen<'_>) -> Orders {
        self(now, seen)
    }
}
