//! What can be asked about disks.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{
    AttachDisk, CreateDisk, CreatedDisk, Disk, DiskStats, ImageFate, ImportDisk,
    RecoverDisks, Recovery, RemovedDisk,
};

impl Client {
    /// All disks.
    pub async fn disks(&self) -> Result<Vec<Disk>, ClientError> {
        self.get("/v1/disks").await
    }

    /// One disk.
    pub async fn disk(&self, name: &str) -> Result<Disk, ClientError> {
        self.get(&path("disks", name)).await
    }

    /// What a disk's requests are like.
    pub async fn disk_stats(&self, name: &str) -> Result<DiskStats, ClientError> {
        self.get(&format!("{}/stats", path("disks", name))).await
    }

    /// Creates an empty disk.
    pub async fn create_disk(
        &self,
        request: &CreateDisk,
    ) -> Result<CreatedDisk, ClientError> {
        self.call(Method::POST, "/v1/disks", request).await
    }

    /// Makes a raw image that exists a disk.
    pub async fn import_disk(&self, request: &ImportDisk) -> Result<Disk, ClientError> {
        self.call(Method::POST, "/v1/imports", request).await
    }

    /// Makes images that are the truth of disks disks again.
    pub async fn recover_disks(
        &self,
        request: &RecoverDisks,
    ) -> Result<Recovery, ClientError> {
        self.call(Method::POST, "/v1/recoveries", request).await
    }

    /// Removes a disk. Answers with what it was, and what became of its image.
    pub async fn remove_disk(
        &self,
        name: &str,
        image: ImageFate,
    ) -> Result<RemovedDisk, ClientError> {
        let path = format!("{}?image={}", path("disks", name), image.as_str());
        self.call(Method::DELETE, &path, &()).await
    }

    /// Gives a disk to a VM, over vhost-user-blk.
    pub async fn attach_disk(
        &self,
        name: &str,
        request: &AttachDisk,
    ) -> Result<Disk, ClientError> {
        let path = format!("{}/attachment", path("disks", name));
        self.call(Method::POST, &path, request).await
    }

    /// Takes a disk away from its VM.
    pub async fn detach_disk(&self, name: &str) -> Result<Disk, ClientError> {
        let path = format!("{}/attachment", path("disks", name));
        self.call(Method::DELETE, &path, &()).await
    }
}
