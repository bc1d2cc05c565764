//! What can be asked about plans.

use hyper::Method;

use super::{Client, ClientError, path};
use crate::{Plan, PlanEvacuation};

impl Client {
    /// All plans, the ended ones too.
    pub async fn plans(&self) -> Result<Vec<Plan>, ClientError> {
        self.get("/v1/plans").await
    }

    /// One plan.
    pub async fn plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.get(&path("plans", &id.to_string())).await
    }

    /// Makes a plan to empty a datastore; begins nothing.
    pub async fn plan_evacuation(
        &self,
        request: &PlanEvacuation,
    ) -> Result<Plan, ClientError> {
        self.call(Method::POST, "/v1/plans", request).await
    }

    /// Begins a plan.
    pub async fn apply_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "apply").await
    }

    /// Makes a plan and its moves stand still.
    pub async fn pause_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "pause").await
    }

    /// Makes a paused plan and its moves go on.
    pub async fn resume_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "resume").await
    }

    /// Gives a plan up.
    pub async fn cancel_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.act_on_plan(id, "cancel").await
    }

    /// Forgets a plan that has ended, or has never begun. Answers with what it was.
    pub async fn remove_plan(&self, id: u64) -> Result<Plan, ClientError> {
        self.call(Method::DELETE, &path("plans", &id.to_string()), &()).await
    }

    async fn act_on_plan(&self, id: u64, what: &str) -> Result<Plan, ClientError> {
        self.call(Method::POST, &format!("/v1/plans/{id}/{what}"), &()).await
    }
}
