//! What can be asked about Storage DRS and its rules.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{
    AskStorageDrs, ChangeStorageDrs, CreateStorageRule, Recommendations, StorageDrs,
    StorageDrsSettings, StorageRule,
};

impl Client {
    /// Recommends moves, and says why other disks stay.
    pub async fn recommend(
        &self,
        asked: &AskStorageDrs,
    ) -> Result<Recommendations, ClientError> {
        self.call(Method::POST, "/v1/storage-drs/recommendations", asked).await
    }

    /// Storage DRS in one page.
    pub async fn storage_drs(&self) -> Result<StorageDrs, ClientError> {
        self.get("/v1/storage-drs").await
    }

    /// Changes its settings; answers with what they are then.
    pub async fn change_storage_drs(
        &self,
        change: &ChangeStorageDrs,
    ) -> Result<StorageDrsSettings, ClientError> {
        self.call(Method::PATCH, "/v1/storage-drs", change).await
    }

    /// The rules of Storage DRS.
    pub async fn storage_rules(&self) -> Result<Vec<StorageRule>, ClientError> {
        self.get("/v1/storage-drs/rules").await
    }

    /// Makes a rule.
    pub async fn create_storage_rule(
        &self,
        request: &CreateStorageRule,
    ) -> Result<StorageRule, ClientError> {
        self.call(Method::POST, "/v1/storage-drs/rules", request).await
    }

    /// Removes a rule. Answers with what it was.
    pub async fn remove_storage_rule(
        &self,
        name: &str,
    ) -> Result<StorageRule, ClientError> {
        self.call(Method::DELETE, &path("storage-drs/rules", name), &()).await
    }
}
