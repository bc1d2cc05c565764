//! What a datastore is slowed down to, as people write it:
//! `mbps=300,iops=5000,latency=1ms`, each part optional, or `none`.
//!
//! MB are 10^6 bytes, as makers of storage count.

use std::fmt;
use std::str::FromStr;

use crate::Nanos;

/// Bytes in an MB.
const MB: u64 = 1_000_000;

/// Limits of a datastore, all its images together, and the latency added to each
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Bytes read and written per second, together.
    pub bytes_per_second: Option<u64>,
    /// Requests per second: reads, writes and zeroes, together.
    pub iops: Option<u64>,
    /// Added to every answer.
    pub latency: Nanos,
}

/// The text is not a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseShapeError {
    /// An unknown part.
    Unknown(String),
    /// A part twice.
    Twice(&'static str),
    /// Not a number, or none that makes sense.
    Value {
        /// What was given.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl fmt::Display for ParseShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseShapeError::Unknown(part) => write!(
                f,
                "`{part}` is not a part of a shape; write mbps=300,iops=5000,latency=1ms"
            ),
            ParseShapeError::Twice(part) => write!(f, "`{part}` is given twice"),
            ParseShapeError::Value { value, expected } => {
                write!(f, "`{value}` is not {expected}")
            }
        }
    }
}

impl std::error::Error for ParseShapeError {}

impl Shape {
    /// Whether nothing is slowed down.
    pub fn is_none(&self) -> bool {
        *self == Shape::default()
    }
}

impl FromStr for Shape {
    type Err = ParseShapeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut bytes_per_second, mut iops, mut latency) = (None, None, None);
        if text.is_empty() || text == "none" {
            return Ok(Shape::default());
        }
        for part in text.split(',') {
            let unknown = || ParseShapeError::Unknown(part.into());
            let (key, value) = part.split_once('=').ok_or_else(unknown)?;
            let bad = |expected| ParseShapeError::Value { value: value.into(), expected };
            match key {
                "mbps" => {
                    let expected = "a number of MB per second above zero (300, 0.5)";
                    let rate = millionths(value).filter(|&rate| rate > 0);
                    set(
                        &mut bytes_per_second,
                        "mbps",
                        rate.ok_or_else(|| bad(expected))?,
                    )?;
                }
                "iops" => {
                    let expected = "a number of requests per second above zero (5000)";
                    let rate = value.parse().ok().filter(|&rate: &u64| rate > 0);
                    set(&mut iops, "iops", rate.ok_or_else(|| bad(expected))?)?;
                }
                "latency" => {
                    let expected = "a duration with its unit (1ms, 200us)";
                    let span: Option<Nanos> = value.parse().ok();
                    set(&mut latency, "latency", span.ok_or_else(|| bad(expected))?)?;
                }
                _ => return Err(unknown()),
            }
        }
        Ok(Shape { bytes_per_second, iops, latency: latency.unwrap_or_default() })
    }
}

fn set<T>(
    slot: &mut Option<T>,
    key: &'static str,
    value: T,
) -> Result<(), ParseShapeError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(ParseShapeError::Twice(key)),
    }
}

/// A decimal number with up to six decimals, times a million, exactly.
fn millionths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 6 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let decimals: u64 = format!("{decimals:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(MB)?.checked_add(decimals)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(rate) = self.bytes_per_second {
            let decimals = format!("{:06}", rate % MB);
            let decimals = decimals.trim_end_matches('0');
            let point = if decimals.is_empty() { "" } else { "." };
            parts.push(format!("mbps={}{point}{decimals}", rate / MB));
        }
        if let Some(rate) = self.iops {
            parts.push(format!("iops={rate}"));
        }
        if self.latency != Nanos(0) {
            parts.push(format!("latency={}", exact(self.latency)));
        }
        f.pad(&if parts.is_empty() { "none".into() } else { parts.join(",") })
    }
}

/// A span in the largest unit in which it is a whole number.
fn exact(span: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit, name) = units
        .into_iter()
        .find(|(unit, _)| span.0.is_multiple_of(*unit))
        .unwrap_or((1, "ns"));
    format!("{}{name}", span.0 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shapes_are_read_as_people_write_them() {
        let shape = Shape {
            bytes_per_second: Some(300_000_000),
            iops: Some(5000),
            latency: Nanos::from_millis(1),
        };
        assert_eq!("mbps=300,iops=5000,latency=1ms".parse(), Ok(shape));
        assert_eq!(shape.to_string(), "mbps=300,iops=5000,latency=1ms");
        let slow = Shape { bytes_per_second: Some(500_000), ..Shape::default() };
        assert_eq!("mbps=0.5".parse(), Ok(slow));
        assert_eq!("none".parse(), Ok(Shape::default()));
        assert_eq!("".parse(), Ok(Shape::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "mbps=0",
            "mbps=-3",
            "mbps=",
            "mbps=.5",
            "mbps=1.2345678",
            "iops=0",
            "iops=1.5",
            "latency=5",
            "speed=9",
            "mbps",
            "mbps=1,mbps=2",
            "mbps=1,,iops=2",
        ] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_the_same(
            bytes_per_second in prop::option::of(1u64..),
            iops in prop::option::of(1u64..),
            latency in 0u64..9_000_000_000_000_000,
        ) {
            let shape = Shape { bytes_per_second, iops, latency: Nanos(latency) };
            prop_assert_eq!(shape.to_string().parse(), Ok(shape));
        }
    }
}
