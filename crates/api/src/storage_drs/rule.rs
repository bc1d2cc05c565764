//! Rules about disks: which belong together, and which do not.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a rule asks of its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleWish {
    /// All of them on one datastore.
    Together,
    /// No two of them on one datastore.
    Apart,
}

/// How much a rule matters.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RuleStrength {
    /// It has precedence over bounds, and is a reason to move.
    #[default]
    Must,
    /// It holds unless a bound prevents it. Storage DRS moves no disk for this rule
    /// alone.
    Should,
}

/// A rule of Storage DRS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StorageRule {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub wish: RuleWish,
    /// How much it matters.
    pub strength: RuleStrength,
    /// Its disks, by name.
    pub disks: Vec<String>,
    /// Whether it is violated now.
    pub broken: bool,
    /// When it was made (seconds since 1970).
    pub created: u64,
}

/// Asks for a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateStorageRule {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub wish: RuleWish,
    /// How much it matters.
    #[serde(default)]
    pub strength: RuleStrength,
    /// Its disks, by name: two or more.
    pub disks: Vec<String>,
}
