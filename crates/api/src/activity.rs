//! What was done, by whom, and what the daemon decided by itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Activity {
    /// Its number: later ones have higher numbers.
    pub seq: u64,
    /// When (milliseconds since 1970).
    pub at_ms: u64,
    /// Who did it: a user of this host, a session of the dashboard, or `sterna` itself.
    pub who: String,
    /// What it is about, as in warnings: `disk db`, `datastore fast`, `migration 4`; absent
    /// if it is about the daemon.
    pub about: Option<String>,
    /// What was done.
    pub text: String,
    /// The command that does the same, if somebody asked for it.
    pub command: Option<String>,
    /// False: it was refused, or something is wrong.
    pub ok: bool,
}

/// What was done, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Activities {
    /// The entries.
    pub entries: Vec<Activity>,
}
