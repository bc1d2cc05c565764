//! `/v1/datastores`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{
    AddDatastore, Datastore, DatastoreImage, DatastoreImages, Device, Error, ProbeFound,
    SetMaintenance,
};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// All datastores, by name.
#[utoipa::path(
    get, path = "/v1/datastores", tag = "datastores", operation_id = "list_datastores",
    responses(
        (status = 200, body = Vec<Datastore>),
        (status = "default", body = Error),
    ),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Datastore>> {
    blocking(server, |server| server.storage.list_datastores()).await
}

/// Adds a datastore that exists and can be written to.
#[utoipa::path(
    post, path = "/v1/datastores", tag = "datastores", operation_id = "add_datastore",
    request_body = AddDatastore,
    responses((status = 200, body = Datastore), (status = "default", body = Error)),
)]
pub(super) async fn add(
    State(server): State<Arc<Server>>,
    Body(request): Body<AddDatastore>,
) -> Answer<Datastore> {
    blocking(server, move |server| server.storage.add_datastore(&request)).await
}

/// One datastore.
#[utoipa::path(
    get, path = "/v1/datastores/{name}", tag = "datastores",
    operation_id = "show_datastore",
    params(("name" = String, Path, description = "The datastore's name")),
    responses((status = 200, body = Datastore), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Datastore> {
    blocking(server, move |server| server.storage.show_datastore(&name)).await
}

/// Forgets a datastore without disks; its files stay.
#[utoipa::path(
    delete, path = "/v1/datastores/{name}", tag = "datastores",
    operation_id = "remove_datastore",
    params(("name" = String, Path, description = "The datastore's name")),
    responses((status = 200, body = Datastore), (status = "default", body = Error)),
)]
pub(super) async fn remove(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Datastore> {
    blocking(server, move |server| server.storage.remove_datastore(&name)).await
}

/// Records the results of a probe of a datastore's device; answers with the known limits.
#[utoipa::path(
    put, path = "/v1/datastores/{name}/device", tag = "datastores",
    operation_id = "probed",
    params(("name" = String, Path, description = "The datastore's name")),
    request_body = ProbeFound,
    responses((status = 200, body = Device), (status = "default", body = Error)),
)]
pub(super) async fn probed(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(found): Body<ProbeFound>,
) -> Answer<Device> {
    blocking(server, move |server| server.storage.probed(&name, &found)).await
}

/// Puts a datastore in maintenance, in which nothing new goes there, or ends that.
#[utoipa::path(
    put, path = "/v1/datastores/{name}/maintenance", tag = "datastores",
    operation_id = "set_maintenance",
    params(("name" = String, Path, description = "The datastore's name")),
    request_body = SetMaintenance,
    responses((status = 200, body = Datastore), (status = "default", body = Error)),
)]
pub(super) async fn maintenance(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<SetMaintenance>,
) -> Answer<Datastore> {
    let SetMaintenance { maintenance } = request;
    blocking(server, move |server| server.storage.set_maintenance(&name, maintenance))
        .await
}

/// The files in a datastore's directory, and what is known of each.
#[utoipa::path(
    get, path = "/v1/datastores/{name}/images", tag = "datastores",
    operation_id = "list_images",
    params(("name" = String, Path, description = "The datastore's name")),
    responses((status = 200, body = DatastoreImages), (status = "default", body = Error)),
)]
pub(super) async fn images(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<DatastoreImages> {
    blocking(server, move |server| server.machines.list_images(&name)).await
}

/// Removes an old copy that a migration has left, and no other file.
#[utoipa::path(
    delete, path = "/v1/datastores/{name}/images/{image}", tag = "datastores",
    operation_id = "remove_image",
    params(
        ("name" = String, Path, description = "The datastore's name"),
        ("image" = String, Path, description = "The file's name in the datastore"),
    ),
    responses((status = 200, body = DatastoreImage), (status = "default", body = Error)),
)]
pub(super) async fn remove_image(
    State(server): State<Arc<Server>>,
    Which((name, image)): Which<(String, String)>,
) -> Answer<DatastoreImage> {
    blocking(server, move |server| server.machines.remove_image(&name, &image)).await
}
