//! Scenarios as people write them: what all kinds have in common.
//!
//! TOML. What is not known, is missing, or is out of its range is refused with its line
//! and with what is allowed. Names are looked up once everything is read, and a name
//! that nothing has is refused at its place.

mod names;
mod numbers;

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use sterna_core::Nanos;
use sterna_core::schedule::{Moment, Weekday};

pub(crate) use names::Names;
pub(crate) use numbers::{Numbers, RATE, SIZE, THINGS_MAX};

pub(crate) type Result<T, E = ScenarioError> = std::result::Result<T, E>;

/// A text that is read as something else.
#[derive(Clone, Debug)]
pub(crate) struct As<T>(pub(crate) T);

impl<'de, T: FromStr> Deserialize<'de> for As<T>
where
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map(As).map_err(|error: T::Err| D::Error::custom(error))
    }
}

/// A span in seconds, as people write it: `12h`, `90min`, `2.5ms`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) f64);

/// The longest span: a year.
const SPAN_MAX: f64 = 366.0 * 86400.0;

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = [
            ("us", 1e-6),
            ("ms", 1e-3),
            ("min", 60.0),
            ("s", 1.0),
            ("h", 3600.0),
            ("d", 86400.0),
        ];
        let number = |(unit, seconds): (&str, f64)| {
            let number = text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok()?;
            let digits = text.trim().starts_with(|first: char| first.is_ascii_digit());
            Some(number * seconds).filter(|span| digits && *span <= SPAN_MAX)
        };
        units.into_iter().find_map(number).map(Span).ok_or_else(|| {
            format!(
                "`{text}` is not a duration up to a year: a number with us, ms, s, min, \
                 h or d (90min, 12h)"
            )
        })
    }
}

impl Span {
    /// The same, to the nanosecond.
    pub(crate) fn nanos(self) -> Nanos {
        Nanos((self.0 * 1e9) as u64)
    }
}

/// A day and a time of the week: `Mon 18:00`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start(pub(crate) Moment);

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (day, time) = text.trim().split_once(' ')?;
            let day = Weekday::ALL.into_iter().find(|it| it.name().starts_with(day));
            let (hours, minutes) = time.trim().split_once(':')?;
            let (hours, minutes) =
                (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
            let day = day.filter(|_| text.trim().find(' ') == Some(3))?;
            (hours < 24 && minutes < 60)
                .then(|| Start(Moment::new(day, hours * 3600 + minutes * 60)))
        };
        read().ok_or_else(|| {
            format!("`{text}` is not a day and a time; write it like `Mon 18:00`")
        })
    }
}

/// Why a text is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScenarioError {
    /// Where, from 1 on.
    pub line: usize,
    /// What is wrong, and what would not be.
    pub what: String,
}

impl ScenarioError {
    /// Something at a place of the text.
    pub(crate) fn at(text: &str, place: usize, what: impl Into<String>) -> ScenarioError {
        let before = text.as_bytes().get(..place).unwrap_or(text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ScenarioError { line, what: what.into() }
    }
}

/// Reads a file of some kind.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        ScenarioError::at(text, place, error.message())
    })
}
