//! A model as people write it: `old-fc`, or `old-fc?spindles=7&cache=512M`.
//!
//! A name, and after it what differs from the array of that name. Sizes and rates
//! (bytes a second) have binary suffixes, spans their unit. What is written twice, is
//! not known, or is out of its range is refused. It is shown with the parameters that
//! differ, in one order, so that equal models are equal texts.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Nanos};

use super::device::Device;
use super::model::Model;
use super::preset::Preset;
use super::raid::{Groups, Level, SPINDLES_MAX};

/// The longest seek, turn, access, ageing, or fixed time: what takes longer is broken
/// and not slow.
const SPAN_MAX: Nanos = Nanos::from_secs(10);

/// The slowest and the fastest media or link, in bytes per second: 4 KiB, so that no
/// operation takes for ever, and 1 TiB.
const RATE: (u64, u64) = (4 << 10, 1 << 40);

/// The largest cache: its elements have to be remembered.
const CACHE_MAX: Bytes = Bytes(64 << 30);

/// The furthest prefetch, in elements of 64 KiB.
const PREFETCH_MAX: u32 = 1024;

/// Channels of a flash device at most.
const CHANNELS_MAX: u32 = 256;

/// Kinds of groups at most.
const GROUPS_MAX: usize = 16;

/// Why a text is no model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseModelError {
    /// No array has that name.
    Name(String),
    /// There is no such parameter.
    Unknown(String),
    /// The parameter does not belong to an array of that kind.
    Foreign {
        /// The parameter.
        key: String,
        /// The array.
        name: &'static str,
        /// What it is made of.
        made_of: &'static str,
    },
    /// A parameter is given twice, or two that say the same.
    Twice(String),
    /// A value that makes no sense.
    Value {
        /// The parameter.
        key: String,
        /// What was given.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl fmt::Display for ParseModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseModelError::Name(name) => {
                let names = Preset::ALL.map(Preset::name).join(", ");
                write!(
                    f,
                    "`{name}` is not an array that Sterna knows; give one of {names}"
                )
            }
            ParseModelError::Unknown(part) => write!(
                f,
                "`{part}` is not a parameter of an array; write key=value, with {}",
                KEYS.join(", ")
            ),
            ParseModelError::Foreign { key, name, made_of } => {
                write!(f, "`{name}` is made of {made_of}, which has no `{key}`")
            }
            ParseModelError::Twice(key) => {
                write!(f, "`{key}` is given twice; give it once")
            }
            ParseModelError::Value { key, value, expected } => {
                write!(f, "{key}: `{value}` is not {expected}")
            }
        }
    }
}

impl std::error::Error for ParseModelError {}

const KEYS: [&str; 16] = [
    "spindles",
    "raid",
    "seek",
    "revolution",
    "access",
    "channels",
    "media",
    "ageing",
    "prefetch",
    "cache",
    "write-cache",
    "ack",
    "overhead",
    "link",
    "hits",
    "coalesce",
];

impl FromStr for Model {
    type Err = ParseModelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let preset = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        let preset = preset.ok_or_else(|| ParseModelError::Name(name.into()))?;
        let mut model = preset.model();
        let mut seen: Vec<&str> = Vec::new();
        for part in query.split('&').filter(|_| !query.is_empty()) {
            let unknown = || ParseModelError::Unknown(part.into());
            let (key, value) = part.split_once('=').ok_or_else(unknown)?;
            let key = *KEYS.iter().find(|known| **known == key).ok_or_else(unknown)?;
            // Both say how many spindles there are.
            let same = if key == "spindles" { "raid" } else { key };
            if seen.contains(&same) {
                return Err(ParseModelError::Twice(key.into()));
            }
            seen.push(same);
            model.set(key, value)?;
        }
        Ok(model)
    }
}

const SPAN: &str = "a duration from 0s to 10s with its unit (24ms, 200us)";
const RATE_EXPECTED: &str = "bytes per second from 4K to 1T (100M)";
const CACHE: &str = "a size up to 64G (512M, 0)";

impl Model {
    /// Sets one parameter.
    fn set(&mut self, key: &str, value: &str) -> Result<(), ParseModelError> {
        let bad = |expected| ParseModelError::Value {
            key: key.into(),
            value: value.into(),
            expected,
        };
        let time = || span(value).ok_or_else(|| bad(SPAN));
        let rate = || rate(value).ok_or_else(|| bad(RATE_EXPECTED));
        let cache = || cache(value).ok_or_else(|| bad(CACHE));
        match (key, &mut self.device) {
            ("seek", Device::Disk { seek, .. }) => *seek = time()?,
            ("revolution", Device::Disk { revolution, .. }) => *revolution = time()?,
            ("access", Device::Flash { access, .. }) => *access = time()?,
            ("channels", Device::Flash { channels, .. }) => {
                let expected = "a number of operations at a time from 1 to 256";
                *channels =
                    number(value, 1, CHANNELS_MAX).ok_or_else(|| bad(expected))?;
            }
            ("seek" | "revolution", Device::Flash { .. }) => {
                return Err(self.foreign(key, "flash"));
            }
            ("access" | "channels", Device::Disk { .. }) => {
                return Err(self.foreign(key, "disks"));
            }
            ("media", Device::Disk { media, .. } | Device::Flash { media, .. }) => {
                *media = rate()?;
            }
            ("spindles", _) => {
                let expected = "a number of spindles from 1 to 1024, striped (RAID-0)";
                let data = number(value, 1, SPINDLES_MAX).ok_or_else(|| bad(expected))?;
                self.groups = vec![Groups { level: Level::Raid0, data, count: 1 }];
            }
            ("raid", _) => {
                let expected = "groups like 0:7, 10:2+2, 5:4+1x2 or 6:6+2, with commas \
                                between them and 1024 spindles at most";
                self.groups = groups(value).ok_or_else(|| bad(expected))?;
            }
            ("ageing", _) => self.ageing = time()?,
            ("prefetch", _) => {
                let expected = "a number of elements of 64 KiB from 0 to 1024";
                let elements = number(value, 0, PREFETCH_MAX);
                self.prefetch = elements.ok_or_else(|| bad(expected))?;
            }
            ("cache", _) => self.cache = cache()?,
            ("write-cache", _) => self.write_cache = cache()?,
            ("ack", _) => self.ack = time()?,
            ("overhead", _) => self.overhead = time()?,
            ("link", _) => self.link = rate()?,
            ("hits", _) => {
                let hits = number(value, 0, 100);
                self.hits = hits.ok_or_else(|| bad("a percentage from 0 to 100"))?;
            }
            ("coalesce", _) => {
                self.coalesce = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(bad("`yes` or `no`")),
                };
            }
            _ => return Err(ParseModelError::Unknown(key.into())),
        }
        Ok(())
    }

    fn foreign(&self, key: &str, made_of: &'static str) -> ParseModelError {
        let name = self.preset.name();
        ParseModelError::Foreign { key: key.into(), name, made_of }
    }

    /// The parameters that can be set, as they would be given.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        match self.groups[..] {
            [Groups { level: Level::Raid0, data, count: 1 }] => {
                all.push(("spindles", data.to_string()));
            }
            _ => {
                let groups: Vec<String> =
                    self.groups.iter().map(Groups::to_string).collect();
                all.push(("raid", groups.join(",")));
            }
        }
        match self.device {
            Device::Disk { seek, revolution, media } => {
                all.push(("seek", exact_span(seek)));
                all.push(("revolution", exact_span(revolution)));
                all.push(("media", exact_bytes(media)));
            }
            Device::Flash { access, channels, media } => {
                all.push(("access", exact_span(access)));
                all.push(("channels", channels.to_string()));
                all.push(("media", exact_bytes(media)));
            }
        }
        all.extend([
            ("ageing", exact_span(self.ageing)),
            ("prefetch", self.prefetch.to_string()),
            ("cache", exact_bytes(self.cache.0)),
            ("write-cache", exact_bytes(self.write_cache.0)),
            ("ack", exact_span(self.ack)),
            ("overhead", exact_span(self.overhead)),
            ("link", exact_bytes(self.link)),
            ("hits", self.hits.to_string()),
            ("coalesce", if self.coalesce { "yes" } else { "no" }.into()),
        ]);
        all
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = self.preset.model().parameters();
        let parameters = self.parameters();
        let differs = |parameter: &&(&str, String)| !usual.contains(parameter);
        let mut text = self.preset.name().to_string();
        for (at, (key, value)) in parameters.iter().filter(differs).enumerate() {
            let between = if at == 0 { '?' } else { '&' };
            text.push_str(&format!("{between}{key}={value}"));
        }
        f.pad(&text)
    }
}

fn span(text: &str) -> Option<Nanos> {
    text.parse().ok().filter(|span| *span <= SPAN_MAX)
}

fn rate(text: &str) -> Option<u64> {
    let Bytes(rate) = text.parse().ok()?;
    (RATE.0..=RATE.1).contains(&rate).then_some(rate)
}

fn cache(text: &str) -> Option<Bytes> {
    text.parse().ok().filter(|size| *size <= CACHE_MAX)
}

fn number(text: &str, least: u32, most: u32) -> Option<u32> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn groups(text: &str) -> Option<Vec<Groups>> {
    let groups: Vec<Groups> =
        text.split(',').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let spindles: u32 = groups.iter().map(Groups::spindles).sum();
    (groups.len() <= GROUPS_MAX && spindles <= SPINDLES_MAX).then_some(groups)
}

/// A span in the largest unit in which it is a whole number.
fn exact_span(span: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(unit, _)| span.0.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "ns"));
    format!("{}{name}", span.0 / unit)
}

/// A size in the largest suffix in which it is a whole number.
fn exact_bytes(bytes: u64) -> String {
    let units = [(1u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let whole = |(unit, _): &(u64, &str)| bytes > 0 && bytes.is_multiple_of(*unit);
    let (unit, name) = units.into_iter().find(whole).unwrap_or((1, ""));
    format!("{}{name}", bytes / unit)
}
