//! What can be asked about memory of VMs, and swap.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{
    AddSwapTier, ChangeMemory, ChangeMemoryTerms, HostMemory, MemoryExplanation,
    MemorySettings, MemoryTop, SleepVm, SwapTier, VmMemory, WakeVm,
};

impl Client {
    /// All swap tiers, the fastest first.
    pub async fn swap_tiers(&self) -> Result<Vec<SwapTier>, ClientError> {
        self.get("/v1/swap").await
    }

    /// Adds a swap tier. Answers when the kernel swaps to it.
    pub async fn add_swap_tier(
        &self,
        request: &AddSwapTier,
    ) -> Result<SwapTier, ClientError> {
        self.call(Method::POST, "/v1/swap", request).await
    }

    /// Removes a swap tier. Answers when all that was there is back in memory.
    pub async fn remove_swap_tier(&self, name: &str) -> Result<SwapTier, ClientError> {
        self.call(Method::DELETE, &path("swap", name), &()).await
    }

    /// The memory of the host and of all VMs.
    pub async fn host_memory(&self) -> Result<HostMemory, ClientError> {
        self.get("/v1/memory").await
    }

    /// The memory of the host, its tiers and its VMs, as the kernel counts it: no VM is asked.
    pub async fn memory_top(&self) -> Result<MemoryTop, ClientError> {
        self.get("/v1/top/memory").await
    }

    /// The memory of a VM.
    pub async fn vm_memory(&self, vm: &str) -> Result<VmMemory, ClientError> {
        self.get(&path("memory", vm)).await
    }

    /// Has a VM's memory go out. Answers when that has begun.
    pub async fn sleep_vm(
        &self,
        vm: &str,
        request: &SleepVm,
    ) -> Result<VmMemory, ClientError> {
        let at = format!("{}/sleep", path("memory", vm));
        self.call(Method::POST, &at, request).await
    }

    /// Brings a VM's memory back. Answers when that has begun.
    pub async fn wake_vm(
        &self,
        vm: &str,
        request: &WakeVm,
    ) -> Result<VmMemory, ClientError> {
        let at = format!("{}/wake", path("memory", vm));
        self.call(Method::POST, &at, request).await
    }

    /// Changes when the host counts as short of memory, and what Sterna does then.
    pub async fn change_memory(
        &self,
        request: &ChangeMemory,
    ) -> Result<MemorySettings, ClientError> {
        self.call(Method::PATCH, "/v1/memory", request).await
    }

    /// Changes what a VM is promised of its host's memory, and held to.
    pub async fn change_memory_terms(
        &self,
        vm: &str,
        request: &ChangeMemoryTerms,
    ) -> Result<VmMemory, ClientError> {
        self.call(Method::PATCH, &path("memory", vm), request).await
    }

    /// Why a VM has the memory that it has, and what it would have to give.
    pub async fn explain_memory(
        &self,
        vm: &str,
    ) -> Result<MemoryExplanation, ClientError> {
        self.get(&format!("{}/explanation", path("memory", vm))).await
    }
}
