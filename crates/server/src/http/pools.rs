//! `/v1/pools`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{ChangePool, CreatePool, Error, Pool};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// All pools, each behind its parent.
#[utoipa::path(
    get, path = "/v1/pools", tag = "hosts", operation_id = "list_pools",
    responses((status = 200, body = Vec<Pool>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Pool>> {
    blocking(server, |server| server.planner.list_pools()).await
}

/// Creates a pool.
#[utoipa::path(
    post, path = "/v1/pools", tag = "hosts", operation_id = "create_pool",
    request_body = CreatePool,
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Body(request): Body<CreatePool>,
) -> Answer<Pool> {
    blocking(server, move |server| server.planner.create_pool(&request)).await
}

/// One pool.
#[utoipa::path(
    get, path = "/v1/pools/{name}", tag = "hosts", operation_id = "show_pool",
    params(("name" = String, Path, description = "The pool's name")),
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Pool> {
    blocking(server, move |server| server.planner.show_pool(&name)).await
}

/// Changes a pool: all that is asked, or nothing.
#[utoipa::path(
    patch, path = "/v1/pools/{name}", tag = "hosts", operation_id = "change_pool",
    params(("name" = String, Path, description = "The pool's name")),
    request_body = ChangePool,
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn change(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<ChangePool>,
) -> Answer<Pool> {
    blocking(server, move |server| server.planner.change_pool(&name, &request)).await
}

/// Deletes a pool without pools in it; its VMs are then in no pool.
#[utoipa::path(
    delete, path = "/v1/pools/{name}", tag = "hosts", operation_id = "delete_pool",
    params(("name" = String, Path, description = "The pool's name")),
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn delete(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Pool> {
    blocking(server, move |server| server.planner.delete_pool(&name)).await
}
