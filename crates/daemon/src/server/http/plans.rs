//! `/v1/plans`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{Error, Plan, PlanEvacuation};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::daemon::Daemon;

/// All plans, oldest first; the ended ones too.
#[utoipa::path(
    get, path = "/v1/plans", tag = "plans", operation_id = "list_plans",
    responses((status = 200, body = Vec<Plan>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(daemon): State<Arc<Daemon>>) -> Answer<Vec<Plan>> {
    blocking(daemon, |daemon| daemon.planner.list_plans()).await
}

/// Makes a plan to empty a datastore; no move begins before you apply the plan.
#[utoipa::path(
    post, path = "/v1/plans", tag = "plans", operation_id = "plan_evacuation",
    request_body = PlanEvacuation,
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn evacuate(
    State(daemon): State<Arc<Daemon>>,
    Body(request): Body<PlanEvacuation>,
) -> Answer<Plan> {
    blocking(daemon, move |daemon| daemon.planner.plan_evacuation(&request)).await
}

/// One plan, and the progress of its moves.
#[utoipa::path(
    get, path = "/v1/plans/{id}", tag = "plans", operation_id = "show_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(daemon, move |daemon| daemon.planner.show_plan(id)).await
}

/// Forgets a plan that has ended or was never applied. Moved disks stay where they are.
#[utoipa::path(
    delete, path = "/v1/plans/{id}", tag = "plans", operation_id = "remove_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(daemon, move |daemon| daemon.planner.remove_plan(id)).await
}

/// Begins a plan.
#[utoipa::path(
    post, path = "/v1/plans/{id}/apply", tag = "plans", operation_id = "apply_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn apply(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(daemon, move |daemon| daemon.planner.apply_plan(id)).await
}

/// Pauses a plan and its moves, also over restarts.
#[utoipa::path(
    post, path = "/v1/plans/{id}/pause", tag = "plans", operation_id = "pause_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn pause(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(daemon, move |daemon| daemon.planner.pause_plan(id)).await
}

/// Resumes a paused plan and its moves.
#[utoipa::path(
    post, path = "/v1/plans/{id}/resume", tag = "plans", operation_id = "resume_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn resume(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(daemon, move |daemon| daemon.planner.resume_plan(id)).await
}

/// Cancels a plan; moved disks stay where they are.
#[utoipa::path(
    post, path = "/v1/plans/{id}/cancel", tag = "plans", operation_id = "cancel_plan",
    params(("id" = u64, Path, description = "The plan's number")),
    responses((status = 200, body = Plan), (status = "default", body = Error)),
)]
pub(super) async fn cancel(
    State(daemon): State<Arc<Daemon>>,
    Which(id): Which<u64>,
) -> Answer<Plan> {
    blocking(daemon, move |daemon| daemon.planner.cancel_plan(id)).await
}
