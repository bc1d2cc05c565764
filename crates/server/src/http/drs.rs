//! `/v1/drs`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{ChangeDrs, DrsAdvice, DrsExplanation, DrsSettings, DrsStatus, Error};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// The state that DRS sees: hosts, VMs, and their loads.
#[utoipa::path(
    get, path = "/v1/drs", tag = "hosts", operation_id = "show_drs",
    responses((status = 200, body = DrsStatus), (status = "default", body = Error)),
)]
pub(super) async fn show(State(server): State<Arc<Server>>) -> Answer<DrsStatus> {
    blocking(server, |server| server.planner.drs_status()).await
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
    State(server): State<Arc<Server>>,
    Body(request): Body<ChangeDrs>,
) -> Answer<DrsSettings> {
    blocking(server, move |server| server.planner.change_drs(&request)).await
}

/// Which VMs should be on other hosts, and why the rest should not. Moves nothing.
#[utoipa::path(
    get, path = "/v1/drs/recommendations", tag = "hosts",
    operation_id = "show_drs_recommendations",
    responses((status = 200, body = DrsAdvice), (status = "default", body = Error)),
)]
pub(super) async fn recommend(State(server): State<Arc<Server>>) -> Answer<DrsAdvice> {
    blocking(server, |server| server.planner.drs_advice()).await
}

/// The reasons for a VM's host.
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
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<DrsExplanation> {
    blocking(server, move |server| server.planner.explain_vm(&name)).await
}
