//! `/v1/rules`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{AddRule, Error, Rule};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// All rules, by name.
#[utoipa::path(
    get, path = "/v1/rules", tag = "hosts", operation_id = "list_rules",
    responses((status = 200, body = Vec<Rule>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Rule>> {
    blocking(server, |server| server.planner.list_rules()).await
}

/// Adds a rule. Sterna refuses a rule that contradicts others.
#[utoipa::path(
    post, path = "/v1/rules", tag = "hosts", operation_id = "add_rule",
    request_body = AddRule,
    responses((status = 200, body = Rule), (status = "default", body = Error)),
)]
pub(super) async fn add(
    State(server): State<Arc<Server>>,
    Body(request): Body<AddRule>,
) -> Answer<Rule> {
    blocking(server, move |server| server.planner.add_rule(&request)).await
}

/// Removes a rule.
#[utoipa::path(
    delete, path = "/v1/rules/{name}", tag = "hosts", operation_id = "remove_rule",
    params(("name" = String, Path, description = "The rule's name")),
    responses((status = 200, body = Rule), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Rule> {
    blocking(server, move |server| server.planner.remove_rule(&name)).await
}
