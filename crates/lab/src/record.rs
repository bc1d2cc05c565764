//! What was measured: how each application fared, window by window, and what was
//! done when.
//!
//! Moments are seconds from the experiment's start, whatever clock that had: a real
//! one, or the simulator's. Everything that judges or shows an experiment takes its
//! record and knows nothing of where it came from.

use sterna_core::measure::Window;

/// One of the figures that service levels are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Bytes per second, read and written.
    Bytes,
    /// Requests per second.
    Requests,
    /// The mean response time, in milliseconds.
    Response,
    /// The response time that 99 of 100 requests do not exceed, in milliseconds.
    Slowest,
}

impl Metric {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Metric; 4] =
        [Metric::Bytes, Metric::Requests, Metric::Response, Metric::Slowest];

    /// What it is called.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Metric::Bytes => "Throughput",
            Metric::Requests => "Requests",
            Metric::Response => "Mean response time",
            Metric::Slowest => "Response time, 99th percentile",
        }
    }

    /// The unit that it is shown in.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Metric::Bytes => "MB/s",
            Metric::Requests => "IO/s",
            Metric::Response | Metric::Slowest => "ms",
        }
    }

    /// The figure in the unit that it is shown in. (As with arrays, a MB here is
    /// 10^6 bytes.)
    pub(crate) fn shown(self, value: f64) -> f64 {
        match self {
            Metric::Bytes => value / 1e6,
            _ => value,
        }
    }

    /// The figure in words: `14.2 MB/s`.
    pub(crate) fn words(self, value: f64) -> String {
        let value = self.shown(value);
        let decimals = match value {
            ..9.95 => 2,
            9.95..99.5 => 1,
            _ => 0,
        };
        format!("{value:.decimals$} {}", self.unit())
    }
}

/// What one application got in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// When the window ended.
    pub(crate) at: f64,
    /// How long it was, in seconds, above zero.
    pub(crate) span: f64,
    /// Requests that were answered.
    pub(crate) operations: f64,
    /// Their bytes.
    pub(crate) bytes: f64,
    /// The sum of their response times, in milliseconds.
    pub(crate) response_ms: f64,
    /// What 99 of 100 of them took at most, in milliseconds; nothing of none.
    pub(crate) slowest_ms: Option<f64>,
}

impl Sample {
    /// What a window that ended then says.
    pub(crate) fn of(at: f64, window: &Window) -> Sample {
        let total = window.total();
        Sample {
            at,
            span: window.span.as_secs_f64(),
            operations: total.operations as f64,
            bytes: total.bytes as f64,
            response_ms: total.response.as_millis_f64(),
            slowest_ms: window.response.quantile(0.99).map(|span| span.as_millis_f64()),
        }
    }

    /// A figure of this window; no response time of no requests.
    pub(crate) fn figure(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Bytes => Some(self.bytes / self.span),
            Metric::Requests => Some(self.operations / self.span),
            Metric::Response if self.operations == 0.0 => None,
            Metric::Response => Some(self.response_ms / self.operations),
            Metric::Slowest => self.slowest_ms,
        }
    }
}

/// A figure of all these windows together; nothing of none.
pub(crate) fn figure(samples: &[Sample], metric: Metric) -> Option<f64> {
    let sum = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>();
    let span = sum(|sample| sample.span);
    let operations = sum(|sample| sample.operations);
    match metric {
        _ if span <= 0.0 => None,
        Metric::Bytes => Some(sum(|sample| sample.bytes) / span),
        Metric::Requests => Some(operations / span),
        Metric::Response if operations == 0.0 => None,
        Metric::Response => Some(sum(|sample| sample.response_ms) / operations),
        // Of percentiles nothing can be summed up; the worst window is what counts.
        Metric::Slowest => {
            samples.iter().filter_map(|sample| sample.slowest_ms).reduce(f64::max)
        }
    }
}

/// One application's windows, one behind the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Track {
    /// The application.
    pub(crate) name: String,
    /// Its windows, in their order.
    pub(crate) samples: Vec<Sample>,
}

impl Track {
    /// The windows that lie in this time as a whole.
    pub(crate) fn between(&self, from: f64, until: f64) -> &[Sample] {
        // A window that ends at a moment is told to the microsecond.
        const CLOSE: f64 = 1e-6;
        let begin = |sample: &Sample| sample.at - sample.span;
        let first = self.samples.partition_point(|it| begin(it) < from - CLOSE);
        let last = self.samples.partition_point(|it| it.at <= until + CLOSE);
        &self.samples[first.min(last)..last]
    }
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    /// When.
    pub(crate) at: f64,
    /// What.
    pub(crate) text: String,
}

/// What an application was to be kept within.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    /// Of which figure.
    pub(crate) metric: Metric,
    /// From when on.
    pub(crate) from: f64,
    /// Until when.
    pub(crate) until: f64,
    /// Not below it.
    pub(crate) low: f64,
    /// Not above it.
    pub(crate) high: f64,
}

/// An experiment as it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// The applications.
    pub(crate) tracks: Vec<Track>,
    /// What was done, in its order.
    pub(crate) marks: Vec<Mark>,
    /// What was to be kept.
    pub(crate) bands: Vec<Band>,
}
