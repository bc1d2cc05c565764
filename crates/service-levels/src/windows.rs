//! How many requests may be at a datastore at once, so that shares and reservations
//! mean something there.
//!
//! A datastore gets a window only while somebody who uses it has shares or a
//! reservation of their own; else it is left alone. What the window should be `core`
//! decides, second by second, from the latency and from what classes have of their
//! reservations.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use sterna_core::Nanos;
use sterna_core::measure::{LqFit, Window};
use sterna_core::qos::{Attained, SHARES, WindowControl, threshold};
use sterna_core::schedule::Moment;
use sterna_storage::handle::DatastoreHandle;

use super::period::Period;
use super::snapshot::{Entry, PolicySnapshot};
use crate::ServiceLevels;

/// Periods for which a window is kept where nobody who needs it asks for anything: a
/// minute. Who comes back after a pause finds it as it was.
const KEPT: u32 = 60;

/// The windows that are in force.
#[derive(Debug, Default)]
pub(super) struct Windows(BTreeMap<String, Place>);

#[derive(Debug, Default)]
struct Place {
    /// Of which datastore: another one may get its name.
    of: Weak<DatastoreHandle>,
    control: WindowControl,
    told: Option<u32>,
    /// Periods since somebody who needs it asked for something.
    quiet: u32,
}

/// Whether a class has something that only a window can give it.
pub(super) fn needs_window(entry: &Entry) -> bool {
    let plan = entry.plan();
    plan.shares != SHARES || plan.reserves()
}

impl Windows {
    /// One period: what was done on the datastores that need a window.
    pub(super) fn step(
        &mut self,
        levels: &ServiceLevels,
        snapshot: &PolicySnapshot,
        period: &Period,
        now: Moment,
    ) {
        let done = period.contended(snapshot);
        let needed = snapshot.entries().any(needs_window);
        for name in self.forget(&done, needed) {
            set(levels, &name, None);
        }
        for name in done.keys() {
            let Ok(handle) = levels.storage.handle(name) else { continue };
            let of = Arc::downgrade(&handle);
            let place = self.0.entry(name.clone()).or_default();
            if !place.of.ptr_eq(&of) {
                *place = Place { of, ..Place::default() };
            }
        }
        let nothing = Window { span: period.span, ..Window::default() };
        for (name, place) in &mut self.0 {
            let window = done.get(name).unwrap_or(&nothing);
            let reserved = period.reserved(snapshot, name, now);
            let places = place.control.step(window, latency_of(levels, name), &reserved);
            if place.told != Some(places) {
                place.told = Some(places);
                set(levels, name, Some(places));
            }
        }
    }

    /// What classes have of their reservations, by the datastores' windows.
    pub(super) fn attained(&self) -> impl Iterator<Item = (&str, Attained)> {
        self.0.iter().flat_map(|(name, place)| {
            place.control.attained().map(|one| (name.as_str(), one))
        })
    }

    /// Lets go of the windows that nobody needs any more; `needed` says whether any
    /// class does.
    fn forget(&mut self, done: &BTreeMap<String, Window>, needed: bool) -> Vec<String> {
        for (name, place) in &mut self.0 {
            place.quiet = if done.contains_key(name) { 0 } else { place.quiet + 1 };
        }
        let is_over = |place: &Place| place.quiet > if needed { KEPT } else { 0 };
        let gone = self.0.iter().filter(|(_, place)| is_over(place));
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        self.0.retain(|_, place| !is_over(place));
        gone
    }
}

fn set(levels: &ServiceLevels, name: &str, places: Option<u32>) {
    // A datastore that was removed needs no window.
    let Ok(handle) = levels.storage.handle(name) else { return };
    if let Err(error) = levels.storage.engine.set_window(&handle.budget(), places) {
        tracing::warn!(datastore = name, %error, "its window is not in force");
    }
}

/// The latency to hold on a datastore.
fn latency_of(levels: &ServiceLevels, name: &str) -> Nanos {
    threshold(match levels.storage.samples.device(name) {
        Some(LqFit::Line(line)) => Some(line.unloaded),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_outlives_a_pause_and_not_its_reason() {
        let busy = BTreeMap::from([("fast".to_owned(), Window::default())]);
        let quiet = BTreeMap::new();
        let mut windows = Windows::default();
        windows.0.insert("fast".into(), Place::default());
        for _ in 0..KEPT {
            assert!(windows.forget(&quiet, true).is_empty());
        }
        assert!(windows.forget(&busy, true).is_empty(), "it is needed again");
        for _ in 0..KEPT {
            assert!(windows.forget(&quiet, true).is_empty());
        }
        assert_eq!(
            windows.forget(&quiet, true),
            ["fast"],
            "nobody has come for a minute"
        );
        windows.0.insert("fast".into(), Place::default());
        assert_eq!(windows.forget(&quiet, false), ["fast"], "no class needs one");
    }
}
