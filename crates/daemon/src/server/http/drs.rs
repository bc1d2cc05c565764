//! `/v1/drs`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{ChangeDrs, DrsAdvice, DrsExplanation, DrsSettings, DrsStatus, Error};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::daemon::Daemon;

/// The state that DRS sees: hosts, machines, and their loads.
#[utoipa::path(
    get, path = "/v1/drs", tag = "hosts", operation_id = "show_drs",
    responses((status = 200, body = DrsStatus), (status = "default", body = Error)),
)]
pub(super) async fn show(State(daemon): State<Arc<Daemon>>) -> Answer<DrsStatus> {
    blocking(daemon, |daemon| daemon.planner.drs_status()).await
}

/// Changes when something is recommended.
#[utoipa::path(
    patch, path = "/v1/drs", tag = "hosts", operation_id = "change_drs",
    request_body = ChangeDrs,
    responses(
        (status = 200, body = DrsSettings),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn change(
    State(daemon): State<Arc<Daemon>>,
    Body(request): Body<ChangeDrs>,
) -> Answer<DrsSettings> {
    blocking(daemon, move |daemon| daemon.planner.change_drs(&request)).await
}

/// Which machines should be on other hosts, and why the rest should not. Moves nothing.
#[utoipa::path(
    get, path = "/v1/drs/recommendations", tag = "hosts",
    operation_id = "show_drs_recommendations",
    responses((status = 200, body = DrsAdvice), (status = "default", body = Error)),
)]
pub(super) async fn recommend(State(daemon): State<Arc<Daemon>>) -> Answer<DrsAdvice> {
    blocking(daemon, |daemon| daemon.planner.drs_advice()).await
}

/// The reasons for a machine's host.
#[utoipa::path(
    get, path = "/v1/drs/explanations/{name}", tag = "hosts",
    operation_id = "explain_vm",
    params(("name" = String, Path, description = "The machine's name")),
    responses(
        (status = 200, body = DrsExplanation),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn explain(
    State(daemon): State<Arc<Daemon>>,
    Which(name): Which<String>,
) -> Answer<DrsExplanation> {
    blocking(daemon, move |daemon| daemon.planner.explain_vm(&name)).await
}
