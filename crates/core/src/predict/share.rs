//! The part of its speed that a copy has beside an application.
//!
//! Without a promise, copy and application take turns at the source. The copy always has
//! some MiB in flight ([`IN_FLIGHT`]); each time that these are served, what the
//! application has under way is served as well, and that takes as long as one of its
//! requests: of a queue that is served in order, the last one has waited for all. While it
//! has nothing under way, the copy has everything: of the time, half a request on average
//! is somebody there half of it, at most.
//!
//! Under a promise the copier keeps away as soon as somebody is there, and somebody who
//! asks ten times a second always is ([`Work::there`]). Then it depends on what was
//! promised:
//!
//! - To keep a part `k` of its requests: the application may lose `1 - k`, and loses so
//!   much for each part of the time in which the copy has its turn ([`Work::loses`]).
//! - Only while it is idle: nothing.
//! - For a percentile it is not known beforehand what the copy may take: something
//!   between nothing and what it would have without a promise.
//!
//! What the application keeps follows from the same turns: at least what was promised, and
//! without a promise what a request loses that waits for a turn of the copy.

use super::Weakest;
use crate::Nanos;
use crate::measure::Summary;

/// What the copier has in flight where nothing holds it back: the middle of its ladder.
const IN_FLIGHT: f64 = (4 << 20) as f64;

/// How long a guard takes to find out what a copy costs an application that is there.
const LEARNING: Nanos = Nanos::from_secs(11);

/// No copy gets less of its speed: the guards never hold it up for good.
pub(super) const LEAST: f64 = 0.001;

/// How far off the part is that a promise leaves, where the application is there all the
/// time: a factor of two.
const DOUBT_PROMISE: f64 = 0.7;

/// The same of what two who take turns get.
const DOUBT_TURNS: f64 = 0.3;

/// What an application asks of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Requests under way, on average.
    pub outstanding: f64,
    /// What one takes, on average.
    pub response: Nanos,
    /// The part of the time in which it asks for something now and again, from 0 to 1.
    pub there: f64,
}

/// What was promised.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// The operator's limit, bytes per second.
    pub limit: Option<u64>,
    /// The part of its requests that the application keeps, above 0 and at most 1.
    pub keep: Option<f64>,
    /// A percentile of its response times has a bound.
    pub bounded: bool,
    /// Nothing is copied while it asks for something.
    pub idle_only: bool,
}

/// A part of a copy's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Most likely; above 0 and at most 1.
    pub likely: f64,
    /// The deviation of its logarithm.
    pub doubt: f64,
    /// The part of its requests that the application keeps.
    pub kept: f64,
    /// What it would be without a promise.
    unbound: f64,
}

impl Work {
    /// What was done in a span that was measured.
    pub fn of(summary: &Summary) -> Work {
        let rate = summary.iops();
        let outstanding = summary.outstanding();
        let response = if rate > 0.0 { outstanding / rate } else { 0.0 };
        Work { outstanding, response: super::seconds(response), there: summary.there }
    }

    /// The part of the time in which it has something under way, at most.
    pub fn busy(&self) -> f64 {
        self.outstanding.clamp(0.0, 1.0)
    }

    /// The part of the time in which a copier that keeps away from it does so.
    pub fn there(&self) -> f64 {
        self.there.clamp(self.busy(), 1.0)
    }

    /// What it loses of its requests while they wait for those of the copy, which take so
    /// many seconds. With one or more under way all the time it has no time to lose; with
    /// less, a request may take longer until that is so.
    fn loses(&self, turn: f64) -> f64 {
        let response = self.response.as_secs_f64().max(1e-6);
        let has = self.outstanding.max(1.0);
        let wants = self.outstanding * (response + turn) / response;
        (1.0 - has / wants.max(has)).max(0.0)
    }
}

impl Terms {
    /// Whether nothing was promised.
    fn is_none(&self) -> bool {
        self.keep.is_none() && !self.bounded && !self.idle_only
    }

    /// How long a guard copies little because it has not seen enough yet, beside such an
    /// application.
    pub(super) fn learning(&self, work: &Work) -> Nanos {
        let learns = self.keep.is_some() || self.bounded;
        Nanos(if learns { (LEARNING.0 as f64 * work.there()) as u64 } else { 0 })
    }
}

impl Share {
    /// What a copy has that does so many bytes per second by itself.
    pub fn of(work: &Work, terms: &Terms, speed: f64) -> Share {
        let turn = IN_FLIGHT / speed.max(1.0);
        let beside = turn / (turn + work.response.as_secs_f64());
        let busy = if terms.is_none() { work.busy() } else { work.there() };
        let mix = |beside: f64| (1.0 - busy + busy * beside).max(LEAST);
        let unbound = 1.0 - work.busy() + work.busy() * beside;
        let turns = |keep: f64| match work.loses(turn) {
            loss if loss > 1.0 - keep => beside * (1.0 - keep) / loss,
            _ => beside,
        };
        let kept = terms.keep.map(turns);
        let least = if terms.idle_only { Some(0.0) } else { kept };
        let bounded = least.unwrap_or(beside);
        let likely = match terms.bounded {
            // Between two that are factors apart: the middle of their logarithms.
            true => (mix(bounded) * mix(0.0)).sqrt(),
            false => mix(bounded),
        };
        let doubt = if terms.is_none() { DOUBT_TURNS } else { DOUBT_PROMISE };
        let apart = (mix(bounded) / likely).ln();
        let doubt = (busy * doubt).hypot(apart);
        Share { likely, doubt, kept: kept_of(work, terms, turn, speed), unbound }
    }

    /// What keeps the copy from more.
    pub(super) fn weakest(&self) -> Weakest {
        // Who takes a half of something is what one looks at first.
        let half = 0.5;
        if self.unbound < half {
            Weakest::Application
        } else if self.likely < half {
            Weakest::Promise
        } else {
            Weakest::Storage
        }
    }
}

/// What an application keeps beside a copy that has its turn for so many seconds each time,
/// at such a speed: all that was promised, or else what their turns leave it. A copy with a
/// limit has fewer turns.
fn kept_of(work: &Work, terms: &Terms, turn: f64, speed: f64) -> f64 {
    if terms.idle_only {
        return 1.0;
    }
    let turns = terms.limit.map_or(1.0, |limit| (limit as f64 / speed.max(1.0)).min(1.0));
    let beside = 1.0 - work.loses(turn) * turns;
    beside.max(terms.keep.unwrap_or_default()).clamp(LEAST, 1.0)
}
