//! `/v1/top`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use sterna_api::{Error, Top, TopBy};
use utoipa::IntoParams;

use super::extract::Parameters;
use super::{Answer, blocking};
use crate::Server;

/// What to show.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// What the rows are.
    #[serde(default)]
    #[param(inline)]
    by: TopBy,
    /// Of the last so many seconds, 0.1 to 3600.
    #[serde(default = "second")]
    #[param(default = 1.0, minimum = 0.1, maximum = 3600.0)]
    window_s: f64,
}

fn second() -> f64 {
    1.0
}

/// The load of all disks, classes or datastores, also of idle ones.
#[utoipa::path(
    get, path = "/v1/top", tag = "status", operation_id = "top",
    params(Asked),
    responses((status = 200, body = Top), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Parameters(asked): Parameters<Asked>,
) -> Answer<Top> {
    blocking(server, move |server| server.top(asked.by, asked.window_s)).await
}
