//! The part of its speed that a copy has beside an application.
//!
//! While the application asks for nothing the copy has all of it. While it does, it
//! depends on the promise:
//!
//! - Without one, copy and application take turns at the source. The copy always has
//!   some MiB in flight ([`IN_FLIGHT`]); each time that these are served, what the
//!   application has under way is served as well, and that takes as long as one of its
//!   requests: of a queue that is served in order, the last one has waited for all.
//! - To keep a part `k` of its requests, the application may lose `(1 - k) / k` of what
//!   it gets in turns without a copy, and the copy has as much of the time.
//! - Only while it is idle: nothing.
//! - For a percentile it is not known beforehand what the copy may take: something
//!   between nothing and what it would have without a promise.
//!
//! How much of the time the application asks for something is taken from what it has
//! outstanding: a mean of half a request is somebody there half of the time, at most.

use super::Weakest;
use crate::Nanos;
use crate::measure::Summary;

/// What the copier has in flight where nothing holds it back: the middle of its ladder.
const IN_FLIGHT: f64 = (4 << 20) as f64;

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
    /// What it would be without a promise.
    unbound: f64,
}

impl Work {
    /// What was done in a span that was measured.
    pub fn of(summary: &Summary) -> Work {
        let rate = summary.iops();
        let outstanding = summary.outstanding();
        let response = if rate > 0.0 { outstanding / rate } else { 0.0 };
        Work { outstanding, response: super::seconds(response) }
    }

    /// The part of the time in which it asks for something, at most.
    pub fn busy(&self) -> f64 {
        self.outstanding.clamp(0.0, 1.0)
    }
}

impl Share {
    /// What a copy has that does so many bytes per second by itself.
    pub fn of(work: &Work, terms: &Terms, speed: f64) -> Share {
        let busy = work.busy();
        let turn = IN_FLIGHT / speed.max(1.0);
        let beside = turn / (turn + work.response.as_secs_f64());
        let mix = |beside: f64| (1.0 - busy + busy * beside).max(LEAST);
        let unbound = mix(beside);
        let kept = terms.keep.map(|keep| beside.min((1.0 - keep) / keep));
        let least = if terms.idle_only { Some(0.0) } else { kept };
        let bounded = least.unwrap_or(beside);
        let likely = match terms.bounded {
            // Between two that are factors apart: the middle of their logarithms.
            true => (mix(bounded) * mix(0.0)).sqrt(),
            false => mix(bounded),
        };
        let is_free = terms.keep.is_none() && !terms.bounded && !terms.idle_only;
        let doubt = if is_free { DOUBT_TURNS } else { DOUBT_PROMISE };
        let apart = (mix(bounded) / likely).ln();
        Share { likely, doubt: (busy * doubt).hypot(apart), unbound }
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
