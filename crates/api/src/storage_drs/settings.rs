//! What Storage DRS is told to do.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::AskGuard;

/// What Storage DRS does automatically.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Automation {
    /// Nothing.
    Manual,
    /// It chooses datastores for new disks.
    #[default]
    Partial,
    /// It also starts the moves that it recommends.
    Full,
}

impl fmt::Display for Automation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Automation::Manual => "manual",
            Automation::Partial => "partial",
            Automation::Full => "full",
        })
    }
}

/// The settings of Storage DRS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StorageDrsSettings {
    /// What it does automatically.
    pub automation: Automation,
    /// The bound of the used part of a datastore's space, above 0 and at most 1.
    pub space: f64,
    /// The bound of the 95th percentile of its response times, in microseconds.
    pub latency_us: u64,
    /// Loads and response times are those of the last so many seconds, 10 to 86400.
    pub window_s: f64,
    /// How often it acts, in seconds, 10 to 86400.
    pub every_s: f64,
    /// The guard of its moves.
    pub guard: AskGuard,
}

impl Default for StorageDrsSettings {
    /// 80 %, 15 ms, by the last hour and every hour; an application keeps 97 %.
    fn default() -> StorageDrsSettings {
        StorageDrsSettings {
            automation: Automation::default(),
            space: 0.8,
            latency_us: 15_000,
            window_s: 3600.0,
            every_s: 3600.0,
            guard: AskGuard { keep: Some(0.97), ..AskGuard::default() },
        }
    }
}

/// Changes settings of Storage DRS; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeStorageDrs {
    /// What it does automatically.
    pub automation: Option<Automation>,
    /// The bound of the used part of a datastore's space, above 0 and at most 1.
    pub space: Option<f64>,
    /// The bound of the 95th percentile of its response times, in microseconds.
    pub latency_us: Option<u64>,
    /// Loads and response times are those of the last so many seconds, 10 to 86400.
    pub window_s: Option<f64>,
    /// How often it acts, in seconds, 10 to 86400.
    pub every_s: Option<f64>,
    /// The guard of its moves; an empty guard means none.
    pub guard: Option<AskGuard>,
}
