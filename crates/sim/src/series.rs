//! What came out: what each client got and each array did, period by period.

use sterna_core::Nanos;
use sterna_core::measure::Window;

/// The course of one client or array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Its name.
    pub name: String,
    /// A window for each period, one after the other from moment zero.
    pub windows: Vec<Window>,
    /// Requests in flight, summed over time: two for three seconds are six seconds.
    pub in_flight: Nanos,
    /// How long those that were not answered at the end had been in flight, together.
    pub open: Nanos,
    /// Requests that did not come because far too many were open.
    pub refused: u64,
}

impl Course {
    /// What happened in the whole periods between two moments.
    pub fn between(&self, from: Nanos, until: Nanos) -> Window {
        let mut all = Window::default();
        let mut start = Nanos(0);
        for window in &self.windows {
            let end = start.plus(window.span);
            if start >= from && end <= until {
                all.extend(window);
            }
            start = end;
        }
        all
    }

    /// What happened in all.
    pub fn whole(&self) -> Window {
        self.between(Nanos(0), Nanos::MAX)
    }
}

/// What came out of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The clients, in the order of the plan.
    pub clients: Vec<Course>,
    /// The arrays, in the order of the plan.
    pub arrays: Vec<Course>,
}

impl Series {
    /// The client of that name.
    pub fn client(&self, name: &str) -> Option<&Course> {
        self.clients.iter().find(|course| course.name == name)
    }
}
