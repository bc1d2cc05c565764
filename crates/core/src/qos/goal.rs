//! What a policy aims at, as people write it: `2M` (bytes a second), `100iops`,
//! or `20ms` (a response time).

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Nanos};

/// A goal in one of the three metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Bytes read and written per second, above zero.
    Bytes(u64),
    /// Requests per second, above zero.
    Requests(u64),
    /// Response time, above zero.
    Response(Nanos),
}

/// The text is no goal; says what one looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseGoalError {
    pub(super) text: String,
}

impl fmt::Display for ParseGoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a goal above zero: write 15M (bytes per second), 1000iops, or \
             5ms (response time)",
            self.text
        )
    }
}

impl std::error::Error for ParseGoalError {}

impl FromStr for Goal {
    type Err = ParseGoalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        let goal = if let Some(number) = lower.strip_suffix("iops") {
            number.trim().parse().ok().map(Goal::Requests)
        } else if lower.ends_with('s') && !lower.ends_with("/s") {
            lower.parse().ok().map(Goal::Response)
        } else {
            let bytes = lower.strip_suffix("/s").unwrap_or(&lower);
            bytes.parse().ok().map(|bytes: Bytes| Goal::Bytes(bytes.0))
        };
        let goal = goal.filter(|goal| {
            !matches!(goal, Goal::Bytes(0) | Goal::Requests(0) | Goal::Response(Nanos(0)))
        });
        goal.ok_or_else(|| ParseGoalError { text: text.into() })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Bytes(rate) => f.pad(&format!("{}/s", Bytes(*rate))),
            Goal::Requests(rate) => f.pad(&format!("{rate} IO/s")),
            Goal::Response(span) => f.pad(&span.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Goal>().ok();
        assert_eq!(read("2M"), Some(Goal::Bytes(2 << 20)));
        assert_eq!(read("2 MiB/s"), Some(Goal::Bytes(2 << 20)));
        assert_eq!(read("100iops"), Some(Goal::Requests(100)));
        assert_eq!(read("100 IOPS"), Some(Goal::Requests(100)));
        assert_eq!(read("20ms"), Some(Goal::Response(Nanos::from_millis(20))));
        assert_eq!(read("1.5s"), Some(Goal::Response(Nanos::from_millis(1500))));
        for wrong in ["", "fast", "0", "0iops", "0ms", "-5M", "1.5iops", "iops", "ms"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn goals_are_shown_with_their_unit() {
        assert_eq!(Goal::Bytes(2 << 20).to_string(), "2.00 MiB/s");
        assert_eq!(Goal::Requests(100).to_string(), "100 IO/s");
        assert_eq!(Goal::Response(Nanos::from_millis(20)).to_string(), "20.0 ms");
    }
}
