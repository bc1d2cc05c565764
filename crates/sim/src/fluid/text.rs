//! Scenarios as people write them.
//!
//! TOML, read as all scenarios are (`crate::text`).
//!
//! **Names with numbers.** `count = 4` of a datastore `nas` makes `nas-1` to `nas-4`; of
//! machines, as many sets. The `k`th set is on the `k`th datastore, from the first again
//! when there are no more, and goes to one in the same way. Machines go over the hosts in
//! turn.

use std::collections::BTreeMap;
use std::str::FromStr;

use sterna_core::schedule::Schedule;
use sterna_core::{Bytes, array::Model};
use toml::Spanned;

use super::names::resolve;
use super::scenario::Scenario;
use crate::text::{As, ScenarioError, Span, Start, read};

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

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        resolve(text, &read(text)?)
    }
}
