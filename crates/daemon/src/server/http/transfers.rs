//! `/v1/drs/transfers`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{Error, StartTransfer, Transfer};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::daemon::Daemon;

/// All transfers, oldest first.
#[utoipa::path(
    get, path = "/v1/drs/transfers", tag = "hosts", operation_id = "list_transfers",
    responses(
        (status = 200, body = Vec<Transfer>),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn list(State(daemon): State<Arc<Daemon>>) -> Answer<Vec<Transfer>> {
    blocking(daemon, |daemon| daemon.planner.list_transfers()).await
}

/// Carries out the recommended VM migration of a machine; of both machines, if two change
/// places.
#[utoipa::path(
    post, path = "/v1/drs/transfers", tag = "hosts", operation_id = "start_transfer",
    request_body = StartTransfer,
    responses(
        (status = 200, body = Vec<Transfer>),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn start(
    State(daemon): State<Arc<Daemon>>,
    Body(request): Body<StartTransfer>,
) -> Answer<Vec<Transfer>> {
    blocking(daemon, move |daemon| daemon.planner.start_transfer(&request)).await
}

/// One transfer.
#[utoipa::path(
    get, path = "/v1/drs/transfers/{id}", tag = "hosts", operation_id = "show_transfer",
    params(("id" = u64, Path, description = "The transfer's number")),
    responses((status = 200, body = Transfer), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Transfer> {
    blocking(daemon, move |daemon| daemon.planner.show_transfer(id)).await
}

/// Gives a transfer up; the machine runs where it was.
#[utoipa::path(
    post, path = "/v1/drs/transfers/{id}/cancel", tag = "hosts",
    operation_id = "cancel_transfer",
    params(("id" = u64, Path, description = "The transfer's number")),
    responses((status = 200, body = Transfer), (status = "default", body = Error)),
)]
pub(super) async fn cancel(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Transfer> {
    blocking(daemon, move |daemon| daemon.planner.cancel_transfer(id)).await
}
