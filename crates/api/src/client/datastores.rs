//! What can be asked about datastores and what is on them.

use hyper::Method;

use super::{Client, ClientError, escaped, path};
use crate::{
    AddDatastore, Datastore, DatastoreImage, DatastoreImages, Device, ProbeFound,
    SetMaintenance,
};

impl Client {
    /// All datastores.
    pub async fn datastores(&self) -> Result<Vec<Datastore>, ClientError> {
        self.get("/v1/datastores").await
    }

    /// One datastore.
    pub async fn datastore(&self, name: &str) -> Result<Datastore, ClientError> {
        self.get(&path("datastores", name)).await
    }

    /// Adds a datastore.
    pub async fn add_datastore(
        &self,
        request: &AddDatastore,
    ) -> Result<Datastore, ClientError> {
        self.call(Method::POST, "/v1/datastores", request).await
    }

    /// Forgets a datastore; what is on it stays. Answers with what it was.
    pub async fn remove_datastore(&self, name: &str) -> Result<Datastore, ClientError> {
        self.call(Method::DELETE, &path("datastores", name), &()).await
    }

    /// Tells what a probe of a datastore's device has found. Answers with what is known of
    /// the device now.
    pub async fn probed(
        &self,
        name: &str,
        found: &ProbeFound,
    ) -> Result<Device, ClientError> {
        self.call(Method::PUT, &format!("{}/device", path("datastores", name)), found)
            .await
    }

    /// Puts a datastore in maintenance, or ends that.
    pub async fn set_maintenance(
        &self,
        name: &str,
        maintenance: bool,
    ) -> Result<Datastore, ClientError> {
        let path = format!("{}/maintenance", path("datastores", name));
        self.call(Method::PUT, &path, &SetMaintenance { maintenance }).await
    }

    /// The files in a datastore's directory.
    pub async fn datastore_images(
        &self,
        name: &str,
    ) -> Result<DatastoreImages, ClientError> {
        self.get(&format!("{}/images", path("datastores", name))).await
    }

    /// Removes an old copy that a migration has left. Answers with what it was.
    pub async fn remove_image(
        &self,
        name: &str,
        image: &str,
    ) -> Result<DatastoreImage, ClientError> {
        let path = format!("{}/images/{}", path("datastores", name), escaped(image));
        self.call(Method::DELETE, &path, &()).await
    }
}
