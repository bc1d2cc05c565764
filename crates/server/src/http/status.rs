//! `/v1/status` and `/v1/tasks`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{Error, Status, Task};

use super::{Answer, blocking};
use crate::Server;

/// The daemon in one page.
#[utoipa::path(
    get, path = "/v1/status", tag = "status",
    responses((status = 200, body = Status), (status = "default", body = Error)),
)]
pub(super) async fn show(State(server): State<Arc<Server>>) -> Answer<Status> {
    blocking(server, |server| server.status()).await
}

/// What the daemon does again and again, and how far each of these tasks is.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "status", operation_id = "list_tasks",
    responses((status = 200, body = Vec<Task>), (status = "default", body = Error)),
)]
pub(super) async fn tasks(State(server): State<Arc<Server>>) -> Answer<Vec<Task>> {
    blocking(server, |server| Ok(server.tasks.list())).await
}
