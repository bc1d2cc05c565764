//! Scenarios as people write them.
//!
//! TOML. What is not known, is missing, or is out of its range is refused with its line
//! and with what is allowed. Names are looked up once everything is read, and a name
//! that nothing has is refused at its place.
//!
//! **Names with numbers.** `count = 4` of a datastore `nas` makes `nas-1` to `nas-4`; of
//! machines, as many sets. The `k`th set is on the `k`th datastore, from the first again
//! when there are no more, and goes to one in the same way. Machines go over the hosts in
//! turn.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use sterna_core::schedule::{Moment, Schedule, Weekday};
use sterna_core::{Bytes, array::Model};
use toml::Spanned;

use super::names::resolve;
use super::scenario::Scenario;

/// A text that is read as something else.
#[derive(Clone, Debug)]
pub(super) struct As<T>(pub(super) T);

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
pub(super) struct Span(pub(super) f64);

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

/// A day and a time of the week: `Mon 18:00`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start(pub(super) Moment);

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

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) title: String,
    #[serde(default)]
    pub(super) about: String,
    pub(super) starts: Option<As<Start>>,
    pub(super) length: Option<As<Span>>,
    #[serde(default)]
    pub(super) waiting: Waiting,
    pub(super) copier: Option<CopierText>,
    pub(super) array: Vec<ArrayText>,
    #[serde(default)]
    pub(super) link: Vec<LinkText>,
    pub(super) datastore: Vec<DatastoreText>,
    pub(super) host: HostText,
    pub(super) profile: Vec<ProfileText>,
    #[serde(default)]
    pub(super) tile: Vec<TileText>,
    pub(super) vms: Vec<VmsText>,
    #[serde(default)]
    pub(super) wave: Vec<WaveText>,
    #[serde(default)]
    pub(super) failure: Vec<FailureText>,
}

/// What machines do whose wave is still to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Waiting {
    #[default]
    Work,
    Idle,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CopierText {
    pub(super) in_flight: Option<Spanned<u32>>,
    pub(super) chunk: Option<Spanned<As<Bytes>>>,
    pub(super) fixed: Option<As<Span>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ArrayText {
    pub(super) name: Spanned<String>,
    pub(super) model: As<Model>,
    pub(super) stream_width: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) destage: Destage,
}

/// In which order writes leave the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Destage {
    #[default]
    AsTheyCome,
    Sorted,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LinkText {
    pub(super) name: Spanned<String>,
    pub(super) rate: Spanned<As<Bytes>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DatastoreText {
    pub(super) name: Spanned<String>,
    pub(super) array: Spanned<String>,
    pub(super) count: Option<Spanned<u32>>,
    pub(super) link: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) coalesce: bool,
    #[serde(default)]
    pub(super) thin: bool,
    pub(super) copies: Option<Spanned<u32>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HostText {
    pub(super) count: Spanned<u32>,
    pub(super) copies: Option<Spanned<u32>>,
    pub(super) link: Option<Spanned<As<Bytes>>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ProfileText {
    pub(super) name: Spanned<String>,
    pub(super) iops: Option<Spanned<f64>>,
    pub(super) outstanding: Option<Spanned<u32>>,
    pub(super) request: Option<Spanned<As<Bytes>>>,
    pub(super) read: Option<Spanned<f64>>,
    pub(super) random: Option<Spanned<f64>>,
    pub(super) size: Spanned<As<Bytes>>,
    pub(super) written: Option<Spanned<As<Bytes>>>,
    pub(super) disks: Option<Spanned<u32>>,
    pub(super) busy: Option<As<Schedule>>,
    pub(super) idle: Option<Spanned<f64>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TileText {
    pub(super) name: Spanned<String>,
    pub(super) vms: BTreeMap<Spanned<String>, Spanned<u32>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VmsText {
    pub(super) name: Spanned<String>,
    pub(super) tile: Option<Spanned<String>>,
    pub(super) profile: Option<Spanned<String>>,
    pub(super) count: Option<Spanned<u32>>,
    pub(super) on: Spanned<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WaveText {
    pub(super) name: String,
    pub(super) at: Option<As<Span>>,
    #[serde(rename = "move")]
    pub(super) moves: Vec<Spanned<String>>,
    pub(super) to: Spanned<String>,
    #[serde(default)]
    pub(super) stopped: bool,
    pub(super) window: Option<As<Schedule>>,
    pub(super) limit: Option<Spanned<As<Bytes>>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FailureText {
    pub(super) array: Spanned<String>,
    pub(super) at: As<Span>,
    #[serde(rename = "for")]
    pub(super) lasts: As<Span>,
    pub(super) slower: Option<Spanned<f64>>,
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
    pub(super) fn at(text: &str, place: usize, what: impl Into<String>) -> ScenarioError {
        let before = text.as_bytes().get(..place).unwrap_or(text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ScenarioError { line, what: what.into() }
    }
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let file: File = toml::from_str(text).map_err(|error| {
            let place = error.span().map_or(0, |span| span.start);
            ScenarioError::at(text, place, error.message())
        })?;
        resolve(text, &file)
    }
}
