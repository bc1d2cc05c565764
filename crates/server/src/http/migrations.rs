//! `/v1/migrations`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{AskGuard, Error, Migration, ResumeMigration, SetRate, StartMigration};

use super::extract::{Body, MaybeBody, Which};
use super::{Answer, blocking};
use crate::Server;

/// All migrations, oldest first; the ended ones too.
#[utoipa::path(
    get, path = "/v1/migrations", tag = "migrations", operation_id = "list_migrations",
    responses(
        (status = 200, body = Vec<Migration>),
        (status = "default", body = Error),
    ),
)]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Vec<Migration>> {
    blocking(server, |server| server.moves.list_migrations()).await
}

/// Starts a migration. Answers as soon as the copy has begun.
#[utoipa::path(
    post, path = "/v1/migrations", tag = "migrations", operation_id = "start_migration",
    request_body = StartMigration,
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn start(
    State(server): State<Arc<Server>>,
    Body(request): Body<StartMigration>,
) -> Answer<Migration> {
    blocking(server, move |server| server.moves.start_migration(&request)).await
}

/// One migration; cheap enough to be asked ten times a second.
#[utoipa::path(
    get, path = "/v1/migrations/{id}", tag = "migrations",
    operation_id = "show_migration",
    params(("id" = u64, Path, description = "The migration's number")),
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Migration> {
    blocking(server, move |server| server.moves.show_migration(id)).await
}

/// Changes a migration's rate.
#[utoipa::path(
    patch, path = "/v1/migrations/{id}", tag = "migrations",
    operation_id = "change_migration",
    params(("id" = u64, Path, description = "The migration's number")),
    request_body = SetRate,
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn change(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
    Body(request): Body<SetRate>,
) -> Answer<Migration> {
    blocking(server, move |server| {
        let migration = server.moves.set_migration_rate(id, request.rate)?;
        tried(server, &migration, "given another rate");
        Ok(migration)
    })
    .await
}

/// Changes what must hold for the application while a disk moves. An empty guard
/// lifts it.
#[utoipa::path(
    put, path = "/v1/migrations/{id}/guard", tag = "migrations",
    operation_id = "guard_migration",
    params(("id" = u64, Path, description = "The migration's number")),
    request_body = AskGuard,
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn guard(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
    Body(request): Body<AskGuard>,
) -> Answer<Migration> {
    blocking(server, move |server| {
        let migration = server.moves.set_migration_guard(id, &request)?;
        tried(server, &migration, "given another guard");
        Ok(migration)
    })
    .await
}

/// Makes a migration stand still, over restarts too.
#[utoipa::path(
    post, path = "/v1/migrations/{id}/pause", tag = "migrations",
    operation_id = "pause_migration",
    params(("id" = u64, Path, description = "The migration's number")),
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn pause(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Migration> {
    blocking(server, move |server| {
        let migration = server.moves.pause_migration(id)?;
        tried(server, &migration, "paused");
        Ok(migration)
    })
    .await
}

/// Makes a paused migration go on.
#[utoipa::path(
    post, path = "/v1/migrations/{id}/resume", tag = "migrations",
    operation_id = "resume_migration",
    params(("id" = u64, Path, description = "The migration's number")),
    request_body = Option<ResumeMigration>,
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn resume(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
    MaybeBody(how): MaybeBody<ResumeMigration>,
) -> Answer<Migration> {
    blocking(server, move |server| server.moves.resume_migration(id, how)).await
}

/// Cancels a migration; the disk stays where it is.
#[utoipa::path(
    post, path = "/v1/migrations/{id}/cancel", tag = "migrations",
    operation_id = "cancel_migration",
    params(("id" = u64, Path, description = "The migration's number")),
    responses((status = 200, body = Migration), (status = "default", body = Error)),
)]
pub(super) async fn cancel(
    State(server): State<Arc<Server>>,
    Which(id): Which<u64>,
) -> Answer<Migration> {
    blocking(server, move |server| {
        let migration = server.moves.cancel_migration(id)?;
        tried(server, &migration, "cancelled");
        Ok(migration)
    })
    .await
}

/// The planner sees whom it helps.
fn tried(server: &Server, Migration { id, disk, from, to, .. }: &Migration, done: &str) {
    let what = format!("move {id} of disk {disk} was {done}");
    server.planner.tried_move([from, to], what);
}
