//! Who looks at the dashboard.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// All.
    Operator,
    /// Look.
    Viewer,
}

/// A session of the dashboard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// What whoever has it may do.
    pub role: Role,
    /// For whom it was opened: the user of the process that asked for the link.
    pub user: String,
    /// The host that the daemon runs on.
    pub host: String,
    /// How long it is valid yet, in seconds; absent on the unix socket, where the file's
    /// permissions decide.
    pub expires_s: Option<u64>,
}

/// What opens a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenSession {
    /// The token of a link.
    pub link: String,
}

/// What a link is to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDashboardLink {
    /// What whoever uses the link may do.
    pub role: Role,
}

/// A link to the dashboard that works once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DashboardLink {
    /// The address for a browser on this host.
    pub url: String,
    /// How long the link is valid, in seconds.
    pub expires_s: u64,
}
