//! How near a class is to its target, and what it is held to itself.
//!
//! # Rule
//!
//! The class has a *speed*: what it gets as a part of its target (for a response time,
//! the target as a part of what it takes). And it has an *ease*: the speed that it
//! would have if it were not held. A class that is held waits for its own limit before
//! it comes to the device, so the part of its response time that it is at the device
//! says how much it has to spare: with as many requests under way, it would be so much
//! quicker (Little's law). The speed is what was promised; the ease is what the loop
//! steers by, because it goes on telling one allowance of the others from another when
//! the speed is at the target already.
//!
//! A response time is judged by what the class has of its device. What it waits for a
//! limit or a depth of its own is no doing of the others, and if it has one, only what its
//! requests take from admission on counts.
//!
//! # Why it is held at all
//!
//! A speed is held, a response time is not: it is an upper bound, and a class that is
//! delayed to it would pay for a promise that was made to it. Of a speed, what the others
//! give up is for the target. What the class would get beyond it, they
//! would lose for nothing; and on a device that is full all at once, a class that is
//! let go jumps to twice its target with the first byte that the others give up, so its
//! speed alone says nothing of how much is right.

use crate::Nanos;
use crate::measure::Window;
use crate::qos::policy::Cruise;
use crate::qos::{Goal, Limit};

/// The class is held a little above its target, by this part of the tolerance: what a
/// second varies by itself then lies around the target.
const ABOVE: f64 = 0.25;

/// A class waits for its own limit, and for nothing else, if it has this part of it.
const AT_LIMIT: f64 = 0.95;

/// The speed of a class whose requests hang.
const HANGS: f64 = 0.01;

/// What a class had in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reach {
    /// What it got, as a part of its target.
    pub(super) speed: f64,
    /// What it could have got.
    pub(super) ease: f64,
    /// Its requests under way, on average.
    pub(super) outstanding: f64,
    /// Requests that the period cut off, as a part of those that were answered in it.
    cut_off: f64,
}

impl Reach {
    /// What a class had that was held to its target or not, and that has a limit or a depth
    /// of its own or not. Nothing if it asked for nothing.
    pub(super) fn of(
        cruise: &Cruise,
        own: &Window,
        held: bool,
        limited: bool,
    ) -> Option<Reach> {
        let total = own.total();
        let outstanding = own.outstanding();
        if total.operations == 0 {
            let hangs =
                Reach { speed: HANGS, ease: HANGS, outstanding, cut_off: f64::MAX };
            return (own.in_flight > 0).then_some(hangs);
        }
        let speed = match cruise.target {
            Goal::Bytes(rate) => own.bytes_per_second() / rate as f64,
            Goal::Requests(rate) => own.iops() / rate as f64,
            Goal::Response(span) => {
                let took = if limited { total.service } else { total.response };
                let mean = total.mean(took).unwrap_or_default();
                span.0 as f64 / mean.0.max(1) as f64
            }
        };
        let is_time = matches!(cruise.target, Goal::Response(_));
        let waits =
            held && !is_time && speed >= AT_LIMIT * most(cruise) && total.service.0 > 0;
        let spare = total.response.0 as f64 / total.service.0.max(1) as f64;
        let ease = if waits { speed * spare.max(1.0) } else { speed };
        let cut_off = f64::from(own.in_flight + 1) / total.operations as f64;
        Some(Reach { speed, ease, outstanding, cut_off })
    }

    /// What it would get if its requests took no time at all, however the device is. A
    /// class that has less than one request under way does other things for the rest of
    /// the time, and quicker answers do not shorten that. Of few and slow requests the
    /// period shows a part, so those that it cuts off count, too.
    pub(super) fn most(&self) -> f64 {
        let whole = 1.0 + self.cut_off;
        self.speed * whole / (1.0 - self.outstanding * whole).max(f64::MIN_POSITIVE)
    }
}

/// The most that a class gets of its target while others yield to it.
fn most(cruise: &Cruise) -> f64 {
    1.0 + ABOVE * tolerance(cruise)
}

/// The tolerance as a part of the target.
pub(super) fn tolerance(cruise: &Cruise) -> f64 {
    f64::from(cruise.tolerance.percent()) / 100.0
}

/// Whether a class has all that a limit leaves it.
pub(super) fn uses_up(limit: &Limit, own: &Window) -> bool {
    let total = own.total();
    let rate =
        |has: f64, may: Option<u64>| may.is_some_and(|may| has >= AT_LIMIT * may as f64);
    // Requests are held back up to the response time, and no further: what takes longer is
    // the device.
    let mean = total.mean(total.response).unwrap_or_default().0 as f64;
    let waits = |span: Nanos| mean <= span.0 as f64 / AT_LIMIT && total.queue.0 > 0;
    rate(own.bytes_per_second(), limit.bytes)
        || rate(own.iops(), limit.requests)
        || limit.response.is_some_and(waits)
}

/// What the class is held to while others yield to it: nothing for a response time.
pub(super) fn hold(cruise: &Cruise) -> Limit {
    let most = most(cruise);
    let rate = |rate: u64| Some((rate as f64 * most).ceil() as u64);
    match cruise.target {
        Goal::Bytes(bytes) => Limit { bytes: rate(bytes), ..Limit::default() },
        Goal::Requests(requests) => {
            Limit { requests: rate(requests), ..Limit::default() }
        }
        Goal::Response(_) => Limit::default(),
    }
}
