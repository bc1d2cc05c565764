//! `/v1/plans`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{Error, Plan, PlanEvacuation};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// All plans, oldest first; the ended ones too.
#[utoipa::path(
    get, path = "/v1/plans", tag = "plans", operation_id = "list_plans",
    responses((status = 200, body = Vec<Plan>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Plan>> {
    blocking(server, |server| server.planner.list_plans()).await
}

/// Makes a plan to empty a datastore; no move begins before you apply the plan.
#[utoipa::path(
    post, path = "/v1/plans", tag = "plans", operation_id = "plan_evacuation",
    request_body = PlanEvacuation,
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn evacuate(
    State(server): State<Arc<Server>>,
    Body(request): Body<PlanEvacuation>,
) -> Answer<Plan> {
    blocking(server, move |server| server.planner.plan_evacuation(&request)).await
}

/// One plan, and the progress of its moves.
#[utoipa::path(
    get, path = "/v1/plans/{id}", tag = "plans", operation_id = "show_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(server, move |server| server.planner.show_plan(id)).await
}

/// Forgets a plan that has ended or was never applied. Moved disks stay where they are.
#[utoipa::path(
    delete, path = "/v1/plans/{id}", tag = "plans", operation_id = "remove_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(server, move |server| server.planner.remove_plan(id)).await
}

/// Begins a plan.
#[utoipa::path(
    post, path = "/v1/plans/{id}/apply", tag = "plans", operation_id = "apply_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn apply(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(server, move |server| server.planner.apply_plan(id)).await
}

/// Pauses a plan and its moves, also over restarts.
#[utoipa::path(
    post, path = "/v1/plans/{id}/pause", tag = "plans", operation_id = "pause_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn pause(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(server, move |server| server.planner.pause_plan(id)).await
}

/// Resumes a paused plan and its moves.
#[utoipa::path(
    post, path = "/v1/plans/{id}/resume", tag = "plans", operation_id = "resume_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn resume(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(server, move |server| server.planner.resume_plan(id)).await
}

/// Cancels a plan; moved disks stay where they are.
#[utoipa::path(
    post, path = "/v1/plans/{id}/cancel", tag = "plans", operation_id = "cancel_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn cancel(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(server, move |server| server.planner.cancel_plan(id)).await
}
