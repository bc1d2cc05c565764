//! What can be asked about hosts, pools, rules, and which VMs should be where.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{
    AddHost, AddRule, ChangeDrs, ChangePool, CreatePool, DrsAdvice, DrsExplanation,
    DrsSettings, DrsStatus, Host, HostProgram, PlaceVm, Placement, Pool, Rule,
    StartTransfer, Transfer,
};

impl Client {
    /// All hosts.
    pub async fn hosts(&self) -> Result<Vec<Host>, ClientError> {
        self.get("/v1/hosts").await
    }

    /// One host.
    pub async fn host(&self, name: &str) -> Result<Host, ClientError> {
        self.get(&path("hosts", name)).await
    }

    /// Adds a host.
    pub async fn add_host(&self, request: &AddHost) -> Result<Host, ClientError> {
        self.call(Method::POST, "/v1/hosts", request).await
    }

    /// Says which program starts VMs on a host.
    pub async fn set_host_program(
        &self,
        name: &str,
        request: &HostProgram,
    ) -> Result<Host, ClientError> {
        let at = format!("{}/program", path("hosts", name));
        self.call(Method::PUT, &at, request).await
    }

    /// Forgets a host on which no VM is. Answers with what it was.
    pub async fn remove_host(&self, name: &str) -> Result<Host, ClientError> {
        self.call(Method::DELETE, &path("hosts", name), &()).await
    }

    /// Says on which host a VM is, or that this is to be forgotten.
    pub async fn place_vm(
        &self,
        vm: &str,
        request: &PlaceVm,
    ) -> Result<Placement, ClientError> {
        self.call(Method::PUT, &path("placements", vm), request).await
    }

    /// All pools, each behind the one that it is in.
    pub async fn pools(&self) -> Result<Vec<Pool>, ClientError> {
        self.get("/v1/pools").await
    }

    /// One pool.
    pub async fn pool(&self, name: &str) -> Result<Pool, ClientError> {
        self.get(&path("pools", name)).await
    }

    /// Creates a pool.
    pub async fn create_pool(&self, request: &CreatePool) -> Result<Pool, ClientError> {
        self.call(Method::POST, "/v1/pools", request).await
    }

    /// Changes a pool.
    pub async fn change_pool(
        &self,
        name: &str,
        change: &ChangePool,
    ) -> Result<Pool, ClientError> {
        self.call(Method::PATCH, &path("pools", name), change).await
    }

    /// Deletes a pool that no pool is in; its VMs are in none then. Answers with what it
    /// was.
    pub async fn delete_pool(&self, name: &str) -> Result<Pool, ClientError> {
        self.call(Method::DELETE, &path("pools", name), &()).await
    }

    /// All rules.
    pub async fn rules(&self) -> Result<Vec<Rule>, ClientError> {
        self.get("/v1/rules").await
    }

    /// Adds a rule.
    pub async fn add_rule(&self, request: &AddRule) -> Result<Rule, ClientError> {
        self.call(Method::POST, "/v1/rules", request).await
    }

    /// Removes a rule. Answers with what it was.
    pub async fn remove_rule(&self, name: &str) -> Result<Rule, ClientError> {
        self.call(Method::DELETE, &path("rules", name), &()).await
    }

    /// What DRS sees.
    pub async fn drs(&self) -> Result<DrsStatus, ClientError> {
        self.get("/v1/drs").await
    }

    /// Changes when something is recommended.
    pub async fn change_drs(
        &self,
        change: &ChangeDrs,
    ) -> Result<DrsSettings, ClientError> {
        self.call(Method::PATCH, "/v1/drs", change).await
    }

    /// Which VMs should be on other hosts, and why the rest should not.
    pub async fn drs_advice(&self) -> Result<DrsAdvice, ClientError> {
        self.get("/v1/drs/recommendations").await
    }

    /// Why a VM is where it is.
    pub async fn explain_vm(&self, vm: &str) -> Result<DrsExplanation, ClientError> {
        self.get(&path("drs/explanations", vm)).await
    }

    /// Carries out what is recommended for a VM. Answers with what has begun: two
    /// transfers, where two VMs change places.
    pub async fn start_transfer(
        &self,
        request: &StartTransfer,
    ) -> Result<Vec<Transfer>, ClientError> {
        self.call(Method::POST, "/v1/drs/transfers", request).await
    }

    /// All transfers, oldest first.
    pub async fn transfers(&self) -> Result<Vec<Transfer>, ClientError> {
        self.get("/v1/drs/transfers").await
    }

    /// One transfer.
    pub async fn transfer(&self, id: u64) -> Result<Transfer, ClientError> {
        self.get(&path("drs/transfers", &id.to_string())).await
    }

    /// Gives a transfer up.
    pub async fn cancel_transfer(&self, id: u64) -> Result<Transfer, ClientError> {
        let at = format!("{}/cancel", path("drs/transfers", &id.to_string()));
        self.call(Method::POST, &at, &()).await
    }
}
