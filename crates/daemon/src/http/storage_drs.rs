//! `/v1/storage-drs`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{AskStorageDrs, ErrorBody, Recommendations};

use super::extract::Body;
use super::{Answer, blocking};
use crate::daemon::Daemon;

/// Recommends moves, and says why other disks stay. Changes nothing.
#[utoipa::path(
    post, path = "/v1/storage-drs/recommendations", tag = "datastores",
    operation_id = "recommend",
    request_body = AskStorageDrs,
    responses(
        (status = 200, body = Recommendations),
        (status = "default", body = ErrorBody)
    ),
)]
pub(super) async fn recommend(
    State(daemon): State<Arc<Daemon>>,
    Body(asked): Body<AskStorageDrs>,
) -> Answer<Recommendations> {
    blocking(daemon, move |daemon| daemon.recommend(&asked)).await
}
