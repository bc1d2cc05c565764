//! `/v1/drs/transfers`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{Error, StartTransfer, Transfer};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// What can be asked about VM migrations.
pub(super) fn routes() -> OpenApiRouter<Arc<Server>> {
    OpenApiRouter::new()
        .routes(routes!(list, start))
        .routes(routes!(show))
        .routes(routes!(cancel))
}

/// All transfers, oldest first.
#[utoipa::path(
    get, path = "/v1/drs/transfers", tag = "hosts", operation_id = "list_transfers",
    responses(
        (status = 200, body = Vec<Transfer>),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Transfer>> {
    blocking(server, |server| server.machines.list_vm_migrations()).await
}

/// Carries out the recommended VM migration of a VM; of both VMs, if two change places.
#[utoipa::path(
    post, path = "/v1/drs/transfers", tag = "hosts", operation_id = "start_transfer",
    request_body = StartTransfer,
    responses(
        (status = 200, body = Vec<Transfer>),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn start(
    State(server): State<Arc<Server>>,
    Body(request): Body<StartTransfer>,
) -> Answer<Vec<Transfer>> {
    blocking(server, move |server| server.planner.apply_recommendation(&request)).await
}

/// One transfer.
#[utoipa::path(
    get, path = "/v1/drs/transfers/{id}", tag = "hosts", operation_id = "show_transfer",
    params(("id" = u64, Path, description = "The transfer's number")),
    responses((status = 200, body = Transfer), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Transfer> {
    blocking(server, move |server| server.machines.show_vm_migration(id)).await
}

/// Gives a transfer up; the VM runs where it was.
#[utoipa::path(
    post, path = "/v1/drs/transfers/{id}/cancel", tag = "hosts",
    operation_id = "cancel_transfer",
    params(("id" = u64, Path, description = "The transfer's number")),
    responses((status = 200, body = Transfer), (status = "default", body = Error)),
)]
pub(super) async fn cancel(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Transfer> {
    blocking(server, move |server| server.machines.cancel_vm_migration(id)).await
}
