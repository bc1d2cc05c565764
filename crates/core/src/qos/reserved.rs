//! What a class that has a reservation did in a period.

use super::class::ClassId;
use super::terms::{Rate, Terms};
use super::used::AT_LIMIT;
use crate::measure::Window;

/// What a class that has a reservation did in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reserved {
    pub(super) class: ClassId,
    pub(super) rate: Rate,
    /// The part of it that it had, or all if it had what it may, and that it had here.
    pub(super) has: f64,
    pub(super) here: f64,
    /// What it had in figures, and whether a limit leaves it no more.
    pub(super) does: f64,
    pub(super) limited: bool,
    /// Its own requests under way and of them at the device, on average, and how many
    /// seconds they took there.
    pub(super) under_way: f64,
    pub(super) present: f64,
    pub(super) took: f64,
}

impl Reserved {
    /// What a class did on a datastore, and everywhere. Nothing, if its terms reserve
    /// nothing, or limit its response time, which is not compared with what they reserve.
    pub fn of(
        class: ClassId,
        terms: &Terms,
        everywhere: &Window,
        here: &Window,
    ) -> Option<Reserved> {
        let (rate, limit) = (terms.reservation?, &terms.limit);
        let (other, does) = match rate {
            Rate::Requests(_) => (limit.bytes, everywhere.bytes_per_second()),
            Rate::Bytes(_) => (limit.requests, everywhere.iops()),
        };
        if limit.response.is_some() {
            return None;
        }
        let held = other.is_some_and(|limit| does >= AT_LIMIT * limit as f64);
        let had = |seen: &Window| match rate {
            Rate::Requests(_) => seen.iops(),
            Rate::Bytes(_) => seen.bytes_per_second(),
        };
        let part = |seen: &Window| had(seen) / rate.number().max(1) as f64;
        // At its limit it has all that it may, and nothing is dropped for that.
        let has = if held { 1.0 } else { part(everywhere) };
        let present = here.at_device();
        let took = present / here.iops().max(f64::MIN_POSITIVE);
        Some(Reserved {
            class,
            rate,
            has,
            here: part(here),
            does: had(everywhere),
            limited: held,
            // Past its own queue depth it waits for itself.
            under_way: terms.depth.map_or(f64::MAX, f64::from).min(here.outstanding()),
            present,
            took,
        })
    }
}
