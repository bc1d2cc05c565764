//! Rules: which VMs are to be together, apart, or on some hosts.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a rule asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleKind {
    /// All VMs on the same host.
    Affinity,
    /// Each VM on another host.
    AntiAffinity,
    /// The VMs on these hosts.
    On,
    /// The VMs not on these hosts.
    NotOn,
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RuleKind::Affinity => "affinity",
            RuleKind::AntiAffinity => "anti-affinity",
            RuleKind::On => "on",
            RuleKind::NotOn => "not-on",
        })
    }
}

/// Asks for a new rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddRule {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub kind: RuleKind,
    /// Of these VMs.
    pub vms: Vec<String>,
    /// With these hosts, if it is about hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether it must hold; else it should.
    pub must: bool,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub kind: RuleKind,
    /// Of these VMs.
    pub vms: Vec<String>,
    /// With these hosts, if it is about hosts.
    pub hosts: Vec<String>,
    /// Whether it must hold; else it should.
    pub must: bool,
    /// Whether it holds now, as far as it is known where its VMs are.
    pub holds: bool,
    /// When it was made (seconds since 1970).
    pub created: u64,
}
