//! `/v1/memory` and `/v1/swap`.

use std::sync::Arc;

use axum::extract::State;
use sterna_api::{
    AddSwapTier, ChangeMemory, ChangeMemoryTerms, Error, HostMemory, MemoryExplanation,
    MemorySettings, MemoryTop, SleepVm, SwapTier, VmMemory, WakeVm,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Body, Which};
use super::{Answer, blocking};
use crate::Server;

/// What can be asked about memory and swap.
pub(super) fn routes() -> OpenApiRouter<Arc<Server>> {
    OpenApiRouter::new()
        .routes(routes!(top))
        .routes(routes!(tiers, add_tier))
        .routes(routes!(remove_tier))
        .routes(routes!(show, change))
        .routes(routes!(show_vm, change_terms))
        .routes(routes!(explain))
        .routes(routes!(sleep))
        .routes(routes!(wake))
}

/// The memory of the host, its swap tiers and its VMs, as the kernel counts it. No VM is asked.
#[utoipa::path(
    get, path = "/v1/top/memory", tag = "memory", operation_id = "memory_top",
    responses((status = 200, body = MemoryTop), (status = "default", body = Error)),
)]
pub(super) async fn top(State(server): State<Arc<Server>>) -> Answer<MemoryTop> {
    blocking(server, |server| server.memory.top()).await
}

/// All swap tiers, the fastest first.
#[utoipa::path(
    get, path = "/v1/swap", tag = "memory", operation_id = "list_swap_tiers",
    responses((status = 200, body = Vec<SwapTier>), (status = "default", body = Error)),
)]
pub(super) async fn tiers(State(server): State<Arc<Server>>) -> Answer<Vec<SwapTier>> {
    blocking(server, |server| server.memory.list_swap_tiers()).await
}

/// Adds a swap tier: makes it, measures it, and has the kernel swap to it.
#[utoipa::path(
    post, path = "/v1/swap", tag = "memory", operation_id = "add_swap_tier",
    request_body = AddSwapTier,
    responses((status = 200, body = SwapTier), (status = "default", body = Error)),
)]
pub(super) async fn add_tier(
    State(server): State<Arc<Server>>,
    Body(request): Body<AddSwapTier>,
) -> Answer<SwapTier> {
    blocking(server, move |server| server.memory.add_swap_tier(&request)).await
}

/// Removes a swap tier: all that is there comes back to memory first.
#[utoipa::path(
    delete, path = "/v1/swap/{name}", tag = "memory", operation_id = "remove_swap_tier",
    params(("name" = String, Path, description = "The tier's name")),
    responses((status = 200, body = SwapTier), (status = "default", body = Error)),
)]
pub(super) async fn remove_tier(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<SwapTier> {
    blocking(server, move |server| server.memory.remove_swap_tier(&name)).await
}

/// The memory of the host, its swap tiers, and the memory of all VMs.
#[utoipa::path(
    get, path = "/v1/memory", tag = "memory", operation_id = "show_host_memory",
    responses((status = 200, body = HostMemory), (status = "default", body = Error)),
)]
pub(super) async fn show(State(server): State<Arc<Server>>) -> Answer<HostMemory> {
    blocking(server, |server| server.memory.show_host_memory()).await
}

/// The memory of a VM.
#[utoipa::path(
    get, path = "/v1/memory/{name}", tag = "memory", operation_id = "show_vm_memory",
    params(("name" = String, Path, description = "The VM's name")),
    responses((status = 200, body = VmMemory), (status = "default", body = Error)),
)]
pub(super) async fn show_vm(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<VmMemory> {
    blocking(server, move |server| server.memory.show_vm_memory(&name)).await
}

/// Has a VM's memory go out to the swap tiers.
#[utoipa::path(
    post, path = "/v1/memory/{name}/sleep", tag = "memory", operation_id = "sleep_vm",
    params(("name" = String, Path, description = "The VM's name")),
    request_body = SleepVm,
    responses((status = 200, body = VmMemory), (status = "default", body = Error)),
)]
pub(super) async fn sleep(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<SleepVm>,
) -> Answer<VmMemory> {
    blocking(server, move |server| server.memory.sleep_vm(&name, &request)).await
}

/// Brings a VM's memory back.
#[utoipa::path(
    post, path = "/v1/memory/{name}/wake", tag = "memory", operation_id = "wake_vm",
    params(("name" = String, Path, description = "The VM's name")),
    request_body = WakeVm,
    responses((status = 200, body = VmMemory), (status = "default", body = Error)),
)]
pub(super) async fn wake(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<WakeVm>,
) -> Answer<VmMemory> {
    blocking(server, move |server| server.memory.wake_vm(&name, &request)).await
}

/// Changes when the host counts as short of memory, and what Sterna does then.
#[utoipa::path(
    patch, path = "/v1/memory", tag = "memory", operation_id = "change_memory",
    request_body = ChangeMemory,
    responses((status = 200, body = MemorySettings), (status = "default", body = Error)),
)]
pub(super) async fn change(
    State(server): State<Arc<Server>>,
    Body(request): Body<ChangeMemory>,
) -> Answer<MemorySettings> {
    blocking(server, move |server| server.memory.change_memory(&request)).await
}

/// Changes what a VM is promised of its host's memory, and held to.
#[utoipa::path(
    patch, path = "/v1/memory/{name}", tag = "memory", operation_id = "change_memory_terms",
    params(("name" = String, Path, description = "The VM's name")),
    request_body = ChangeMemoryTerms,
    responses((status = 200, body = VmMemory), (status = "default", body = Error)),
)]
pub(super) async fn change_terms(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
    Body(request): Body<ChangeMemoryTerms>,
) -> Answer<VmMemory> {
    blocking(server, move |server| server.memory.change_terms(&name, &request)).await
}

/// Says why a VM has the memory that it has, and what it would have to give.
#[utoipa::path(
    get, path = "/v1/memory/{name}/explanation", tag = "memory",
    operation_id = "explain_memory",
    params(("name" = String, Path, description = "The VM's name")),
    responses((status = 200, body = MemoryExplanation), (status = "default", body = Error)),
)]
pub(super) async fn explain(
    State(server): State<Arc<Server>>,
    Which(name): Which<String>,
) -> Answer<MemoryExplanation> {
    blocking(server, move |server| server.memory.explain(&name)).await
}
