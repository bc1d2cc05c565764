//! `/v1/metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use sterna_api::Error;

use super::Refusal;
use crate::{Server, metrics};

/// All services in figures, in Prometheus's text format.
#[utoipa::path(
    get, path = "/v1/metrics", tag = "status", operation_id = "metrics",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = "default", body = Error),
    ),
)]
pub(super) async fn show(State(server): State<Arc<Server>>) -> Result<Response, Refusal> {
    // Unlike other requests it is not refused while the state directory is silent: then
    // more than ever somebody has to see how disks fare.
    let done = tokio::task::spawn_blocking(move || server.metrics()).await;
    let failed = |error| Error::internal(format!("the request failed: {error}"));
    let text = done.map_err(failed)??;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}
