//! Goals and rates: how much of what.

use serde::{Deserialize, Serialize};
use sterna_core::{Nanos, qos};
use utoipa::ToSchema;

/// A goal in one of the three metrics, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Bytes read and written per second.
    BytesPerSecond(u64),
    /// Requests per second.
    Iops(u64),
    /// Mean response time in milliseconds.
    ResponseMs(f64),
}

/// So much per second, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// Bytes read and written per second.
    BytesPerSecond(u64),
    /// Requests per second.
    Iops(u64),
}

/// Zero, or no number at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a goal is a number above zero")]
pub struct NotAboveZero;

impl From<qos::Goal> for Goal {
    fn from(goal: qos::Goal) -> Goal {
        match goal {
            qos::Goal::Bytes(rate) => Goal::BytesPerSecond(rate),
            qos::Goal::Requests(rate) => Goal::Iops(rate),
            qos::Goal::Response(span) => Goal::ResponseMs(span.as_millis_f64()),
        }
    }
}

impl TryFrom<Goal> for qos::Goal {
    type Error = NotAboveZero;

    fn try_from(goal: Goal) -> Result<qos::Goal, NotAboveZero> {
        match goal {
            Goal::BytesPerSecond(rate @ 1..) => Ok(qos::Goal::Bytes(rate)),
            Goal::Iops(rate @ 1..) => Ok(qos::Goal::Requests(rate)),
            // Rounded to what is counted in; what is too large for it sticks.
            Goal::ResponseMs(span) => match (span * 1e6).round() as u64 {
                0 => Err(NotAboveZero),
                nanos => Ok(qos::Goal::Response(Nanos(nanos))),
            },
            _ => Err(NotAboveZero),
        }
    }
}

impl From<qos::Rate> for Rate {
    fn from(rate: qos::Rate) -> Rate {
        match rate {
            qos::Rate::Bytes(rate) => Rate::BytesPerSecond(rate),
            qos::Rate::Requests(rate) => Rate::Iops(rate),
        }
    }
}

impl TryFrom<Rate> for qos::Rate {
    type Error = NotAboveZero;

    fn try_from(rate: Rate) -> Result<qos::Rate, NotAboveZero> {
        match rate {
            Rate::BytesPerSecond(rate @ 1..) => Ok(qos::Rate::Bytes(rate)),
            Rate::Iops(rate @ 1..) => Ok(qos::Rate::Requests(rate)),
            _ => Err(NotAboveZero),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_go_over_the_wire_and_back() {
        for text in ["2M", "100iops", "20ms", "0.25ms"] {
            let goal: qos::Goal = text.parse().unwrap();
            let wire = serde_json::to_string(&Goal::from(goal)).unwrap();
            let back: Goal = serde_json::from_str(&wire).unwrap();
            assert_eq!(qos::Goal::try_from(back), Ok(goal), "{wire}");
        }
        let wire = serde_json::to_string(&Goal::ResponseMs(20.0)).unwrap();
        assert_eq!(wire, r#"{"response_ms":20.0}"#);
    }

    #[test]
    fn nothing_is_no_goal() {
        let none = [Goal::BytesPerSecond(0), Goal::Iops(0), Goal::ResponseMs(-1.0)];
        for goal in none.into_iter().chain([Goal::ResponseMs(0.0)]) {
            assert_eq!(qos::Goal::try_from(goal), Err(NotAboveZero), "{goal:?}");
        }
        assert_eq!(qos::Rate::try_from(Rate::Iops(0)), Err(NotAboveZero));
    }
}
