//! `/v1/disks`, `/v1/imports` and `/v1/recoveries`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use sterna_api::{
    AttachDisk, CreateDisk, CreatedDisk, Disk, DiskStats, Error, ImageFate, ImportDisk,
    RecoverDisks, Recovery, RemovedDisk,
};
use utoipa::IntoParams;

use super::extract::{Body, Parameters, Which};
use super::{Answer, blocking};
use crate::Server;

/// How to remove a disk.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Removal {
    /// What happens to the image.
    #[serde(default)]
    #[param(inline)]
    image: ImageFate,
}

/// All disks, by name.
#[utoipa::path(
    get, path = "/v1/disks", tag = "disks", operation_id = "list_disks",
    responses((status = 200, body = Vec<Disk>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Disk>> {
    blocking(server, |server| server.storage.list_disks()).await
}

/// Creates an empty disk and serves it, on a datastore that is named or chosen.
#[utoipa::path(
    post, path = "/v1/disks", tag = "disks", operation_id = "create_disk",
    request_body = CreateDisk,
    responses((status = 200, body = CreatedDisk), (status = "default", body = Error)),
)]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Body(request): Body<CreateDisk>,
) -> Answer<CreatedDisk> {
    blocking(server, move |server| server.create_disk(&request)).await
}

/// Makes a raw image that exists a disk, in place, and serves it.
#[utoipa::path(
    post, path = "/v1/imports", tag = "disks", operation_id = "import_disk",
    request_body = ImportDisk,
    responses((status = 200, body = Disk), (status = "default", body = Error)),
)]
pub(super) async fn import(
    State(server): State<Arc<Server>>,
    Body(request): Body<ImportDisk>,
) -> Answer<Disk> {
    blocking(server, move |server| server.storage.import_disk(&request)).await
}

/// Makes images that are the truth of disks disks again: after the state was lost.
#[utoipa::path(
    post, path = "/v1/recoveries", tag = "disks", operation_id = "recover_disks",
    request_body = RecoverDisks,
    responses((status = 200, body = Recovery), (status = "default", body = Error)),
)]
pub(super) async fn recover(
    State(server): State<Arc<Server>>,
    Body(request): Body<RecoverDisks>,
) -> Answer<Recovery> {
    blocking(server, move |server| server.storage.recover_disks(&request)).await
}

/// One disk.
#[utoipa::path(
    get, path = "/v1/disks/{name}", tag = "disks", operation_id = "show_disk",
    params(("name" = String, Path, description = "The disk's name")),
    responses((status = 200, body = Disk), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Disk> {
    blocking(server, move |server| server.storage.show_disk(&name)).await
}

/// The pattern of a disk's requests since the disk was attached.
#[utoipa::path(
    get, path = "/v1/disks/{name}/stats", tag = "disks", operation_id = "disk_stats",
    params(("name" = String, Path, description = "The disk's name")),
    responses((status = 200, body = DiskStats), (status = "default", body = Error)),
)]
pub(super) async fn stats(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<DiskStats> {
    blocking(server, move |server| server.storage.disk_stats(&name)).await
}

/// Removes a disk that is not in use.
#[utoipa::path(
    delete, path = "/v1/disks/{name}", tag = "disks", operation_id = "remove_disk",
    params(("name" = String, Path, description = "The disk's name"), Removal),
    responses(
        (status = 200, body = RemovedDisk),
        (status = "default", body = Error),
    ),
)]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Parameters(removal): Parameters<Removal>,
) -> Answer<RemovedDisk> {
    blocking(server, move |server| server.storage.remove_disk(&name, removal.image)).await
}

/// Makes a vhost-user-blk socket on which a VM finds a disk.
#[utoipa::path(
    post, path = "/v1/disks/{name}/attachment", tag = "disks",
    operation_id = "attach_disk",
    params(("name" = String, Path, description = "The disk's name")),
    request_body = AttachDisk,
    responses((status = 200, body = Disk), (status = "default", body = Error)),
)]
pub(super) async fn attach(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<AttachDisk>,
) -> Answer<Disk> {
    blocking(server, move |server| server.storage.attach_disk(&name, &request.vhost_user))
        .await
}

/// Detaches a disk from its socket, and from the VM that uses it.
#[utoipa::path(
    delete, path = "/v1/disks/{name}/attachment", tag = "disks",
    operation_id = "detach_disk",
    params(("name" = String, Path, description = "The disk's name")),
    responses((status = 200, body = Disk), (status = "default", body = Error)),
)]
pub(super) async fn detach(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Disk> {
    blocking(server, move |server| server.storage.detach_disk(&name)).await
}
