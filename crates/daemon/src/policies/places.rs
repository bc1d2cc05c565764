//! How many requests may be at a datastore at once, so that shares and reservations
//! mean something there.
//!
//! A datastore gets a window only while somebody who uses it has shares or a
//! reservation of their own; else it is left alone. What the window should be `core`
//! decides, second by second, from the latency.

use std::collections::BTreeMap;

use sterna_core::Nanos;
use sterna_core::measure::{LqFit, Window};
use sterna_core::qos::{SHARES, WindowControl, threshold};

use super::book::Entry;
use crate::daemon::Daemon;

/// The windows that are in force.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<String, (WindowControl, Option<u32>)>);

/// Whether a class has something that only a window can give it.
pub(super) fn needs_places(entry: &Entry) -> bool {
    let plan = entry.plan();
    plan.shares != SHARES || plan.reserves()
}

impl Places {
    /// One period: what was done on the datastores that need a window.
    pub(super) fn step(&mut self, daemon: &Daemon, done: &BTreeMap<String, Window>) {
        let gone = self.0.keys().filter(|name| !done.contains_key(*name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.0.remove(&name);
            set(daemon, &name, None);
        }
        for (name, window) in done {
            let (control, told) = self.0.entry(name.clone()).or_default();
            let places = control.step(window, latency_of(daemon, name));
            if *told != Some(places) {
                *told = Some(places);
                set(daemon, name, Some(places));
            }
        }
    }
}

fn set(daemon: &Daemon, name: &str, places: Option<u32>) {
    // A datastore that was removed needs no window.
    let Ok(shelf) = daemon.shelf(name) else { return };
    if let Err(error) = daemon.engine.set_window(&shelf.budget(), places) {
        tracing::warn!(datastore = name, %error, "its window is not in force");
    }
}

/// The latency to hold on a datastore.
fn latency_of(daemon: &Daemon, name: &str) -> Nanos {
    threshold(match daemon.samples.device(name) {
        Some(LqFit::Line(line)) => Some(line.unloaded),
        _ => None,
    })
}
