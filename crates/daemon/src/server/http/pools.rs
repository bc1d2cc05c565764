//! `/v1/pools`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{ChangePool, CreatePool, Error, Pool};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::daemon::Daemon;

/// All pools, each behind its parent.
#[utoipa::path(
    get, path = "/v1/pools", tag = "hosts", operation_id = "list_pools",
    responses((status = 200, body = Vec<Pool>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(daemon): State<Arc<Daemon>>) -> Answer<Vec<Pool>> {
    blocking(daemon, |daemon| daemon.planner.list_pools()).await
}

/// Creates a pool.
#[utoipa::path(
    post, path = "/v1/pools", tag = "hosts", operation_id = "create_pool",
    request_body = CreatePool,
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn create(
    State(daemon): State<Arc<Daemon>>,
    Body(request): Body<CreatePool>,
) -> Answer<Pool> {
    blocking(daemon, move |daemon| daemon.planner.create_pool(&request)).await
}

/// One pool.
#[utoipa::path(
    get, path = "/v1/pools/{name}", tag = "hosts", operation_id = "show_pool",
    params(("name" = String, Path, description = "The pool's name")),
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Which(name): Which<String>,
) -> Answer<Pool> {
    blocking(daemon, move |daemon| daemon.planner.show_pool(&name)).await
}

/// Changes a pool: all that is asked, or nothing.
#[utoipa::path(
    patch, path = "/v1/pools/{name}", tag = "hosts", operation_id = "change_pool",
    params(("name" = String, Path, description = "The pool's name")),
    request_body = ChangePool,
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn change(
    State(daemon): State<Arc<Daemon>>,
    Which(name): Which<String>,
    Body(request): Body<ChangePool>,
) -> Answer<Pool> {
    blocking(daemon, move |daemon| daemon.planner.change_pool(&name, &request)).await
}

/// Deletes a pool without pools in it; its machines are then in no pool.
#[utoipa::path(
    delete, path = "/v1/pools/{name}", tag = "hosts", operation_id = "delete_pool",
    params(("name" = String, Path, description = "The pool's name")),
    responses((status = 200, body = Pool), (status = "default", body = Error)),
)]
pub(super) async fn delete(
    State(daemon): State<Arc<Daemon>>,
    Which(name): Which<String>,
) -> Answer<Pool> {
    blocking(daemon, move |daemon| daemon.planner.delete_pool(&name)).await
}
