//! `/v1/classes`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use sterna_api::{ChangeClass, Class, CreateClass, Error, Explanation, KeptClass};
use utoipa::IntoParams;

use super::extract::{Body, Parameters, Which};
use super::{Answer, blocking};
use crate::Server;

/// How to delete a class.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Deletion {
    /// Whether to delete its policies, too. Otherwise Sterna refuses to delete a class
    /// with policies.
    #[serde(default)]
    with_policies: bool,
}

/// All classes: the built-in ones, then as they were made.
#[utoipa::path(
    get, path = "/v1/classes", tag = "classes", operation_id = "list_classes",
    responses((status = 200, body = Vec<Class>), (status = "default", body = Error)),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Class>> {
    blocking(server, |server| server.levels.list_classes()).await
}

/// Creates a class.
#[utoipa::path(
    post, path = "/v1/classes", tag = "classes", operation_id = "create_class",
    request_body = CreateClass,
    responses((status = 200, body = Class), (status = "default", body = Error)),
)]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Body(request): Body<CreateClass>,
) -> Answer<Class> {
    blocking(server, move |server| server.levels.create_class(&request)).await
}

/// One class.
#[utoipa::path(
    get, path = "/v1/classes/{name}", tag = "classes", operation_id = "show_class",
    params(("name" = String, Path, description = "The class's name")),
    responses((status = 200, body = Class), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Class> {
    blocking(server, move |server| server.levels.show_class(&name)).await
}

/// Changes a class: all that is asked, or nothing.
#[utoipa::path(
    patch, path = "/v1/classes/{name}", tag = "classes", operation_id = "change_class",
    params(("name" = String, Path, description = "The class's name")),
    request_body = ChangeClass,
    responses((status = 200, body = Class), (status = "default", body = Error)),
)]
pub(super) async fn change(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<ChangeClass>,
) -> Answer<Class> {
    blocking(server, move |server| server.levels.change_class(&name, &request)).await
}

/// Deletes a class; its disks are then in no class.
#[utoipa::path(
    delete, path = "/v1/classes/{name}", tag = "classes", operation_id = "delete_class",
    params(("name" = String, Path, description = "The class's name"), Deletion),
    responses((status = 200, body = Class), (status = "default", body = Error)),
)]
pub(super) async fn delete(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Parameters(deletion): Parameters<Deletion>,
) -> Answer<Class> {
    let with_policies = deletion.with_policies;
    blocking(server, move |server| server.levels.delete_class(&name, with_policies)).await
}

/// What limits a class now, since when, and what would change this.
#[utoipa::path(
    get, path = "/v1/classes/{name}/explanation", tag = "classes",
    operation_id = "explain_class",
    params(("name" = String, Path, description = "The class's name")),
    responses(
        (status = 200, body = Explanation),
        (status = "default", body = Error),
    ),
)]
pub(super) async fn explain(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<Explanation> {
    blocking(server, move |server| server.levels.explain(&name)).await
}

/// Which hours of a class are asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AskedHours {
    /// From the hour of this moment on (seconds since 1970); a week before `to` unless given.
    from: Option<u64>,
    /// Until this moment (seconds since 1970); now unless given.
    to: Option<u64>,
}

/// How the promises to a class were kept, hour by hour, in up to 90 days.
#[utoipa::path(
    get, path = "/v1/classes/{name}/kept", tag = "classes", operation_id = "kept_hours",
    params(("name" = String, Path, description = "The class's name"), AskedHours),
    responses((status = 200, body = KeptClass), (status = "default", body = Error)),
)]
pub(super) async fn kept(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Parameters(asked): Parameters<AskedHours>,
) -> Answer<KeptClass> {
    let AskedHours { from, to } = asked;
    blocking(server, move |server| server.levels.kept_hours(&name, from, to)).await
}
