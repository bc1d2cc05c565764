//! `/v1/advice`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use sterna_api::{Advised, Error};
use utoipa::IntoParams;

use super::extract::Parameters;
use super::{Answer, blocking};
use crate::Server;

/// What to give advice about.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// A disk, or a datastore with its disks; everything if absent.
    about: Option<String>,
    /// The window of the load in seconds, 1 to 3600.
    #[serde(default = "ten_minutes")]
    #[param(default = 600.0, minimum = 1.0, maximum = 3600.0)]
    window_s: f64,
}

fn ten_minutes() -> f64 {
    600.0
}

/// Gives advice about disks and datastores, from their measured loads.
#[utoipa::path(
    get, path = "/v1/advice", tag = "disks", operation_id = "advise",
    params(Asked),
    responses((status = 200, body = Advised), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Parameters(asked): Parameters<Asked>,
) -> Answer<Advised> {
    let Asked { about, window_s } = asked;
    blocking(server, move |server| server.planner.advise(about.as_deref(), window_s))
        .await
}
