//! Cruise control among the clients of a world: what the daemon's loop does there.
//!
//! A world may look more often than the loop does: what was seen is put together until
//! one of the loop's periods is full.

use sterna_core::Nanos;
use sterna_core::guard::cruise::{CruiseControl, CruiseOutcome, Other, PERIOD};
use sterna_core::measure::Window;
use sterna_core::qos::policy::Cruise;
use sterna_core::qos::{ClassId, Terms};

use crate::controller::{Controller, Orders, Seen};

/// The loop that holds one client's target by slowing the others at its array.
#[derive(Debug)]
pub struct Cruising {
    client: usize,
    control: CruiseControl,
    /// What was seen of the period under way.
    seen: Vec<Window>,
}

impl Cruising {
    /// A loop for the client of this number. All clients use one array.
    pub fn new(client: usize, cruise: Cruise) -> Cruising {
        Cruising { client, control: CruiseControl::new(cruise), seen: Vec::new() }
    }

    /// What has become of the target.
    pub fn outcome(&self) -> &CruiseOutcome {
        self.control.outcome()
    }

    /// The terms of all clients from now on, if a period is full.
    pub fn look(&mut self, seen: Seen<'_>) -> Option<Vec<(usize, Terms)>> {
        self.seen.resize(seen.clients.len(), Window::default());
        for (all, window) in self.seen.iter_mut().zip(seen.clients) {
            all.extend(window);
        }
        let full = self.seen.first().is_some_and(|window| window.span >= PERIOD);
        let windows = full.then(|| std::mem::take(&mut self.seen))?;
        let other = |(client, window): (usize, &Window)| Other {
            class: class(client),
            window: window.clone(),
            floor: 0.0,
        };
        let others = windows.iter().enumerate().filter(|(at, _)| *at != self.client);
        let others: Vec<Other> = others.map(other).collect();
        let hold = self.control.step(windows.get(self.client)?, &others);
        let limits = |at: usize| match at == self.client {
            true => hold.own,
            false => hold.others.get(&class(at)).copied().unwrap_or_default(),
        };
        let terms = |at| (at, Terms { limit: limits(at), ..Terms::default() });
        Some((0..windows.len()).map(terms).collect())
    }
}

impl Controller for Cruising {
    fn step(&mut self, _now: Nanos, seen: Seen<'_>) -> Orders {
        Orders { terms: self.look(seen).unwrap_or_default(), windows: Vec::new() }
    }
}

/// The class of a client. (Class 0 is that of migrations.)
fn class(client: usize) -> ClassId {
    ClassId(u32::try_from(client + 1).unwrap_or(u32::MAX))
}
