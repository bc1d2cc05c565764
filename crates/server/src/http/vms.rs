//! `/v1/vms`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{
    AddVm, AdoptVmDisk, Error, Migration, MoveVmDisk, ReleaseVmDisk, Vm, VmNames,
};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// All VMs, by name. Sterna measures their disks for a moment.
#[utoipa::path(
    get, path = "/v1/vms", tag = "vms", operation_id = "list_vms",
    responses((status = 200, body = Vec<Vm>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Vm>> {
    blocking(server, |server| server.machines.list_vms()).await
}

/// The names of all VMs and of their disks, as Sterna last saw them. Sterna asks no VM, so
/// the answer comes at once.
#[utoipa::path(
    get, path = "/v1/vm-names", tag = "vms", operation_id = "list_vm_names",
    responses((status = 200, body = Vec<VmNames>), (status = "default", body = Error)),
)]
pub(super) async fn names(State(server): State<Arc<Server>>) -> Answer<Vec<VmNames>> {
    blocking(server, |server| server.machines.vm_names()).await
}

/// Adds a VM that can be asked.
#[utoipa::path(
    post, path = "/v1/vms", tag = "vms", operation_id = "add_vm",
    request_body = AddVm,
    responses((status = 200, body = Vm), (status = "default", body = Error)),
)]
pub(super) async fn add(
    State(server): State<Arc<Server>>,
    Body(request): Body<AddVm>,
) -> Answer<Vm> {
    blocking(server, move |server| server.machines.add_vm(&request)).await
}

/// One VM.
#[utoipa::path(
    get, path = "/v1/vms/{name}", tag = "vms", operation_id = "show_vm",
    params(("name" = String, Path, description = "The machine's name")),
    responses((status = 200, body = Vm), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Vm> {
    blocking(server, move |server| server.machines.show_vm(&name)).await
}

/// Forgets a VM, which keeps running.
#[utoipa::path(
    delete, path = "/v1/vms/{name}", tag = "vms", operation_id = "remove_vm",
    params(("name" = String, Path, description = "The machine's name")),
    responses((status = 200, body = Vm), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Vm> {
    blocking(server, move |server| server.machines.remove_vm(&name)).await
}

/// Moves a disk that QEMU serves: a migration, which is followed and changed as such.
#[utoipa::path(
    post, path = "/v1/vms/{name}/moves", tag = "vms", operation_id = "move_vm_disk",
    params(("name" = String, Path, description = "The machine's name")),
    request_body = MoveVmDisk,
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn start_move(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<MoveVmDisk>,
) -> Answer<Migration> {
    blocking(server, move |server| server.machines.move_vm_disk(&name, &request)).await
}

/// Makes a disk that QEMU serves a disk of Sterna's: a migration, too.
#[utoipa::path(
    post, path = "/v1/vms/{name}/adoptions", tag = "vms", operation_id = "adopt_vm_disk",
    params(("name" = String, Path, description = "The machine's name")),
    request_body = AdoptVmDisk,
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn adopt(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<AdoptVmDisk>,
) -> Answer<Migration> {
    blocking(server, move |server| server.machines.adopt_vm_disk(&name, &request)).await
}

/// Makes a disk of Sterna's that a VM has a file, which QEMU serves: a migration, too.
#[utoipa::path(
    post, path = "/v1/vms/{name}/releases", tag = "vms",
    operation_id = "release_vm_disk",
    params(("name" = String, Path, description = "The machine's name")),
    request_body = ReleaseVmDisk,
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn release(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<ReleaseVmDisk>,
) -> Answer<Migration> {
    blocking(server, move |server| server.machines.release_vm_disk(&name, &request)).await
}
