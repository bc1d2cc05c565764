//! `/v1/status`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{Error, Status};

use super::{Answer, blocking};
use crate::daemon::Daemon;

/// The daemon in one page.
#[utoipa::path(
    get, path = "/v1/status", tag = "status",
    responses((status = 200, body = Status), (status = "default", body = Error)),
)]
pub(super) async fn show(State(daemon): State<Arc<Daemon>>) -> Answer<Status> {
    blocking(daemon, |daemon| daemon.status()).await
}
