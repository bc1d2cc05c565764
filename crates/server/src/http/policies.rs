//! `/v1/policies`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{CreatePolicy, Error, Policy};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// All policies, oldest first.
#[utoipa::path(
    get, path = "/v1/policies", tag = "policies", operation_id = "list_policies",
    responses((status = 200, body = Vec<Policy>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Policy>> {
    blocking(server, |server| server.levels.list_policies()).await
}

/// Makes a policy. If its schedule is open, the policy is in force when the call returns.
#[utoipa::path(
    post, path = "/v1/policies", tag = "policies", operation_id = "create_policy",
    request_body = CreatePolicy,
    responses((status = 200, body = Policy), (status = "default", body = Error)),
)]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Body(request): Body<CreatePolicy>,
) -> Answer<Policy> {
    blocking(server, move |server| {
        let policy = server.levels.create_policy(&request)?;
        server.planner.tried_policy(&policy, false);
        Ok(policy)
    })
    .await
}

/// One policy.
#[utoipa::path(
    get, path = "/v1/policies/{id}", tag = "policies", operation_id = "show_policy",
    params(("id" = u64, Path, description = "The policy's number")),
    responses((status = 200, body = Policy), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Policy> {
    blocking(server, move |server| server.levels.show_policy(id)).await
}

/// Removes a policy. The policy is no longer in force when the call returns.
#[utoipa::path(
    delete, path = "/v1/policies/{id}", tag = "policies", operation_id = "remove_policy",
    params(("id" = u64, Path, description = "The policy's number")),
    responses((status = 200, body = Policy), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Policy> {
    blocking(server, move |server| {
        let policy = server.levels.remove_policy(id)?;
        server.planner.tried_policy(&policy, true);
        Ok(policy)
    })
    .await
}
