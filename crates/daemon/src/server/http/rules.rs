//! `/v1/rules`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{AddRule, Error, Rule};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::daemon::Daemon;

/// All rules, by name.
#[utoipa::path(
    get, path = "/v1/rules", tag = "hosts", operation_id = "list_rules",
    responses((status = 200, body = Vec<Rule>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(daemon): State<Arc<Daemon>>) -> Answer<Vec<Rule>> {
    blocking(daemon, |daemon| daemon.planner.list_rules()).await
}

/// Adds a rule. Sterna refuses a rule that contradicts others.
#[utoipa::path(
    post, path = "/v1/rules", tag = "hosts", operation_id = "add_rule",
    request_body = AddRule,
    responses((status = 200, body = Rule), (status = "default", body = Error)),
)]
pub(super) async fn add(
    State(daemon): State<Arc<Daemon>>,
    Body(request): Body<AddRule>,
) -> Answer<Rule> {
    blocking(daemon, move |daemon| daemon.planner.add_rule(&request)).await
}

/// Removes a rule.
#[utoipa::path(
    delete, path = "/v1/rules/{name}", tag = "hosts", operation_id = "remove_rule",
    params(("name" = String, Path, description = "The rule's name")),
    responses((status = 200, body = Rule), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(daemon): State<Arc<Daemon>>,
    Which(name): Which<String>,
) -> Answer<Rule> {
    blocking(daemon, move |daemon| daemon.planner.remove_rule(&name)).await
}
