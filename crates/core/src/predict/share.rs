//! The part of its speed that a copy has beside an application.
//!
//! A copy reads the source and writes the destination at the same time, and the slower of
//! the two is its speed. An application shares the *source* with it. So a source that
//! could do more than the copy makes of it has that to spare: the copy has the less of what
//! it does by itself and of what the application leaves it of the source.
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
//! - To keep a part `k` of its requests: the [`guard`](crate::guard) copies in trials, in
//!   which requests take no more than twice as long, and what they lose in a trial, times
//!   the part of the time that trials have, is most of `1 - k` ([`beside_trials`]).
//! - Only while it is idle: nothing.
//! - For a percentile it is not known beforehand what the copy may take: something
//!   between nothing and what it would have without a promise.
//!
//! Writes end in a cache, or in a queue that is served before long reads: they lose nothing
//! by what is read. Where they do not, the guard finds that out and the copy is slower.
//!
//! What the application keeps follows from the same trials: at least what was promised, and
//! without a promise what a request loses that waits for a turn of the copy.

use super::Weakest;
use crate::Nanos;
use crate::guard::outlook;
use crate::measure::Summary;

/// What the copier has in flight where nothing holds it back: the middle of its step table.
const IN_FLIGHT: f64 = (4 << 20) as f64;

/// A comparison of a guard that has not seen much takes so many windows, and this many
/// times as many are needed as lead to the rate it ends with: a marginal cost has to be known, and
/// not only guessed. (The second was found with moves between modelled arrays.)
const WINDOWS: f64 = 4.0;
const SURE: f64 = 2.3;

/// Steps of an experienced guard: it begins at about half of the rate that it ends with.
const EXPERIENCED: f64 = 1.0;

/// No copy gets less of its speed: the guards never hold it up for good.
pub(super) const LEAST: f64 = 0.001;

/// Requests beside a copy that takes a source's whole time would never end.
const ALL_BUT_NOTHING: f64 = 0.999;

/// How far off the part is that a promise leaves, where the application is there all the
/// time: by half.
const DOUBT_PROMISE: f64 = 0.4;

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
    /// The part of its requests' time that is writes', from 0 to 1.
    pub writes: f64,
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
        let write = summary.write;
        let writing =
            write.operations as f64 * write.response.map_or(0.0, Nanos::as_secs_f64);
        let writes = summary.per_second(writing) / outstanding.max(f64::MIN_POSITIVE);
        Work {
            outstanding,
            response: super::seconds(response),
            there: summary.there,
            writes: writes.clamp(0.0, 1.0),
        }
    }

    /// The part of the time in which it has something under way, at most.
    pub fn busy(&self) -> f64 {
        self.outstanding.clamp(0.0, 1.0)
    }

    /// The part of the time in which a copier that keeps away from it does so.
    pub fn there(&self) -> f64 {
        self.there.clamp(self.busy(), 1.0)
    }

    /// Requests per second.
    pub(super) fn iops(&self) -> f64 {
        self.outstanding / self.response()
    }

    /// What one request takes, in seconds, and never nothing.
    pub(super) fn response(&self) -> f64 {
        self.response.as_secs_f64().max(1e-6)
    }

    /// What it loses of its requests while its reads take so many times as long. With one
    /// or more under way all the time it has no time to lose; with less, a request may take
    /// longer until that is so.
    fn loses(&self, times: f64) -> f64 {
        let reads = self.outstanding * (1.0 - self.writes.clamp(0.0, 1.0));
        let has = reads.max(1.0);
        (1.0 - has / (reads * times).max(has)).max(0.0)
    }

    /// The same while they wait for requests of the copy that take so many seconds.
    fn loses_to(&self, turn: f64) -> f64 {
        self.loses(1.0 + turn / self.response())
    }
}

impl Terms {
    /// Whether nothing was promised.
    pub(super) fn is_none(&self) -> bool {
        self.keep.is_none() && !self.bounded && !self.idle_only
    }

    /// What is left of so many bytes per second by the operator's limit.
    pub(super) fn limited(&self, rate: f64) -> f64 {
        self.limit.map_or(rate, |limit| rate.min(limit.max(1) as f64))
    }

    /// How much later than at once a guard has such an application's copy at this rate
    /// (bytes per second): it begins with little, and tries more each time that it has
    /// compared what the application does with a copy and without one. An `experienced` one
    /// begins near the end of that.
    pub(super) fn learning(&self, work: &Work, rate: f64, experienced: bool) -> Nanos {
        if self.keep.is_none() && !self.bounded {
            return Nanos(0);
        }
        let steps = (rate / outlook::FIRST_RATE).max(1.0).ln() / outlook::UP.ln();
        let steps = if experienced { steps.min(EXPERIENCED) } else { steps };
        let answers = outlook::ANSWERS * work.response() / work.outstanding.max(1e-9);
        let window = answers.max(outlook::RESPONSES * work.response());
        let window = window.clamp(outlook::WINDOW.0, outlook::WINDOW.1);
        super::seconds(work.there() * steps * outlook::MODES * WINDOWS * SURE * window)
    }
}

impl Share {
    /// What a copy has that does so many bytes per second by itself, from a source that
    /// could be read at so many.
    pub fn of(work: &Work, terms: &Terms, (speed, source): (f64, f64)) -> Share {
        let (speed, source) = (speed.max(1.0), source.max(speed).max(1.0));
        let turn = IN_FLIGHT / source;
        let part = |rate: f64| (rate / speed).min(1.0);
        let beside = part(source * turn / (turn + work.response.as_secs_f64()));
        let busy = if terms.is_none() { work.busy() } else { work.there() };
        let mix = |beside: f64| (1.0 - busy + busy * beside).max(LEAST);
        let unbound = 1.0 - work.busy() + work.busy() * beside;
        let kept = terms.keep.map(|keep| part(beside_trials(work, keep, source)));
        let least = if terms.idle_only { Some(0.0) } else { kept };
        let bounded = least.unwrap_or(beside).min(beside);
        let likely = match terms.bounded {
            // Between two that are factors apart: the middle of their logarithms.
            true => (mix(bounded) * mix(0.0)).sqrt(),
            false => mix(bounded),
        };
        let doubt = if terms.is_none() { DOUBT_TURNS } else { DOUBT_PROMISE };
        let apart = (mix(bounded) / likely).ln();
        let doubt = (busy * doubt).hypot(apart);
        Share { likely, doubt, kept: kept_of(work, terms, turn, source), unbound }
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

/// Bytes per second that a guard has a copy do beside an application that keeps this part
/// of its requests, from a source that could be read at so many.
///
/// In a trial it has a part of the source's time, and requests take `1 / (1 - part)` times as
/// long: no more than twice as long, if the application reads. What that loses it /// how much
/// of the time trials have.
fn beside_trials(work: &Work, keep: f64, source: f64) -> f64 {
    let most = if work.writes < 1.0 { 1.0 - 1.0 / (1.0 + outlook::SLOWER) } else { 1.0 };
    let rate = (source * most).min(outlook::BURST);
    let loss = work.loses(1.0 / (1.0 - (rate / source).min(ALL_BUT_NOTHING)));
    let budget = outlook::AIM * (1.0 - keep);
    let part = if loss > 0.0 { budget / loss } else { outlook::DUTY_MAX };
    rate * part.min(outlook::DUTY_MAX)
}

/// What an application keeps beside a copy that has its turn for so many seconds each time,
/// at such a speed: all that was promised, or else what their turns leave it. A copy with a
/// limit has fewer turns. One that waits for its storage a tenth of the time asks at a pace
/// of its own for the rest, and while its storage is slow it has more under way: it loses a
/// tenth at most.
fn kept_of(work: &Work, terms: &Terms, turn: f64, speed: f64) -> f64 {
    if terms.idle_only {
        return 1.0;
    }
    let turns = terms.limit.map_or(1.0, |limit| (limit as f64 / speed.max(1.0)).min(1.0));
    let beside = 1.0 - work.busy() * work.loses_to(turn) * turns;
    beside.max(terms.keep.unwrap_or_default()).clamp(LEAST, 1.0)
}
