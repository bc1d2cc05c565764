//! What can be asked about moves of disks.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{
    AskGuard, Migration, Predict, Prediction, ResumeMigration, SetRate, StartMigration,
};

impl Client {
    /// All migrations, the ended ones too.
    pub async fn migrations(&self) -> Result<Vec<Migration>, ClientError> {
        self.get("/v1/migrations").await
    }

    /// One migration.
    pub async fn migration(&self, id: u64) -> Result<Migration, ClientError> {
        self.get(&path("migrations", &id.to_string())).await
    }

    /// Predicts what a move would take.
    pub async fn predict(&self, request: &Predict) -> Result<Prediction, ClientError> {
        self.call(Method::POST, "/v1/predictions", request).await
    }

    /// Starts a migration.
    pub async fn migrate(
        &self,
        request: &StartMigration,
    ) -> Result<Migration, ClientError> {
        self.call(Method::POST, "/v1/migrations", request).await
    }

    /// Pauses a migration.
    pub async fn pause(&self, id: u64) -> Result<Migration, ClientError> {
        self.act(id, "pause").await
    }

    /// Makes a paused migration go on.
    pub async fn resume(
        &self,
        id: u64,
        how: ResumeMigration,
    ) -> Result<Migration, ClientError> {
        self.call(Method::POST, &format!("/v1/migrations/{id}/resume"), &how).await
    }

    /// Cancels a migration.
    pub async fn cancel(&self, id: u64) -> Result<Migration, ClientError> {
        self.act(id, "cancel").await
    }

    /// Changes a migration's rate.
    pub async fn set_rate(
        &self,
        id: u64,
        rate: Option<u64>,
    ) -> Result<Migration, ClientError> {
        let path = path("migrations", &id.to_string());
        self.call(Method::PATCH, &path, &SetRate { rate }).await
    }

    /// Changes what must hold while a disk moves; an empty guard lifts it.
    pub async fn set_guard(
        &self,
        id: u64,
        guard: &AskGuard,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/guard", path("migrations", &id.to_string()));
        self.call(Method::PUT, &path, guard).await
    }

    async fn act(&self, id: u64, what: &str) -> Result<Migration, ClientError> {
        self.call(Method::POST, &format!("/v1/migrations/{id}/{what}"), &()).await
    }
}
