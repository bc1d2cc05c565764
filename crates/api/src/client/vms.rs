//! What can be asked about VMs whose disks QEMU serves.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{AddVm, AdoptVmDisk, Migration, MoveVmDisk, ReleaseVmDisk, Vm, VmNames};

impl Client {
    /// All VMs.
    pub async fn vms(&self) -> Result<Vec<Vm>, ClientError> {
        self.get("/v1/vms").await
    }

    /// The names of all VMs, and of their disks, without asking the VMs.
    pub async fn vm_names(&self) -> Result<Vec<VmNames>, ClientError> {
        self.get("/v1/vm-names").await
    }

    /// One VM.
    pub async fn vm(&self, name: &str) -> Result<Vm, ClientError> {
        self.get(&path("vms", name)).await
    }

    /// Adds a VM that runs.
    pub async fn add_vm(&self, request: &AddVm) -> Result<Vm, ClientError> {
        self.call(Method::POST, "/v1/vms", request).await
    }

    /// Forgets a VM, which goes on as it is. Answers with what it was.
    pub async fn remove_vm(&self, name: &str) -> Result<Vm, ClientError> {
        self.call(Method::DELETE, &path("vms", name), &()).await
    }

    /// Moves a disk that QEMU serves.
    pub async fn move_vm_disk(
        &self,
        name: &str,
        request: &MoveVmDisk,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/moves", path("vms", name));
        self.call(Method::POST, &path, request).await
    }

    /// Makes a disk that QEMU serves a disk of Sterna's.
    pub async fn adopt_vm_disk(
        &self,
        name: &str,
        request: &AdoptVmDisk,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/adoptions", path("vms", name));
        self.call(Method::POST, &path, request).await
    }

    /// Makes a disk of Sterna's that a VM has a file, which QEMU serves.
    pub async fn release_vm_disk(
        &self,
        name: &str,
        request: &ReleaseVmDisk,
    ) -> Result<Migration, ClientError> {
        let path = format!("{}/releases", path("vms", name));
        self.call(Method::POST, &path, request).await
    }
}
