//! Halls as people write them.
//!
//! TOML, read as all scenarios are (`crate::text`).
//!
//! **Names with numbers.** `count = 4` of a host `a` makes `a-1` to `a-4`; of machines, as
//! many machines. Machines go over the hosts that they are `on` in turn, or over all.

use std::str::FromStr;

use serde::Deserialize;
use sterna_core::Bytes;
use sterna_core::schedule::Schedule;
use toml::Spanned;

use super::names::resolve;
use super::scenario::Scenario;
use crate::text::{As, ScenarioError, Span, Start, read};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) title: String,
    #[serde(default)]
    pub(super) about: String,
    pub(super) starts: Option<As<Start>>,
    pub(super) length: Spanned<As<Span>>,
    pub(super) seed: Option<u64>,
    pub(super) drs: DrsText,
    pub(super) host: Vec<HostText>,
    pub(super) profile: Vec<ProfileText>,
    #[serde(default)]
    pub(super) pool: Vec<PoolText>,
    pub(super) vms: Vec<VmsText>,
    #[serde(default)]
    pub(super) rule: Vec<RuleText>,
    #[serde(default)]
    pub(super) failure: Vec<FailureText>,
}

/// What is moved by itself, in the words of `sterna drs set`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Automation {
    Manual,
    Partial,
    #[default]
    Full,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DrsText {
    #[serde(default)]
    pub(super) automation: Automation,
    pub(super) threshold: Option<Spanned<u32>>,
    pub(super) round: Option<Spanned<As<Span>>>,
    pub(super) hold: Option<Spanned<u32>>,
    pub(super) cooldown: Option<Spanned<As<Span>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HostText {
    pub(super) name: Spanned<String>,
    pub(super) count: Option<Spanned<u32>>,
    pub(super) cpu: Spanned<f64>,
    pub(super) memory: Spanned<As<Bytes>>,
    pub(super) copies: Option<Spanned<u32>>,
    pub(super) link: Option<Spanned<As<Bytes>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ProfileText {
    pub(super) name: Spanned<String>,
    pub(super) cpu: Spanned<f64>,
    pub(super) memory: Spanned<As<Bytes>>,
    pub(super) cpu_demand: Option<Spanned<f64>>,
    pub(super) memory_demand: Option<Spanned<As<Bytes>>>,
    pub(super) busy: Option<As<Schedule>>,
    pub(super) idle: Option<Spanned<f64>>,
    pub(super) hours: Option<Spanned<Vec<f64>>>,
    pub(super) keeps: Option<Spanned<f64>>,
    pub(super) varies: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PoolText {
    pub(super) name: Spanned<String>,
    pub(super) parent: Option<Spanned<String>>,
    pub(super) cpu_reservation: Option<Spanned<f64>>,
    pub(super) cpu_limit: Option<Spanned<f64>>,
    pub(super) cpu_shares: Option<Spanned<u32>>,
    pub(super) memory_reservation: Option<Spanned<As<Bytes>>>,
    pub(super) memory_limit: Option<Spanned<As<Bytes>>>,
    pub(super) memory_shares: Option<Spanned<u32>>,
    pub(super) shares: Option<Spanned<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VmsText {
    pub(super) name: Spanned<String>,
    pub(super) profile: Spanned<String>,
    pub(super) count: Option<Spanned<u32>>,
    pub(super) on: Option<Spanned<String>>,
    pub(super) pool: Option<Spanned<String>>,
}

/// What a rule asks, in the words of the API.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KindText {
    Affinity,
    AntiAffinity,
    On,
    NotOn,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RuleText {
    pub(super) name: Spanned<String>,
    pub(super) kind: KindText,
    pub(super) vms: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) hosts: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) must: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FailureText {
    pub(super) host: Spanned<String>,
    pub(super) at: As<Span>,
    #[serde(rename = "for")]
    pub(super) lasts: Option<As<Span>>,
    pub(super) restart: Option<As<Span>>,
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        resolve(text, &read(text)?)
    }
}
