//! `/v1/hosts` and `/v1/placements`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{AddHost, Error, Host, HostProgram, PlaceVm, Placement};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// All hosts, by name.
#[utoipa::path(
    get, path = "/v1/hosts", tag = "hosts", operation_id = "list_hosts",
    responses((status = 200, body = Vec<Host>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Host>> {
    blocking(server, |server| server.planner.list_hosts()).await
}

/// Adds a host.
#[utoipa::path(
    post, path = "/v1/hosts", tag = "hosts", operation_id = "add_host",
    request_body = AddHost,
    responses((status = 200, body = Host), (status = "default", body = Error)),
)]
pub(super) async fn add(
    State(server): State<Arc<Server>>,
    Body(request): Body<AddHost>,
) -> Answer<Host> {
    blocking(server, move |server| server.planner.add_host(&request)).await
}

/// One host.
#[utoipa::path(
    get, path = "/v1/hosts/{name}", tag = "hosts", operation_id = "show_host",
    params(("name" = String, Path, description = "The host's name")),
    responses((status = 200, body = Host), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Host> {
    blocking(server, move |server| server.planner.show_host(&name)).await
}

/// Says which program starts VMs on a host, as this daemon's user.
#[utoipa::path(
    put, path = "/v1/hosts/{name}/program", tag = "hosts",
    operation_id = "set_host_program",
    params(("name" = String, Path, description = "The host's name")),
    request_body = HostProgram,
    responses((status = 200, body = Host), (status = "default", body = Error)),
)]
pub(super) async fn program(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<HostProgram>,
) -> Answer<Host> {
    blocking(server, move |server| server.planner.set_host_program(&name, &request)).await
}

/// Forgets a host on which no VM is.
#[utoipa::path(
    delete, path = "/v1/hosts/{name}", tag = "hosts", operation_id = "remove_host",
    params(("name" = String, Path, description = "The host's name")),
    responses((status = 200, body = Host), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Host> {
    blocking(server, move |server| server.planner.remove_host(&name)).await
}

/// Says on which host a VM is. Nothing is moved by that.
#[utoipa::path(
    put, path = "/v1/placements/{name}", tag = "hosts", operation_id = "place_vm",
    params(("name" = String, Path, description = "The machine's name")),
    request_body = PlaceVm,
    responses((status = 200, body = Placement), (status = "default", body = Error)),
)]
pub(super) async fn place(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<PlaceVm>,
) -> Answer<Placement> {
    blocking(server, move |server| server.planner.place_vm(&name, &request)).await
}
