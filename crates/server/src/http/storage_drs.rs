//! `/v1/storage-drs`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{
    AskStorageDrs, ChangeStorageDrs, CreateStorageRule, Error, Recommendations,
    StorageDrs, StorageDrsSettings, StorageRule,
};

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// Storage DRS in one page.
#[utoipa::path(
    get, path = "/v1/storage-drs", tag = "datastores", operation_id = "show_storage_drs",
    responses((status = 200, body = StorageDrs), (status = "default", body = Error)),
)]
pub(super) async fn show(State(server): State<Arc<Server>>) -> Answer<StorageDrs> {
    blocking(server, |server| server.planner.show_storage_drs()).await
}

/// Changes the settings of Storage DRS.
#[utoipa::path(
    patch, path = "/v1/storage-drs", tag = "datastores",
    operation_id = "change_storage_drs",
    request_body = ChangeStorageDrs,
    responses(
        (status = 200, body = StorageDrsSettings),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn change(
    State(server): State<Arc<Server>>,
    Body(change): Body<ChangeStorageDrs>,
) -> Answer<StorageDrsSettings> {
    blocking(server, move |server| server.planner.change_storage_drs(&change)).await
}

/// The rules of Storage DRS, by name.
#[utoipa::path(
    get, path = "/v1/storage-drs/rules", tag = "datastores",
    operation_id = "list_storage_rules",
    responses(
        (status = 200, body = Vec<StorageRule>),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn rules(State(server): State<Arc<Server>>) -> Answer<Vec<StorageRule>> {
    blocking(server, |server| server.planner.list_storage_rules()).await
}

/// Makes a rule about disks.
#[utoipa::path(
    post, path = "/v1/storage-drs/rules", tag = "datastores",
    operation_id = "create_storage_rule",
    request_body = CreateStorageRule,
    responses((status = 200, body = StorageRule), (status = "default", body = Error)),
)]
pub(super) async fn add_rule(
    State(server): State<Arc<Server>>,
    Body(request): Body<CreateStorageRule>,
) -> Answer<StorageRule> {
    blocking(server, move |server| server.planner.create_storage_rule(&request)).await
}

/// Removes a rule.
#[utoipa::path(
    delete, path = "/v1/storage-drs/rules/{name}", tag = "datastores",
    operation_id = "remove_storage_rule",
    params(("name" = String, Path, description = "The rule's name")),
    responses((status = 200, body = StorageRule), (status = "default", body = Error)),
)]
pub(super) async fn remove_rule(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<StorageRule> {
    blocking(server, move |server| server.planner.remove_storage_rule(&name)).await
}

/// Recommends moves, and says why other disks stay. Changes nothing.
#[utoipa::path(
    post, path = "/v1/storage-drs/recommendations", tag = "datastores",
    operation_id = "recommend",
    request_body = AskStorageDrs,
    responses(
        (status = 200, body = Recommendations),
        (status = "default", body = Error)
    ),
)]
pub(super) async fn recommend(
    State(server): State<Arc<Server>>,
    Body(asked): Body<AskStorageDrs>,
) -> Answer<Recommendations> {
    blocking(server, move |server| server.planner.recommend(&asked)).await
}
