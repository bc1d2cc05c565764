//! `/v1/disks`, `/v1/imports` and `/v1/recoveries`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use sterna_api::{
    AttachDisk, CreateDisk, CreatedDisk, Disk, DiskStats, Error, ImageFate, ImportDisk,
    RecoverDisks, Recovery, RemovedDisk, Timeline, UsualDisk,
};
use utoipa::IntoParams;

use super::extract::{Body, Parameters, Which};
use super::{Answer, blocking};
use crate::Server;

/// Which hours.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Hours {
    /// The first moment, in seconds since 1970; 90 days before the last unless given.
    from: Option<u64>,
    /// The last moment, in seconds since 1970; now unless given.
    to: Option<u64>,
}

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

/// What is usual for a disk: what its requests are compared with.
#[utoipa::path(
    get, path = "/v1/disks/{name}/usual", tag = "disks", operation_id = "usual_of_disk",
    params(("name" = String, Path, description = "The disk's name")),
    responses((status = 200, body = UsualDisk), (status = "default", body = Error)),
)]
pub(super) async fn usual(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<UsualDisk> {
    blocking(server, move |server| server.planner.usual_of(&name)).await
}

/// What a disk did hour by hour, up to 90 days ago. Hours in which the disk was asked for
/// nothing are left out.
#[utoipa::path(
    get, path = "/v1/disks/{name}/hours", tag = "disks", operation_id = "hours_of_disk",
    params(("name" = String, Path, description = "The disk's name"), Hours),
    responses((status = 200, body = Timeline), (status = "default", body = Error)),
)]
pub(super) async fn hours(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Parameters(Hours { from, to }): Parameters<Hours>,
) -> Answer<Timeline> {
    blocking(server, move |server| server.planner.disk_hours(&name, from, to)).await
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
